"""mctx: Gumbel MuZero and MuZero searches from 32 roots over 8 devices, with a small network as the model."""

import jax
import jax.numpy as jnp
import mctx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "mctx"
ACTIONS, WIDTH = 5, 16


def parameters():
    keys = jax.random.split(jax.random.key(0), 4)
    return {
        "next": 0.4 * jax.random.normal(keys[0], (WIDTH + ACTIONS, WIDTH)),
        "prior": 0.3 * jax.random.normal(keys[1], (WIDTH, ACTIONS)),
        "value": 0.3 * jax.random.normal(keys[2], (WIDTH,)),
        "reward": 0.3 * jax.random.normal(keys[3], (WIDTH,)),
    }


def step(params, key, action, embedding):
    del key
    embedding = jnp.tanh(jnp.concatenate([embedding, jax.nn.one_hot(action, ACTIONS)], -1) @ params["next"])
    output = mctx.RecurrentFnOutput(
        reward=embedding @ params["reward"],
        discount=jnp.full(embedding.shape[:1], 0.9),
        prior_logits=embedding @ params["prior"],
        value=embedding @ params["value"],
    )
    return output, embedding


def run(mesh):
    params = parameters()
    states = jax.random.normal(jax.random.key(1), (32, WIDTH))
    states = jax.device_put(states, NamedSharding(mesh, P("x")))

    @jax.jit
    def search(states):
        root = mctx.RootFnOutput(
            prior_logits=states @ params["prior"], value=states @ params["value"], embedding=states
        )
        gumbel = mctx.gumbel_muzero_policy(params, jax.random.key(2), root, step, num_simulations=12, max_depth=6)
        muzero = mctx.muzero_policy(params, jax.random.key(3), root, step, num_simulations=8, dirichlet_fraction=0.1)
        return gumbel, muzero

    gumbel, muzero = search(states)
    return {
        "action": gumbel.action,
        "weights": gumbel.action_weights,
        "visits": gumbel.search_tree.summary().visit_counts,
        "muzero": muzero.action_weights,
    }
