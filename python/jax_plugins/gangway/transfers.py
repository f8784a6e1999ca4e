"""What JAX and jaxlib's client of a proxy cannot transfer, or only by way of this process.

The client copies between devices of its own server only: what goes from there to a local CPU device, or from one server
to another, is read to the host first. It sends arrays with positive strides only: reversed and broadcast ones are made
dense. JAX reads what goes to another set of devices to the host and puts it there again; the server's workers can move
it themselves, unless a guard of explicit transfers is on, which is JAX's to apply. Reading an array of a CPU device is
no transfer to JAX's guards: it is none here either.
"""

import numpy as np
from jax_plugins.gangway.replacement import replace

try:
    from jaxlib import _pathways
except ImportError:
    _pathways = None


def install():
    """Idempotent. Does nothing where this JAX puts arrays in another way."""
    _install_device_put()
    _install_batched_device_put()
    _install_transfer_server()
    _install_reads()


def _install_reads():
    try:
        from jax._src.array import ArrayImpl
        from jax._src.config import transfer_guard_device_to_host as guard
    except ImportError:
        return
    for name in ("_single_device_array_to_np_array_did_copy", "_copy_single_device_array_to_host_async"):
        replace(ArrayImpl, name, lambda original: _unguarded_on_cpu(original, guard))


def _unguarded_on_cpu(original, guard):
    def read(array):
        if guard.value in (None, "allow") or next(iter(array.devices())).platform != "cpu":
            return original(array)
        with guard("allow"):
            return original(array)

    return read


def _install_transfer_server():
    """jaxlib's server of arrays in its own memory ends the process when it is given a proxy's client."""
    try:
        from jaxlib import _jax
    except ImportError:
        return
    replace(_jax, "start_transfer_server", _of_own_arrays)


def _of_own_arrays(original):
    def start_transfer_server(client, *rest, **options):
        if "proxy" in client.runtime_type:
            raise NotImplementedError(
                "arrays of a Gangway server are not in this process: jax.experimental.transfer cannot serve them"
            )
        return original(client, *rest, **options)

    return start_transfer_server


def _install_batched_device_put():
    try:
        from jax._src.interpreters import pxla
    except ImportError:
        return
    replace(pxla, "batched_device_put", _of_dense_arrays)


def _of_dense_arrays(original):
    def dense(x):
        backward = any(stride <= 0 for stride in getattr(x, "strides", None) or ())
        return np.array(x, order="C") if backward else x

    def batched_device_put(aval, sharding, xs, devices, *rest, **options):
        if any("proxy" in client.runtime_type for client in map(_client_of, devices[:1]) if client is not None):
            xs = [dense(x) for x in xs]
        return original(aval, sharding, xs, devices, *rest, **options)

    return batched_device_put


def _install_device_put():
    try:
        from jax._src import dispatch
    except ImportError:
        return
    replace(dispatch, "_device_put_sharding_impl", _by_the_host)


def _by_the_host(original):
    def device_put(x, aval, device, *rest, **options):
        import jax
        from jax._src import array

        # An array of random keys holds one of integers.
        base = getattr(x, "_base_array", x)
        if isinstance(base, array.ArrayImpl) and _leaves_its_client(base, device):
            if base is not x:
                return type(x)(x._impl, jax.device_put(base, device))
            x = np.asarray(x)
        elif base is x and (moved := _move(x, device, *rest, **options)) is not None:
            return moved
        return original(x, aval, device, *rest, **options)

    return device_put


def _move(x, sharding, copy):
    """The array on another set of its server's devices; None where that is not for the server to do."""
    from jax._src.array import ArrayImpl
    from jax.sharding import NamedSharding, SingleDeviceSharding
    from jaxlib import xla_client

    def is_known(sharding):
        if isinstance(sharding, SingleDeviceSharding):
            return True
        return isinstance(sharding, NamedSharding) and not sharding.spec.unreduced

    if not isinstance(x, ArrayImpl) or not is_known(x.sharding) or not is_known(sharding):
        return None
    if x.dtype.kind in "TO" or _guards_explicit_transfers():
        return None  # of strings: the server does not look into them
    sets = x.sharding.device_set, sharding.device_set
    if sets[0] == sets[1] or max(map(len, sets)) == 1 or "proxy" not in _client_of(sharding).runtime_type:
        return None
    semantics = xla_client.ArrayCopySemantics
    if copy == semantics.ALWAYS_COPY or not hasattr(_pathways, "_transfer_to_shardings"):
        return None
    return _pathways._transfer_to_shardings([x], [sharding], copy == semantics.DONATE_INPUT)[0]


def _guards_explicit_transfers():
    from jax._src import config

    guards = config.transfer_guard_host_to_device, config.transfer_guard_device_to_device
    return any((guard.value or "").endswith("_explicit") for guard in guards)


def _leaves_its_client(array, device):
    source, target = _client_of(array.sharding), _client_of(device)
    return target is not None and source is not target and any("proxy" in c.runtime_type for c in (source, target))


def _client_of(place):
    """The client that owns a device, or the devices of a sharding; None where there are none yet."""
    devices = getattr(place, "_device_assignment", None) or (place,)
    return getattr(devices[0], "client", None)
