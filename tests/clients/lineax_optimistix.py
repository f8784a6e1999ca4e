"""lineax and optimistix: linear solves, least squares, roots and minima, batched over split data."""

import jax
import jax.numpy as jnp
import lineax
import optimistix
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "optimistix"
# Where a minimum is flat, last bits move it.
TOLERANCE = {"minimum": 2e-2}


def run(mesh):
    split = NamedSharding(mesh, P("x"))
    keys = jax.random.split(jax.random.key(0), 3)
    a = jax.device_put(jax.random.normal(keys[0], (16, 6, 6)) / 3 + 3 * jnp.eye(6), split)
    b = jax.device_put(jax.random.normal(keys[1], (16, 6)), split)

    def solve(solver, symmetric=False):
        def one(a, b):
            if symmetric:
                operator = lineax.MatrixLinearOperator(a @ a.T, lineax.positive_semidefinite_tag)
            else:
                operator = lineax.MatrixLinearOperator(a)
            return lineax.linear_solve(operator, b, solver, throw=False).value

        return jax.jit(jax.vmap(one))(a, b)

    found = {
        "lu": solve(lineax.LU()),
        "qr": solve(lineax.QR()),
        "svd": solve(lineax.SVD()),
        "gmres": solve(lineax.GMRES(1e-5, 1e-5)),
        "bicgstab": solve(lineax.BiCGStab(1e-5, 1e-5)),
        "cg": solve(lineax.CG(1e-5, 1e-5), True),
        "cholesky": solve(lineax.Cholesky(), True),
    }

    def root(b):
        equation = lambda y, b: y + 0.3 * jnp.tanh(jnp.roll(y, 1)) - b  # noqa: E731
        return optimistix.root_find(equation, optimistix.Newton(1e-5, 1e-5), b, b, throw=False).value

    def fit(b):
        t = jnp.linspace(0, 1, 6)
        residual = lambda y, b: y[0] * jnp.exp(-(y[1] ** 2) * t) - b**2  # noqa: E731
        solver = optimistix.LevenbergMarquardt(1e-5, 1e-5)
        return optimistix.least_squares(residual, solver, jnp.ones(2), b, max_steps=200, throw=False).value

    def minimum(b):
        bowl = lambda y, b: jnp.sum((y - b) ** 2) + 0.1 * jnp.sum(y**4)  # noqa: E731
        return optimistix.minimise(bowl, optimistix.BFGS(1e-5, 1e-5), jnp.zeros(6), b, throw=False).value

    found["root"] = jax.jit(jax.vmap(root))(b)
    found["fit"] = jax.jit(jax.vmap(fit))(b)
    found["minimum"] = jax.jit(jax.vmap(minimum))(b)
    found["gradient"] = jax.jit(jax.grad(lambda b: jax.vmap(root)(b).sum()))(b)
    return found
