"""chex: dataclasses of arrays over 8 devices, checks of values inside of programs, and what they say."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "chex"


@chex.dataclass
class State:
    place: jax.Array
    speed: jax.Array


def _said(f):
    try:
        f()
    except Exception as error:
        return np.frombuffer(type(error).__name__.encode(), np.uint8)
    return np.zeros(0)


def run(mesh):
    split = NamedSharding(mesh, P("x"))
    state = State(place=jax.device_put(jnp.arange(16.0), split), speed=jax.device_put(jnp.ones(16), split))

    @jax.jit
    def step(state):
        chex.assert_shape(state.place, (16,))
        return state.replace(place=state.place + 0.1 * state.speed, speed=state.speed * 0.9)

    for _ in range(3):
        state = step(state)
    chex.assert_trees_all_close(state.speed, jnp.full(16, 0.9**3))

    def root(x):
        chex.assert_tree_all_finite(jnp.sqrt(x))
        return jnp.sqrt(x)

    checked = chex.chexify(jax.jit(root), async_check=False)
    with chex.fake_pmap_and_jit():
        faked = jax.pmap(lambda x: x * 2)(jnp.ones((4, 2)))
    return {
        "place": state.place,
        "root": checked(state.place),
        "negative": _said(lambda: checked(-state.place)),
        "apart": _said(lambda: chex.assert_trees_all_close(state.place, state.speed)),
        "ranks": _said(lambda: chex.assert_rank(state.place, 2)),
        "faked": faked,
    }
