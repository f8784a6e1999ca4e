"""craftax: 16 worlds split over 8 devices, walked through by fixed moves."""

import jax
import jax.numpy as jnp
from craftax.craftax_env import make_craftax_env_from_name
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "craftax"


def run(mesh):
    env = make_craftax_env_from_name("Craftax-Classic-Symbolic-v1", auto_reset=True)
    keys = jax.device_put(jax.random.split(jax.random.PRNGKey(0), 16), NamedSharding(mesh, P("x")))

    def step(carry, i):
        state, keys = carry
        actions = (jnp.arange(16) + i) % env.action_space(env.default_params).n
        seen, state, rewards, done, _ = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            keys, state, actions, env.default_params
        )
        return (state, keys), (seen.sum(1), rewards, done)

    seen, state = jax.jit(jax.vmap(env.reset, in_axes=(0, None)))(keys, env.default_params)
    _, (sums, rewards, done) = jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.arange(8)))((state, keys))
    return {"first": seen, "sums": sums, "rewards": rewards, "done": done}
