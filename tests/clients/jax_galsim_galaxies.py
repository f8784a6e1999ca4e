"""jax-galsim: pictures of 8 galaxies behind a telescope, one a device, and how they change with size and shear."""

import jax
import jax.numpy as jnp
import jax_galsim
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "jax-galsim"


def run(mesh):
    radii = jax.device_put(jnp.linspace(0.6, 1.4, 8), NamedSharding(mesh, P("x")))

    sizes = jax_galsim.GSParams(minimum_fft_size=64, maximum_fft_size=64)

    def picture(radius, shear):
        galaxy = jax_galsim.Exponential(half_light_radius=radius, flux=100.0, gsparams=sizes).shear(g1=shear, g2=0.1)
        seen = jax_galsim.Convolve([galaxy, jax_galsim.Gaussian(fwhm=0.7, gsparams=sizes)], gsparams=sizes)
        return seen.drawImage(nx=16, ny=16, scale=0.4).array

    slopes = jax.vmap(jax.grad(lambda radius, shear: jnp.sum(picture(radius, shear) ** 2), argnums=(0, 1)), (0, None))
    pictures = jax.jit(jax.vmap(picture, (0, None)))(radii, 0.2)
    by_radius, by_shear = jax.jit(slopes)(radii, 0.2)
    return {"pictures": pictures, "by_radius": by_radius, "by_shear": by_shear}
