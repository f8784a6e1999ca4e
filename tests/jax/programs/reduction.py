import jax
import jax.numpy as jnp
from meshes import integers, mesh, normal, on, put

from programs import compiler_chooses


def sums_over_each_axis():
    m = mesh(x=4, y=2)
    x = put(normal(8, 8), m, "x", "y")
    return jax.jit(lambda x: (x.sum(0), x.sum(1), x.sum(), x.mean(1, keepdims=True)), out_shardings=on(m))(x)


def result_stays_sharded():
    m = mesh(x=4, y=2)
    return jax.jit(lambda x: x.sum(0), out_shardings=on(m, "y"))(put(normal(8, 8), m, "x", "y"))


def extrema_and_their_places():
    m = mesh(x=8)
    x = put(integers(16, 8, low=-99, high=99), m, "x")
    return jax.jit(lambda x: (x.max(0), x.min(), jnp.argmax(x, 0), jnp.argmin(x, 1), x.argmax()), out_shardings=on(m))(
        x
    )


def products_and_booleans():
    m = mesh(x=8)
    x = put(integers(16, 4, low=1, high=4), m, "x")
    return jax.jit(lambda x: (x.prod(0), (x > 0).all(), (x > 2).any(1), jnp.sum(x > 2)), out_shardings=on(m))(x)


def softmax_and_statistics():
    m = mesh(x=4, y=2)
    x = put(normal(8, 16), m, "x", "y")

    def f(x):
        return jax.nn.softmax(x), jax.nn.logsumexp(x, axis=-1), x.var(0), x.std()

    return jax.jit(f, out_shardings=on(m))(x)


def cumulative():
    m = mesh(x=4, y=2)
    x = put(normal(8, 8), m, "x", "y")

    def f(x):
        # Products and maxima along a whole axis only: along a sharded one native JAX takes in its padding, 0.
        whole = jax.lax.with_sharding_constraint(x, on(m, "x"))
        return jnp.cumsum(x, 0), jnp.cumsum(x, 1), jnp.cumprod(whole, 1), jax.lax.cummax(whole, 1)

    return jax.jit(f, out_shardings=on(m))(x)


@compiler_chooses
def sum_of_uneven_rows():
    m = mesh(x=8)

    def f(x):
        x = jax.lax.with_sharding_constraint(x + 1, on(m, "x"))
        return x.sum(0), x.max(), x.mean(), jnp.prod(x, 1)

    return jax.jit(f)(normal(11, 3))


def windows():
    m = mesh(x=8)
    x = put(normal(8, 16), m, "x")

    def f(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3), (1, 2), "SAME")

    return jax.jit(f, out_shardings=on(m, "x"))(x)


def own_reduction():
    m = mesh(x=8)
    x = put(normal(16, 4), m, "x")

    def f(x):
        return jax.lax.reduce((x, x * x), (0.0, 0.0), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (0,))

    return jax.jit(f, out_shardings=on(m))(x)
