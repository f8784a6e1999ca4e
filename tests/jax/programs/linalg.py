"""Dense linear algebra: what JAX calls LAPACK for, in batches that are split over devices."""

import functools

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np
from jax._src.lax import linalg as lax_linalg  # geqrf and ormqr are not public
from meshes import integers, mesh, normal, on, put

from programs import compiler_chooses

TYPES = (np.float32, np.float64, np.complex64, np.complex128)


def _matrix(*shape, dtype=np.float32, seed=0):
    value = normal(*shape, seed=seed, dtype=np.float64)
    if np.issubdtype(dtype, np.complexfloating):
        value = value + 1j * normal(*shape, seed=seed + 1, dtype=np.float64)
    return value.astype(dtype)


def _hermitian(*shape, dtype=np.float32):
    a = _matrix(*shape, dtype=dtype)
    return a @ a.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)


def _in_every_type(function, make, *shape):
    with jax.enable_x64():
        return [jax.jit(function)(make(*shape, dtype=dtype)) for dtype in TYPES]


def _sharded(function, *arguments):
    """With the batch over eight devices: the sharding stays, and so do the values."""
    m = mesh(x=8)
    placed = [put(a, m, "x") for a in arguments]
    return jax.jit(function, out_shardings=on(m, "x"))(*placed)


def singular_values():
    def f(a):
        u, s, vt = jnp.linalg.svd(a, full_matrices=False)
        return s, (u * s[..., None, :]) @ vt, jnp.linalg.svd(a, compute_uv=False)

    return _in_every_type(f, _matrix, 3, 5, 4), _sharded(f, _matrix(8, 4, 6))


def singular_values_by_qr_iterations():
    def f(a):
        u, s, vt = jax.lax.linalg.svd(a, full_matrices=True, algorithm=jax.lax.linalg.SvdAlgorithm.QR)
        return s, (u[..., :4] * s[..., None, :]) @ vt

    return _in_every_type(f, _matrix, 2, 5, 4)


def pseudo_inverse_and_rank():
    return (
        jnp.linalg.pinv(_matrix(5, 3)),
        jnp.linalg.matrix_rank(_matrix(4, 2) @ _matrix(2, 4)),
        jnp.linalg.cond(_matrix(4, 4)),
    )


def symmetric_eigenvalues():
    def f(a):
        w, v = jnp.linalg.eigh(a)
        return w, (v * w[..., None, :]) @ v.conj().swapaxes(-1, -2), jnp.linalg.eigvalsh(a)

    return _in_every_type(f, _hermitian, 4, 4), _sharded(f, _hermitian(16, 3, 3))


def general_eigenvalues():
    def f(a):
        w, v = jnp.linalg.eig(a)
        w = jnp.sort_complex(w)
        return w, jnp.abs(jnp.linalg.det(v)) > 0, jnp.sort_complex(jnp.linalg.eigvals(a))

    return _in_every_type(f, _matrix, 5, 5)


def general_eigenvectors_solve_their_equation():
    def f(a):
        w, v = jnp.linalg.eig(a)
        return jnp.abs(a @ v - v * w[..., None, :]).max() < 1e-3

    return _in_every_type(f, _matrix, 3, 6, 6), _sharded(lambda a: jnp.abs(jnp.linalg.eig(a)[1]), _matrix(8, 4, 4))


def schur_form():
    def f(a):
        t, z = jsl.schur(a)
        return z @ t @ z.conj().T, jnp.tril(t, -2)

    return _in_every_type(f, _matrix, 5, 5)


def hessenberg_form():
    def f(a):
        h, q = jsl.hessenberg(a, calc_q=True)
        return h, q @ h @ q.conj().T

    return _in_every_type(f, _matrix, 5, 5)


def tridiagonal_form():
    def f(a):
        _, d, e, _ = jax.lax.linalg.tridiagonal(a, lower=True)
        return d, jnp.abs(e)

    return _in_every_type(f, _hermitian, 5, 5)


def qr_factors():
    def f(a):
        q, r = jnp.linalg.qr(a, mode="complete")
        return q @ r, jnp.abs(jnp.linalg.qr(a, mode="r"))

    return _in_every_type(f, _matrix, 2, 6, 4), _sharded(f, _matrix(8, 4, 6))


def pivoted_qr():
    def f(a):
        q, r, p = jsl.qr(a, pivoting=True)
        return q @ r, p, jnp.abs(r)

    return _in_every_type(f, _matrix, 6, 4)


def multiply_by_reflectors():
    def f(a):
        packed, taus = lax_linalg.geqrf(a)
        return [
            lax_linalg.ormqr(packed, taus, a if left else a.swapaxes(-1, -2), left=left, transpose=transpose)
            for left in (True, False)
            for transpose in (True, False)
        ]

    return _in_every_type(f, _matrix, 4, 4)


