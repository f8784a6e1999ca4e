"""Executables as bytes: jax.experimental.serialize_executable, JAX's persistent compilation cache.

The protocol has no requests for it. The server takes the wish, and what was kept, from options of ours in a request to
compile (gangway/ifrt_proxy/sealed_program.h); a program of the smallest kind goes along. The bytes hold what the
program was compiled from, for the version of Gangway that made them: to load them is to compile, unless a worker keeps
the machine code (`--cache`).
"""

import base64
import functools

from jax_plugins.gangway import dumps
from jax_plugins.gangway.replacement import replace

SEAL, OPEN = "gangway_seal", "gangway_open"


def install():
    """Idempotent. Does nothing where this JAX serializes in another way."""
    try:
        from jaxlib import _jax
    except ImportError:
        return
    for owner, name, function in (
        (_jax.LoadedExecutable, "serialize", _serialize),
        (_jax.Client, "serialize_executable", lambda client, executable: _serialize(executable)),
        (_jax.Client, "deserialize_executable", _deserialize),
    ):
        replace(owner, name, functools.partial(_for_proxies, function))


def _for_proxies(function, original):
    def method(self, *arguments, **options):
        client = getattr(self, "client", self)
        return (function if "proxy" in client.runtime_type else original)(self, *arguments, **options)

    return method


def _serialize(executable):
    fingerprint = executable.fingerprint
    text = fingerprint.decode() if isinstance(fingerprint, bytes) else fingerprint
    sealed = _compile_nothing(executable.client, executable.local_devices()[:1], {SEAL: text}).fingerprint
    return sealed if isinstance(sealed, bytes) else sealed.encode("latin-1")


def _deserialize(client, serialized, executable_devices, compile_options=None, host_callbacks=()):
    if host_callbacks:
        raise NotImplementedError("a Gangway server loads no programs that call functions of their client")
    wishes = dumps.wanted(compile_options) if compile_options else {}
    text = base64.b64encode(serialized).decode()
    executable = _compile_nothing(client, executable_devices, {OPEN: text}, compile_options)
    dumps.write(executable, wishes)
    return executable


def _compile_nothing(client, devices, overrides, options=None):
    """Asks for a program on `devices` with options of ours."""
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax_plugins.gangway.compiler_options import NOTHING
    from jaxlib.mlir import ir

    # Without an assignment of devices the program gets those that it had.
    options = options or compiler.get_compile_options(num_replicas=1, num_partitions=1)
    options.env_option_overrides = list(overrides.items())
    with mlir.make_ir_context():
        devices = xla_client.DeviceList(tuple(devices))
        return client.compile_and_load(ir.Module.parse(NOTHING), devices, options, [])
