import jax
import jax.numpy as jnp
from meshes import integers, mesh, normal, on, put


def static_slices():
    m = mesh(x=8)
    x = put(normal(16, 6), m, "x")
    return jax.jit(lambda x: (x[3:11], x[::2], x[:, 1:4], x[::-1], x[5]), out_shardings=on(m))(x)


def dynamic_slices():
    m = mesh(x=8)
    f = jax.jit(lambda x, i: jax.lax.dynamic_slice(x, (i, 1), (4, 3)), out_shardings=on(m))
    x = put(normal(16, 6), m, "x")
    return [f(x, i) for i in (0, 3, 7, 15, -2)]


def dynamic_updates():
    m = mesh(x=8)
    f = jax.jit(lambda x, u, i: jax.lax.dynamic_update_slice(x, u, (i, 0)), out_shardings=on(m, "x"))
    x, u = put(normal(16, 4), m, "x"), normal(3, 4, seed=1)
    return [f(x, u, i) for i in (0, 5, 13, 40, -1)]


def cache_update_in_a_loop():
    m = mesh(x=4, y=2)
    cache, new = put(normal(4, 8, 2) * 0, m, "x", None, "y"), put(normal(8, 4, 2, seed=1), m, None, "x", "y")

    def step(cache, i_new):
        i, new = i_new
        return jax.lax.dynamic_update_slice_in_dim(cache, new[:, None], i, 1), cache[:, i].sum()

    f = jax.jit(lambda c, n: jax.lax.scan(step, c, (jnp.arange(8), n)), out_shardings=(on(m, "x", None, "y"), on(m)))
    return f(cache, new)


def parts_of_constants():
    m = mesh(x=8)
    table, picked = jnp.asarray(normal(64, 8)), jnp.array([[5, 1], [0, 3]])

    def f():
        columns = table[:, picked]
        return -columns, columns[:, 0] < table[:, picked[::-1]][:, 1], 2 * jnp.stack([table, table]).transpose(2, 0, 1)

    return jax.jit(f, out_shardings=on(m))()


def gather_rows_of_a_table():
    m = mesh(x=4, y=2)
    tokens = put(integers(8, 4, low=0, high=16), m, "x")
    f = jax.jit(lambda t, i: t[i], out_shardings=on(m, "x"))
    table = normal(16, 8, seed=1)
    return [f(put(table, m, *spec), tokens) for spec in ((), ("y",), (None, "y"), ("x", "y"))]


def gradient_of_a_gather():
    m = mesh(x=4, y=2)
    table, tokens = put(normal(16, 8), m, "x", "y"), put(integers(8, 4, low=0, high=16), m, "x")
    f = jax.jit(jax.grad(lambda t, i: (jnp.tanh(t[i]) ** 2).sum()), out_shardings=on(m, "x", "y"))
    return f(table, tokens)


def scatter_modes():
    m = mesh(x=8)
    x, i, v = put(normal(16, 4), m, "x"), integers(6, low=0, high=16), normal(6, 4, seed=1)

    def f(x, i, v):
        return x.at[i].add(v), x.at[i].max(v), x.at[i[0]].set(v[0]), x.at[i, 1].mul(2.0)

    return jax.jit(f, out_shardings=on(m, "x"))(x, i, v)


def out_of_bounds():
    m = mesh(x=8)
    x, i = put(normal(16), m, "x"), integers(6, low=-30, high=30)

    def f(x, i):
        return jnp.take(x, i, mode="clip"), jnp.take(x, i, mode="fill"), x.at[i].add(1.0, mode="drop")

    return jax.jit(f, out_shardings=on(m))(x, i)


def take_along_an_axis():
    m = mesh(x=8)
    x, i = put(normal(16, 8), m, "x"), put(integers(16, 3, low=0, high=8), m, "x")
    return jax.jit(lambda x, i: jnp.take_along_axis(x, i, 1), out_shardings=on(m, "x"))(x, i)


def shift_and_assign():
    # Replicated: sharded, native JAX loses values.
    m = mesh(x=8)
    return jax.jit(lambda x: x.at[1:].set(x[:-1]).at[0].set(0.0), out_shardings=on(m))(put(normal(8), m))


def one_hot_and_segments():
    m = mesh(x=8)
    i, v = put(integers(16, low=0, high=5), m, "x"), put(normal(16, 2), m, "x")
    return jax.jit(lambda i, v: (jax.nn.one_hot(i, 5), jax.ops.segment_sum(v, i, 5)), out_shardings=on(m))(i, v)
