"""docs/clusters/three_hosts.md as it stands, on network namespaces: what an operator does first, step by step.

UPDATE_DOCS=1 keeps the picture of the status page in docs/operate/.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import clusters
import hosts
import perfetto_trace
import pytest
import slurm
from listeners import listeners

ROOT = clusters.ROOT
PAGE = ROOT / "docs" / "clusters" / "three_hosts.md"
PICTURE = ROOT / "docs" / "operate" / "status.png"
BLOCK = re.compile(r'^```sh title="on (h\d)(?:, ([^"]+))?"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
ADDRESSES = {f"h{i}": f"10.77.0.{i}" for i in (1, 2, 3)}
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    hosts.needs_hosts,
    slurm.needs_slurm,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl"),
    pytest.mark.timeout(900),
]


class Site:
    """The three hosts with their Slurm, the folder that all see, and the blocks of the page, by what is in them."""

    def __init__(self, folder, machines, workload):
        self.folder, self.machines, self.workload = folder, machines, workload
        self.blocks = [(host, kind, text) for host, kind, text in BLOCK.findall(PAGE.read_text())]
        self.ran = set()
        self.staying = {}
        path = f"{clusters.GANGWAY.parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = clusters.clean_environment(PATH=path, SLURM_CONF=workload.environment["SLURM_CONF"])

    def block(self, part, kind=""):
        """(host, text) of the first block not yet run that has `part` in it."""
        for number, (host, found, text) in enumerate(self.blocks):
            if number not in self.ran and found == kind and part in text:
                self.ran.add(number)
                return host, text
        raise AssertionError(f"no block with {part!r} is left on the page")

    def command(self, host, text):
        return [*self.machines.prefix(host), "bash", "-euc", text]

    def run(self, part, kind="", timeout=120):
        host, text = self.block(part, kind)
        done = clusters.run(self.command(host, text), timeout, env=self.environment, cwd=self.folder)
        assert done.returncode == 0, f"on {host}: {text}\n{done.stdout}{done.stderr}{self.logs()}"
        return done.stdout

    def start(self, part):
        host, text = self.block(part, "stays")
        log = open(self.folder / f"{part.split()[-1]}.log", "w")  # noqa: SIM115
        process = subprocess.Popen(
            self.command(host, text),
            env=self.environment,
            cwd=self.folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        self.staying[part] = process
        return process

    def ask(self, path, port=7003):
        url = f"http://127.0.0.1:{port}{path}"
        return clusters.run([*self.machines.prefix("h1"), "curl", "-sf", url], 30).stdout

    def status(self):
        return json.loads(self.ask("/status.json?after=1e15") or "{}")

    def alive(self):
        return sorted(worker["name"] for worker in self.status().get("workers", []) if worker["alive"])

    def device_seconds(self):
        used = {}
        for session in self.status()["sessions"]:
            used[session["tenant"]] = used.get(session["tenant"], 0) + session["device_seconds"]
        return used

    def logs(self):
        return "\n".join(f"== {path.name}\n{path.read_text()[-1500:]}" for path in sorted(self.folder.glob("*.log")))

    def close(self):
        for process in self.staying.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    shutil.copy(pathlib.Path(__file__).with_name("train_steps.py"), folder)
    shutil.copy(ROOT / "deploy" / "prometheus" / "prometheus.yml", folder)
    with (
        hosts.Hosts(ADDRESSES) as machines,
        slurm.Slurm(tmp_path_factory.mktemp("slurm"), ADDRESSES, machines.prefix, silent_after=10) as workload,
    ):
        site = Site(folder, machines, workload)
        yield site
        site.close()


# The steps are those of the page, one after the other; a step that fails takes those after it along.
pytest.failed_step = None


@pytest.fixture(autouse=True)
def in_order(request):
    if pytest.failed_step:
        pytest.fail(f"after {pytest.failed_step} failed")
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        pytest.failed_step = request.node.name


def test_certificates_and_tenants(site):
    site.run("openssl req -x509")
    site.run("tenants.json")
    assert (site.folder / "h3.pem").exists() and (site.folder / "tenants.json").exists()


def test_workers_join_by_slurm(site):
    site.start("gangway controller")
    assert clusters.eventually(lambda: site.status(), 60), site.logs()
    site.run("sbatch")
    assert clusters.eventually(lambda: site.alive() == ["h1", "h2", "h3"], 120), site.logs()


def test_both_tenants_train(site, native_losses):
    for token in ("of-red", "of-blue"):
        assert site.run(token) == native_losses(6), site.logs()


# Says which certificate a server shows, and how it takes to one who shows none.
STRANGER = """
import socket, ssl, sys
context = ssl.create_default_context(cafile="authority.pem")
context.check_hostname = False
context.set_alpn_protocols(["h2"])
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30) as plain:
    with context.wrap_socket(plain) as sealed:
        print(ssl.DER_cert_to_PEM_cert(sealed.getpeercert(binary_form=True)).strip())
        try:
            print("served" if sealed.recv(1) else "refused")
        except (ssl.SSLError, ConnectionError):
            print("refused")
