"""Starts what the tests talk to: Gangway clusters, and Python processes on native JAX or through a cluster."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import uuid

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
GANGWAY = pathlib.Path(os.environ.get("GANGWAY_BINARY", ROOT / "build" / "gangway"))
RUN_PROGRAMS = pathlib.Path(__file__).with_name("run_programs.py")


def clean_environment(**extra):
    """This process's environment without what chooses a JAX backend."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "GANGWAY_", "IFRT_"))}
    return kept | {"TF_CPP_MIN_LOG_LEVEL": "3"} | extra


def native_environment(devices=8):
    return clean_environment(JAX_PLATFORMS="cpu", XLA_FLAGS=f"--xla_force_host_platform_device_count={devices}")


def gangway_run(*arguments, devices=8, workers=1):
    """The command line that runs a Python script on a Gangway cluster of its own."""
    cluster = ["--devices", str(devices), "--workers", str(workers)]
    return [str(GANGWAY), "run", *cluster, "--", sys.executable, *map(str, arguments)]


def run(command, timeout=300, **options):
    """Runs a command to its end; after `timeout` seconds it and all it started are killed."""
    options = {"env": clean_environment(), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err = (err or "") + f"\nkilled after {timeout} s"
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@dataclasses.dataclass
class Outcome:
    """What one program did: its description as run_programs.py wrote it, and its arrays."""

    description: dict
    arrays: list


def run_all_programs(command, environment, folder, names, seconds_a_program=60):
    """Runs the programs in one process, and again without the culprit when one takes the process down or hangs."""
    folder.mkdir(parents=True, exist_ok=True)
    todo = list(names)
    while todo:
        with open(folder / "log.txt", "ab") as log:
            process = subprocess.Popen(
                [*command, str(RUN_PROGRAMS), str(folder), *todo],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            why = _watch(process, folder, todo, seconds_a_program)
        left = [n for n in todo if not (folder / f"{n}.json").exists()]
        if left:
            # One that never started died with the start of the process: nothing to gain from another.
            culprit = next((n for n in left if (folder / f"{n}.start").exists()), None)
            for name in [culprit] if culprit else left:
                error = {"ok": False, "error": why if culprit else f"not started: {why}; see {folder}/log.txt"}
                (folder / f"{name}.json").write_text(json.dumps(error))
                left = [n for n in left if n != name]
        todo = left
    return {name: _outcome(folder, name) for name in names}


def _watch(process, folder, names, seconds_a_program):
    """Waits for the process; kills it when no program finishes for a while. Says how it ended."""
    done, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.1)
        now_done = sum((folder / f"{n}.json").exists() for n in names)
        if now_done != done:
            done, since = now_done, time.monotonic()
        elif time.monotonic() - since > seconds_a_program:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return f"no result after {seconds_a_program} s"
    return f"the process ended with {process.returncode}"


def _outcome(folder, name):
    description = json.loads((folder / f"{name}.json").read_text())
    if not description["ok"]:
        return Outcome(description, [])
    with np.load(folder / f"{name}.npz") as file:
        return Outcome(description, [file[f"arr_{i}"] for i in range(len(file.files))])


class Cluster:
    """A `gangway serve` with a status file; a context manager. Everything it starts carries a mark to be found by."""

    def __init__(self, folder, *arguments, devices=8):
        self.mark = f"GANGWAY_TEST_MARK={uuid.uuid4()}"
        self.status_file = folder / "status.json"
        command = [str(GANGWAY), "serve", "--devices", str(devices), "--status-file", str(self.status_file), *arguments]
        name, value = self.mark.split("=")
        self.log = open(folder / "serve.err", "w+")  # noqa: SIM115
        self.process = subprocess.Popen(
            command, env=clean_environment(**{name: value}), stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        self.address = self._await(r"at (\S+:\d+)")
        self._await("GANGWAY_ADDRESS=(.*)")
        self.status_page = self._await("http://([^/]+)/")

    def _await(self, pattern):
        line = self.process.stdout.readline()
        match = re.search(pattern, line)
        if not match:
            raise RuntimeError(f"gangway serve did not start: {line!r} {self.errors()}")
        return match[1]

    def environment(self, **extra):
        """For a client that runs stock JAX on this cluster."""
        return clean_environment(
            JAX_PLATFORMS="gangway", GANGWAY_ADDRESS=self.address, PYTHONPATH=str(ROOT / "python"), **extra
        )

    def client(self, script, timeout=120):
        return run([sys.executable, "-c", script], timeout, env=self.environment())

    def start_client(self, script):
        return subprocess.Popen(
            [sys.executable, "-c", script],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def status(self):
        return json.loads(self.status_file.read_text())

    def errors(self):
        self.log.seek(0)
        return self.log.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()


class Controller:
    """A `gangway controller`; a context manager. Says where others find it, then "ready" once `devices` have joined."""

    def __init__(self, *options, devices=2, log=subprocess.DEVNULL):
        read, write = os.pipe()
        command = [GANGWAY, "controller", f"--expect-devices={devices}", f"--announce-fd={write}", *options]
        self.process = subprocess.Popen(command, pass_fds=[write], stderr=log, env=clean_environment())
        os.close(write)
        self.lines = os.fdopen(read)
        self.workers, self.clients, self.status_page, self.tunnel = self.lines.readline().split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.lines.close()


def marked_processes(mark):
    """Ids and command lines of the living processes whose environment holds `mark`."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state != "Z" and mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def eventually(condition, seconds=15):
    """Waits until condition() is true; returns its last value."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.1)
    return value
