"""brainstate: a network of stateful modules trained on a batch split over 8 devices."""

import brainstate
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "brainstate"


def run(mesh):
    brainstate.random.seed(0)
    network = brainstate.nn.Sequential(brainstate.nn.Linear(4, 16), jnp.tanh, brainstate.nn.Linear(16, 2))
    weights = network.states(brainstate.ParamState)
    x = jax.random.normal(jax.random.key(1), (32, 4))
    x, y = jax.device_put((x, jnp.cos(x[:, 2:])), NamedSharding(mesh, P("x")))

    @brainstate.transform.jit
    def step(x, y):
        gradients, loss = brainstate.transform.grad(
            lambda: jnp.mean((network(x) - y) ** 2), weights, return_value=True
        )()
        for name, gradient in gradients.items():
            weights[name].value = jax.tree.map(lambda w, g: w - 0.1 * g, weights[name].value, gradient)
        return loss

    losses = jnp.stack([step(x, y) for _ in range(5)])
    return {"losses": losses, "out": brainstate.transform.jit(lambda x: network(x))(x)}
