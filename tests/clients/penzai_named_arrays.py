"""penzai: a model of named arrays, its parameters taken out, trained with its batch split over 8 devices."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from penzai import pz

LIBRARY = "penzai"


def run(mesh):
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.device_put(jax.random.normal(keys[0], (64, 8)), NamedSharding(mesh, P("x")))
    y = jax.jit(lambda x: jnp.sin(x.sum(-1, keepdims=True)))(x)
    model = pz.nn.Sequential(
        [
            pz.nn.Linear.from_config("first", keys[1], {"features": 8}, {"hidden": 32}),
            pz.nn.Elementwise(jax.nn.gelu),
            pz.nn.Linear.from_config("second", keys[2], {"hidden": 32}, {"out": 1}),
        ]
    )
    named = pz.nx.wrap(x).tag("batch", "features")
    wanted = pz.nx.wrap(y).tag("batch", "out")
    model, variables = pz.unbind_params(model)
    values = {v.label: v.value for v in variables}
    optimizer = optax.adam(1e-2)

    def loss_of(values):
        bound = pz.bind_variables(model, [pz.ParameterValue(label=k, value=v) for k, v in values.items()])
        error = bound(named) - wanted
        return pz.nx.nmap(lambda e: e**2)(error).unwrap("batch", "out").mean()

    @jax.jit
    def train(values, state):
        loss, gradient = jax.value_and_grad(loss_of)(values)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(values, updates), state, loss

    state, losses = optimizer.init(values), []
    for _ in range(8):
        values, state, loss = train(values, state)
        losses.append(loss)
    return {"losses": jnp.stack(losses)}
