"""The commands of indented blocks of the docs are run too, on this machine: addresses and ports are made to fit.

What stays (controller, worker, serve) stays until another cluster begins or the page is over; the rest has to end well.
Files that a page takes for granted are made here. Commands of other programs are in ELSEWHERE, with who runs them.
"""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "jax"))

import clusters  # noqa: E402
from authority import Authority  # noqa: E402
from test_cluster import free_ports  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?<=\n\n)(?:    .*\n)+")
COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*(?:\S*/)?(gangway|python|make|mpirun|srun|podman|kubectl|apt-get|export)( |$)")
STAYING = {"controller", "worker", "serve"}
ELSEWHERE = {
    "make": "tests/deploy/test_packages.py, CI",
    "podman": "tests/deploy/test_packages.py: no container runtime is asked for",
    "apt-get": "tests/deploy/test_packages.py: by dpkg below a folder",
    "mpirun": "tests/deploy/test_guides.py",
    "export": "tests/deploy/test_guides.py",
    "srun": "tests/deploy/test_three_hosts.py",
    "kubectl": "tests/deploy/test_kubernetes.py: the manifest against its schema",
    "python": "tests/jax/test_example.py",
}

pytestmark = pytest.mark.skipif(not clusters.GANGWAY.exists(), reason="build/gangway is not built")


def commands(block):
    """Of an indented block, if it is one of commands: each on one line, without its comment."""
    lines = re.sub(r"\\\n\s*", "", block).splitlines()
    found = [re.sub(r"\s{2,}#.*", "", line.strip()) for line in lines]
    return found if found and all(COMMAND.match(line) for line in found) else []


def pages_with_commands():
    found = []
    for page in PAGES:
        blocks = [commands(block) for block in BLOCK.findall(page.read_text())]
        if any(blocks):
            found.append((page, [block for block in blocks if block]))
    return found


def test_every_command_is_one_that_somebody_runs():
    found = [line for _, blocks in pages_with_commands() for block in blocks for line in block]
    names = {COMMAND.match(line)[1] for line in found}
    assert len(found) > 20 and "gangway" in names
    assert names - {"gangway"} <= set(ELSEWHERE), names


class Place:
    """A folder with what the pages take for granted, and ports that are free."""

    def __init__(self, folder):
        self.folder = folder
        ports = dict(zip(range(7000, 7004), free_ports(4)))
        authority = Authority(folder)
        for name in ("controller", "host1", "host"):
            authority.options(name)
        tenants = [{"name": "red", "token": "of-red", "weight": 3}, {"name": "blue", "token": "of-blue"}]
        (folder / "tenants.json").write_text(json.dumps(tenants))
        (folder / "gangway.toml").write_text("[serve]\ndevices = 4\n")
        (folder / "runs").mkdir()
        shutil.copy(ROOT / "docs" / "first_run" / "train.py", folder)
        self.replaced = {r"\b10\.0\.0\.\d\b": "127.0.0.1", "/shared/runs": str(folder / "runs")}
        self.replaced |= {rf":{port}\b": f":{free}" for port, free in ports.items()}
        self.staying = []

    def fitting(self, line):
        for pattern, text in self.replaced.items():
            line = re.sub(pattern, text, line)
        return line

    def environment(self):
        path = f"{clusters.GANGWAY.parent}:{pathlib.Path(sys.executable).parent}:/usr/bin:/bin"
        return clusters.clean_environment(PATH=path)

    def run(self, line):
        line = self.fitting(line)
        words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
        subcommand = next(word for word in words[1:] if not word.startswith("-"))
        if subcommand in STAYING:
            return self.stay(line, subcommand)
        done = clusters.run(["bash", "-euc", line], 120, env=self.environment(), cwd=self.folder)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}{self.logs()}"

    def stay(self, line, subcommand):
        if subcommand != "worker":
            self.end()
        log = self.folder / f"{len(self.staying)}.log"
        with open(log, "w") as out:
            process = subprocess.Popen(
                ["bash", "-euc", f"exec env {line}"], env=self.environment(), cwd=self.folder, stdout=out, stderr=out
            )
        self.staying.append(process)
        # A worker has nothing to say itself: its controller tells that it has joined.
        ready = {"controller": "clients:", "serve": "serving", "worker": ""}[subcommand]
        assert clusters.eventually(lambda: ready in log.read_text() or process.poll() is not None, 60)
        if subcommand == "worker":
            assert clusters.eventually(self.all_joined, 60), self.logs()
        assert process.poll() is None, f"{line}\n{self.logs()}"

    def all_joined(self):
        logs = self.logs()
        return logs.count(" joined with ") >= sum(" worker " in " ".join(p.args) for p in self.staying)

    def logs(self):
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def end(self):
        while self.staying:
            process = self.staying.pop()
            process.terminate()
            assert process.wait(30) == 0, self.logs()
        for log in self.folder.glob("*.log"):
            log.unlink()


@pytest.mark.parametrize(
    "page, blocks", pages_with_commands(), ids=lambda p: p.stem if isinstance(p, pathlib.Path) else ""
)
def test_page(page, blocks, tmp_path):
    place = Place(tmp_path)
    try:
        for block in blocks:
            if "HOST:PORT" in " ".join(block):  # asked by tests/jax/test_status_page.py
                continue
            for line in block:
                if COMMAND.match(line)[1] == "gangway":
                    place.run(re.sub(r"^((?:[A-Z_]+=\S+ )*)\S*/gangway", r"\1gangway", line))
        place.end()
    finally:
        for process in place.staying:
            process.kill()
