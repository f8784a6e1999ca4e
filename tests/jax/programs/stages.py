"""Loops over what is split by step or by stage: pipelines, stacks of layers, chunks."""

import jax
import jax.numpy as jnp
from meshes import integers, mesh, normal, on, put


def pipeline_of_a_shifted_buffer():
    m = mesh(x=8)
    w, x = put(normal(8, 64, 64) / 8, m, "x"), normal(4, 16, 64, seed=1)

    def loss(w, x):
        def tick(buffer, new):
            buffer = jnp.concatenate([new[None], buffer[:-1]])
            buffer = jax.lax.with_sharding_constraint(jnp.tanh(jnp.einsum("nbd,nde->nbe", buffer, w)), on(m, "x"))
            return buffer, buffer[-1]

        feed = jnp.concatenate([x, jnp.zeros((7, 16, 64))])
        return (jax.lax.scan(tick, jnp.zeros((8, 16, 64)), feed)[1][7:] ** 2).sum()

    return jax.jit(jax.value_and_grad(loss), out_shardings=(on(m), on(m, "x")))(w, x)


def stack_of_layers_split_by_layer():
    m = mesh(x=8)
    w = put(normal(8, 64, 64) / 8, m, "x")

    def loss(w, x):
        return (jax.lax.scan(lambda h, w: (jnp.tanh(h @ w), None), x, w)[0] ** 2).sum()

    return jax.jit(jax.value_and_grad(loss), out_shardings=(on(m), on(m, "x")))(w, normal(16, 64, seed=1))


def loss_by_chunks():
    m = mesh(x=4, y=2)
    w, h, y = normal(64, 512) / 8, normal(64, 64, seed=1), integers(64, low=0, high=512)
    w, h, y = put(w, m, None, "y"), put(h, m, "x"), put(y, m, "x")

    def loss(w, h, y):
        def chunk(total, hy):
            logits = hy[0] @ w
            gold = jnp.take_along_axis(logits, hy[1][:, None], 1)[:, 0]
            return total + (jax.nn.logsumexp(logits, -1) - gold).sum(), None

        return jax.lax.scan(jax.checkpoint(chunk), 0.0, (h.reshape(4, 16, 64), y.reshape(4, 16)))[0]

    return jax.jit(jax.value_and_grad(loss), out_shardings=(on(m), on(m, None, "y")))(w, h, y)


def gradients_of_several_batches():
    m = mesh(x=4, y=2)
    w, xs = put(normal(64, 128) / 8, m, None, "y"), put(normal(4, 32, 64, seed=1), m, None, "x")

    def step(w, xs):
        def add(total, x):
            return total + jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).sum())(w), None

        return w - 0.01 * jax.lax.scan(add, jnp.zeros_like(w), xs)[0]

    return jax.jit(step, out_shardings=on(m, None, "y"))(w, xs)
