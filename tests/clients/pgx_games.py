"""pgx: games played at random on 32 boards over 8 devices: Connect Four, Go and backgammon."""

import jax
import jax.numpy as jnp
import pgx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "pgx"


def run(mesh):
    keys = jax.device_put(jax.random.split(jax.random.PRNGKey(0), 32), NamedSharding(mesh, P("x")))
    found = {}
    for name in ("connect_four", "go_9x9", "backgammon"):
        game = pgx.make(name)

        @jax.jit
        def play(keys, game=game):
            def move(state, key):
                choose, chance = jax.random.split(key)
                legal = jnp.where(state.legal_action_mask, 0.0, -jnp.inf)
                return game.step(state, jax.random.categorical(choose, legal), chance)

            def turn(carry, _):
                states, keys = carry
                both = jax.vmap(jax.random.split)(keys)
                return (jax.vmap(move)(states, both[:, 1]), both[:, 0]), states.current_player

            states = jax.vmap(game.init)(keys)
            (states, _), players = jax.lax.scan(turn, (states, keys), None, length=20)
            return states.observation, states.rewards, states.terminated, players

        observation, rewards, ended, players = play(keys)
        found |= {f"{name}_seen": observation, f"{name}_rewards": rewards, f"{name}_ended": ended}
        found[f"{name}_players"] = players
    return found
