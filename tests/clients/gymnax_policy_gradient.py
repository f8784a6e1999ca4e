"""gymnax: CartPole in 64 environments over 8 devices, a policy trained by gradient on their returns."""

import gymnax
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "gymnax"
STEPS = 24


def policy(params, seen):
    return jnp.tanh(seen @ params["in"]) @ params["out"]


def run(mesh):
    environment, settings = gymnax.make("CartPole-v1")
    keys = jax.device_put(jax.random.split(jax.random.key(0), 64), NamedSharding(mesh, P("x")))
    params = {
        "in": 0.5 * jax.random.normal(jax.random.key(1), (4, 32)),
        "out": 0.1 * jax.random.normal(jax.random.key(2), (32, 2)),
    }
    optimizer = optax.adam(1e-2)

    def play(params, key):
        key, first = jax.random.split(key)
        seen, state = environment.reset(first, settings)

        def act(carry, key):
            seen, state = carry
            choose, move = jax.random.split(key)
            logits = policy(params, seen)
            action = jax.random.categorical(choose, logits)
            seen, state, reward, ended, *_ = environment.step(move, state, action, settings)
            return (seen, state), (jax.nn.log_softmax(logits)[action], reward, ended)

        _, (chosen, rewards, ended) = jax.lax.scan(act, (seen, state), jax.random.split(key, STEPS))
        going = jnp.cumprod(1 - ended.astype(jnp.float32))
        return chosen, jnp.cumsum((rewards * going)[::-1])[::-1]

    @jax.jit
    def train(params, state, keys):
        def loss(params):
            chosen, returns = jax.vmap(play, (None, 0))(params, keys)
            advantage = returns - returns.mean(0)
            return -(chosen * jax.lax.stop_gradient(advantage)).sum(1).mean(), returns[:, 0]

        (value, returns), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state, value, returns

    state, losses = optimizer.init(params), []
    for _ in range(4):
        params, state, loss, returns = train(params, state, keys)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "returns": returns, "params": params["out"]}
