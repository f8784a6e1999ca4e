"""jax-cfd: two-dimensional turbulence on a grid whose rows are split over 8 devices."""

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "jax-cfd"
SIZE = 32


def run(mesh):
    grid = cfd.grids.Grid((SIZE, SIZE), domain=((0, 2 * jnp.pi), (0, 2 * jnp.pi)))
    start = cfd.initial_conditions.filtered_velocity_field(jax.random.PRNGKey(0), grid, 3.0, peak_wavenumber=4)
    step = cfd.equations.semi_implicit_navier_stokes(density=1.0, viscosity=1e-2, dt=1e-2, grid=grid)
    rows = NamedSharding(mesh, P("x"))
    start = jax.tree.map(lambda field: jax.device_put(field, rows), start)
    _, found = jax.jit(cfd.funcutils.trajectory(cfd.funcutils.repeated(step, steps=4), 3))(start)
    return {"velocity": jnp.stack([field.data for field in found])}
