"""Train a mixture of experts: tokens travel to their experts and back by all-to-alls (GShard, GSPMD section 5.4).

Each device holds some groups of tokens and some experts. The dispatched tokens are first split by group, then by
expert; the change between the two annotations is the all-to-all.

    build/gangway run --devices 8 -- python examples/mixture_of_experts.py
    JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 python examples/mixture_of_experts.py
"""

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

EXPERTS, GROUPS, GROUP_SIZE = 16, 8, 64
WIDTH, HIDDEN = 32, 128
CAPACITY = 2 * GROUP_SIZE // EXPERTS * 2  # of an expert, tokens of one group: twice what an even choice would need


def init_parameters(key):
    gate, up, down = jax.random.split(key, 3)
    return {
        "gate": jax.random.normal(gate, (WIDTH, EXPERTS)) * WIDTH**-0.5,
        "up": jax.random.normal(up, (EXPERTS, WIDTH, HIDDEN)) * WIDTH**-0.5,
        "down": jax.random.normal(down, (EXPERTS, HIDDEN, WIDTH)) * HIDDEN**-0.5,
    }


def route(logits):
    """Top-2 gating of logits [group, token, expert].

    Returns the weights [group, token, expert, place] by which an expert's answers enter a token's, zero for tokens that
    found no place, and how unevenly the tokens chose: 1 when evenly.
    """
    probabilities = jax.nn.softmax(logits, axis=-1)
    first = jax.nn.one_hot(jnp.argmax(probabilities, axis=-1), EXPERTS)
    second = jax.nn.one_hot(jnp.argmax(probabilities * (1 - first), axis=-1), EXPERTS)
    # First choices are served before second ones, tokens in their order.
    first_place = jnp.cumsum(first, axis=1) - first
    second_place = jnp.cumsum(second, axis=1) - second + jnp.sum(first, axis=1, keepdims=True)
    weights = 0.0
    for choice, place in ((first, first_place), (second, second_place)):
        place = jax.nn.one_hot(place.astype(jnp.int32), CAPACITY)  # all zero beyond the capacity
        weights += (probabilities * choice)[..., None] * place
    weights /= jnp.sum(probabilities * (first + second), axis=-1)[..., None, None]
    load = jnp.mean(jnp.mean(first, axis=1) * jnp.mean(probabilities, axis=1)) * EXPERTS**2
    return weights, load


def experts_of(parameters, x, mesh):
    """x [group, token, width] -> the same shape, and the load's unevenness."""

    def constrain(x, spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))

    by_group, by_expert = P(None, "devices"), P("devices")
    weights, load = route(x @ parameters["gate"])
    sent = constrain(jnp.einsum("gsep,gsd->egpd", (weights > 0).astype(x.dtype), x), by_group)
    sent = constrain(sent, by_expert)
    hidden = jax.nn.gelu(jnp.einsum("egpd,edf->egpf", sent, parameters["up"]))
    answers = constrain(jnp.einsum("egpf,efd->egpd", hidden, parameters["down"]), by_expert)
    answers = constrain(answers, by_group)
    return jnp.einsum("gsep,egpd->gsd", weights, answers), load


def make_step(mesh, optimizer):
    def loss_of(parameters, x, wanted):
        y, load = experts_of(parameters, x, mesh)
        return jnp.mean((y - wanted) ** 2) + 0.01 * load

    def step(parameters, state, x, wanted):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, x, wanted)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(parameters, updates), state, loss

    return jax.jit(step, donate_argnums=(0, 1))


def batch(mesh, step):
    """Tokens around one of a few centers; what is wanted of a token is its own center's rotation of it."""
    fixed = np.random.default_rng(0)
    centers = fixed.normal(size=(EXPERTS, WIDTH))
    rotations = np.linalg.qr(fixed.normal(size=(EXPERTS, WIDTH, WIDTH)))[0]
    random = np.random.default_rng(step + 1)
    kind = random.integers(0, EXPERTS, (GROUPS, GROUP_SIZE))
    x = centers[kind] + 0.3 * random.normal(size=(GROUPS, GROUP_SIZE, WIDTH))
    wanted = np.einsum("gsd,gsde->gse", x, rotations[kind])
    split = NamedSharding(mesh, P("devices"))
    return [jax.device_put(array.astype(np.float32), split) for array in (x, wanted)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50, help="training steps (default: %(default)s)")
    args = parser.parse_args()
    mesh = Mesh(np.array(jax.devices()), ("devices",))

    def sharding(spec):
        return NamedSharding(mesh, spec)

    where = {"gate": sharding(P()), "up": sharding(P("devices")), "down": sharding(P("devices"))}
    parameters = jax.jit(init_parameters, out_shardings=where)(jax.random.key(0))
    optimizer = optax.adam(3e-3)
    state = jax.jit(optimizer.init)(parameters)
    step = make_step(mesh, optimizer)
    losses = []
    for number in range(args.steps):
        parameters, state, loss = step(parameters, state, *batch(mesh, number))
        losses.append(float(loss))
    print(json.dumps({"mesh": dict(mesh.shape), "losses": losses}))


if __name__ == "__main__":
    main()
