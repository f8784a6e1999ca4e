"""e3nn-jax: tensor products and spherical harmonics of split points, with gradients."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "e3nn-jax"


def run(mesh):
    split = NamedSharding(mesh, P("x"))
    points = jax.device_put(jax.random.normal(jax.random.key(0), (32, 3)), split)

    @jax.jit
    def features(points):
        sh = e3nn.spherical_harmonics("0e + 1o + 2e", points, True)
        product = e3nn.tensor_product(sh, sh, filter_ir_out=["0e", "1o", "2e"])
        gated = e3nn.norm_activation(product, [jax.nn.tanh] * len(product.irreps))
        return gated.array

    weights = jnp.sin(jnp.arange(features(points).shape[1]))
    forces = jax.jit(jax.grad(lambda p: jnp.sum(features(p) * weights)))(points)
    return {"features": features(points), "forces": forces}
