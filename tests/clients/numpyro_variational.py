"""numpyro: stochastic variational inference on a hierarchical regression, the data split over 8 devices."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from numpyro.infer import SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal

LIBRARY = "numpyro"


def model(x, group, y=None):
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", 5):
        slope = numpyro.sample("slope", dist.Normal(0.0, spread))
    noise = numpyro.sample("noise", dist.LogNormal(-1.0, 0.5))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.StudentT(5.0, slope[group] * x, noise), obs=y)


def run(mesh):
    split = NamedSharding(mesh, P("x"))
    keys = jax.random.split(jax.random.key(0), 5)
    x = jax.device_put(jax.random.normal(keys[0], (256,)), split)
    group = jax.device_put(jax.random.randint(keys[1], (256,), 0, 5), split)
    y = jax.jit(lambda x, group: jnp.linspace(-1.0, 1.0, 5)[group] * x + 0.1 * jnp.cos(37.0 * x))(x, group)
    guide = AutoMultivariateNormal(model)
    svi = SVI(model, guide, numpyro.optim.Adam(0.02), Trace_ELBO(num_particles=4))
    fitted = svi.run(keys[2], 60, x, group, y, progress_bar=False)
    samples = guide.sample_posterior(keys[3], fitted.params, sample_shape=(64,))
    predicted = Predictive(model, samples)(keys[4], x, group)["y"]
    return {"losses": fitted.losses, "slopes": samples["slope"].mean(0), "predicted": predicted.mean(0)}
