"""Train a 3D U-Net whose volumes are split in space: every device holds a block of voxels (GSPMD section 4.4).

Volumes too large for one device are what this is for. A convolution needs the voxels around its block, which the
partitioner fetches from the neighbours; nothing here mentions them.

    build/gangway run --devices 8 -- python examples/unet3d.py
    JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 python examples/unet3d.py
"""

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

SIDE, BATCH = 16, 2
LAYOUT = ("NDHWC", "DHWIO", "NDHWC")
CHANNELS = (4, 8, 16)  # of the levels, each of half the side of the one before
VOLUME = P(None, "x", "y", "z", None)  # batch, three of space, channel


def init_parameters(key):
    keys = iter(jax.random.split(key, 32))

    def kernel(side, inputs, outputs):
        shape = (side, side, side, inputs, outputs)
        return jax.random.normal(next(keys), shape) * (2 / (side**3 * inputs)) ** 0.5

    def block(inputs, outputs):
        return {"first": kernel(3, inputs, outputs), "second": kernel(3, outputs, outputs), "scale": jnp.ones(outputs)}

    pairs = list(zip(CHANNELS, CHANNELS[1:]))
    return {
        "enter": block(1, CHANNELS[0]),
        "down": [{"halve": kernel(2, a, b), "block": block(b, b)} for a, b in pairs],
        "up": [{"double": kernel(2, b, a), "block": block(2 * a, a)} for a, b in reversed(pairs)],
        "leave": kernel(1, CHANNELS[0], 1),
    }


def convolve(x, kernel, stride=1, padding="SAME"):
    return jax.lax.conv_general_dilated(x, kernel, (stride,) * 3, padding, dimension_numbers=LAYOUT)


def block_of(x, block):
    x = jax.nn.relu(convolve(x, block["first"]))
    x = convolve(x, block["second"])
    # Instance normalization: a mean over the whole volume, hence over all devices.
    mean = jnp.mean(x, axis=(1, 2, 3), keepdims=True)
    variance = jnp.mean((x - mean) ** 2, axis=(1, 2, 3), keepdims=True)
    return jax.nn.relu((x - mean) * jax.lax.rsqrt(variance + 1e-5) * block["scale"])


def logits_of(parameters, x, constrain):
    x = constrain(block_of(x, parameters["enter"]))
    skipped = []
    for level in parameters["down"]:
        skipped.append(x)
        x = constrain(block_of(convolve(x, level["halve"], 2, "VALID"), level["block"]))
    for level in parameters["up"]:
        x = jax.lax.conv_transpose(x, level["double"], (2, 2, 2), "VALID", dimension_numbers=LAYOUT)
        x = constrain(block_of(jnp.concatenate([x, skipped.pop()], axis=-1), level["block"]))
    return convolve(x, parameters["leave"])


def make_step(mesh, optimizer):
    def constrain(x):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, VOLUME))

    def loss_of(parameters, volume, mask):
        return optax.sigmoid_binary_cross_entropy(logits_of(parameters, volume, constrain), mask).mean()

    def step(parameters, state, volume, mask):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, volume, mask)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(parameters, updates), state, loss

    return jax.jit(step, donate_argnums=(0, 1))


def batch(mesh, step):
    """Noisy volumes with a ball in each, and the masks of the balls."""
    random = np.random.default_rng(step)
    space = np.stack(np.meshgrid(*[np.arange(SIDE)] * 3, indexing="ij"), axis=-1)
    center = random.uniform(0.3 * SIDE, 0.7 * SIDE, (BATCH, 1, 1, 1, 3))
    radius = random.uniform(0.15 * SIDE, 0.3 * SIDE, (BATCH, 1, 1, 1))
    mask = np.linalg.norm(space - center, axis=-1) < radius
    volume = mask + 0.7 * random.normal(size=mask.shape)
    split = NamedSharding(mesh, VOLUME)
    return [jax.device_put(array[..., None].astype(np.float32), split) for array in (volume, mask)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20, help="training steps (default: %(default)s)")
    args = parser.parse_args()
    devices = np.array(jax.devices())
    mesh = Mesh(devices.reshape((2, 2, 2) if devices.size == 8 else (devices.size, 1, 1)), ("x", "y", "z"))
    parameters = jax.jit(init_parameters, out_shardings=NamedSharding(mesh, P()))(jax.random.key(0))
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
