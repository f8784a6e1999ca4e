"""quadax: adaptive integrals of a family of functions over 8 devices, each by several rules."""

import jax
import jax.numpy as jnp
import quadax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "quadax"


def run(mesh):
    rates = jax.device_put(jnp.linspace(0.5, 4.0, 8), NamedSharding(mesh, P("x")))

    def curve(t, rate):
        return jnp.exp(-rate * t) * jnp.cos(3 * t)

    found = {}
    for name in ("quadgk", "quadcc", "quadts", "romberg"):
        method = getattr(quadax, name)

        def area(rate, method=method):
            return method(curve, jnp.array([0.0, 2.0]), args=(rate,), epsabs=1e-5, epsrel=1e-5)[0]

        found[name] = jax.jit(jax.vmap(area))(rates)
    samples = curve(jnp.linspace(0, 2, 65)[:, None], rates)
    return found | {"simpson": quadax.simpson(samples, x=jnp.linspace(0, 2, 65), axis=0)}
