"""Controllers and workers started one by one, as on several hosts: they come, go and find each other again."""

import contextlib
import socket
import subprocess
import sys

import clusters

SCRIPT = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("x")))
print(len(jax.devices()), float(jax.jit(lambda x: x.sum())(x)))
"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        return [stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1] for _ in range(count)]


@contextlib.contextmanager
def gangway(*arguments):
    process = subprocess.Popen([str(clusters.GANGWAY), *arguments], env=clusters.clean_environment())
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def controller(clients, workers):
    return gangway(
        "controller",
        *(f"--listen=127.0.0.1:{clients}", f"--listen-workers=127.0.0.1:{workers}"),
        *("--expect-devices=4", "--heartbeat=1", "--log-level=warn"),
    )


def worker(address, name):
    return gangway("worker", f"--controller=127.0.0.1:{address}", "--devices=2", f"--name={name}", "--log-level=warn")


def works(address):
    environment = clusters.clean_environment(
        JAX_PLATFORMS="gangway", GANGWAY_ADDRESS=f"127.0.0.1:{address}", PYTHONPATH=str(clusters.ROOT / "python")
    )
    result = clusters.run([sys.executable, "-c", SCRIPT], 60, env=environment)
    return result.stdout == "4 28.0\n"


def test_workers_find_a_controller_that_was_restarted():
    clients, workers = free_ports(2)
    with worker(workers, "a"), worker(workers, "b"):
        with controller(clients, workers):
            assert clusters.eventually(lambda: works(clients), 60)
        with controller(clients, workers):
            assert clusters.eventually(lambda: works(clients), 60)


def test_a_worker_comes_back():
    clients, workers = free_ports(2)
    with controller(clients, workers), worker(workers, "a"):
        with worker(workers, "b"):
            assert clusters.eventually(lambda: works(clients), 60)
        assert not works(clients)
        with worker(workers, "b"):
            assert clusters.eventually(lambda: works(clients), 60)
