"""Who goes where is known at run time: experts, pages of a cache, beams, edges of a graph."""

import jax
import jax.numpy as jnp
from meshes import integers, mesh, normal, on, put

EXPERTS, TOKENS, WIDTH = 16, 256, 32


def _experts(m):
    return put(normal(EXPERTS, WIDTH, 64, seed=1) / 4, m, "x"), put(normal(EXPERTS, 64, WIDTH, seed=2) / 4, m, "x")


def experts_by_sorting():
    m = mesh(x=8)
    capacity = 2 * TOKENS // EXPERTS

    def f(gate, wi, wo, x):
        expert = jnp.argmax(x @ gate, -1)
        order = jnp.argsort(expert)
        expert = expert[order]
        place = jnp.arange(TOKENS) - jnp.searchsorted(expert, jnp.arange(EXPERTS))[expert]
        fits = place < capacity
        slots = jnp.zeros((EXPERTS, capacity, WIDTH)).at[expert, jnp.where(fits, place, capacity)]
        inputs = jax.lax.with_sharding_constraint(slots.set(x[order], mode="drop"), on(m, "x"))
        outputs = jnp.einsum("ech,ehm->ecm", jax.nn.relu(jnp.einsum("ecm,emh->ech", inputs, wi)), wo)
        mine = jnp.where(fits[:, None], outputs[expert, jnp.minimum(place, capacity - 1)], 0)
        return jnp.zeros_like(x).at[order].set(mine)

    x = put(normal(TOKENS, WIDTH, seed=3), m, "x")
    return jax.jit(f, out_shardings=on(m, "x"))(normal(WIDTH, EXPERTS), *_experts(m), x)


def tokens_by_expert_choice():
    m = mesh(x=8)

    def loss(wi, wo, gate, x):
        weights, chosen = jax.lax.top_k(jax.nn.softmax(x @ gate, -1).transpose(0, 2, 1), 4)
        hot = jax.nn.one_hot(chosen, 32)
        inputs = jax.lax.with_sharding_constraint(jnp.einsum("gecs,gsm->egcm", hot, x), on(m, "x"))
        outputs = jnp.einsum("egch,ehm->egcm", jax.nn.relu(jnp.einsum("egcm,emh->egch", inputs, wi)), wo)
        return (jnp.einsum("gecs,gec,egcm->gsm", hot, weights, outputs) ** 2).mean()

    x = put(normal(8, 32, WIDTH, seed=3), m, "x")
    f = jax.jit(jax.value_and_grad(loss, (0, 1)), out_shardings=(on(m), (on(m, "x"), on(m, "x"))))
    return f(*_experts(m), normal(WIDTH, EXPERTS), x)


def pages_of_a_cache():
    m = mesh(x=8)

    def f(pages, table, q):
        keys = pages[table].reshape(16, 32, 8, 16)
        weights = jax.nn.softmax(jnp.einsum("bhk,bthk->bht", q, keys), -1)
        return jnp.einsum("bht,bthk->bhk", weights, keys)

    pages, q = put(normal(32, 8, 8, 16), m, None, None, "x"), put(normal(16, 8, 16, seed=1), m, None, "x")
    return jax.jit(f, out_shardings=on(m, None, "x"))(pages, integers(16, 4, low=0, high=32), q)


def beams_in_a_new_order():
    m = mesh(x=4, y=2)
    cache, order = put(normal(8, 4, 16, 4, 8), m, "x", None, None, "y"), put(integers(8, 4, low=0, high=4), m, "x")
    return jax.jit(jax.vmap(lambda c, i: c[i]), out_shardings=on(m, "x", None, None, "y"))(cache, order)


def messages_along_edges():
    m = mesh(x=8)
    x, w = put(normal(64, 32), m, "x"), normal(32, 32, seed=1) / 4
    source, target = (put(integers(512, low=0, high=64, seed=s), m, "x") for s in (2, 3))

    def loss(w, x, source, target):
        return (jax.ops.segment_sum(jnp.tanh(x @ w)[source], target, 64) ** 2).sum() / 4

    return jax.jit(jax.value_and_grad(loss), out_shardings=on(m))(w, x, source, target)


def rows_from_many_tables():
    m = mesh(x=8)
    tables, ids = put(normal(8, 64, 16), m, "x"), put(integers(32, 8, low=0, high=64), m, "x")

    def loss(tables, ids):
        rows = jax.vmap(lambda table, i: table[i], (0, 1), 1)(tables, ids)
        return (jnp.einsum("bik,bjk->bij", rows, rows) ** 2).sum()

    return jax.jit(jax.value_and_grad(loss), out_shardings=(on(m), on(m, "x")))(tables, ids)
