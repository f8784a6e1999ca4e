"""jaxlie: 64 poses over 8 devices averaged and aligned by Gauss-Newton steps on the manifold."""

import jax
import jax.numpy as jnp
import jaxlie
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "jaxlie"


def run(mesh):
    split = NamedSharding(mesh, P("x"))
    tangents = jax.device_put(0.5 * jax.random.normal(jax.random.key(0), (64, 6)), split)
    points = jax.device_put(jax.random.normal(jax.random.key(1), (64, 3)), split)

    @jax.jit
    def average(tangents):
        poses = jaxlie.SE3.exp(tangents)

        def step(mean, _):
            apart = jax.vmap(lambda pose: (mean.inverse() @ jaxlie.SE3(pose)).log())(poses.wxyz_xyz)
            return mean @ jaxlie.SE3.exp(apart.mean(0)), jnp.linalg.norm(apart, axis=1).mean()

        mean, spread = jax.lax.scan(step, jaxlie.SE3.identity(), None, length=6)
        return mean.parameters(), spread

    @jax.jit
    def align(points):
        seen = jaxlie.SE3.exp(jnp.array([0.3, -0.2, 0.1, 0.4, 0.2, -0.5])) @ points

        def step(pose, _):
            loss = lambda p: jnp.mean((p @ points - seen) ** 2)  # noqa: E731
            value, gradient = jaxlie.manifold.value_and_grad(loss)(pose)
            return jaxlie.manifold.rplus(pose, -0.5 * gradient), value

        pose, losses = jax.lax.scan(step, jaxlie.SE3.identity(), None, length=20)
        return pose.log(), losses

    mean, spread = average(tangents)
    pose, losses = align(points)
    return {"mean": mean, "spread": spread, "pose": pose, "losses": losses}
