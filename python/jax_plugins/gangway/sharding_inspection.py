"""jax.debug.inspect_array_sharding in a jitted function: the server tells how the value lies.

JAX hands a key to its function to the compiler, whose partitioner calls it in this process. The one on a Gangway server
sends the key back with the sharding, on the connection of the host callbacks, before it says that the program is
compiled.
"""

import struct
import weakref

from jax_plugins.gangway import host_callbacks
from jax_plugins.gangway.replacement import replace

_callbacks = weakref.WeakValueDictionary()  # the client's executable keeps them alive


def install():
    """Idempotent. Does nothing where this JAX asks in another way."""
    try:
        from jax._src import debugging
        from jax._src.interpreters import mlir
    except ImportError:
        return
    encode = replace(debugging.xc, "encode_inspect_sharding_callback", _remembering)
    if encode is None:
        return
    lowering = replace(debugging, "_inspect_sharding_lowering_rule", _lowering)
    if lowering is not None:
        mlir.register_lowering(debugging.inspect_sharding_p, lowering)
    host_callbacks.serve(host_callbacks.TELL_SHARDING, _tell)


def _remembering(encode):
    def encode_inspect_sharding_callback(callback):
        key = encode(callback)
        _callbacks[_bytes(key)] = callback
        return key

    return encode_inspect_sharding_callback


def _lowering(original):
    def lowering(ctx, value, **parameters):
        if host_callbacks.is_ours(ctx.module_context):
            host_callbacks.connect(ctx.module_context.get_backend())
        return original(ctx, value, **parameters)

    return lowering


def _bytes(key):
    return key if isinstance(key, bytes) else key.encode()


def _tell(operands):
    """From a key with its length and a serialized OpSharding to nothing."""
    from jax._src.lib import xla_client

    (length,) = struct.unpack_from("<Q", operands)
    key, proto = bytes(operands[8 : 8 + length]), bytes(operands[8 + length :])
    sharding = xla_client.OpSharding()
    sharding.ParseFromString(proto)
    if callback := _callbacks.get(key):
        callback(xla_client.HloSharding.from_proto(sharding))
    return b""
