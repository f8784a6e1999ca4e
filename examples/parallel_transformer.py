"""Five kinds of parallelism in one training step, on a mesh data x stage x model.

    data       the batch is split over "data"
    tensor     heads, hidden units and the vocabulary over "model" (Megatron)
    sequence   between two blocks positions are split over "model" instead
    pipeline   layers over "stage", microbatches shift through them (gangway.pipeline, plain JAX)
    optimizer  Adam's moments are split over "data" as well (weight-update sharding)

Only annotations say so; on one device the same program trains the same model.

    build/gangway run --devices 8 -- python examples/parallel_transformer.py
    JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 PYTHONPATH=python \
        python examples/parallel_transformer.py
"""

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from gangway import pipeline

LAYERS, WIDTH, HEADS, HIDDEN = 4, 64, 4, 256
VOCABULARY, SEQUENCE, BATCH, MICROBATCHES = 64, 64, 16, 4

# Leaves of "layers" are stacked: [stage, layer of the stage, ...].
PARAMETER_SPECS = {
    "embed": P("model", None),
    "layers": {
        "attention_norm": P("stage"),
        "qkv": P("stage", None, None, None, "model", None),
        "out": P("stage", None, "model", None, None),
        "mlp_norm": P("stage"),
        "up": P("stage", None, None, "model"),
        "down": P("stage", None, "model", None),
    },
    "unembed": P(None, "model"),
}
# The moments are only needed where a weight is updated: there, "data" splits what the parameters leave whole.
MOMENT_SPECS = {
    "embed": P("model", "data"),
    "layers": {
        "attention_norm": P("stage", None, "data"),
        "qkv": P("stage", None, "data", None, "model", None),
        "out": P("stage", None, "model", None, "data"),
        "mlp_norm": P("stage", None, "data"),
        "up": P("stage", None, "data", "model"),
        "down": P("stage", None, "model", "data"),
    },
    "unembed": P("data", "model"),
}
BETWEEN_BLOCKS = P("data", "model", None)  # batch, position, width
IN_BLOCK = P("data", None, None)


def init_parameters(key, stages):
    keys = iter(jax.random.split(key, 6))
    stack = (stages, LAYERS // stages)
    head = WIDTH // HEADS

    def matrix(shape, inputs):
        return jax.random.normal(next(keys), shape) * inputs**-0.5

    def stacked(shape, inputs):  # the same numbers for every number of stages
        return matrix((LAYERS, *shape), inputs).reshape(*stack, *shape)

    return {
        "embed": matrix((VOCABULARY, WIDTH), 1),
        "layers": {
            "attention_norm": jnp.ones((*stack, WIDTH)),
            "qkv": stacked((WIDTH, 3, HEADS, head), WIDTH),
            "out": stacked((HEADS, head, WIDTH), 2 * LAYERS * WIDTH),
            "mlp_norm": jnp.ones((*stack, WIDTH)),
            "up": stacked((WIDTH, HIDDEN), WIDTH),
            "down": stacked((HIDDEN, WIDTH), 2 * LAYERS * HIDDEN),
        },
        "unembed": matrix((WIDTH, VOCABULARY), WIDTH),
    }


def norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(x, layer):
    q, k, v = jnp.moveaxis(jnp.einsum("bsd,dchk->bschk", x, layer["qkv"]), 2, 0)
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k) * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
    return jnp.einsum("bhqs,bshk,hkd->bqd", weights, v, layer["out"])


def mlp(x, layer):
    return jax.nn.gelu(x @ layer["up"]) @ layer["down"]


def loss_of(parameters, tokens, mesh):
    """Mean cross-entropy in nats of tokens [batch, sequence + 1]: each position predicts the next token."""

    def constrain(x, spec):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))

    @jax.checkpoint
    def layer_step(x, layer):
        for block, scale in ((attention, "attention_norm"), (mlp, "mlp_norm")):
            inside = constrain(norm(x, layer[scale]), IN_BLOCK)
            x = constrain(x + block(inside, layer), BETWEEN_BLOCKS)
        return x, None

    def stage(layers, x):
        return jax.lax.scan(layer_step, x, layers)[0]

    x = constrain(parameters["embed"][tokens[:, :-1]], BETWEEN_BLOCKS)
    microbatches = x.reshape(MICROBATCHES, -1, *x.shape[1:])
    x = pipeline(stage, parameters["layers"], microbatches, mesh=mesh, axis="stage").reshape(x.shape)
    logits = constrain(x @ parameters["unembed"], P("data", None, "model"))
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


def make_training(mesh):
    """Returns (init, step): init(key) -> (parameters, state); step(parameters, state, tokens) -> (..., loss)."""
    optimizer = optax.adam(3e-3)
    stages = mesh.shape["stage"]

    def shardings(specs):
        return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs, is_leaf=lambda x: isinstance(x, P))

    parameter_shardings = shardings(PARAMETER_SPECS)
    shapes = jax.eval_shape(lambda key: init_parameters(key, stages), jax.random.key(0))
    state_shardings = optax.tree.map_params(
        optimizer,
        lambda _, where: where,
        jax.eval_shape(optimizer.init, shapes),
        shardings(MOMENT_SPECS),
        transform_non_params=lambda _: NamedSharding(mesh, P()),
    )

    def init(key):
        parameters = init_parameters(key, stages)
        return parameters, optimizer.init(parameters)

    def step(parameters, state, tokens):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, tokens, mesh)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    out = (parameter_shardings, state_shardings)
    return jax.jit(init, out_shardings=out), jax.jit(step, out_shardings=(*out, None), donate_argnums=(0, 1))


def batch(mesh, step):
    """Sequences that count up, each by a stride and from a start of its own."""
    random = np.random.default_rng(step)
    start, stride = random.integers(0, VOCABULARY, (2, BATCH, 1))
    tokens = (start + (stride % 4 + 1) * np.arange(SEQUENCE + 1)) % VOCABULARY
    return jax.device_put(tokens.astype(np.int32), NamedSharding(mesh, P("data", None)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30, help="training steps (default: %(default)s)")
    args = parser.parse_args()
    devices = np.array(jax.devices())
    mesh = Mesh(devices.reshape((2, 2, 2) if devices.size == 8 else (devices.size, 1, 1)), ("data", "stage", "model"))

    init, step = make_training(mesh)
    parameters, state = init(jax.random.key(0))
    losses = []
    for number in range(args.steps):
        parameters, state, loss = step(parameters, state, batch(mesh, number))
        losses.append(float(loss))
    print(json.dumps({"mesh": dict(mesh.shape), "losses": losses}))


if __name__ == "__main__":
    main()
