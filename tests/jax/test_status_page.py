"""What an operator sees of a running cluster: `gangway top`, `gangway trace`, the metrics, the page in a browser."""

import contextlib
import json
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import clusters
import pytest

WORK = """
import jax, numpy as np, time
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.ones((64, 64), np.float32), NamedSharding(mesh, P("x")))
def matmul(x): return x @ x.T
step = jax.jit(matmul)
for _ in range(20): step(x).block_until_ready()
def whole(x): return x + 1
y = jax.jit(whole, out_shardings=NamedSharding(mesh, P()))(x)
print("ready", flush=True)
time.sleep(120)
"""
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextlib.contextmanager
def cluster_at_work(folder, script, says, *options):
    """A cluster with a client that has said so, and stays."""
    with clusters.Cluster(folder, *options, devices=2) as cluster:
        client = cluster.start_client(script)
        assert client.stdout.readline() == f"{says}\n", client.communicate()[1]
        yield cluster
        client.kill()
        client.communicate()


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A cluster on which one client has run a program twenty times and is still there."""
    with cluster_at_work(tmp_path_factory.mktemp("status"), WORK, "ready") as cluster:
        yield cluster


def page(cluster, path):
    with urllib.request.urlopen(f"http://{cluster.status_page}{path}", timeout=30) as answer:
        return answer.read().decode()


def test_metrics_count_launches(busy):
    launches = re.search(r"^gangway_launches_total (\d+)", page(busy, "/metrics"), re.MULTILINE)
    assert int(launches[1]) >= 20
    assert 'gangway_worker_up{worker="worker0"} 1' in page(busy, "/metrics")


def test_top_shows_the_program(busy):
    shown = clusters.run([clusters.GANGWAY, "top", busy.status_page, "--once"], 60)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"^jit_matmul +2 +\d+", shown.stdout, re.MULTILINE), shown.stdout
    assert "worker0" in shown.stdout


def test_top_without_a_cluster_is_one_line():
    shown = clusters.run([clusters.GANGWAY, "top", "127.0.0.1:1", "--once"], 60)
    assert shown.returncode == 1
    assert len(shown.stderr.splitlines()) == 1 and "no status page" in shown.stderr


def test_trace_has_a_row_for_each_device(busy, tmp_path):
    trace = tmp_path / "trace.json"
    recorded = clusters.run([clusters.GANGWAY, "trace", busy.status_page, "--past", "0", "-o", trace], 60)
    assert recorded.returncode == 0, recorded.stderr
    events = json.loads(trace.read_text())["traceEvents"]
    rows = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"device 0", "device 1", "island 0"} <= rows
    on_devices = [event for event in events if event["ph"] == "X" and event["name"] == "jit_matmul"]
    assert len(on_devices) >= 40 and any(event["dur"] > 0 for event in on_devices)


RUNNING = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("x",))
x = jax.device_put(np.zeros(8, np.float32), NamedSharding(mesh, P("x")))
step = jax.jit(lambda x: x + 1)
step(x).block_until_ready()
print("running", flush=True)
while True: x = step(x).block_until_ready()
"""


def recorded_launches(trace):
    """Their numbers, in the trace's order."""
    events = json.loads(trace.read_text())["traceEvents"]
    return [event["args"]["launch"] for event in events if event["ph"] == "b" and event["cat"] == "launch"]


@pytest.fixture
def running(tmp_path):
    """A cluster that remembers few launches, on which a client runs a program again and again."""
    with cluster_at_work(tmp_path, RUNNING, "running", "--history=64") as cluster:
        yield cluster


def test_a_recording_has_each_launch_once(running, tmp_path):
    trace = tmp_path / "trace.json"
    done = clusters.run([clusters.GANGWAY, "trace", running.status_page, "--seconds", "2", "-o", trace], 60)
    assert done.returncode == 0, done.stderr
    launches = recorded_launches(trace)
    # Perhaps not all of them, where many run in a turn; the history alone has 64.
    assert launches == sorted(set(launches)) and len(launches) > 128


