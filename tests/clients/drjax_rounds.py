"""drjax: federated averaging over clients that are a mesh axis."""

import drjax
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "drjax"


def run(mesh):
    split = NamedSharding(mesh, P("x"))
    data = jax.device_put(jax.random.normal(jax.random.key(0), (8, 16, 4)), split)

    def local(model, batch):
        def step(model, row):
            return model - 0.1 * jax.grad(lambda m: jnp.mean((row @ m - jnp.sin(row.sum())) ** 2))(model), None

        return jax.lax.scan(step, model, batch)[0]

    @drjax.program(placements={"x": 8})
    def round_of(model, data):
        models = drjax.map_fn(local, (drjax.broadcast(model), data))
        return drjax.reduce_mean(models)

    model = jnp.ones(4)
    with jax.set_mesh(mesh):
        trained = jax.jit(round_of)(model, data)
        gradient = jax.jit(jax.grad(lambda m: jnp.sum(round_of(m, data) ** 2)))(model)
    return {"trained": trained, "gradient": gradient}
