"""Sorting, random numbers, convolutions, Fourier transforms, linear algebra."""

import jax
import jax.numpy as jnp
import numpy as np
from meshes import integers, mesh, normal, on, put


def sort_along_each_axis():
    m = mesh(x=4, y=2)
    x = put(normal(8, 16), m, "x", "y")
    return jax.jit(lambda x: (jnp.sort(x, 0), jnp.sort(x, 1), jnp.argsort(x, 1)), out_shardings=on(m))(x)


def sort_pairs_and_top():
    m = mesh(x=8)
    k, v = put(integers(16, 8, high=40), m, "x"), put(normal(16, 8), m, "x")

    def f(k, v):
        return jax.lax.sort((k, v), num_keys=1), jax.lax.top_k(v, 3), jnp.median(v, 1)

    return jax.jit(f, out_shardings=on(m))(k, v)


def approximate_top():
    """Exact where there is nothing faster."""
    m = mesh(x=8)
    x = put(normal(16, 40), m, "x")

    def f(x):
        return jax.lax.approx_max_k(x, 3), jax.lax.approx_min_k(x, 2, reduction_dimension=0)

    return jax.jit(f, out_shardings=on(m))(x)


def random_numbers():
    m = mesh(x=8)

    def f(key):
        a, b, c = jax.random.split(key, 3)
        return (
            jax.random.normal(a, (16, 4)),
            jax.random.uniform(b, (16,)),
            jax.random.randint(c, (8, 2), 0, 100),
            jax.random.bernoulli(a, 0.3, (16,)),
        )

    return jax.jit(f, out_shardings=on(m, "x"))(jax.random.key(7))


def random_choices():
    m = mesh(x=8)

    def f(key):
        return (
            jax.random.permutation(key, 16),
            jax.random.categorical(key, jnp.zeros((8, 5))),
            jax.random.truncated_normal(key, -1, 1, (8,)),
            jax.random.gumbel(key, (8,)),
        )

    return jax.jit(f, out_shardings=on(m))(jax.random.key(3))


def random_outside_jit():
    keys = jax.random.split(jax.random.key(1), 4)
    return jax.random.normal(keys[2], (5, 3)), jax.random.key_data(jax.random.fold_in(keys[0], 9))


def dropout():
    m = mesh(x=8)
    x = put(normal(16, 8), m, "x")
    f = jax.jit(lambda k, x: jnp.where(jax.random.bernoulli(k, 0.8, x.shape), x / 0.8, 0), out_shardings=on(m, "x"))
    return f(jax.random.key(0), x)


def counted_random_bits():
    m = mesh(x=4, y=2)

    def f(key):
        after, bits = jax.lax.rng_bit_generator(key, (32, 12), algorithm=jax.lax.RandomAlgorithm.RNG_PHILOX)
        return after, bits, jax.lax.rng_bit_generator(after, (16, 6))[1]

    out = (on(m), on(m, "x"), on(m, ("x", "y")))
    return jax.jit(f, out_shardings=out)(np.array([1, 2**32 - 1, 2**32 - 3, 2**32 - 1], np.uint32))


def convolution():
    m = mesh(x=4, y=2)
    image, kernel = put(normal(8, 8, 8, 4), m, "x"), put(normal(3, 3, 4, 6, seed=1), m, None, None, None, "y")

    def f(image, kernel):
        layout = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=layout)

    return jax.jit(f, out_shardings=on(m, "x", None, None, "y"))(image, kernel)


def convolution_gradient():
    m = mesh(x=8)
    image, kernel = put(normal(8, 3, 6, 6), m, "x"), put(normal(4, 3, 3, 3, seed=1), m)

    def f(image, kernel):
        return (jax.lax.conv(image, kernel, (2, 2), "VALID") ** 2).sum()

    return jax.jit(jax.grad(f, (0, 1)), out_shardings=(on(m, "x"), on(m)))(image, kernel)


def convolution_over_a_sharded_width():
    m = mesh(x=8)
    f = jax.jit(lambda x, k: jax.lax.conv(x, k, (1,), "SAME"), out_shardings=on(m, None, None, "x"))
    return f(put(normal(2, 3, 32), m, None, None, "x"), normal(4, 3, 5, seed=1))


def pooling():
    m = mesh(x=8)

    def f(x):
        pooled = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2), (1, 2, 2), "VALID")
        return pooled.sum()

    return jax.jit(jax.value_and_grad(f), out_shardings=on(m))(put(normal(8, 4, 4), m, "x"))


def fourier():
    m = mesh(x=8)
    x = put(normal(8, 16), m, "x")

    def f(x):
        return jnp.fft.fft(x), jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.fft2(x).real

    return jax.jit(f, out_shardings=on(m))(x)


def transforms_to_nothing():
    m = mesh(x=8)
    row, column = put(normal(1, 8), m, None, "x"), put(normal(8, 1), m, "x")

    def f(row, column):
        return jnp.fft.hfft(row, axis=0), jnp.fft.irfft2(jnp.fft.rfft2(column))

    return jax.jit(f, out_shardings=on(m))(row, column)


def factorisations():
    m = mesh(x=8)
    a = normal(8, 4, 4)
    a = put(a @ a.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32), m, "x")

    def f(a):
        lower = jnp.linalg.cholesky(a)
        return lower, jax.scipy.linalg.solve_triangular(lower, a, lower=True), jnp.linalg.inv(a), jnp.linalg.det(a)

    return jax.jit(f, out_shardings=on(m))(a)


def eigenvalues_and_norms():
    m = mesh(x=8)
    a = normal(8, 4, 4)
    a = put(a + a.transpose(0, 2, 1), m, "x")

    def f(a):
        return jnp.linalg.eigvalsh(a), jnp.linalg.norm(a, axis=(1, 2))

    return jax.jit(f, out_shardings=on(m))(a)


def polynomials_and_interpolation():
    m = mesh(x=8)
    x = put(np.linspace(0, 3, 16, dtype=np.float32), m, "x")

    def f(x):
        grid = jnp.linspace(0.0, 3.0, 7)
        return (
            jnp.polyval(jnp.array([1.0, -2.0, 3.0]), x),
            jnp.interp(x, grid, jnp.sin(grid)),
            jnp.searchsorted(grid, x),
        )

    return jax.jit(f, out_shardings=on(m, "x"))(x)


def special_functions():
    m = mesh(x=8)
    x = put(np.abs(normal(16)) + 0.1, m, "x")

    def f(x):
        s = jax.scipy.special
        return s.gammaln(x), s.erfinv(x / 4), s.digamma(x), s.gammainc(x, 1.0), s.i0(x)

    return jax.jit(f, out_shardings=on(m, "x"))(x)


def not_a_number_wins():
    """Not across devices: there JAX itself loses it."""
    m = mesh(x=8)
    x = np.array(normal(16, 8))
    x[3, 1], x[9, 7], x[12, 0] = np.nan, np.inf, np.nan

    def f(x):
        rows = (
            x.max(1),
            x.min(1),
            jnp.maximum(x, 0),
            jnp.minimum(0, x),
            jax.nn.relu(x),
            jnp.clip(x, -1, 1),
            jax.lax.cummax(x, 1),
        )
        return rows, jnp.fmax(x, 0), jnp.nanmin(x, 1), jnp.argmax(x, 1)

    return jax.jit(f)(put(x, m, "x")), jax.jit(lambda x: (x.max(0), x.min(0)))(x)
