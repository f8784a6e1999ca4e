"""Trains a small network for some steps on all devices and prints each loss: what these tests run as clients."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


def loss(weights, x, y):
    hidden = jnp.tanh(x @ weights["in"])
    return jnp.mean((hidden @ weights["out"] - y) ** 2)


@jax.jit
def step(weights, x, y):
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient), value


def main(steps):
    devices = np.array(jax.devices())
    mesh = Mesh(devices, ("data",))
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    random = np.random.default_rng(0)
    x = jax.device_put(random.standard_normal((24 * len(devices), 16), np.float32), split)
    y = jax.device_put(random.standard_normal((24 * len(devices), 4), np.float32), split)
    weights = {"in": random.standard_normal((16, 32), np.float32), "out": random.standard_normal((32, 4), np.float32)}
    weights = jax.device_put(weights, whole)
    print(f"devices {len(devices)}", flush=True)
    for _ in range(steps):
        weights, value = step(weights, x, y)
        print(f"{float(value):.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
