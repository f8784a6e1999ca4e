import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import gangway

mesh = Mesh(np.array(jax.devices()), ("data",))
whole, by_row = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
weights = jax.ShapeDtypeStruct((1024, 1024), jnp.float32, sharding=by_row if "--sharded" in sys.argv else whole)
batch = jax.ShapeDtypeStruct((2048, 1024), jnp.float32, sharding=by_row)


def update(weights, batch):
    gradient = jax.grad(lambda w: jnp.mean((batch @ w) ** 2))(weights)
    return weights - 0.1 * gradient


print(gangway.explain(jax.jit(update, out_shardings=weights.sharding), weights, batch))
