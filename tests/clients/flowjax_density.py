"""flowjax: masked autoregressive and coupling flows fitted to 512 samples over 8 devices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal
from flowjax.flows import coupling_flow, masked_autoregressive_flow
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "flowjax"


def run(mesh):
    keys = jax.random.split(jax.random.key(0), 4)
    angle = jax.random.uniform(keys[0], (512,), maxval=3.14)
    data = jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1) + 0.1 * jax.random.normal(keys[1], (512, 2))
    data = jax.device_put(data, NamedSharding(mesh, P("x")))
    spline = RationalQuadraticSpline(knots=4, interval=3)
    flows = {
        "autoregressive": masked_autoregressive_flow(
            keys[2], base_dist=Normal(jnp.zeros(2)), flow_layers=2, nn_width=16, transformer=spline
        ),
        "coupling": coupling_flow(keys[3], base_dist=Normal(jnp.zeros(2)), flow_layers=2, nn_width=16),
    }
    optimizer, found = optax.adam(5e-3), {}
    for name, flow in flows.items():
        params, static = eqx.partition(flow, eqx.is_inexact_array)

        @jax.jit
        def train(params, state, static=static):
            loss = lambda p: -eqx.combine(p, static).log_prob(data).mean()  # noqa: E731
            value, gradient = jax.value_and_grad(loss)(params)
            updates, state = optimizer.update(gradient, state)
            return optax.apply_updates(params, updates), state, value

        state, losses = optimizer.init(params), []
        for _ in range(5):
            params, state, loss = train(params, state)
            losses.append(loss)
        found[name] = jnp.stack(losses)
    return found
