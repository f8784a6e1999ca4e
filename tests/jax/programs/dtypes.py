import jax
import jax.numpy as jnp
import numpy as np
from meshes import integers, mesh, normal, on, put


def _everywhere(dtype, f):
    m = mesh(x=8)
    return jax.jit(f, out_shardings=on(m))(put(np.asarray(integers(16, 4, low=0, high=5)).astype(dtype), m, "x"))


def bfloat16():
    return _everywhere(jnp.bfloat16, lambda x: (x * 1.5 + x, x.sum(0), x @ x.T))


def float16():
    return _everywhere(np.float16, lambda x: (x * 1.5 + x, x.max(0), jnp.tanh(x)))


def float64():
    with jax.enable_x64(True):
        m = mesh(x=8)
        x = put(normal(16, 4, dtype=np.float64), m, "x")
        return jax.jit(lambda x: (x.sum(0), x @ x.T, jnp.exp(x)), out_shardings=on(m))(x)


def int64_and_uint64():
    with jax.enable_x64(True):
        m = mesh(x=8)
        x = put(integers(16, dtype=np.int64) << 40, m, "x")
        return jax.jit(lambda x: (x.sum(), x // 3, x.astype(jnp.uint64) >> 5), out_shardings=on(m))(x)


def small_integers():
    return [
        _everywhere(d, lambda x: (x + x, x.sum(0), x // 2)) for d in (np.int8, np.uint8, np.int16, np.uint16, np.uint32)
    ]


def four_bit_integers():
    m = mesh(x=8)
    x = put(integers(16, 4, low=0, high=7), m, "x")
    return jax.jit(lambda x: (x.astype(jnp.int4).astype(jnp.int32), x.astype(jnp.uint4)), out_shardings=on(m, "x"))(x)


def eight_bit_floats():
    m = mesh(x=8)
    x = put(normal(16, 4), m, "x")

    def f(x):
        return [x.astype(d).astype(jnp.float32) for d in (jnp.float8_e4m3fn, jnp.float8_e5m2)] + [
            x.astype(jnp.float8_e4m3fn)
        ]

    return jax.jit(f, out_shardings=on(m, "x"))(x)


def booleans():
    return _everywhere(np.bool_, lambda x: (x & ~x[::-1], x.any(0), x.all(1), jnp.where(x, 1, 2), x.sum()))


def complex64():
    m = mesh(x=8)
    z = put(normal(16, 4) + 1j * normal(16, 4, seed=1), m, "x").astype(jnp.complex64)
    return jax.jit(lambda z: (z * z.conj(), jnp.abs(z), z.real, jnp.exp(z), z.sum(0), z @ z.T), out_shardings=on(m))(z)


def conversions():
    m = mesh(x=8)
    x = put(normal(16) * 20, m, "x")
    kinds = jnp.int32, jnp.int8, jnp.uint8, jnp.bool_, jnp.bfloat16, jnp.float16, jnp.complex64
    f = jax.jit(lambda x: [jnp.clip(x, 0, 100).astype(k) for k in kinds], out_shardings=on(m, "x"))
    return f(x), jax.jit(lambda x: jax.lax.bitcast_convert_type(x, jnp.int32), out_shardings=on(m, "x"))(x)


def weak_types():
    x = put(normal(8), mesh(x=8), "x")
    return x * 2, x + np.float32(1), 2 * jnp.int32(3), jnp.bfloat16(1) * 2.5


def not_a_number_and_infinities():
    m = mesh(x=8)
    # Without x.max(): the collective of native JAX loses the NaN.
    x = put(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 1e38, -1.0], np.float32), m, "x")
    return jax.jit(lambda x: (x * 10, jnp.isnan(x), jnp.maximum(x, 0), jnp.nanmax(x), 1 / x), out_shardings=on(m))(x)
