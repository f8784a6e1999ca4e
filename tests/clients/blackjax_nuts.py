"""blackjax: NUTS on a logistic regression, 16 chains over 8 devices, the step size adapted before."""

import blackjax
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "blackjax"
# Chains are chaotic: a difference in the last bit grows with every leapfrog step.
TOLERANCE = {"weights": 0.05, "spread": 0.05, "acceptance": 0.05}


def run(mesh):
    key, noise = jax.random.split(jax.random.key(0))
    x = jax.random.normal(key, (64, 3))
    y = jax.random.bernoulli(noise, jax.nn.sigmoid(x @ jnp.array([1.0, -2.0, 0.5])))

    def log_density(w):
        return jnp.sum(jax.nn.log_sigmoid(jnp.where(y, 1, -1) * (x @ w))) - 0.5 * jnp.sum(w**2)

    warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
    (_, tuned), _ = warmup.run(jax.random.key(1), jnp.zeros(3), num_steps=100)
    kernel = blackjax.nuts(log_density, **tuned)

    @jax.jit
    def sample(positions, key):
        def step(states, key):
            return jax.vmap(kernel.step)(jax.random.split(key, len(positions)), states)

        states = jax.vmap(kernel.init)(positions)
        _, (states, information) = jax.lax.scan(
            lambda states, key: (lambda new: (new[0], new))(step(states, key)), states, jax.random.split(key, 200)
        )
        return states.position, information.acceptance_rate

    start = jax.device_put(0.1 * jax.random.normal(jax.random.key(2), (16, 3)), NamedSharding(mesh, P("x")))
    positions, acceptance = sample(start, jax.random.key(3))
    positions = positions[50:].reshape(-1, 3)
    return {
        "weights": positions.mean(axis=0),
        "spread": positions.std(axis=0),
        "acceptance": acceptance.mean(),
    }
