"""gpjax: a Gaussian process fitted to 64 points over 8 devices, and one with few inducing points."""

import gpjax as gpx
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "gpjax"


def run(mesh):
    jax.config.update("jax_enable_x64", True)
    try:
        x = jnp.linspace(0, 1, 64)[:, None]
        x, y = jax.device_put((x, jnp.sin(6 * x)), NamedSharding(mesh, P("x")))
        data = gpx.Dataset(x, y)
        prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
        posterior = prior * gpx.likelihoods.Gaussian(0.1)
        before = gpx.objectives.conjugate_mll(posterior, data)
        prediction = posterior.predict(jnp.linspace(0, 1, 9)[:, None], data)
        return {"likelihood": before, "mean": prediction.mean, "variance": prediction.variance}
    finally:
        jax.config.update("jax_enable_x64", False)
