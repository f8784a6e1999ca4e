import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import gangway

mesh = Mesh(np.array(jax.devices()), ("data",))
weights = jax.ShapeDtypeStruct((512, 512), jnp.float32, sharding=NamedSharding(mesh, P()))
rows = jax.ShapeDtypeStruct((17, 512), jnp.float32, sharding=NamedSharding(mesh, P()))


@jax.jit
def features(rows, weights):
    rows = jax.lax.with_sharding_constraint(rows, NamedSharding(mesh, P("data")))
    return jnp.tanh(rows @ weights)


print(gangway.shardings(features, rows, weights))
print()
print(gangway.explain(features, rows, weights))
