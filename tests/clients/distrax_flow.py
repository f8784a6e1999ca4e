"""distrax: a coupling flow fitted to a mixture, 512 samples over 8 devices; an HMM's posterior."""

import distrax
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "distrax"


def flow(params):
    def conditioner(layer):
        def network(x):
            hidden = jnp.tanh(x @ layer["in"] + layer["bias"])
            return (hidden @ layer["out"]).reshape(*x.shape, 2)

        return network

    def bijector(p):
        return distrax.ScalarAffine(shift=p[..., 0], log_scale=jnp.tanh(p[..., 1]))

    layers = [
        distrax.MaskedCoupling(mask=jnp.arange(2) % 2 == i % 2, bijector=bijector, conditioner=conditioner(layer))
        for i, layer in enumerate(params)
    ]
    base = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2))
    return distrax.Transformed(base, distrax.Inverse(distrax.Chain(layers)))


def run(mesh):
    keys = jax.random.split(jax.random.key(0), 6)
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])),
        distrax.MultivariateNormalDiag(jnp.array([[-1.0, 0.5], [1.5, -1.0]]), 0.4 * jnp.ones((2, 2))),
    )
    data = jax.device_put(mixture.sample(seed=keys[0], sample_shape=(512,)), NamedSharding(mesh, P("x")))
    params = [
        {"in": jax.random.normal(key, (2, 16)), "bias": jnp.zeros(16), "out": 0.1 * jax.random.normal(key, (16, 4))}
        for key in keys[1:5]
    ]
    optimizer = optax.adam(1e-2)

    @jax.jit
    def train(params, state):
        loss, gradient = jax.value_and_grad(lambda p: -flow(p).log_prob(data).mean())(params)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state, loss

    state, losses = optimizer.init(params), []
    for _ in range(8):
        params, state, loss = train(params, state)
        losses.append(loss)
    hidden = distrax.HMM(
        init_dist=distrax.Categorical(logits=jnp.zeros(3)),
        trans_dist=distrax.Categorical(logits=2.0 * jnp.eye(3)),
        obs_dist=distrax.Normal(jnp.arange(3.0), jnp.ones(3)),
    )
    seen = jnp.sin(jnp.arange(20.0)) + 1
    _, _, posterior, evidence = jax.jit(hidden.forward_backward)(seen)
    return {"losses": jnp.stack(losses), "density": mixture.log_prob(data), "hidden": posterior, "evidence": evidence}
