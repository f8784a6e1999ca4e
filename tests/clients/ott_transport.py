"""ott-jax: Sinkhorn between clouds of 256 points over 8 devices, its gradient, and low-rank and unbalanced variants."""

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn, sinkhorn_lr

LIBRARY = "ott-jax"


def run(mesh):
    keys = jax.random.split(jax.random.key(0), 3)
    split = NamedSharding(mesh, P("x"))
    x = jax.device_put(jax.random.normal(keys[0], (256, 3)), split)
    y = jax.device_put(1 + 0.5 * jax.random.normal(keys[1], (256, 3)), split)

    def cost(x, y, **of):
        geometry = pointcloud.PointCloud(x, y, epsilon=0.5)
        solver = sinkhorn.Sinkhorn(threshold=1e-3, max_iterations=200)
        solved = solver(linear_problem.LinearProblem(geometry, **of))
        return solved.reg_ot_cost, solved

    (value, solved), gradient = jax.jit(jax.value_and_grad(cost, has_aux=True))(x, y)
    unbalanced, _ = jax.jit(lambda x, y: cost(x, y, tau_a=0.9, tau_b=0.95))(x, y)

    @jax.jit
    def low_rank(x, y):
        geometry = pointcloud.PointCloud(x, y)
        solver = sinkhorn_lr.LRSinkhorn(rank=4, min_iterations=5, max_iterations=20)
        return solver(linear_problem.LinearProblem(geometry), rng=keys[2]).primal_cost

    return {
        "cost": value,
        "gradient": gradient,
        "mass": jax.jit(lambda s: s.matrix.sum(1))(solved),
        "unbalanced": unbalanced,
        "low_rank": low_rank(x, y),
    }
