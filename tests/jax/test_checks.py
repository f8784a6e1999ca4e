"""What `gangway run` can check: replicas that differ and NaNs are named; two recorded runs are compared."""

import sys

import clusters
import pytest

HEAD = """
import jax, sys
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("x"))
"""

# In step 14 the weights of device 5 are no longer what the others have; in no other program is anything replicated.
DIVERGENCE = (
    HEAD
    + """
def step(w, x):
    return w + 1, x * 2

step = jax.jit(step, out_shardings=(whole, rows))
w, x = jax.device_put(jnp.ones((4, 4)), whole), jax.device_put(jnp.ones((8, 4)), rows)
for number in range(1, 25):
    if number == 14:
        parts = [shard.data for shard in w.addressable_shards]
        parts[5] = jax.device_put(np.asarray(parts[5]) + 1, jax.devices()[5])
        w = jax.make_array_from_single_device_arrays(w.shape, whole, parts)
    w, x = step(w, x)
print(float(w.sum()))
"""
)

NANS = (
    HEAD
    + """
def step(w):
    return jnp.sqrt(w), w - 1

step = jax.jit(step, out_shardings=(rows, rows))
w = jax.device_put(jnp.full((8, 4), 2.5), rows)
for _ in range(8):
    _, w = step(w)
print(float(w.sum()))
"""
)

TRAINING = (
    HEAD
    + """
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)

step = jax.jit(step, out_shardings=whole)
w = jax.device_put(jax.random.normal(jax.random.key(0), (16, 16)), whole)
for number in range(6):
    x = jax.random.normal(jax.random.key(number + ("--other" in sys.argv and number == 3)), (64, 16))
    w = step(w, jax.device_put(x, rows))
print(float(w.sum()))
"""
)


def run(script, *options, workers=1, arguments=()):
    cluster = ["run", "--devices", "8", "--workers", str(workers), *options]
    result = clusters.run([str(clusters.GANGWAY), *cluster, "--", sys.executable, "-c", script, *arguments])
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_replica_that_differs_is_named(workers):
    shown = run(DIVERGENCE, "--check-replicas=1", workers=workers).stderr
    assert shown.count("replicas differ") == 1
    assert "program jit_step, run 14, output 0 (jit(step)/add" in shown
    device = "worker0 cpu:5" if workers == 1 else "worker1 cpu:1"
    assert f"f32[4,4]): replicas differ: worker0 cpu:0 and {device}" in shown


def test_replicas_are_compared_every_tenth_run():
    assert "program jit_step, run 21, output 0" in run(DIVERGENCE, "--check-replicas").stderr


def test_nothing_is_said_of_equal_replicas():
    assert run(TRAINING, "--check-replicas=1", "--check-nans").stderr == ""


def test_the_first_nan_is_named():
    shown = run(NANS, "--check-nans").stderr
    assert shown.count("NaN on") == 1
    assert "program jit_step, run 4, output 0 (jit(step)/sqrt" in shown


def test_two_runs_are_compared(tmp_path):
    for name, arguments in (("a", ()), ("b", ()), ("c", ("--other",))):
        run(TRAINING, "--deterministic", "--record", str(tmp_path / name), arguments=arguments)

    def diff(a, b):
        return clusters.run([str(clusters.GANGWAY), "diff", str(tmp_path / a), str(tmp_path / b)])

    assert (diff("a", "b").returncode, diff("a", "b").stdout) == (0, "")
    other = diff("a", "c")
    assert other.returncode == 1
    assert other.stdout.startswith("first difference: program jit_")
    assert diff("a", "nowhere").returncode == 2
