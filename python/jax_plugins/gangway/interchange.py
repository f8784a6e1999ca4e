"""DLPack and the CUDA array interface, by which libraries look into each other's memory.

Arrays on a Gangway server have no memory in this process. For DLPack they are copied to a local CPU device first, or
from one; they have no CUDA interface, which libraries find out by asking for the attribute.
"""

from jax_plugins.gangway.replacement import replace


def install():
    """Idempotent. Does nothing where this JAX exchanges arrays in another way."""
    try:
        from jax._src import array
        from jaxlib import _jax
    except ImportError:
        return
    _hide_cuda_interface(array.ArrayImpl)
    replace(_jax, "buffer_to_dlpack_managed_tensor", _wrap_export)
    replace(_jax, "dlpack_managed_tensor_to_buffer", _wrap_import)


def _wrap_export(original):
    def export(array, *args, **options):
        (device,) = array.devices()
        return original(_to_local(array) if _is_remote(device) else array, *args, **options)

    return export


def _wrap_import(original):
    def import_(tensor, device, *args, **options):
        import jax

        if not _is_remote(device):
            return original(tensor, device, *args, **options)
        return jax.device_put(original(tensor, _local_device(), *args, **options), device)

    return import_


def _hide_cuda_interface(cls):
    original = getattr(cls, "__cuda_array_interface__", None)
    if not isinstance(original, property) or hasattr(original.fget, "gangway"):
        return

    def cuda_array_interface(array):
        if any(map(_is_remote, array.devices())):
            only = "defined for GPU buffers" if len(array.devices()) == 1 else "supported for unsharded arrays"
            raise AttributeError(f"__cuda_array_interface__ is only {only}.")
        return original.fget(array)

    cuda_array_interface.gangway = True
    cls.__cuda_array_interface__ = property(cuda_array_interface)


def _is_remote(device):
    return "proxy" in device.client.runtime_type


def _local_device():
    from jax._src import xla_bridge

    return xla_bridge.local_devices(backend="cpu")[0]


def _to_local(array):
    import jax

    return jax.device_put(array, _local_device())
