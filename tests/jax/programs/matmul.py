import itertools

import jax
import jax.numpy as jnp
from meshes import mesh, normal, on, put


def every_sharding_of_both_operands():
    m = mesh(x=4, y=2)
    a, b = normal(8, 16), normal(16, 8, seed=1)
    f = jax.jit(jnp.dot, out_shardings=on(m))
    specs = (None, None), ("x", None), (None, "x"), ("x", "y"), ("y", "x")
    return [f(put(a, m, *s), put(b, m, *t)) for s, t in itertools.product(specs, specs)]


def column_then_row():
    """Megatron's pair: the first matrix by columns, the second by rows, one all-reduce."""
    m = mesh(data=4, model=2)
    x, up, down = normal(8, 16), normal(16, 32, seed=1), normal(32, 16, seed=2)
    f = jax.jit(lambda x, u, d: jax.nn.gelu(x @ u) @ d, out_shardings=on(m, "data"))
    return f(put(x, m, "data"), put(up, m, None, "model"), put(down, m, "model", None))


def contraction_to_scattered_result():
    m = mesh(x=8)
    f = jax.jit(jnp.dot, out_shardings=on(m, "x"))
    return f(put(normal(16, 32), m, None, "x"), put(normal(32, 8, seed=1), m, "x", None))


def fully_sharded_weights():
    m = mesh(x=8)
    f = jax.jit(lambda x, w: jnp.tanh(x @ w), out_shardings=on(m, "x"))
    return f(put(normal(16, 32), m, "x"), put(normal(32, 24, seed=1), m, "x"))


def batched_einsums():
    m = mesh(x=4, y=2)
    q, k = put(normal(4, 6, 2, 8), m, "x", None, "y"), put(normal(4, 6, 2, 8, seed=1), m, "x", None, "y")

    def f(q, k):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        return scores, jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), k), jnp.einsum("bqhd,bqhd->bh", q, k)

    return jax.jit(f, out_shardings=(on(m, "x", "y"), on(m, "x", None, "y"), on(m, "x", "y")))(q, k)


def einsum_with_free_and_summed_letters():
    m = mesh(x=2, y=2, z=2)
    a, b = put(normal(4, 6, 8), m, "x", None, "y"), put(normal(8, 4, 2, seed=1), m, "y", "z")
    return jax.jit(lambda a, b: jnp.einsum("ijk,klm->ilm", a, b), out_shardings=on(m, "x", "z"))(a, b)


def vector_and_matrix():
    m = mesh(x=8)
    a, v = put(normal(16, 16), m, "x"), put(normal(16, seed=1), m, "x")
    return jax.jit(lambda a, v: (a @ v, v @ a, v @ v, jnp.outer(v, v)), out_shardings=on(m))(a, v)


def wider_accumulation():
    m = mesh(x=8)
    a, b = normal(16, 32).astype(jnp.bfloat16), normal(32, 16, seed=1).astype(jnp.bfloat16)
    f = jax.jit(lambda a, b: jnp.dot(a, b, preferred_element_type=jnp.float32), out_shardings=on(m))
    return f(put(a, m, None, "x"), put(b, m, "x"))


def uneven_matmul():
    m = mesh(x=8)
    f = jax.jit(
        lambda a, b: jax.lax.with_sharding_constraint(a, on(m, "x")) @ b,
        out_shardings=on(m),
    )
    return f(normal(13, 7), normal(7, 5, seed=1))
