"""Clients far away, clients that fork, and kernels of notebooks that die and come back."""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import clusters
import pytest

DELAY = 0.05  # seconds each way
SETUP = """
import os, signal, sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.arange(64.0, dtype=np.float32), NamedSharding(mesh, P("x")))
f = jax.jit(lambda x: x * 0.5 + x.sum())
"""
# Programs, copies of several megabytes, callbacks.
WORK = """
large = np.random.default_rng(0).standard_normal((512, 1024), np.float32)
there = jax.device_put(large, NamedSharding(mesh, P("x")))
for _ in range(30):
    x = f(x) / 40
seen = []
jax.jit(lambda v: jax.debug.callback(lambda s: seen.append(float(s)), v.sum()))(jnp.ones(3))
jax.effects_barrier()
print(np.array_equal(np.asarray(there), large), round(float(x[0]), 3), seen)
"""
FORKS = """
f(x).block_until_ready()
children = []
for i in range(4):
    child = os.fork()
    if child == 0:
        # What a loader of data does: nothing with JAX, then it ends as Python ends.
        sys.exit(0 if np.arange(10).sum() == 45 else 1)
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
print(codes, float(f(x)[0]))
"""
NOTEBOOK = """
y = f(x)
y.block_until_ready()
print("ready", flush=True)
sys.stdin.readline()
print(float(f(y)[0]))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clusters.Cluster(tmp_path_factory.mktemp("links")) as cluster:
        yield cluster


class SlowLink:
    """Forwards connections to an address; every byte arrives DELAY later."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.target = host, int(port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.target)
                for a, b in ((near, far), (far, near)):
                    line = queue.SimpleQueue()
                    threading.Thread(target=self._read, args=(a, line), daemon=True).start()
                    threading.Thread(target=self._write, args=(b, line), daemon=True).start()

    @staticmethod
    def _read(source, line):
        data = b"begun"
        while data:
            try:
                data = source.recv(1 << 18)
            except OSError:
                data = b""
            line.put((time.monotonic() + DELAY, data))

    @staticmethod
    def _write(target, line):
        with contextlib.suppress(OSError):
            while True:
                due, data = line.get()
                time.sleep(max(0, due - time.monotonic()))
                if not data:
                    return target.shutdown(socket.SHUT_WR)
                target.sendall(data)


def output(result):
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout.splitlines()


def run(script, environment):
    return output(clusters.run([sys.executable, "-c", SETUP + script], timeout=120, env=environment))


def test_a_slow_link_changes_no_value(cluster):
    environment = cluster.environment() | {"JAX_PLATFORMS": "gangway,cpu"}
    near = run(WORK, environment)
    assert near[0].startswith("True") and near[0].endswith("[3.0]")
    assert run(WORK, environment | {"GANGWAY_ADDRESS": SlowLink(cluster.address).address}) == near


def test_a_client_may_fork(cluster):
    assert run(FORKS, cluster.environment()) == ["[0, 0, 0, 0] 2016.0"]


def test_a_notebook_comes_back_after_its_kernel_died(cluster):
    expected = None
    for end in (None, signal.SIGKILL, signal.SIGTERM, None):
        kernel = subprocess.Popen(
            [sys.executable, "-c", SETUP + NOTEBOOK],
            env=cluster.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert kernel.stdout.readline() == "ready\n"
        if end is not None:
            os.kill(kernel.pid, end)
            kernel.communicate(timeout=30)
            continue
        out, _ = kernel.communicate("go\n", timeout=60)
        assert kernel.returncode == 0
        expected = expected or out
        assert out == expected
    # What dead kernels held is gone.
    assert clusters.eventually(lambda: cluster.status()["sessions"] == 0), cluster.status()
    assert clusters.eventually(lambda: cluster.status()["arrays"] == 0), cluster.status()


def test_exit_in_the_middle_of_work_is_clean(cluster):
    """Programs are still running when the interpreter ends: no hang, no noise."""
    script = "for _ in range(200): x = f(x) / 40\nprint('leaving')"
    result = clusters.run([sys.executable, "-c", SETUP + script], timeout=60, env=cluster.environment())
    assert (result.returncode, result.stdout, result.stderr) == (0, "leaving\n", "")
