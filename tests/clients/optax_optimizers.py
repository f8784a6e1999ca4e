"""optax: a sharded two-layer model under optimizers whose states differ in kind."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "optax"
OPTIMIZERS = {
    "adamw": lambda: optax.adamw(1e-2),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=8),
    "lion": lambda: optax.lion(1e-3),
    "lamb": lambda: optax.lamb(1e-2),
    "clipped_ema": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.ema(0.9), optax.sgd(0.1)),
    "accumulated": lambda: optax.MultiSteps(optax.adam(1e-2), every_k_schedule=2),
}


def run(mesh):
    def put(x, *spec):
        return jax.device_put(x, NamedSharding(mesh, P(*spec)))

    keys = jax.random.split(jax.random.key(0), 3)
    x = put(jax.random.normal(keys[0], (64, 32)), "x")
    params = {
        "first": put(0.2 * jax.random.normal(keys[1], (32, 64)), None, "x"),
        "second": put(0.2 * jax.random.normal(keys[2], (64, 8)), "x"),
        "bias": put(jnp.zeros(8)),
    }

    def loss_of(params, x):
        y = jnp.tanh(x @ params["first"]) @ params["second"] + params["bias"]
        return jnp.mean((y - jnp.sin(x[:, :8])) ** 2)

    found = {}
    for name, make in OPTIMIZERS.items():
        optimizer = make()

        @jax.jit
        def train(params, state, x, optimizer=optimizer):
            loss, gradient = jax.value_and_grad(loss_of)(params, x)
            updates, state = optimizer.update(gradient, state, params)
            return optax.apply_updates(params, updates), state, loss

        now, state, losses = params, optimizer.init(params), []
        for _ in range(8):
            now, state, loss = train(now, state, x)
            losses.append(loss)
        found[name] = jnp.stack(losses)
    return found
