"""Host callbacks whose native counterpart hangs or aborts, and what is printed."""

import sys

import clusters

FAILS_ON_ONE_DEVICE = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def host(x):
    raise ValueError("the host says no")

mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.ones(16, np.float32), NamedSharding(mesh, P("x")))
f = jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((16,), np.float32), x).sum())
try:
    jax.block_until_ready(f(x))
    print("no error")
except Exception as error:
    print("told" if "the host says no" in str(error) else error)
print(float(jax.jit(lambda x: x.sum())(x)))
"""

PRINTS = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.arange(8), NamedSharding(mesh, P("x")))

@jax.jit
def f(x):
    jax.debug.print("x = {x}, sum {s}", x=x, s=x.sum())
    return jax.lax.fori_loop(0, 3, lambda i, c: (jax.debug.print("step {i}", i=i, ordered=False), c + i)[1], x.sum())

print(f(x))
jax.effects_barrier()
"""


def test_one_failing_callback_fails_the_gang_at_once():
    result = clusters.run(clusters.gangway_run("-c", FAILS_ON_ONE_DEVICE), timeout=60)
    assert result.stdout.split() == ["told", "16.0"], result.stdout + result.stderr


def test_debug_print_of_a_sharded_array():
    result = clusters.run(clusters.gangway_run("-c", PRINTS), timeout=60)
    lines = sorted(result.stdout.splitlines())
    assert lines == ["31", "step 0", "step 1", "step 2", "x = [0 1 2 3 4 5 6 7], sum 28"], result.stdout + result.stderr


def test_a_client_that_dies_in_a_callback_leaves_nothing_behind(tmp_path):
    script = """
import jax, numpy as np, os, time
f = jax.jit(lambda x: jax.pure_callback(lambda x: os._exit(7), jax.ShapeDtypeStruct((), np.float32), x))
jax.block_until_ready(f(np.float32(1)))
"""
    with clusters.Cluster(tmp_path) as cluster:
        client = clusters.run([sys.executable, "-c", script], env=cluster.environment())
        assert client.returncode == 7, client.stderr
        assert clusters.eventually(lambda: cluster.status()["sessions"] == 0 and cluster.status()["arrays"] == 0)
        again = cluster.client("import jax; print(jax.jit(lambda x: x + 1)(1))")
        assert again.stdout.strip() == "2", again.stderr
