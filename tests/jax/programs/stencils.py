"""Neighbours along split dimensions: updates of the inside, shifts, differences, edges."""

import jax
import jax.numpy as jnp
from meshes import integers, mesh, normal, on, put


def jacobi_on_the_inside():
    m = mesh(x=4, y=2)

    def step(_, u):
        mean = (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]) / 4
        return u.at[1:-1, 1:-1].set(mean)

    f = jax.jit(lambda u: jax.lax.fori_loop(0, 4, step, u), out_shardings=on(m, "x", "y"))
    return f(put(normal(64, 512), m, "x", "y"))


def update_of_the_rest_by_the_start():
    m = mesh(x=8)
    f = jax.jit(lambda u: (u.at[1:].add(u[:-1]), u.at[3:9].multiply(2.0), u.at[-1].set(0.0)), out_shardings=on(m, "x"))
    return f(put(normal(16, 600), m, "x"))


def heat_in_three_dimensions():
    m = mesh(x=2, y=2, z=2)

    def step(_, u):
        return u + 0.1 * (sum(jnp.roll(u, s, a) for s in (1, -1) for a in range(3)) - 6 * u)

    f = jax.jit(lambda u: jax.lax.fori_loop(0, 3, step, u), out_shardings=on(m, "x", "y", "z"))
    return f(put(normal(16, 16, 64), m, "x", "y", "z"))


def life():
    m = mesh(x=8)

    def step(_, u):
        around = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0)]
        n = sum(jnp.roll(u, shift, (0, 1)) for shift in around)
        return ((n == 3) | ((n == 2) & (u == 1))).astype(jnp.int32)

    f = jax.jit(lambda u: jax.lax.fori_loop(0, 3, step, u), out_shardings=on(m, "x"))
    return f(put(integers(32, 256, low=0, high=2), m, "x"))


def edges():
    m = mesh(x=8)
    x = put(normal(64, 128), m, "x")

    def f(x):
        wrapped, mirrored = jnp.pad(x, ((3, 3), (0, 0)), "wrap"), jnp.pad(x, ((2, 2), (0, 0)), "reflect")
        return wrapped[:64], mirrored[4:], jnp.gradient(x, axis=0), jnp.diff(x, 2, 0, prepend=x[:1], append=x[-1:])

    return jax.jit(f, out_shardings=on(m, "x"))(x)


def attention_to_a_window():
    m = mesh(x=8)
    q, k, v = (put(normal(2, 256, 2, 16, seed=s), m, None, "x") for s in range(3))

    def with_previous(t):
        return jnp.concatenate([jnp.concatenate([jnp.zeros_like(t[:, :1]), t[:, :-1]], 1), t], 2)

    def f(q, k, v):
        q, k, v = (t.reshape(2, 16, 16, 2, 16) for t in (q, k, v))
        weights = jax.nn.softmax(jnp.einsum("bnqhk,bnthk->bnhqt", q, with_previous(k)))
        return jnp.einsum("bnhqt,bnthk->bnqhk", weights, with_previous(v)).reshape(2, 256, 2, 16)

    return jax.jit(f, out_shardings=on(m, None, "x"))(q, k, v)
