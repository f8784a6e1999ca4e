"""jax-md: soft spheres in a periodic box with a neighbour list, minimized, then at constant energy; particles split."""

import jax
import jax_md
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "jax-md"
TOLERANCE = {"positions": 1e-2, "energies": 1e-3}


def run(mesh):
    count, side = 128, 11.0
    displacement, shift = jax_md.space.periodic(side)
    neighbors_of, energy = jax_md.energy.soft_sphere_neighbor_list(displacement, side)
    split = NamedSharding(mesh, P("x"))
    positions = side * jax.random.uniform(jax.random.key(0), (count, 2))
    positions = jax.device_put(positions, split)
    neighbors = neighbors_of.allocate(positions, extra_capacity=16)

    init, descend = jax_md.minimize.fire_descent(energy, shift)

    @jax.jit
    def relax(state, neighbors):
        def step(_, carry):
            state, neighbors = carry
            neighbors = neighbors.update(state.position)
            return descend(state, neighbor=neighbors), neighbors

        return jax.lax.fori_loop(0, 30, step, (state, neighbors))

    state, neighbors = relax(init(positions, neighbor=neighbors), neighbors)
    relaxed = jax.device_put(state.position, split)

    init, move = jax_md.simulate.nve(energy, shift, 1e-3)

    @jax.jit
    def simulate(state, neighbors):
        def step(carry, _):
            state, neighbors = carry
            neighbors = neighbors.update(state.position)
            state = move(state, neighbor=neighbors)
            kinetic = jax_md.quantity.kinetic_energy(momentum=state.momentum, mass=state.mass)
            return (state, neighbors), energy(state.position, neighbor=neighbors) + kinetic

        return jax.lax.scan(step, (state, neighbors), length=50)

    start = init(jax.random.key(1), relaxed, kT=1e-2, neighbor=neighbors)
    (state, neighbors), energies = simulate(start, neighbors)
    assert not neighbors.did_buffer_overflow
    return {"positions": state.position, "energies": energies}
