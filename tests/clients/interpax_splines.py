"""interpax: splines of one, two and three dimensions at places split over 8 devices, and their gradients."""

import interpax
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "interpax"


def run(mesh):
    x = jnp.linspace(0, 2 * jnp.pi, 17)
    wave = jnp.sin(x)
    plane = jnp.sin(x)[:, None] * jnp.cos(x)[None]
    space = plane[:, :, None] * jnp.exp(-x / 3)
    places = jax.device_put(jax.random.uniform(jax.random.key(0), (64, 3), maxval=6.0), NamedSharding(mesh, P("x")))
    found = {}
    for method in ("nearest", "linear", "cubic", "cubic2", "catmull-rom", "cardinal", "monotonic", "akima"):

        def line(p, method=method):
            return interpax.interp1d(p, x, wave, method=method, extrap=True)

        found[f"line_{method}"] = jax.jit(line)(places[:, 0])
        if method in ("linear", "cubic", "cubic2"):
            slope = jax.jit(jax.grad(lambda p, line=line: line(p).sum()))(places[:, 0])
            flat = jax.jit(lambda p, m=method: interpax.interp2d(p[:, 0], p[:, 1], x, x, plane, method=m))(places)
            deep = jax.jit(lambda p, m=method: interpax.interp3d(*p.T, x, x, x, space, method=m))(places)
            found |= {f"slope_{method}": slope, f"plane_{method}": flat, f"space_{method}": deep}
    smooth = interpax.PchipInterpolator(x, wave)
    return found | {"pchip": smooth(places[:, 0]), "area": smooth.integrate(0.0, 3.0)}
