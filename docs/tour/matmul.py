"""The program of docs/tour.md: a matrix product on a mesh of 4 x 2 devices, annotated at its inputs only."""

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def put(array, *spec):
    return jax.device_put(array, NamedSharding(mesh, P(*spec)))


x = put(np.arange(16 * 32, dtype=np.float32).reshape(16, 32) / 100, "data", "model")
w = put(np.ones((32, 64), np.float32), "model", None)


@jax.jit
def layer(x, w):
    return jax.nn.relu(x @ w)


y = layer(x, w)
print(y.shape, y.sharding.spec, float(y[3, 5]))
