"""numpyro: Gibbs and subsampled Hamiltonian chains of models whose data lie over 8 devices, and predictions of them."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from numpyro.infer import HMCECS, MCMC, NUTS, DiscreteHMCGibbs, Predictive

LIBRARY = "numpyro"
TOLERANCE = {"gibbs": 0.1, "subsampled": 0.1, "predicted": 0.1}  # chaotic


def mixture(data):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
    means = numpyro.sample("means", dist.Normal(jnp.array([-2.0, 2.0]), 1.0).to_event(1))
    with numpyro.plate("data", len(data)):
        which = numpyro.sample("which", dist.Categorical(weights))
        numpyro.sample("seen", dist.Normal(means[which], 1.0), obs=data)


def regression(x, y=None, subsample=None):
    slope = numpyro.sample("slope", dist.Normal(0, 2).expand([x.shape[1]]).to_event(1))
    with numpyro.plate("rows", len(x), subsample_size=subsample):
        rows = numpyro.subsample(x, event_dim=1)
        seen = None if y is None else numpyro.subsample(y, event_dim=0)
        numpyro.sample("y", dist.Normal(rows @ slope, 1.0), obs=seen)


def chain(kernel, *args, **kwargs):
    mcmc = MCMC(kernel, num_warmup=10, num_samples=20, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0), *args, **kwargs)
    return mcmc.get_samples()


def run(mesh):
    rows = NamedSharding(mesh, P("x"))
    keys = jax.random.split(jax.random.PRNGKey(1), 3)
    signs = jnp.where(jax.random.bernoulli(keys[0], 0.3, (64,)), -2.0, 2.0)
    data = jax.device_put(signs + jax.random.normal(keys[1], (64,)), rows)
    x = jax.device_put(jax.random.normal(keys[2], (64, 3)), rows)
    y = x @ jnp.array([1.0, -2.0, 0.5])
    gibbs = chain(DiscreteHMCGibbs(NUTS(mixture, max_tree_depth=4), modified=True), data)
    subsampled = chain(HMCECS(NUTS(regression, max_tree_depth=4), num_blocks=4), x, y, subsample=16)
    predicted = Predictive(regression, subsampled)(jax.random.PRNGKey(2), x)["y"]
    means = {"gibbs": gibbs["means"], "subsampled": subsampled["slope"]}
    return {name: samples.mean(0) for name, samples in (means | {"predicted": predicted}).items()}
