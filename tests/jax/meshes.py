"""What the programs share: meshes over the first eight devices, placed arrays, reproducible data."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def mesh(**axes):
    """mesh(x=4, y=2): a mesh over the first devices, in order."""
    count = int(np.prod(list(axes.values())))
    return Mesh(np.array(jax.devices()[:count]).reshape(tuple(axes.values())), tuple(axes))


def through_proxy():
    """Whether the devices are behind an IFRT proxy, rather than in this process."""
    return "proxy" in jax.devices()[0].client.runtime_type


def on(m, *spec):
    return NamedSharding(m, P(*spec))


def put(value, m, *spec):
    return jax.device_put(value, on(m, *spec))


def normal(*shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def integers(*shape, low=-9, high=10, seed=0, dtype=np.int32):
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def text(value):
    """A text as an array, for programs whose outcome is what JAX says."""
    return np.frombuffer(str(value).encode(), np.uint8)


def why(f, tell=lambda error: f"{type(error).__name__}: {error}"):
    """What f() says is wrong, as text(); "nothing" when it ends well."""
    try:
        f()
    except Exception as error:
        return text(tell(error))
    return text("nothing")
