"""brax: a policy for the inverted pendulum by the gradient through its physics, 64 environments over 8 devices."""

import jax
import jax.numpy as jnp
import optax
from brax import envs
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "brax"


def run(mesh):
    environment = envs.get_environment("inverted_pendulum", backend="generalized")
    keys = jax.device_put(jax.random.split(jax.random.key(0), 64), NamedSharding(mesh, P("x")))
    states = jax.jit(jax.vmap(environment.reset))(keys)
    optimizer = optax.adam(0.1)

    def cost_of(policy, states):  # the cart is to go to the right while the pole stays up
        def step(states, _):
            actions = jnp.tanh(states.obs @ policy["weights"] + policy["push"])
            states = jax.vmap(environment.step)(states, actions[:, None])
            return states, jnp.mean((states.obs[:, 0] - 0.1) ** 2 + states.obs[:, 1] ** 2)

        return jax.lax.scan(step, states, length=4)[1].mean()

    @jax.jit
    def train(policy, state, states):
        cost, gradient = jax.value_and_grad(cost_of)(policy, states)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(policy, updates), state, cost

    policy = {"weights": jnp.zeros(environment.observation_size), "push": jnp.zeros(())}
    state = optimizer.init(policy)
    costs = []
    for _ in range(6):
        policy, state, cost = train(policy, state, states)
        costs.append(cost)
    return {"costs": jnp.stack(costs), **policy}
