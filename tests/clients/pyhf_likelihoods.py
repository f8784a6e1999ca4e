"""pyhf with its jax backend: likelihoods of a counting experiment, their slopes, and fits of 8 pseudo-experiments."""

import jax
import jax.numpy as jnp
import pyhf
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "pyhf"


def run(mesh):
    pyhf.set_backend("jax", precision="32b")
    model = pyhf.simplemodels.uncorrelated_background([5.0, 10.0, 4.0], [50.0, 60.0, 40.0], [5.0, 6.0, 4.0])
    start = jnp.array(model.config.suggested_init(), jnp.float32)
    signal = jax.random.poisson(jax.random.PRNGKey(0), jnp.array([53.0, 66.0, 42.0]), (8, 3)).astype(jnp.float32)
    auxiliary = jnp.broadcast_to(jnp.array(model.config.auxdata, jnp.float32), (8, len(model.config.auxdata)))
    data = jax.device_put(jnp.concatenate([signal, auxiliary], 1), NamedSharding(mesh, P("x")))

    def loss(parameters, data):
        return -2 * model.logpdf(parameters, data)[0]

    @jax.jit
    @jax.vmap
    def fit(data):
        def descend(_, parameters):
            return parameters - 2e-3 * jax.grad(loss)(parameters, data)

        return jax.lax.fori_loop(0, 50, descend, start)

    fitted = fit(data)
    curvature = jax.jit(jax.vmap(jax.hessian(loss)))(fitted, data)
    return {"fitted": fitted, "likelihoods": jax.jit(jax.vmap(loss))(fitted, data), "curvature": curvature}
