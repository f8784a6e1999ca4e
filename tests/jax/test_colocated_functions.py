"""jax.experimental.colocated_python, which needs cloudpickle."""

import sys

import clusters
import pytest

pytest.importorskip("cloudpickle")

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import colocated_python
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.arange(16.0), NamedSharding(mesh, P("x")))
calls = []

@colocated_python.colocated_python
def doubled(x):
    calls.append(len(calls))
    return jax.make_array_from_callback(x.shape, x.sharding, lambda index: 2 * np.asarray(x)[index])

@colocated_python.colocated_python_class
class Counter:
    def __init__(self, start):
        self.count = start
    def add(self, x):
        self.count += int(np.asarray(x).sum())
        return jax.device_put(np.array(self.count), x.sharding)

print(doubled(doubled(x)).sum(), calls)
counter = Counter(5)
one = jax.device_put(np.array([1, 2]), jax.devices()[3])
counter.add(one)
print(counter.add(one))
"""


def test_they_run_as_natively():
    native = clusters.run([sys.executable, "-c", PROGRAM], env=clusters.native_environment())
    here = clusters.run(clusters.gangway_run("-c", PROGRAM))
    assert native.returncode == 0, native.stderr
    assert here.stdout == native.stdout, here.stderr
