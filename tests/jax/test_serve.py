"""`gangway serve`: many clients, and what is left of them; failures of clients, programs and workers."""

import os
import signal

import clusters
import pytest

SETUP = """
import jax, numpy as np, time
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.arange(64.0, dtype=np.float32), NamedSharding(mesh, P("x")))
"""
WORKS = SETUP + "print(float(jax.jit(jnp.sum)(x)))"
HOLDS = SETUP + "y = [x + i for i in range(20)]; print('ready', float(y[-1][0]), flush=True); time.sleep(60)"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clusters.Cluster(tmp_path_factory.mktemp("serve")) as cluster:
        yield cluster


def nothing_left(cluster):
    status = cluster.status()
    return all(status[key] == 0 for key in ("sessions", "arrays", "programs", "pending_launches", "store_bytes"))


def assert_works(cluster):
    result = cluster.client(WORKS)
    assert result.stdout == "2016.0\n", result.stderr


def test_a_client_leaves_nothing(cluster):
    assert_works(cluster)
    assert clusters.eventually(lambda: nothing_left(cluster)), cluster.status()


def test_clients_at_the_same_time(cluster):
    script = SETUP + "f = jax.jit(lambda x: x * 0.5 + x.sum())\nfor _ in range(50): x = f(x)\nprint(float(x[0]) > 0)"
    clients = [cluster.start_client(script) for _ in range(3)]
    outputs = [client.communicate(timeout=120) for client in clients]
    assert [out for out, _ in outputs] == ["True\n"] * 3, outputs
    assert clusters.eventually(lambda: nothing_left(cluster)), cluster.status()


def test_live_arrays_are_those_the_client_holds(cluster):
    client = cluster.start_client(HOLDS)
    assert client.stdout.readline().startswith("ready")
    assert clusters.eventually(lambda: cluster.status()["arrays"] >= 21), cluster.status()
    status = cluster.status()
    assert status["sessions"] == 1
    assert status["arrays"] < 100
    client.kill()
    client.communicate()


def test_a_loop_keeps_the_number_of_arrays(cluster):
    script = (
        SETUP
        + "f = jax.jit(lambda x: x * 0.5 + x.sum())\n"
        + "for _ in range(300): x = f(x)\n"
        + "x.block_until_ready(); print('ready', flush=True); time.sleep(60)"
    )
    client = cluster.start_client(script)
    assert client.stdout.readline() == "ready\n"
    # The client destroys handles in batches, some time after Python let them go.
    few = clusters.eventually(lambda: cluster.status()["arrays"] <= 20, 5)
    client.kill()
    client.communicate()
    assert few, cluster.status()


def test_a_killed_client_leaves_nothing(cluster):
    client = cluster.start_client(HOLDS)
    assert client.stdout.readline().startswith("ready")
    client.send_signal(signal.SIGKILL)
    client.communicate()
    assert clusters.eventually(lambda: nothing_left(cluster)), cluster.status()
    assert_works(cluster)


def test_an_unknown_custom_call_is_an_error_in_python(cluster):
    script = (
        SETUP
        + """
try:
    jax.jit(lambda x: jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct(x.shape, x.dtype))(x))(x)
except Exception as error:
    print(type(error).__name__, error)
print(float(x.sum()))
"""
    )
    result = cluster.client(script)
    assert "no_such_target" in result.stdout, result.stdout + result.stderr
    assert result.stdout.endswith("2016.0\n")


@pytest.mark.parametrize("count", [1, 2])
def test_a_killed_worker_is_an_error_in_python(tmp_path, count):
    script = (
        SETUP
        + """
f = jax.jit(lambda x: x + x.sum() * 0)
print("ready", float(f(x)[1]), flush=True)
input()
try:
    for _ in range(3):
        x = f(x)
    print("no error", np.asarray(x)[0])
except Exception as error:
    print(type(error).__name__, error)
"""
    )
    with clusters.Cluster(tmp_path, "--workers", str(count)) as cluster:
        client = clusters.subprocess.Popen(
            [clusters.sys.executable, "-c", script],
            env=cluster.environment(),
            stdin=clusters.subprocess.PIPE,
            stdout=clusters.subprocess.PIPE,
            stderr=clusters.subprocess.PIPE,
            text=True,
        )
        assert client.stdout.readline() == "ready 1.0\n"
        workers = [pid for pid, line in clusters.marked_processes(cluster.mark).items() if " worker " in line]
        assert len(workers) == count
        os.kill(workers[0], signal.SIGKILL)
        out, err = client.communicate("\n", timeout=60)
        assert "worker" in out, out + err
        assert "no error" not in out
        assert "worker" in cluster.errors()
    assert clusters.eventually(lambda: not clusters.marked_processes(cluster.mark))
