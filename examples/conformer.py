"""Train a Conformer, pipelined by a wrapper: four stages times two-fold data parallelism (GSPMD section 5.5).

The encoder's blocks are written for one device. gangway.pipeline (plain JAX) vectorizes a stage's blocks over the mesh
axis "stage" and shifts microbatches through them.

    build/gangway run --devices 8 -- python examples/conformer.py
    JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 PYTHONPATH=python python examples/conformer.py
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

BLOCKS, WIDTH, HEADS, HIDDEN, REACH = 4, 32, 4, 128, 7  # REACH: frames that the convolution sees
FRAMES, BANDS, SOUNDS = 48, 20, 12
BATCH, MICROBATCHES = 16, 4


def init_block(key):
    keys = iter(jax.random.split(key, 9))

    def matrix(*shape):
        return jax.random.normal(next(keys), shape) * shape[0] ** -0.5

    def feed_forward():
        return {"norm": jnp.ones(WIDTH), "up": matrix(WIDTH, HIDDEN), "down": matrix(HIDDEN, WIDTH)}

    return {
        "before": feed_forward(),
        "attention": {
            "norm": jnp.ones(WIDTH),
            "qkv": matrix(WIDTH, 3, HEADS, WIDTH // HEADS),
            "out": matrix(WIDTH, WIDTH),
        },
        "convolution": {
            "norm": jnp.ones(WIDTH),
            "gate": matrix(WIDTH, 2 * WIDTH),
            "depthwise": matrix(REACH, 1, WIDTH),
            "inner_norm": jnp.ones(WIDTH),
            "out": matrix(WIDTH, WIDTH),
        },
        "after": feed_forward(),
        "norm": jnp.ones(WIDTH),
    }


def init_parameters(key, stages):
    blocks, enter, leave = jax.random.split(key, 3)
    stacked = jax.vmap(init_block)(jax.random.split(blocks, BLOCKS))
    return {
        "enter": jax.random.normal(enter, (BANDS, WIDTH)) * BANDS**-0.5,
        "blocks": jax.tree.map(lambda x: x.reshape(stages, BLOCKS // stages, *x.shape[1:]), stacked),
        "leave": jax.random.normal(leave, (WIDTH, SOUNDS)) * WIDTH**-0.5,
    }


def norm(x, scale):
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(jnp.mean(centered**2, axis=-1, keepdims=True) + 1e-5) * scale


def feed_forward(x, part):
    return jax.nn.silu(norm(x, part["norm"]) @ part["up"]) @ part["down"]


def attention(x, part):
    q, k, v = jnp.moveaxis(jnp.einsum("btd,dchk->btchk", norm(x, part["norm"]), part["qkv"]), 2, 0)
    weights = jax.nn.softmax(jnp.einsum("bqhk,bthk->bhqt", q, k) * q.shape[-1] ** -0.5, axis=-1)
    return jnp.einsum("bhqt,bthk->bqhk", weights, v).reshape(x.shape) @ part["out"]


def convolution(x, part):
    value, gate = jnp.split(norm(x, part["norm"]) @ part["gate"], 2, axis=-1)
    x = jax.lax.conv_general_dilated(
        value * jax.nn.sigmoid(gate),
        part["depthwise"],
        window_strides=(1,),
        padding="SAME",
        dimension_numbers=("NTC", "TIO", "NTC"),
        feature_group_count=WIDTH,
    )
    return jax.nn.silu(norm(x, part["inner_norm"])) @ part["out"]


def block_step(x, block):
    x = x + 0.5 * feed_forward(x, block["before"])
    x = x + attention(x, block["attention"])
    x = x + convolution(x, block["convolution"])
    x = x + 0.5 * feed_forward(x, block["after"])
    return norm(x, block["norm"]), None


def loss_of(parameters, frames, sounds, mesh):
    """Mean cross-entropy of the sound heard in each frame: frames [batch, frame, band], sounds [batch, frame]."""

    @jax.checkpoint
    def stage(blocks, x):
        return jax.lax.scan(block_step, x, blocks)[0]

    x = frames @ parameters["enter"]
    x = x.reshape(MICROBATCHES, -1, *x.shape[1:])
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(None, "data")))
    x = pipeline(stage, parameters["blocks"], x, mesh=mesh, axis="stage")
    logits = x.reshape(*frames.shape[:2], WIDTH) @ parameters["leave"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, sounds).mean()


def make_step(mesh, optimizer):
    def step(parameters, state, frames, sounds):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, frames, sounds, mesh)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(parameters, updates), state, loss

    return jax.jit(step, donate_argnums=(0, 1))


def batch(mesh, step):
    """Sounds of four frames each, as noisy spectra; what is heard next to a sound colours it."""
    spectra = np.random.default_rng(0).normal(size=(SOUNDS, BANDS))
    random = np.random.default_rng(step + 1)
    sounds = np.repeat(random.integers(0, SOUNDS, (BATCH, FRAMES // 4)), 4, axis=1)
    frames = spectra[sounds]
    frames = frames + 0.5 * np.roll(frames, 1, axis=1) + 0.5 * random.normal(size=frames.shape)
    split = NamedSharding(mesh, P("data"))
    return jax.device_put(frames.astype(np.float32), split), jax.device_put(sounds.astype(np.int32), split)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30, help="training steps (default: %(default)s)")
    args = parser.parse_args()
    devices = np.array(jax.devices())
    mesh = Mesh(devices.reshape((2, 4) if devices.size == 8 else (1, devices.size)), ("data", "stage"))
    stages = mesh.shape["stage"]

    everywhere = NamedSharding(mesh, P())
    where = {"enter": everywhere, "blocks": NamedSharding(mesh, P("stage")), "leave": everywhere}
    parameters = jax.jit(lambda key: init_parameters(key, stages), out_shardings=where)(jax.random.key(0))
    optimizer = optax.adam(2e-3)
    state = jax.jit(optimizer.init)(parameters)
    step = make_step(mesh, optimizer)
    losses = []
    for number in range(args.steps):
        parameters, state, loss = step(parameters, state, *batch(mesh, number))
        losses.append(float(loss))
    print(json.dumps({"mesh": dict(mesh.shape), "losses": losses}))


if __name__ == "__main__":
    main()
