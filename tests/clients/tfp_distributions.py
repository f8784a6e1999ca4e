"""tfp-nightly: distributions, bijectors, Hamiltonian chains and a minimizer, their data split over 8 devices."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from tensorflow_probability.substrates import jax as tfp

LIBRARY = "tfp-nightly"
TOLERANCE = {"chain": 5e-2}
tfd, tfb = tfp.distributions, tfp.bijectors


def run(mesh):
    x = jax.device_put(jnp.linspace(0.1, 0.9, 16), NamedSharding(mesh, P("x")))
    mixture = tfd.MixtureSameFamily(
        tfd.Categorical(probs=jnp.array([0.3, 0.7])), tfd.Normal(jnp.array([0.0, 1.0]), jnp.array([1.0, 2.0]))
    )
    laws = {
        "gamma": tfd.Gamma(2.0, 3.0),
        "beta": tfd.Beta(2.0, 3.0),
        "student": tfd.StudentT(3.0, 0.0, 1.0),
        "mixture": mixture,
        "von_mises": tfd.VonMises(0.0, 2.0),
        "kumaraswamy": tfd.Kumaraswamy(2.0, 3.0),
        "warped": tfd.TransformedDistribution(tfd.Normal(0.0, 1.0), tfb.Sigmoid()),
    }
    found = {f"{name}_density": jax.jit(law.log_prob)(x) for name, law in laws.items()}
    found |= {f"{name}_sample": law.sample(5, seed=jax.random.PRNGKey(3)) for name, law in laws.items()}
    kernel = tfp.mcmc.HamiltonianMonteCarlo(lambda z: -jnp.sum((z - x) ** 2), 0.1, 3)
    found["chain"] = jax.jit(
        lambda: tfp.mcmc.sample_chain(
            20, jnp.zeros(16), kernel=kernel, trace_fn=None, num_burnin_steps=5, seed=jax.random.PRNGKey(1)
        )
    )()
    process = tfd.GaussianProcess(
        tfp.math.psd_kernels.ExponentiatedQuadratic(), x[:, None], observation_noise_variance=0.1
    )
    found["process"] = process.log_prob(jnp.sin(x))
    minimized = tfp.optimizer.lbfgs_minimize(
        lambda z: tfp.math.value_and_gradient(lambda z: jnp.sum((z - x) ** 4 + (z - x) ** 2), z), jnp.zeros(16)
    )
    return found | {"minimum": minimized.position}
