"""Element types narrower than a byte or with few bits, in everything that arithmetic of models does with them."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from meshes import mesh, normal, on, put

from programs import compiler_chooses

FLOATS = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3b11fnuz",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e8m0fnu",
    "float4_e2m1fn",
)
INTEGERS = "int4", "uint4", "int2", "uint2"


def _wide(tree):
    return jax.tree.map(lambda x: x.astype(np.float32), tree)


def conversions_of_floats():
    m = mesh(x=8)
    x = put(normal(8, 16) * 3, m, "x")
    return {t: jax.jit(lambda x, t=t: x.astype(t).astype(np.float32))(x) for t in FLOATS}


def arithmetic_of_floats():
    m = mesh(x=8)
    x, y = put(normal(8, 16), m, "x"), put(normal(8, 16, seed=1), m, "x")

    def f(x, y):
        return (
            x + y,
            x * y,
            -x,
            jnp.maximum(x, y),
            x > y,
            jnp.where(x > y, x, y),
            x.sum(1),
            jnp.concatenate([x, y]),
            x.T,
        )

    return {t: _wide(jax.jit(f)(x.astype(t), y.astype(t))) for t in FLOATS[:2] + FLOATS[5:7]}


def orders_of_narrow_floats():
    m = mesh(x=8)
    x = put(normal(16, 8) * 2, m, "x")

    def f(x):
        return (
            jnp.sort(x, 0),
            jnp.argsort(x, 1),
            jax.lax.sort((x, x[::-1]), num_keys=2),
            jnp.unique(x, size=5),
            jnp.argmax(x, 0),
        )

    return {t: _wide(jax.jit(f)(x.astype(t))) for t in ("float4_e2m1fn", "float8_e4m3fn", "float8_e5m2")}


def largest_of_narrow_numbers():
    m = mesh(x=8)
    x = put(normal(16, 8) * 2, m, "x")
    narrow = ("float4_e2m1fn", "int4", "uint4")
    return {t: jax.jit(lambda x, t=t: jax.lax.top_k(x.astype(t), 3)[0].astype(np.float32))(x) for t in narrow}


def loops_over_batches_of_narrow_numbers():
    m = mesh(x=8)
    x = put(normal(8, 9, 10) * 2, m, "x")

    def turned(x):
        return jax.vmap(lambda x: jax.lax.scan(lambda c, row: (c + row, c * row), x[0], x)[1])(x)

    narrow = ("float4_e2m1fn", "int4", "uint4", "int2")
    return {t: _wide(jax.jit(turned)(abs(x).astype(t))) for t in narrow}


def products_of_narrow_floats():
    m = mesh(x=4, y=2)
    a, b = put(normal(16, 32), m, "x", "y"), put(normal(32, 16, seed=1), m, "y")

    def f(a, b):
        return jnp.dot(a, b, preferred_element_type=np.float32)

    return {t: jax.jit(f, out_shardings=on(m, "x"))(a.astype(t), b.astype(t)) for t in FLOATS[:2]}, jax.jit(f)(
        a.astype(FLOATS[0]), b.astype(FLOATS[1])
    )


def arithmetic_of_integers():
    m = mesh(x=8)
    x = np.arange(-64, 64).reshape(8, 16)

    def f(x):
        return (
            x + x,
            x * x,
            x // jnp.maximum(x, 1),
            x == 1,
            jnp.sort(x, 1) if x.dtype in INTEGERS[:2] else x,  # native JAX leaves two-bit integers unsorted
            x.astype(jnp.int8),
            x.sum(1, dtype=jnp.int32),
            x[:, ::2],
        )

    found = {}
    for t in INTEGERS:
        info = ml_dtypes.iinfo(t)
        value = (x % (int(info.max) - int(info.min) + 1) + int(info.min)).astype(np.int8).astype(t)
        found[t] = _wide(jax.jit(f)(put(value, m, "x")))
    return found


def quantized_matmul():
    m = mesh(x=4, y=2)
    x, w = put(normal(16, 64), m, "x"), put(normal(64, 32, seed=1), m, None, "y")

    def quantize(w, bits):
        scale = jnp.abs(w).max(0, keepdims=True) / (2 ** (bits - 1) - 1)
        return jnp.round(w / scale).astype(f"int{bits}"), scale

    def f(x, w):
        out = []
        for bits in (8, 4):
            q, scale = quantize(w, bits)
            out.append((x @ q.astype(x.dtype)) * scale)
            if bits == 8:
                qx, sx = quantize(x.T, 8)
                out.append(jnp.dot(qx.T, q, preferred_element_type=jnp.int32) * sx.T * scale)
        return out

    return jax.jit(f, out_shardings=on(m, "x", "y"))(x, w)


def narrow_arrays_on_the_host():
    m = mesh(x=8)
    found = {}
    for t in FLOATS + INTEGERS:
        x = jax.device_put((np.arange(16) % 2).astype(np.float32).astype(t), on(m, "x"))
        found[t] = np.asarray(x).astype(np.float32), [x.nbytes, x.itemsize]
    return found


@compiler_chooses
def parts_of_powers_of_two():
    """A type without zero and sign: what lies on one device of several cannot be added to zeros of the others."""
    m = mesh(x=4, y=2)
    powers = np.exp2(np.arange(-48, 48).reshape(8, 12)).astype(np.float32)
    powers[3, 3] = np.nan
    found = []
    for split in ("x", "y"), ("y",), (None, "x"):
        x = jax.device_put(powers.astype("float8_e8m0fnu"), on(m, *split))
        found += [
            x[1:, ::2],
            x[jnp.array([7, 0, 3])],
            x[:, jnp.array([11, 0, 3])],
            jax.jit(lambda x: jax.lax.dynamic_slice(x, (3, 1), (2, 7)))(x),
            jax.jit(lambda x: jnp.concatenate([x[3:], x[:3]]), out_shardings=on(m, "y", "x"))(x),
            jax.jit(lambda x: jnp.pad(x, ((2, 1), (0, 3)), constant_values=x[1, 1]))(x),
            jax.jit(lambda x: jnp.repeat(x[::-1].T, 3, axis=0))(x),
        ]
    return _wide(found)
