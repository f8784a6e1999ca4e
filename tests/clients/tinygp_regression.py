"""tinygp: a Gaussian process fitted to 64 points over 8 devices, and a quasiseparable one in a scan."""

import jax
import jax.numpy as jnp
import tinygp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "tinygp"


def run(mesh):
    places = jnp.sort(jax.random.uniform(jax.random.key(0), (64,), maxval=8))
    values = jnp.sin(places) + 0.1 * jax.random.normal(jax.random.key(1), (64,))
    split = NamedSharding(mesh, P("x"))
    places, values = jax.device_put((places, values), split)

    def process(params, kernel):
        scale, amplitude = jnp.exp(params["scale"]), jnp.exp(params["amplitude"])
        return tinygp.GaussianProcess(amplitude * kernel(scale), places, diag=jnp.exp(params["noise"]))

    found = {}
    kernels = {"dense": tinygp.kernels.Matern32, "quasi": tinygp.kernels.quasisep.Matern32}
    for name, kernel in kernels.items():
        params = {"scale": jnp.float32(0), "amplitude": jnp.float32(0), "noise": jnp.float32(-2)}

        def loss(params, kernel=kernel):
            return -process(params, kernel).log_probability(values)

        step = jax.jit(jax.value_and_grad(loss))
        for _ in range(5):
            value, gradient = step(params)
            params = jax.tree.map(lambda p, g: p - 0.005 * g, params, gradient)

        @jax.jit
        def predict(params, kernel=kernel):
            conditioned = process(params, kernel).condition(values, jnp.linspace(0, 8, 32)).gp
            return conditioned.loc, conditioned.variance

        found |= {f"{name}_loss": value, **{f"{name}_{k}": v for k, v in params.items()}}
        found[f"{name}_mean"], found[f"{name}_variance"] = predict(params)
    return found
