"""Pallas kernels, interpreted; sparse arrays; solvers and integrators of jax.experimental and jax.scipy."""

import functools

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental import sparse
from jax.experimental.ode import odeint
from jax.experimental.pallas import tpu as pltpu
from jax.sharding import PartitionSpec as P
from meshes import mesh, normal, on, put

from programs import compiler_chooses


def pallas_elementwise():
    def kernel(x_ref, y_ref, o_ref):
        o_ref[...] = jnp.tanh(x_ref[...]) + y_ref[...]

    x, y = jnp.asarray(normal(16, 32)), jnp.asarray(normal(16, 32, seed=1))
    return jax.jit(pl.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True))(x, y)


def pallas_blocked_matmul():
    def kernel(a_ref, b_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += a_ref[...] @ b_ref[...]

    m, n, k = 32, 64, 48
    call = pl.pallas_call(
        kernel,
        grid=(m // 16, n // 16, k // 16),
        in_specs=[pl.BlockSpec((16, 16), lambda i, j, k: (i, k)), pl.BlockSpec((16, 16), lambda i, j, k: (k, j))],
        out_specs=pl.BlockSpec((16, 16), lambda i, j, k: (i, j)),
        out_shape=jax.ShapeDtypeStruct((m, n), jnp.float32),
        interpret=True,
    )
    return jax.jit(call)(normal(m, k), normal(k, n, seed=1))


def pallas_in_a_manual_region():
    m = mesh(x=4)

    def kernel(x_ref, o_ref):
        o_ref[...] = lax.fori_loop(0, 3, lambda i, x: x * 0.5 + x_ref[0, 0], x_ref[...])

    def block(x):
        y = pl.pallas_call(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x)
        return lax.psum(y, "x")

    f = jax.shard_map(block, mesh=m, in_specs=P("x"), out_specs=P(), check_vma=False)
    return jax.jit(f)(put(normal(16, 8), m, "x"))


def pallas_for_tpus_that_send_to_one_another():
    m = mesh(x=8)

    def to_the_next(x_ref, o_ref, sent, received):
        there = jax.lax.rem(lax.axis_index("x") + 1, 8)
        copy = pltpu.make_async_remote_copy(x_ref, o_ref, sent, received, there, pltpu.DeviceIdType.LOGICAL)
        copy.start()
        copy.wait()

    def block(x):
        return pl.pallas_call(
            to_the_next,
            jax.ShapeDtypeStruct(x.shape, x.dtype),
            in_specs=[pl.BlockSpec(memory_space=pl.ANY)],
            out_specs=pl.BlockSpec(memory_space=pl.ANY),
            scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
            interpret=pltpu.InterpretParams(),
        )(x)

    f = jax.shard_map(block, mesh=m, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    return jax.jit(f)(put(normal(64, 128), m, "x"))


def pallas_of_split_arrays():
    m = mesh(x=4, y=2)

    def kernel(x_ref, o_ref):
        o_ref[...] = jnp.cumsum(x_ref[...], axis=1)

    call = pl.pallas_call(
        kernel,
        grid=(4,),
        in_specs=[pl.BlockSpec((4, 8), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((4, 8), lambda i: (i, 0)),
        out_shape=jax.ShapeDtypeStruct((16, 8), jnp.float32),
        interpret=True,
    )
    return jax.jit(call, out_shardings=on(m, "x"))(put(normal(16, 8), m, "x", "y"))


def sparse_arrays():
    m = mesh(x=4, y=2)
    dense = normal(16, 24) * (normal(16, 24, seed=1) > 0.5)
    a = sparse.BCOO.fromdense(dense, nse=200)
    b = put(normal(24, 8, seed=2), m, "x", "y")
    f = jax.jit(lambda a, b: (a @ b, (a.T @ (a @ b)), a.sum(1).todense(), (a * 2).todense()))
    gradient = jax.jit(jax.grad(lambda b, a: jnp.sin(a @ b).sum()))(b, a)
    batched = sparse.BCOO.fromdense(np.stack([dense, -dense]), n_batch=1)
    return (
        f(a, b),
        gradient,
        sparse.bcoo_dot_general(batched, np.stack([b, b]), dimension_numbers=(([2], [1]), ([0], [0]))),
        sparse.sparsify(lambda a, x: jnp.dot(a, x) + 1)(a, normal(24)),
    )


def sparse_eigenvectors():
    a = normal(32, 32)
    theta, u, _ = sparse.linalg.lobpcg_standard(a @ a.T, normal(32, 3, seed=1), m=50)
    return theta


def differential_equation():
    m = mesh(x=8)
    y = put(normal(8, 4), m, "x")
    t = jnp.linspace(0.0, 2.0, 9)

    def loss(k, y):
        return (odeint(lambda y, t, k: -k * y + jnp.sin(t), y, t, k, rtol=1e-6, atol=1e-6)[-1] ** 2).sum()

    return jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))(jnp.float32(1.3), y)


def own_linear_solver_and_root():
    m = mesh(x=8)
    a = normal(16, 16) + 8 * np.eye(16, dtype=np.float32)
    a, b = put(a @ a.T / 16, m, "x"), put(normal(16, seed=1), m, "x")

    def solve(a, b):
        return lax.custom_linear_solve(
            lambda x: a @ x, b, lambda f, b: jsp.sparse.linalg.cg(f, b, tol=1e-7)[0], symmetric=True
        )

    def root(c):
        newton = lambda f, x: lax.fori_loop(0, 12, lambda i, x: x - f(x) / jax.grad(lambda x: f(x).sum())(x), x)  # noqa: E731
        return lax.custom_root(lambda x: x**3 + x - c, jnp.ones_like(c), newton, lambda g, y: y / g(jnp.ones_like(y)))

    f = jax.jit(jax.value_and_grad(lambda a, b: (solve(a, b) ** 2).sum(), argnums=(0, 1)))
    return f(a, b), jax.jit(jax.value_and_grad(lambda c: root(c).sum()))(b)


def iterative_solvers():
    m = mesh(x=8)
    a, b = put(normal(16, 16) / 4 + 4 * np.eye(16, dtype=np.float32), m, "x"), put(normal(16, seed=1), m, "x")
    solvers = jsp.sparse.linalg.gmres, jsp.sparse.linalg.bicgstab
    return [jax.jit(functools.partial(solve, tol=1e-6))(lambda_a, b)[0] for solve in solvers for lambda_a in [a]]


@compiler_chooses
def functions_of_scipy():
    m = mesh(x=8)
    x, p = put(normal(8, 16), m, "x"), put(np.abs(normal(8, 16, seed=1)) + 0.5, m, "x")
    s = jsp.special

    def f(x, p):
        return (
            s.gamma(p),
            s.gammaln(p),
            s.digamma(p),
            s.polygamma(2, p),
            s.zeta(p + 1, p),
            s.betainc(p, p + 1, 0.3),
            s.gammainc(p, p),
            s.gammaincc(p, p),
            s.erf(x),
            s.erfc(x),
            s.erfinv(x / 10),
            s.logit(p / 10),
            s.expit(x),
            s.logsumexp(x, axis=0),
            s.i0e(x),
            s.i1e(x),
            s.ndtr(x),
            s.ndtri(p / 20),
            s.log_ndtr(x),
            s.xlogy(x, p),
            s.entr(p),
            s.kl_div(p, p + 1),
            s.rel_entr(p, p + 1),
            s.bernoulli(6),
            s.exp1(p),
            s.expi(p),
            s.spence(p),
            s.hyp1f1(p, p + 1, x / 4),
            s.factorial(jnp.arange(5.0)),
        )

    return jax.jit(f)(x, p)


@compiler_chooses
def statistics_of_scipy():
    m = mesh(x=8)
    x = put(normal(8, 16), m, "x")
    p = put(np.abs(normal(8, 16, seed=1)) / 4 + 0.1, m, "x")
    t = jsp.stats

    def f(x, p):
        return (
            t.norm.logcdf(x),
            t.norm.ppf(p),
            t.t.logpdf(x, 3.0),
            t.gamma.logpdf(p, 2.0),
            t.beta.cdf(p, 2.0, 3.0),
            t.poisson.cdf(jnp.floor(p * 10), 3.0),
            t.binom.logpmf(2, 5, p),
            t.cauchy.sf(x),
            t.logistic.ppf(p),
            t.truncnorm.logpdf(x, -1.0, 1.0),
            t.multivariate_normal.logpdf(x, jnp.zeros(16), jnp.eye(16)),
            t.gaussian_kde(x)(x[:, :4]),
            t.rankdata(x),
            t.mode(jnp.round(x)),
            t.sem(x),
            t.vonmises.pdf(x, 2.0),
        )

    return jax.jit(f)(x, p)


def signals_and_images():
    m = mesh(x=8)
    x = put(normal(64), m, "x")
    image = put(normal(16, 16), m, "x")
    y = normal(9, seed=1)
    return (
        jsp.signal.convolve(x, y, mode="same"),
        jsp.signal.fftconvolve(x, y),
        jsp.signal.correlate(x, y),
        jsp.signal.convolve2d(image, image[:3, :3], mode="valid"),
        jsp.signal.detrend(x),
        jsp.ndimage.map_coordinates(image, [np.linspace(0, 15, 7), np.linspace(3, 9, 7)], order=1, mode="nearest"),
        jsp.interpolate.RegularGridInterpolator((jnp.arange(16.0),), x[:16])(jnp.array([0.5, 7.25])),
        jsp.integrate.trapezoid(x),
        jsp.fft.dct(image, axis=1),
        jsp.fft.idctn(image),
        jsp.cluster.vq.vq(image, image[:3]),
    )


def matrices_of_scipy():
    a = normal(8, 8)
    s = a @ a.T + 8 * np.eye(8, dtype=np.float32)
    g = jsp.linalg
    return (
        g.cho_solve(g.cho_factor(s), a),
        g.lu_solve(g.lu_factor(s), a),
        g.solve(s, a, assume_a="pos"),
        g.expm(a / 8),
        g.block_diag(a, s),
        g.toeplitz(a[0]),
        g.hilbert(5),
        g.pascal(4),
        g.eigh_tridiagonal(a[0], a[1, 1:]),
        g.solve_triangular(np.triu(s), a),
        g.polar(s),
        g.inv(s),
        g.det(s),
        g.eigh(s, eigvals_only=True),
    )


def resized_and_moved_images():
    m = mesh(x=4)
    x = put(normal(4, 12, 16, 3), m, "x")
    f = jax.jit(
        lambda x: [
            jax.image.resize(x, (4, 7, 21, 3), how, antialias=a)
            for how in ("nearest", "linear", "cubic", "lanczos3", "lanczos5")
            for a in (True, False)
        ],
    )
    g = jax.jit(
        lambda x: jax.image.scale_and_translate(
            x, (4, 10, 10, 3), (1, 2), jnp.array([0.7, 0.5]), jnp.array([1.0, -2.0]), "linear"
        )
    )
    return f(x), g(x)


@compiler_chooses
def recurrent_cells():
    from jax.experimental import rnn

    m = mesh(x=8)
    x = put(normal(8, 5, 6), m, "x")
    w = rnn.init_lstm_weight(jax.random.key(0), 6, 7, 2, True)
    h = jnp.zeros((4, 8, 7))
    return jax.jit(
        lambda x, h, w: rnn.lstm_ref(
            x, h, h, *rnn.unpack_lstm_weights(w, 6, 7, 2, True), jnp.full(8, 5, jnp.int32), 6, 7, 2, 0.0, True
        )
    )(x, h, w)


def taylor_series():
    from jax.experimental import jet

    x = put(normal(8), mesh(x=8), "x")
    return jax.jit(
        lambda x: jet.jet(lambda x: jnp.sin(x) * jnp.exp(x), (x,), ((jnp.ones_like(x), jnp.zeros_like(x)),))
    )(x)
