"""dynamax: a hidden Markov model fitted to 16 sequences over 8 devices, and a Kalman smoother."""

import jax
import jax.numpy as jnp
from dynamax.hidden_markov_model import GaussianHMM
from dynamax.linear_gaussian_ssm import LinearGaussianSSM
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "dynamax"


def run(mesh):
    model = GaussianHMM(3, 2)
    truth, _ = model.initialize(jax.random.PRNGKey(0))
    keys = jax.random.split(jax.random.PRNGKey(1), 16)
    _, seen = jax.vmap(lambda key: model.sample(truth, key, 40))(keys)
    seen = jax.device_put(seen, NamedSharding(mesh, P("x")))
    start, properties = model.initialize(jax.random.PRNGKey(2))
    fitted, likelihoods = model.fit_em(start, properties, seen, num_iters=5, verbose=False)
    smoothed = jax.jit(jax.vmap(lambda x: model.smoother(fitted, x).smoothed_probs))(seen)
    linear = LinearGaussianSSM(2, 2)
    moving, _ = linear.initialize(jax.random.PRNGKey(3))
    means = jax.jit(jax.vmap(lambda x: linear.smoother(moving, x).smoothed_means))(seen)
    return {"likelihoods": jnp.asarray(likelihoods), "probabilities": smoothed, "means": means}
