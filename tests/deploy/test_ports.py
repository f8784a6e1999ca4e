"""Every port of a cluster, and what should not come in by it: refused in a line, logged, nothing else disturbed.

GANGWAY_FUZZ_SECONDS=600 and GANGWAY_FUZZ_SEED=N make the fuzzing of ports as long, and another one, as one likes.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import attacks
import clusters
import grpc
import pytest
from authority import Authority, needs_openssl
from listeners import listeners

import gangway

STEPS = pathlib.Path(__file__).with_name("train_steps.py")
FUZZ_SECONDS = float(os.environ.get("GANGWAY_FUZZ_SECONDS", 5))
TENANTS = [
    {"name": "red", "token": "of-red", "weight": 3},
    {"name": "small", "token": "of-small", "max_devices": 1, "max_bytes": "1MiB", "max_queued": 50},
]

pytestmark = needs_openssl


class Served:
    """A controller with every port it can have, and two workers."""

    def __init__(self, folder):
        self.folder = folder
        self.authority = Authority(folder)
        (folder / "tenants.json").write_text(json.dumps(TENANTS))
        self.log = open(folder / "controller.log", "w")  # noqa: SIM115
        self.controller = clusters.Controller(
            *self.authority.options("controller"),
            f"--tenants={folder / 'tenants.json'}",
            "--listen-tls=127.0.0.1:0",
            "--http=127.0.0.1:0",
            "--max-message=64MiB",
            "--max-program=1MiB",
            devices=4,
            log=self.log,
        )
        command = [clusters.GANGWAY, "worker", f"--controller={self.controller.workers}", "--devices=2"]
        self.workers = [
            subprocess.Popen(
                [*command, f"--name=w{i}", f"--rank={i}", *self.authority.options(f"w{i}")],
                env=clusters.clean_environment(),
                stderr=self.log,
            )
            for i in range(2)
        ]
        assert self.controller.lines.readline() == "ready\n", self.lines()

    def lines(self):
        return (self.folder / "controller.log").read_text()

    def client(self, token="of-red", script=STEPS, timeout=120, **extra):
        """Through the tunnel, as a client of another machine."""
        command = [
            clusters.GANGWAY,
            "run",
            f"--connect={self.controller.tunnel}",
            f"--tls-ca={self.authority.certificate}",
        ]
        environment = clusters.clean_environment(**({"GANGWAY_TOKEN": token} if token else {}), **extra)
        return clusters.run(
            [*command, "--", sys.executable, *([script] if script == STEPS else ["-c", script])],
            timeout,
            env=environment,
        )

    def processes(self):
        return {"controller": self.controller.process, "w0": self.workers[0], "w1": self.workers[1]}

    def ports(self):
        """Every port that something of the cluster listens on, with the process's name."""
        return [(name, port) for name, process in self.processes().items() for _, port in listeners(process.pid)]

    def close(self):
        for worker in self.workers:
            worker.kill()
            worker.wait()
        self.controller.__exit__()
        self.log.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    served = Served(tmp_path_factory.mktemp("ports"))
    yield served
    served.close()


@pytest.fixture(autouse=True)
def nothing_else_is_disturbed(served, native_losses):
    yield
    for name, process in served.processes().items():
        assert process.poll() is None, (name, served.lines()[-3000:])
    done = served.client()
    assert done.stdout == native_losses(4), done.stderr + served.lines()[-3000:]


def test_no_port_is_open_but_those_of_the_docs(served):
    ports = {"controller": listeners(served.controller.process.pid)}
    ports |= {f"w{i}": listeners(worker.pid) for i, worker in enumerate(served.workers)}
    assert len(ports["controller"]) == 5, ports  # clients, host callbacks, tunnel, workers, status page
    assert len(ports["w0"]) == 1 and len(ports["w1"]) == 1, ports  # the data plane
    everywhere = [address.removeprefix("::ffff:") for all_of_one in ports.values() for address, _ in all_of_one]
    assert set(everywhere) == {"127.0.0.1"}


@pytest.mark.parametrize("token, why", [("of-green", "no tenant has this token"), (None, "wants a tenant's token")])
def test_a_wrong_token(served, token, why):
    done = served.client(token)
    assert done.returncode != 0 and why in done.stderr, done.stderr
    assert clusters.eventually(lambda: why in served.lines())
    assert "of-green" not in served.lines()


@pytest.mark.parametrize(
    "script, why",
    [
        (
            "import jax, jax.numpy as jnp; from jax.sharding import *; import numpy as np\n"
            "s = NamedSharding(Mesh(np.array(jax.devices()), ('x',)), PartitionSpec('x'))\n"
            "print(jax.jit(lambda x: x + 1, in_shardings=s, out_shardings=s)(jnp.ones(8)))",
            "tenant small: programs and slices on 4 devices, it may have them on 1",
        ),
        (
            "import jax, numpy as np\n"
            "jax.device_put(np.ones(1 << 20, np.float32), jax.devices()[0]).block_until_ready()",
            "tenant small: takes 4.00 MiB; of the 1.00 MiB it may have",
        ),
    ],
    ids=["devices", "bytes"],
)
def test_a_quota(served, script, why):
    done = served.client("of-small", script)
    assert done.returncode != 0 and why in done.stderr, done.stderr
    assert clusters.eventually(lambda: f"refused: {why}" in served.lines()), served.lines()


