import jax
import jax.numpy as jnp
from meshes import integers, mesh, normal, on, put


def unary_functions():
    m = mesh(x=8)
    x = put(normal(16, 8), m, "x")
    functions = (jnp.sin, jnp.tanh, jnp.exp, jnp.log1p, jnp.abs, jnp.floor, jnp.sign, jax.nn.sigmoid, jax.lax.erf)
    return jax.jit(lambda x: [f(jnp.abs(x)) for f in functions], out_shardings=on(m, "x"))(x)


def binary_functions():
    m = mesh(x=4, y=2)
    a, b = put(normal(8, 8), m, "x", "y"), put(normal(8, 8, seed=1), m, "x", "y")
    return jax.jit(lambda a, b: (a + b, a * b, a / b, a - b, jnp.maximum(a, b), jnp.arctan2(a, b), a > b))(a, b)


def operands_sharded_differently():
    m = mesh(x=4, y=2)
    a, b = put(normal(8, 8), m, "x", "y"), put(normal(8, 8, seed=1), m, "y", "x")
    return jax.jit(lambda a, b: a + b, out_shardings=on(m, "x", "y"))(a, b)


def integer_arithmetic():
    m = mesh(x=8)
    a, b = put(integers(64), m, "x"), put(integers(64, low=1, seed=1), m, "x")
    return jax.jit(lambda a, b: (a // b, a % b, a & b, a ^ b, a << 2, a >> 1, ~a, jax.lax.population_count(b)))(a, b)


def broadcasting():
    m = mesh(x=4, y=2)
    a, b = put(normal(8, 1), m, "x", None), put(normal(4), m, "y")
    return jax.jit(lambda a, b: a * b + 1.0, out_shardings=on(m, "x", "y"))(a, b)


def select_and_clip():
    m = mesh(x=8)
    x = put(normal(16, 4), m, "x")
    return jax.jit(lambda x: (jnp.where(x > 0, x, -2 * x), jnp.clip(x, -0.5, 0.5), jax.nn.relu(x)))(x)


def constants_and_iota():
    m = mesh(x=4, y=2)

    def f(x):
        rows = jax.lax.broadcasted_iota(jnp.int32, x.shape, 0)
        return x + rows + jnp.arange(x.shape[1]) + jnp.eye(*x.shape)

    return jax.jit(f, out_shardings=on(m, "x", "y"))(put(normal(8, 8), m, "x", "y"))


def program_without_arguments():
    m = mesh(x=8)
    return jax.jit(lambda: jnp.arange(32.0).reshape(8, 4) * 2, out_shardings=on(m, "x"))()
