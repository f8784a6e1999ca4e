import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import gangway

mesh = Mesh(np.array(jax.devices()), ("data",))
by_row = NamedSharding(mesh, P("data"))
x = jax.ShapeDtypeStruct((4096, 256), jnp.float32, sharding=by_row)
order = jax.ShapeDtypeStruct((4096,), jnp.int32, sharding=by_row)
within = jax.ShapeDtypeStruct((8, 512), jnp.int32, sharding=by_row)


def shuffle(x, order):
    return x[order]


def shuffle_within(x, order):
    return jax.vmap(lambda rows, order: rows[order])(x.reshape(8, 512, 256), order).reshape(x.shape)


f, order = (shuffle_within, within) if "--within" in sys.argv else (shuffle, order)
print(gangway.explain(jax.jit(f, out_shardings=by_row), x, order))
