"""qwix: a Flax model trained with fake quantization, then quantized to int8 weights; its matrices are split."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import qwix
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "qwix"
TOLERANCE = {"quantized": 2e-2}  # a value on the border between two steps may round either way


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(64)(x))
        return nn.Dense(8)(x)


def run(mesh):
    rules = [qwix.QuantizationRule(module_path=".*", weight_qtype=jnp.int8, act_qtype=jnp.int8)]
    x = jax.random.normal(jax.random.key(0), (64, 32))
    x = jax.device_put(x, NamedSharding(mesh, P("x")))
    wanted = jnp.sin(x[:, :8])
    params = Model().init(jax.random.key(1), x)["params"]
    params = jax.device_put(
        params,
        {
            "Dense_0": {"kernel": NamedSharding(mesh, P(None, "x")), "bias": NamedSharding(mesh, P("x"))},
            "Dense_1": {"kernel": NamedSharding(mesh, P("x")), "bias": NamedSharding(mesh, P())},
        },
    )
    trained = qwix.quantize_model(Model(), qwix.QtProvider(rules))
    optimizer = optax.adam(1e-2)

    @jax.jit
    def train(params, state):
        def loss_of(params):
            return jnp.mean((trained.apply({"params": params}, x) - wanted) ** 2)

        loss, gradient = jax.value_and_grad(loss_of)(params)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state, loss

    state, losses = optimizer.init(params), []
    for _ in range(10):
        params, state, loss = train(params, state)
        losses.append(loss)

    quantized = qwix.quantize_model(Model(), qwix.PtqProvider(rules))
    shapes = jax.eval_shape(quantized.init, jax.random.key(0), x)["params"]
    weights = qwix.quantize_params(params, shapes)
    y = jax.jit(quantized.apply)({"params": weights}, x)
    return {"losses": jnp.stack(losses), "quantized": jnp.mean(y, axis=0)}
