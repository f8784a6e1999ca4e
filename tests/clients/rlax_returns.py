"""rlax: losses and returns of value-based and policy-gradient learners, trajectories over 8 devices."""

import jax
import jax.numpy as jnp
import rlax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "rlax"
BATCH, STEPS, ACTIONS, WIDTH = 16, 12, 4, 8


def run(mesh):
    keys = jax.random.split(jax.random.key(0), 5)
    split = NamedSharding(mesh, P("x"))
    states, actions, rewards = jax.device_put(
        (
            jax.random.normal(keys[0], (BATCH, STEPS + 1, WIDTH)),
            jax.random.randint(keys[1], (BATCH, STEPS), 0, ACTIONS),
            jax.random.normal(keys[2], (BATCH, STEPS)),
        ),
        split,
    )
    weights = 0.3 * jax.random.normal(keys[3], (WIDTH, ACTIONS))
    discounts = jnp.full((BATCH, STEPS), 0.95)

    def q_loss(weights):
        q = states @ weights
        errors = jax.vmap(jax.vmap(rlax.double_q_learning))(
            q[:, :-1], actions, rewards, discounts, q[:, 1:], -(q[:, 1:] ** 2)
        )
        retraced = jax.vmap(lambda r, d, v: rlax.lambda_returns(r, d, v, 0.8))(rewards, discounts, q[:, 1:].max(-1))
        return jnp.mean(rlax.huber_loss(errors)) + jnp.mean(jnp.square(retraced - q[:, :-1].max(-1)))

    def policy_loss(weights):
        logits = states[:, :-1] @ weights
        values = states.mean(-1)
        targets = jax.vmap(
            lambda v, r, d: rlax.vtrace_td_error_and_advantage(v[:-1], v[1:], r, d, jnp.ones_like(r), 0.9)
        )(values, rewards, discounts)
        ones = jnp.ones(STEPS)
        losses = jax.vmap(lambda *x: rlax.policy_gradient_loss(*x, ones))(logits, actions, targets.pg_advantage)
        entropies = jax.vmap(lambda x: rlax.entropy_loss(x, ones))(logits)
        return jnp.mean(losses + 0.01 * entropies)

    @jax.jit
    def step(weights, _):
        losses, slopes = zip(jax.value_and_grad(q_loss)(weights), jax.value_and_grad(policy_loss)(weights))
        return weights - 0.1 * (slopes[0] + slopes[1]), jnp.stack(losses)

    weights, losses = jax.lax.scan(step, weights, None, 10)
    return {"weights": weights, "losses": losses}
