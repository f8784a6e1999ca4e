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

AFTER_A_FAILURE = """
import jax, numpy as np, time
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def no(x):
    time.sleep(0.1)
    raise ValueError("the host says no")

def told(f, *arguments):
    try:
        jax.block_until_ready(f(*arguments))
        return "not told"
    except Exception as error:
        return "told" if "the host says no" in str(error) else error

scalar = jax.ShapeDtypeStruct((), np.float32)
asks = jax.jit(lambda x: io_callback(no, scalar, x.sum(), ordered=True))
answered = jax.jit(lambda x: io_callback(lambda x: np.float32(x + 1), scalar, x.sum(), ordered=True))
fails = jax.jit(lambda x: (jax.debug.callback(no, x, ordered=True), x)[1])
prints = jax.jit(lambda x: (jax.debug.print("x = {x}", x=x, ordered=True), x + 1)[1])

eight = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P("x"))
for place in (jax.devices()[0], eight, jax.devices()[1]):
    x = jax.device_put(np.ones(8, np.float32), place)
    failed = asks(x)  # not asked for before the next one runs
    print(float(answered(x)), told(lambda: failed), float(answered(x)))

x = np.float32(2)
print(told(fails, x), told(jax.effects_barrier), told(jax.effects_barrier))
fails(x)
print(float(prints(x)), told(jax.effects_barrier), told(jax.effects_barrier))
fails(jax.device_put(x, jax.devices()[2]))
print(float(prints(jax.device_put(x, jax.devices()[3]))))
"""


def test_one_failing_callback_fails_the_gang_at_once():
    result = clusters.run(clusters.gangway_run("-c", FAILS_ON_ONE_DEVICE), timeout=60)
    assert result.stdout.split() == ["told", "16.0"], result.stdout + result.stderr


def test_ordered_callbacks_go_on_after_one_that_failed():
    result = clusters.run(clusters.gangway_run("-c", AFTER_A_FAILURE), timeout=90)
    lines = ["9.0 told 9.0"] * 3 + ["told told not told", "x = 2.0", "3.0 told not told", "x = 2.0", "3.0"]
    assert result.stdout.splitlines() == lines, result.stdout + result.stderr
    assert result.returncode == 0


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
