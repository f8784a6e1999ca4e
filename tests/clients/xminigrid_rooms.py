"""xminigrid: random walks through four rooms, one on each of 8 devices."""

import jax
import xminigrid
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "xminigrid"
STEPS = 20


def run(mesh):
    environment, parameters = xminigrid.make("MiniGrid-FourRooms")

    def walk(key):
        def step(state, action):
            state = environment.step(parameters, state, action)
            return state, (state.reward, state.observation)

        actions = jax.random.randint(key, (STEPS,), 0, 3)
        return jax.lax.scan(step, environment.reset(parameters, key), actions)[1]

    keys = jax.device_put(jax.random.split(jax.random.PRNGKey(0), 8), NamedSharding(mesh, P("x")))
    rewards, seen = jax.jit(jax.vmap(walk))(keys)
    return {"rewards": rewards, "seen": seen}
