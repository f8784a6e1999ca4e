"""dm-haiku: a small causal Transformer and an LSTM, parameters of the first split over 8 devices."""

import haiku as hk
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "dm-haiku"
TOKENS, LENGTH, WIDTH = 40, 16, 32


def attend(tokens):
    x = hk.Embed(TOKENS, WIDTH)(tokens) + hk.get_parameter(
        "place", (LENGTH, WIDTH), init=hk.initializers.RandomNormal(0.02)
    )
    for _ in range(2):
        mask = jnp.tril(jnp.ones((1, 1, LENGTH, LENGTH)))
        y = hk.LayerNorm(-1, True, True)(x)
        x = x + hk.MultiHeadAttention(4, 8, w_init=hk.initializers.VarianceScaling(1.0), model_size=WIDTH)(
            y, y, y, mask
        )
        y = hk.LayerNorm(-1, True, True)(x)
        x = x + hk.nets.MLP([4 * WIDTH, WIDTH])(y)
    return hk.Linear(TOKENS)(x)


def recur(tokens):
    core = hk.LSTM(WIDTH)
    x = hk.Embed(TOKENS, WIDTH)(tokens)
    y, _ = hk.dynamic_unroll(core, jnp.swapaxes(x, 0, 1), core.initial_state(tokens.shape[0]))
    return hk.Linear(TOKENS)(jnp.swapaxes(y, 0, 1))


def run(mesh):
    tokens = jax.random.randint(jax.random.key(0), (16, LENGTH), 0, TOKENS)
    tokens = jax.device_put(tokens, NamedSharding(mesh, P("x")))
    found = {}
    for name, function in (("attend", attend), ("recur", recur)):
        model = hk.without_apply_rng(hk.transform(function))
        params = model.init(jax.random.key(1), tokens)
        if name == "attend":
            params = jax.tree.map(lambda p: jax.device_put(p, _columns(mesh, p)), params)
        optimizer = optax.adamw(1e-2)

        @jax.jit
        def train(params, state, model=model, optimizer=optimizer):
            def loss_of(params):
                logits = model.apply(params, tokens)[:, :-1]
                return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

            loss, gradient = jax.value_and_grad(loss_of)(params)
            updates, state = optimizer.update(gradient, state, params)
            return optax.apply_updates(params, updates), state, loss

        state, losses = optimizer.init(params), []
        for _ in range(6):
            params, state, loss = train(params, state)
            losses.append(loss)
        found[name] = jnp.stack(losses)
    return found


def _columns(mesh, p):
    return NamedSharding(mesh, P(*[None] * (p.ndim - 1), "x") if p.ndim and p.shape[-1] % 8 == 0 else P())
