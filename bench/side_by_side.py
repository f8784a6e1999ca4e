"""Runs the same script on native JAX and through Gangway, and watches the memory of all processes of each."""

import json
import os
import pathlib
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
GANGWAY = ROOT / "build" / "gangway"
PAGE = os.sysconf("SC_PAGE_SIZE")


def environment(**extra):
    """This process's environment without what chooses a JAX backend."""
    prefixes = ("JAX_", "XLA_", "GANGWAY_", "IFRT_")
    return {k: v for k, v in os.environ.items() if not k.startswith(prefixes)} | extra


def command_and_environment(system, devices, arguments, cluster=()):
    """How `system` ("native" or "gangway") runs a Python script with `devices` devices; `cluster`: options of ours."""
    python = [sys.executable, *map(str, arguments)]
    if system == "native":
        flags = f"--xla_force_host_platform_device_count={devices}"
        return python, environment(JAX_PLATFORMS="cpu", XLA_FLAGS=flags)
    return [str(GANGWAY), "run", "--devices", str(devices), *map(str, cluster), "--", *python], environment()


def descendants(root):
    """Process ids of `root` and all below it."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def resident_bytes(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def processor_seconds(pid):
    """What all living threads of a process have taken of the processors."""
    nanoseconds = 0
    for statistics in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            nanoseconds += int(statistics.read_text().split()[0])
        except OSError:
            continue
    return nanoseconds / 1e9


class MemoryWatch(threading.Thread):
    """Samples the memory of a process and all below it; `peak` is the largest sum of their resident sets, in bytes.

    Pages that several processes share count once for each of them.
    """

    def __init__(self, pid, period_s=0.2):
        super().__init__(daemon=True)
        self.pid, self.period_s = pid, period_s
        self.peak = 0
        self._ended = threading.Event()

    def run(self):
        while not self._ended.wait(self.period_s):
            self.peak = max(self.peak, sum(map(resident_bytes, descendants(self.pid))))

    def end(self):
        self._ended.set()
        self.join()
        return self.peak


def measure(system, devices, arguments, timeout_s, cluster=()):
    """Runs the script to its end. Returns (standard output, peak bytes); raises RuntimeError with its last lines."""
    command, env = command_and_environment(system, devices, arguments, cluster)
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    watch = MemoryWatch(process.pid)
    watch.start()
    start = time.monotonic()
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        for pid in reversed(descendants(process.pid)):
            os.kill(pid, 9)
        out, err = process.communicate()
        err += f"\nkilled after {time.monotonic() - start:.0f} s"
    peak = watch.end()
    if process.returncode != 0:
        raise RuntimeError(f"{system} ended with {process.returncode}: " + "\n".join(err.splitlines()[-5:]))
    return out, peak


def emit(**figures):
    """One figure as a line of JSON."""
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}), flush=True)
