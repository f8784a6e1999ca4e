"""What jaxlib's client of a proxy refuses to transfer, by a copy on the host.

It copies between devices of its own server only: what goes from there to a local CPU device, or from one server to
another, is read to the host first. And it sends arrays with positive strides only: reversed and broadcast ones are made
dense.
"""

import numpy as np
from jax_plugins.gangway.replacement import replace


def install():
    """Idempotent. Does nothing where this JAX puts arrays in another way."""
    _install_device_put()
    _install_batched_device_put()
    _install_transfer_server()


def _install_transfer_server():
    """jaxlib's server of arrays in its own memory ends the process when it is given a proxy's client."""
    try:
        from jaxlib import _jax
    except ImportError:
        return
    original = getattr(_jax, "start_transfer_server", None)
    if original is None or hasattr(original, "gangway"):
        return

    @functools.wraps(original)
    def start_transfer_server(client, *rest, **options):
        if "proxy" in client.runtime_type:
            raise NotImplementedError(
                "arrays of a Gangway server are not in this process: jax.experimental.transfer cannot serve them"
            )
        return original(client, *rest, **options)

    start_transfer_server.gangway = True
    _jax.start_transfer_server = start_transfer_server


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
        return original(x, aval, device, *rest, **options)

    return device_put


def _leaves_its_client(array, device):
    source, target = _client_of(array.sharding), _client_of(device)
    return target is not None and source is not target and any("proxy" in c.runtime_type for c in (source, target))


def _client_of(place):
    """The client that owns a device, or the devices of a sharding; None where there are none yet."""
    devices = getattr(place, "_device_assignment", None) or (place,)
    return getattr(devices[0], "client", None)
