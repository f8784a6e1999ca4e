import jax
import jax.numpy as jnp
from meshes import mesh, normal, on, put

from programs import compiler_chooses


def reshapes():
    m = mesh(x=4, y=2)
    x = put(normal(8, 4, 6), m, "x", "y")
    f = jax.jit(lambda x: (x.reshape(32, 6), x.reshape(8, 24), x.reshape(2, 4, 24), x.reshape(-1)), out_shardings=on(m))
    return f(x)


def split_heads():
    m = mesh(x=4, y=2)
    f = jax.jit(lambda x: x.reshape(4, 6, 4, 8).transpose(0, 2, 1, 3), out_shardings=on(m, "x", "y"))
    return f(put(normal(4, 6, 32), m, "x", None, "y"))


def transposes():
    m = mesh(x=4, y=2)
    f = jax.jit(lambda x: (x.T, jnp.moveaxis(x, 0, 1)), out_shardings=(on(m, None, "y", "x"), on(m, "y", "x")))
    return f(put(normal(8, 4, 2), m, "x", "y"))


def concatenation():
    m = mesh(x=8)
    a, b = put(normal(16, 4), m, "x"), put(normal(8, 4, seed=1), m, "x")
    f = jax.jit(
        lambda a, b: (jnp.concatenate([a, b]), jnp.concatenate([a, a * 2], 1), jnp.stack([b, b])), out_shardings=on(m)
    )
    return f(a, b)


def concatenation_that_stays_sharded():
    m = mesh(x=8)
    a, b = put(normal(16, 4), m, "x"), put(normal(24, 4, seed=1), m, "x")
    return jax.jit(lambda a, b: jnp.concatenate([a, b, a]), out_shardings=on(m, "x"))(a, b)


def padding():
    m = mesh(x=8)
    x = put(normal(16, 4), m, "x")

    def f(x):
        return (
            jnp.pad(x, ((3, 5), (1, 0)), constant_values=7.0),
            jax.lax.pad(x, 0.0, ((-2, -3, 0), (0, 0, 1))),
            jax.lax.pad(x, 1.0, ((2, -1, 2), (-1, 2, 0))),
            jnp.pad(x, ((1, 1), (0, 0)), mode="edge"),
        )

    return jax.jit(f, out_shardings=on(m))(x)


def roll_and_flip():
    m = mesh(x=8)
    x = put(normal(16, 4), m, "x")
    return jax.jit(lambda x: (jnp.roll(x, 3, 0), jnp.roll(x, -1, 1), jnp.flip(x, 0)), out_shardings=on(m, "x"))(x)


def tile_and_repeat():
    m = mesh(x=8)
    x = put(normal(8, 2), m, "x")
    return jax.jit(lambda x: (jnp.tile(x, (2, 3)), jnp.repeat(x, 2, 0)), out_shardings=on(m))(x)


@compiler_chooses
def uneven_rows():
    m = mesh(x=8)

    def f(x):
        x = jax.lax.with_sharding_constraint(x * 2, on(m, "x"))
        y = jax.lax.with_sharding_constraint(jnp.concatenate([x, x[:3]]), on(m, "x"))
        return y, y[::-1], jnp.pad(y, ((1, 2), (0, 0))), y.T @ y

    return jax.jit(f)(normal(13, 5))


@compiler_chooses
def no_output_sharding_given():
    m = mesh(x=4, y=2)
    x = put(normal(8, 8), m, "x", "y")
    return jax.jit(lambda x: (x * 2, x.T, x.sum(0), jnp.float32(3.0)))(x)


def empty_arrays():
    m = mesh(x=8)
    return jax.jit(lambda x: (x + 1, x.sum(), jnp.concatenate([x, x])), out_shardings=on(m))(normal(0, 4))


def scalars():
    m = mesh(x=8)
    return jax.jit(lambda a, b: (a + b, a * 2.5, jnp.array([a, b])), out_shardings=on(m))(1.5, jnp.float32(2))


def constants_without_elements():
    m = mesh(x=8)
    empty = put(normal(8, 0).astype(jnp.float16), m, "x")
    f = jax.jit(lambda x: (jnp.spacing(x), jnp.nextafter(x, 1), x.sum()), out_shardings=(on(m, "x"), on(m, "x"), on(m)))
    return f(empty)
