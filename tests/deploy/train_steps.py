"""Trains a small network on all devices and prints losses: what these tests run as clients.

train_steps.py [STEPS [AHEAD [WIDTH]]]: a loss is read when AHEAD more steps are under way.
"""

import collections
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


def main(steps=3, ahead=0, width=32):
    devices = np.array(jax.devices())
    mesh = Mesh(devices, ("data",))
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    random = np.random.default_rng(0)
    rows = 24 * len(devices) * width // 32
    x = jax.device_put(random.standard_normal((rows, 16), np.float32), split)
    y = jax.device_put(random.standard_normal((rows, 4), np.float32), split)
    weights = {
        "in": random.standard_normal((16, width), np.float32),
        "out": random.standard_normal((width, 4), np.float32),
    }
    weights = jax.device_put(weights, whole)
    print(f"devices {len(devices)}", flush=True)
    under_way = collections.deque()
    for _ in range(steps):
        weights, value = step(weights, x, y)
        under_way.append(value)
        if len(under_way) > ahead:
            print(f"{float(under_way.popleft()):.3f}", flush=True)
    for value in under_way:
        print(f"{float(value):.3f}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