def test_a_program_that_is_too_large(served):
    constant = "import jax, numpy as np; c = np.arange(1 << 20, dtype=np.float32); print(jax.jit(lambda x: x + c)(1.0))"
    done = served.client(script=constant)
    assert done.returncode != 0 and "this cluster takes up to 1.00 MiB" in done.stderr, done.stderr


def test_a_request_of_a_gigabyte(served):
    channel = grpc.insecure_channel(served.controller.clients, options=[("grpc.max_send_message_length", -1)])
    call = channel.stream_stream("/gangway.v1.Gangway/Session")
    with pytest.raises(grpc.RpcError) as refused:
        list(call(iter([b"\0" * (1 << 30)]), timeout=60))
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in refused.value.details()
    channel.close()
    assert clusters.eventually(lambda: "broke off" in served.lines()), served.lines()[-2000:]


def test_plaintext_on_a_tls_port(served):
    for address in (served.controller.tunnel, served.controller.workers):
        channel = grpc.insecure_channel(address)
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/gangway.v1.Tunnel/Open")(b"", timeout=10)
        assert refused.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        channel.close()
    assert clusters.eventually(lambda: "TLS" in served.lines()), served.lines()[-2000:]


def test_a_certificate_that_is_not_believed(served, tmp_path):
    stranger = Authority(tmp_path)
    command = [clusters.GANGWAY, "run", f"--connect={served.controller.tunnel}", f"--tls-ca={stranger.certificate}"]
    done = clusters.run([*command, "--", "true"], 120)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and "certificate" in done.stderr, done.stderr


def test_an_expired_certificate(served):
    late = served.authority.options("late", days=-1)
    command = [clusters.GANGWAY, "worker", f"--controller={served.controller.workers}", "--connect-timeout=3"]
    done = clusters.run([*command, "--log-level=error", *late], 60)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1 and "do both believe each other" in done.stderr, done.stderr


def test_a_tunnel_leads_nowhere_else(served):
    credentials = grpc.ssl_channel_credentials(served.authority.certificate.read_bytes())
    channel = grpc.secure_channel(served.controller.tunnel, credentials)
    call = channel.stream_stream("/gangway.v1.Tunnel/Open")
    with pytest.raises(grpc.RpcError) as refused:
        list(call(iter([]), metadata=[("gangway-port", "127.0.0.1:22")], timeout=30))
    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    channel.close()
    assert clusters.eventually(lambda: "refused: the tunnel does not lead there" in served.lines())


def wrong_token(served, rng):
    """Stock JAX's way would take a process each time; the program API shows its token in the same place."""
    with pytest.raises(gangway.GangwayError, match="token"):
        gangway.connect(served.controller.clients, token=rng.choice(["", "of-nobody", "x" * 10_000]), timeout=30)


def resident_bytes(process):
    return int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Training(threading.Thread):
    """A client that trains again and again beside what is tried; `wrong` is the first run that was not as natively."""

    def __init__(self, served, losses):
        super().__init__(daemon=True)
        self.served, self.losses, self.runs, self.wrong, self.ended = served, losses, 0, None, threading.Event()

    def run(self):
        while not self.ended.is_set() and self.wrong is None:
            done = self.served.client()
            self.runs += 1
            if done.stdout != self.losses:
                self.wrong = done.stdout + done.stderr

    def stop(self):
        self.ended.set()
        self.join()


@pytest.mark.timeout(FUZZ_SECONDS + 300)
def test_garbage_on_every_port(served, native_losses):
    rng = random.Random(int(os.environ.get("GANGWAY_FUZZ_SEED", 0)))
    ports = served.ports()
    assert len(ports) == 7
    late = dict(option.removeprefix("--tls-").split("=") for option in served.authority.options("late", days=-1))
    expired = attacks.anybody()
    expired.load_cert_chain(late["cert"], late["key"])
    kinds = [attacks.garbage, attacks.huge_request, attacks.odd_message, attacks.broken_tls]
    logged, held = len(served.lines()), resident_bytes(served.controller.process)
    training = Training(served, native_losses(4))
    training.start()
    end, thrown = time.monotonic() + FUZZ_SECONDS, 0
    while time.monotonic() < end or thrown < 10 * len(ports) or training.runs == 0:
        for name, port in ports:
            content = rng.choice(kinds)(rng)
            context = rng.choice([None, None, None, attacks.anybody(), expired])
            attacks.throw(port, content, rng, context)
            thrown += 1
            assert served.processes()[name].poll() is None, (name, port, thrown)
        if thrown % (50 * len(ports)) == 0:
            wrong_token(served, rng)
        assert training.wrong is None, training.wrong
    training.stop()
    assert training.wrong is None, training.wrong
    grown = resident_bytes(served.controller.process) - held
    lines = served.lines()[logged:].splitlines()
    print(f"{thrown} connections, {training.runs} trainings, {len(lines)} lines, {grown >> 20} MiB more held")
    # A line for what is refused, at most, and each of them one that can be read.
    assert len(lines) <= 2 * thrown + 50 * training.runs
    assert [line for line in lines if len(line) > 1000 or not line.isprintable()] == []
    assert grown < 512 << 20


def test_a_local_cluster_listens_on_loopback_only(tmp_path):
    with clusters.Cluster(tmp_path, "--workers=2", devices=2) as cluster:
        found = {pid: listeners(pid) for pid in clusters.marked_processes(cluster.mark)}
        addresses = {address.removeprefix("::ffff:") for all_of_one in found.values() for address, _ in all_of_one}
        assert addresses == {"127.0.0.1"}, found