def lu_solve_and_determinant():
    def f(a):
        packed, _, order = jax.lax.linalg.lu(a)
        return packed, order, jnp.linalg.det(a), jnp.linalg.inv(a), jnp.linalg.solve(a, a[..., :2])

    return _in_every_type(f, _matrix, 3, 4, 4), _sharded(f, _matrix(8, 4, 4))


def cholesky_and_triangular():
    def f(a):
        lower = jnp.linalg.cholesky(a)
        solve = functools.partial(jax.lax.linalg.triangular_solve, lower, a, lower=True)
        return lower, [
            solve(left_side=left, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit)
            for left in (True, False)
            for transpose, conjugate in ((False, False), (True, False), (True, True))
            for unit in (True, False)
        ]

    return _in_every_type(f, _hermitian, 2, 4, 4), _sharded(f, _hermitian(8, 4, 4))


def failed_factors_are_nan():
    """One matrix of the batch is not positive definite, one singular, one not finite: the others are right."""
    a = _hermitian(4, 3, 3)
    a[1] = -a[1]
    bad = _matrix(3, 3, 3)
    bad[0, 1, 1] = np.nan
    return (
        jnp.linalg.cholesky(a),
        jnp.linalg.inv(np.zeros((2, 2))),
        jnp.linalg.eigvals(bad)[0],
        jnp.linalg.svd(bad)[1][0],
        jnp.isnan(jnp.concatenate(jax.lax.linalg.tridiagonal(bad)[1:3], axis=1)),
        jnp.isnan(jsl.qr(bad, pivoting=True, mode="r")[0]),
    )


def tridiagonal_systems():
    def f(a):
        d, dl, du = a[..., 0, :] + 4, a[..., 1, :], a[..., 2, :]
        dl, du = dl.at[..., 0].set(0), du.at[..., -1].set(0)
        return jax.lax.linalg.tridiagonal_solve(dl, d, du, a.swapaxes(-1, -2))

    return _in_every_type(f, _matrix, 2, 4, 6)


def matrix_functions():
    a = _matrix(4, 4) * 0.3
    return jsl.expm(a), jsl.sqrtm(_hermitian(3, 3)), jnp.linalg.matrix_power(a, 5), jsl.polar(_matrix(4, 3))


def gradients():
    a = _hermitian(4, 4)
    return [
        jax.grad(lambda a, f=f: jnp.sum(jnp.abs(f(a))))(a)
        for f in (jnp.linalg.cholesky, jnp.linalg.inv, jnp.linalg.eigvalsh, lambda a: jnp.linalg.svd(a)[1])
    ]


@compiler_chooses
def split_along_the_matrix():
    """The matrix's own dimensions are split: each device gets the whole."""
    m = mesh(x=4, y=2)
    a = put(_hermitian(8, 8), m, "x", "y")
    return jax.jit(lambda a: (jnp.linalg.eigvalsh(a), jnp.linalg.svd(a)[1], jnp.linalg.inv(a)))(a)


def empty_and_tiny():
    with jax.enable_x64():
        return [
            (
                jnp.linalg.svd(np.zeros(shape))[1],
                jnp.linalg.qr(np.ones(shape))[1].shape,
                jnp.linalg.norm(np.ones(shape)),
            )
            for shape in ((1, 1), (0, 2, 2), (2, 1, 3))
        ]


def sparse_products():
    from jax.experimental import sparse

    dense = normal(6, 5) * (integers(6, 5) > 3)
    a = sparse.BCSR.fromdense(dense)
    x = normal(5, 3, seed=2)
    return jax.jit(lambda a, x: (a @ x, a @ x[:, 0]))(a, x)


def not_a_number_reaches_what_depends_on_it():
    found = []
    for dtype in (np.float32, np.float64, np.complex64):
        a = _matrix(2, 6, 6).astype(dtype)
        a[0, 2, 3] = np.nan
        a[1, 4, 1] = np.inf
        hermitian = jnp.asarray(a) @ jnp.asarray(a.conj().swapaxes(-1, -2)) + 9 * np.eye(6, dtype=dtype)
        found += [
            jnp.linalg.inv(a),
            jnp.linalg.det(a),
            jnp.linalg.solve(a, a),
            jnp.linalg.cholesky(hermitian),
            jnp.linalg.cholesky(hermitian, upper=True),
            *jnp.linalg.qr(a),
            *jax.lax.linalg.lu(a[:, :4]),
            *jnp.linalg.qr(a[0, :4], mode="complete"),
            jax.lax.linalg.hessenberg(a)[0],
        ]
    return [jnp.isnan(x) for x in found]
