import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from meshes import integers, mesh, normal, on, put


def _train(m, w, places, loss, batch, optimizer, steps):
    w = jax.tree.map(jax.device_put, w, places)
    state = jax.jit(optimizer.init)(w)

    @functools.partial(jax.jit, donate_argnums=(0, 1), out_shardings=(places, None, on(m)))
    def step(w, state, batch):
        value, gradient = jax.value_and_grad(loss)(w, batch)
        updates, state = optimizer.update(gradient, state, w)
        return optax.apply_updates(w, updates), state, value

    values = []
    for _ in range(steps):
        w, state, value = step(w, state, batch)
        values.append(value)
    return w, np.array([np.asarray(v) for v in values])


def adam_with_sharded_weights():
    m = mesh(data=4, model=2)
    w = {"up": normal(16, 32) * 0.2, "down": normal(32, 4, seed=1) * 0.2, "bias": np.zeros(4, np.float32)}
    places = {"up": on(m, "data", "model"), "down": on(m, "model"), "bias": on(m)}
    batch = put(normal(16, 16, seed=2), m, "data"), put(normal(16, 4, seed=3), m, "data")

    def loss(w, batch):
        x, y = batch
        return jnp.mean((jax.nn.relu(x @ w["up"]) @ w["down"] + w["bias"] - y) ** 2)

    return _train(m, w, places, loss, batch, optax.adam(1e-2), 6)


def clipped_adamw_with_a_schedule():
    m = mesh(x=8)
    w = {"a": normal(16, 8) * 0.3, "b": normal(8) * 0.1}
    places = {"a": on(m, "x"), "b": on(m)}
    batch = put(normal(16, 16, seed=2), m, "x")
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(optax.cosine_decay_schedule(1e-2, 20)))
    return _train(m, w, places, lambda w, x: jnp.mean(jnp.sin(x @ w["a"] + w["b"]) ** 2), batch, optimizer, 5)


def trained_again_and_again():
    # Donated state may still be on its way to other devices: each beginning is another chance to hang.
    for _ in range(12):
        result = clipped_adamw_with_a_schedule()
    return result


def embedding_and_attention():
    m = mesh(data=4, model=2)
    w = {"embed": normal(32, 16) * 0.5, "qkv": normal(3, 16, 4, 4, seed=1) * 0.3, "out": normal(4, 4, 16, seed=2) * 0.3}
    places = {"embed": on(m, "data", "model"), "qkv": on(m, None, "data", "model"), "out": on(m, "model", None, "data")}
    tokens = put(integers(8, 9, low=0, high=32), m, "data")

    def loss(w, tokens):
        x = w["embed"][tokens[:, :-1]]
        q, k, v = jnp.einsum("bsd,cdhk->cbshk", x, w["qkv"])
        scores = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), jnp.einsum("bqhk,bshk->bhqs", q, k) / 2, -1e30)
        x = x + jnp.einsum("bhqs,bshk,hkd->bqd", jax.nn.softmax(scores), v, w["out"])
        return optax.softmax_cross_entropy_with_integer_labels(x @ w["embed"].T, tokens[:, 1:]).mean()

    return _train(m, w, places, loss, tokens, optax.sgd(0.1, momentum=0.9), 4)


def data_parallel_with_batch_statistics():
    m = mesh(x=8)
    w = {"k": normal(3, 3, 3, 8) * 0.2, "o": normal(8, 4, seed=1) * 0.2}
    places = {"k": on(m), "o": on(m)}
    batch = put(normal(8, 6, 6, 3, seed=2), m, "x"), put(integers(8, low=0, high=4), m, "x")

    def loss(w, batch):
        image, label = batch
        x = jax.lax.conv_general_dilated(image, w["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu((x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-5)).mean((1, 2))
        return optax.softmax_cross_entropy_with_integer_labels(x @ w["o"], label).mean()

    return _train(m, w, places, loss, batch, optax.sgd(0.1), 3)
