"""jumanji: 16 games each of 2048, of a maze and of packing, split over 8 devices, played by fixed moves."""

import jax
import jax.numpy as jnp
import jumanji
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "jumanji"
GAMES = {"Game2048-v1": 4, "Maze-v0": 4, "GraphColoring-v1": 20}


def run(mesh):
    keys = jax.device_put(jax.random.split(jax.random.PRNGKey(0), 16), NamedSharding(mesh, P("x")))
    found = {}
    for name, actions in GAMES.items():
        game = jumanji.make(name)
        state, _ = jax.jit(jax.vmap(game.reset))(keys)

        def play(state, i, game=game, actions=actions):
            moves = (jnp.arange(16) + i) % actions
            state, step = jax.vmap(game.step)(state, moves)
            return state, (step.reward, step.discount)

        state, (rewards, discounts) = jax.jit(lambda s, play=play: jax.lax.scan(play, s, jnp.arange(12)))(state)
        found |= {f"{name}_rewards": rewards, f"{name}_discounts": discounts}
        found[f"{name}_state"] = sum(jnp.sum(jnp.nan_to_num(x.astype(jnp.float32))) for x in _numbers(state))
    return found


def _numbers(state):
    return [x for x in jax.tree.leaves(state) if x.dtype != jnp.uint32]
