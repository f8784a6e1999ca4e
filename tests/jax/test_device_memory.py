"""A program whose weights do not fit whole, all layers at once, gathers them again in the backward pass: it runs."""

import json
import sys

import clusters
import pytest

LAYERS, WIDTH, BATCH = 8, 512, 2048  # on 8 devices: 8 MiB of whole weights, 0.5 MiB a layer's values
TRAIN = f"""
import json, jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

rows = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
random = np.random.default_rng(0)
made = lambda *shape: jax.device_put(random.standard_normal(shape).astype(np.float32) / {WIDTH}**0.5, rows)
weights, x = [made({WIDTH}, {WIDTH}) for _ in range({LAYERS})], made({BATCH}, {WIDTH})

def loss(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return jnp.mean(x * x)

step = jax.jit(jax.value_and_grad(loss), out_shardings=(None, [rows] * {LAYERS})).lower(weights, x).compile()
value, gradients = step(weights, x)
print(json.dumps([step.as_text().count(" all-gather("), float(value), *(float(jnp.sum(g * g)) for g in gradients)]))
"""


def train(*options):
    command = [str(clusters.GANGWAY), "run", "--devices", "8", *options, "--", sys.executable, "-c", TRAIN]
    result = clusters.run(command, timeout=120)
    assert result.returncode == 0, result.stderr[-3000:]
    gathers, *values = json.loads(result.stdout)
    return gathers, values


def test_weights_are_gathered_again_when_memory_is_short():
    kept = train()
    again = train("--device-memory=14MiB")  # 16 MiB are not enough for the weights kept whole
    assert kept[0] == LAYERS // 2  # each weight once, two in a message
    assert again[0] > LAYERS
    assert again[1] == pytest.approx(kept[1], rel=1e-5)  # the plugin fuses other operations


CHAINS = 6
SIDE_BY_SIDE = f"""
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

one_each = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))
x = [jax.ShapeDtypeStruct((8, 128, 128), np.float32, sharding=one_each)] * {CHAINS}
chains = jax.jit(lambda x: sum(jnp.sum(m @ m @ m, axis=(1, 2)) for m in x)).lower(x).compile()
print(chains.memory_analysis().temp_size_in_bytes)
"""


def test_what_is_independent_runs_one_after_the_other():
    result = clusters.run([str(clusters.GANGWAY), "run", "--devices", "8", "--", sys.executable, "-c", SIDE_BY_SIDE])
    assert result.returncode == 0, result.stderr[-3000:]
    assert int(result.stdout) < 3 * 128 * 128 * 4
