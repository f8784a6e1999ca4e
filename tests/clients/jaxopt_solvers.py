"""jaxopt: projected, proximal and second-order solvers over split data, and gradients through their answers."""

import jax
import jax.numpy as jnp
import jaxopt
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "jaxopt"
TOLERANCE = {"lasso": 1e-2, "simplex": 1e-2}


def run(mesh):
    split = NamedSharding(mesh, P("x"))
    keys = jax.random.split(jax.random.key(0), 2)
    x = jax.device_put(jax.random.normal(keys[0], (64, 5)), split)
    y = jax.device_put(jnp.sin(x.sum(1)) + 0.1 * jax.random.normal(keys[1], (64,)), split)

    def ridge(w, strength, x, y):
        return jnp.mean((x @ w - y) ** 2) + 0.5 * strength * jnp.sum(w**2)

    def plain(w, x, y):
        return 0.5 * jnp.mean((x @ w - y) ** 2)

    start = jnp.zeros(5)

    def through(strength):
        solver = jaxopt.LBFGS(ridge, maxiter=50, implicit_diff=True)
        return jnp.sum(solver.run(start, strength=strength, x=x, y=y).params ** 2)

    lasso = jaxopt.ProximalGradient(plain, jaxopt.prox.prox_lasso, maxiter=200, tol=1e-5)
    simplex = jaxopt.ProjectedGradient(plain, jaxopt.projection.projection_simplex, maxiter=200, tol=1e-5)
    gauss = jaxopt.GaussNewton(lambda w, x, y: x @ w - y, maxiter=10)
    return {
        "ridge": jax.jit(lambda: jaxopt.LBFGS(ridge, maxiter=50).run(start, strength=0.1, x=x, y=y).params)(),
        "hypergradient": jax.jit(jax.value_and_grad(through))(0.1)[1],
        "lasso": lasso.run(start, hyperparams_prox=0.05, x=x, y=y).params,
        "simplex": simplex.run(jnp.full(5, 0.2), x=x, y=y).params,
        "gauss": gauss.run(start, x=x, y=y).params,
        "fixed": jaxopt.FixedPointIteration(lambda w: 0.5 * jnp.cos(w) + 0.1, maxiter=40).run(start).params,
    }
