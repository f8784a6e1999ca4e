"""folx: Laplacians passed forward through a network, of 16 points split over 8 devices."""

import folx
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "folx"


def run(mesh):
    keys = jax.random.split(jax.random.key(0), 3)
    w, v = jax.random.normal(keys[0], (6, 16)) * 0.4, jax.random.normal(keys[1], (16, 4)) * 0.4
    points = jax.device_put(jax.random.normal(keys[2], (16, 6)), NamedSharding(mesh, P("x")))

    def wave(x):
        orbitals = (jnp.tanh(x @ w) @ v).reshape(2, 2) + jnp.eye(2)
        return jnp.linalg.slogdet(orbitals)[1] - jnp.sum(x**2)

    def all_of(x):
        found = folx.forward_laplacian(wave)(x)
        return found.x, found.dense_jacobian, found.laplacian

    value, jacobian, laplacian = jax.jit(jax.vmap(all_of))(points)
    kinetic = jax.jit(jax.vmap(lambda x: sum(folx.LoopLaplacianOperator()(wave)(x)[:1])))(points)
    return {"value": value, "jacobian": jacobian, "laplacian": laplacian, "kinetic": kinetic}