"""


def test_arrays_go_by_tls(site):
    for host, address in ADDRESSES.items():
        commands = {pid: pathlib.Path(f"/proc/{pid}/cmdline").read_text() for pid in site.machines.processes(host)}
        [worker] = [pid for pid, command in commands.items() if command.split("\0")[:2] == ["gangway", "worker"]]
        [(listens, port)] = listeners(worker)
        assert listens.removeprefix("::ffff:") == address
        from_h1 = [*site.machines.prefix("h1"), sys.executable, "-c", STRANGER, address, str(port)]
        said = clusters.run(from_h1, 60, cwd=site.folder).stdout
        assert said.strip() == (site.folder / f"{host}.pem").read_text().strip() + "\nrefused", (host, said)
    # Losses are sums over all hosts, so each sent something.
    sent = {worker["name"]: worker["sent_bytes"] for worker in site.status()["workers"]}
    assert sorted(sent) == sorted(ADDRESSES) and min(sent.values()) > 0, sent


def test_shares_are_three_to_one(site):
    for token in ("of-red", "of-blue"):
        site.start(token)
    assert clusters.eventually(lambda: min(site.device_seconds().get(t, 0) for t in ("red", "blue")) > 5, 90), (
        site.logs()
    )
    before = site.device_seconds()
    # Until blue has had a good part of its share: what either has under way when we look is counted later.
    assert clusters.eventually(lambda: site.device_seconds()["blue"] - before["blue"] > 20, 240), site.logs()
    after = site.device_seconds()
    used = {tenant: after[tenant] - before[tenant] for tenant in before}
    print(used)
    assert used["red"] / used["blue"] == pytest.approx(3, rel=0.1), used


def test_top_shows_both(site):
    shown = site.run("gangway top")
    assert re.search(r"^6 devices, 2 sessions", shown, re.MULTILINE), shown
    for tenant, weight in (("red", 3), ("blue", 1)):
        assert re.search(rf"^\S.* {tenant} +{weight} ", shown, re.MULTILINE), shown
    for host in ADDRESSES:
        assert re.search(rf"^{host} +0 +2 alive", shown, re.MULTILINE), shown


@pytest.mark.skipif(BROWSER is None, reason="no chromium")
def test_the_status_page_is_looked_at(site, tmp_path):
    picture = tmp_path / "status.png"
    command = [*site.machines.prefix("h1"), BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += [f"--user-data-dir={tmp_path}/profile", f"--screenshot={picture}", "--window-size=1200,1000"]
    clusters.run([*command, "--virtual-time-budget=6000", "http://127.0.0.1:7003/"], 90)
    assert picture.exists() and picture.stat().st_size > 20_000
    if os.environ.get("UPDATE_DOCS"):
        PICTURE.parent.mkdir(exist_ok=True)
        shutil.copy(picture, PICTURE)


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="no prometheus: apt-get install prometheus")
def test_prometheus_scrapes_it(site):
    site.start("exec prometheus")

    def sample(name):
        answer = json.loads(site.ask(f"/api/v1/query?query={urllib.parse.quote(name)}", 9090) or "{}")
        return [(found["metric"], float(found["value"][1])) for found in answer.get("data", {}).get("result", [])]

    assert clusters.eventually(lambda: sample("gangway_launches_total > 100"), 60), site.logs()
    assert sorted(metric["worker"] for metric, up in sample("gangway_worker_up") if up == 1) == sorted(ADDRESSES)
    assert {metric["tenant"] for metric, _ in sample("gangway_tenant_sessions")} == {"red", "blue"}


def test_a_trace_is_recorded(site):
    site.run("gangway trace")
    slices = perfetto_trace.slices(site.folder / "trace.json")
    on_devices = {found.thread for found in slices if found.process == "devices"}
    assert on_devices == {f"device {i}" for i in range(6)}
    # Of the same device: one after the other, whatever the clock's last digit says.
    for device in on_devices:
        own = sorted((found.start, found.end) for found in slices if found.thread == device)
        assert len(own) > 10 and all(a[1] <= b[0] + 1 for a, b in zip(own, own[1:]))


def test_a_running_program_is_explained(site):
    shown = site.run("gangway explain")
    assert "jit_step on 6 devices" in shown and "all-reduce along 'data'" in shown


def test_a_host_is_lost_and_back(site, native_losses):
    training = [site.staying[token] for token in ("of-red", "of-blue")]
    site.machines.lose_power("h3")
    assert clusters.eventually(lambda: site.alive() == ["h1", "h2"], 60), site.logs()
    # Blue's program ran on h3 and is gone with it; red's needed h3's devices.
    assert clusters.eventually(lambda: all(process.poll() is not None for process in training), 60), site.logs()
    assert training[0].returncode == 1
    assert "worker h3 is lost" in (site.folder / "of-red.log").read_text(), site.logs()
    site.machines.power_up("h3")
    site.workload.start_node("h3")
    assert clusters.eventually(lambda: site.alive() == ["h1", "h2", "h3"], 180), site.logs()
    assert site.run("of-red", "after h3 is back") == native_losses(6), site.logs()


def test_nothing_of_the_page_was_left_out(site):
    left = [text for number, (_, _, text) in enumerate(site.blocks) if number not in site.ran]
    assert left == []