def test_an_interrupted_recording_is_whole(running, tmp_path):
    trace = tmp_path / "trace.json"
    command = [clusters.GANGWAY, "trace", running.status_page, "--seconds", "3600", "-o", trace]
    recorder = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert clusters.eventually(lambda: trace.exists() and trace.stat().st_size > 10_000)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(30) == 0
        assert len(recorder.stderr.read().splitlines()) == 1
    finally:
        recorder.kill()
        recorder.communicate()
    assert recorded_launches(trace)


def test_no_trace_without_a_cluster(tmp_path):
    done = clusters.run([clusters.GANGWAY, "trace", "127.0.0.1:1", "-o", tmp_path / "trace.json"], 60)
    assert done.returncode == 1 and not (tmp_path / "trace.json").exists()
    assert len(done.stderr.splitlines()) == 1 and "no status page" in done.stderr


def explain(cluster, program, *options):
    return clusters.run([clusters.GANGWAY, "explain", f"--server={cluster.status_page}", program, *options], 90)


def test_a_program_that_runs_is_explained(busy, tmp_path):
    shown = explain(busy, "jit_matmul")
    assert shown.returncode == 0, shown.stderr
    assert "jit_matmul on 2 devices" in shown.stdout and "all-gather along 'x'" in shown.stdout
    number = next(p["number"] for p in json.loads(page(busy, "/status.json"))["programs"] if p["name"] == "jit_matmul")
    told = explain(busy, str(number), "--format=json", "--machine=h100", "-o", tmp_path / "told.json")
    assert told.returncode == 0, told.stderr
    told = json.loads((tmp_path / "told.json").read_text())
    assert (told["program"], told["machine"]) == ("jit_matmul", "h100")
    assert told["collectives"][0]["remedies_tried"]
    annotation = f"--annotate={told['tensors'][0]['place']['instruction']}=P()" if told["tensors"] else ""
    assert explain(busy, "jit_matmul", *filter(None, [annotation])).returncode == 0


@pytest.mark.parametrize(
    "program, options, why",
    [
        ("jit_nobody", [], "answered 404: no program jit_nobody is on this cluster"),
        ("jit_matmul", ["--machine=abacus"], "answered 400: --machine: no model of abacus"),
        ("jit_matmul", ["--annotate=dot"], "answered 400: --annotate: expected INSTRUCTION=P(...), got 'dot'"),
        ("jit_whole", ["--max-replicated-bytes=1024"], "stands on all 2 devices in full: 16384 bytes, allowed 1024"),
    ],
)
def test_an_explanation_that_fails_is_one_line(busy, program, options, why):
    shown = explain(busy, program, *options)
    assert shown.returncode == 1
    assert len(shown.stderr.splitlines()) == 1 and why in shown.stderr, shown.stderr
    assert ("jit_whole on 2 devices" in shown.stdout) == ("replicated" in "".join(options))


def test_parameters_of_nobody_are_refused(busy):
    with pytest.raises(urllib.error.HTTPError) as refused:
        page(busy, "/explain?program=jit_matmul&config=%2Fetc%2Fpasswd")
    assert refused.value.code == 400 and b"--config" in refused.value.read()


@pytest.mark.skipif(BROWSER is None, reason="no chromium: apt-get install chromium")
def test_the_page_in_a_browser(busy, tmp_path):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=4000", "--dump-dom", f"http://{busy.status_page}/"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "CONSOLE" not in shown.stderr, shown.stderr
    assert re.search(r'<td>jit_matmul</td><td class="n">2</td>', shown.stdout), shown.stdout[-3000:]
    assert "<td>worker0</td>" in shown.stdout
    link = re.search(r'<a href="(/explain[^"]*)" aria-label="explain jit_matmul"', shown.stdout)
    assert "<title>" in page(busy, link[1].replace("&amp;", "&")) and "jit_matmul" in shown.stdout
    assert re.search("at [0-9:]+", shown.stdout)
