"""What being watched costs: OpByOp dispatch (dispatch.py) with nothing remembered, at default settings, and all of it.

    off      no history, no status page
    default  the history that a controller keeps, scraped by Prometheus every 5 s
    full     the same, while `gangway trace` records every launch into a file and the status page is open in a browser

A cluster and a client of each are up all the time; laps of a second or two go off, default, full, full, default, off,
so that what changes meanwhile (the machine) is the same for all. A round's ratio to "off" is that of both its laps; a
line of JSON has the medians of the rounds, and the quarter and three-quarter points of the ratios: of the rate, and of
the computations in a second of processor time, of client, controller, worker and recorder together. The latter
moves less with what else goes on in the machine.
"""

import argparse
import contextlib
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import dispatch
from side_by_side import GANGWAY, command_and_environment, descendants, emit, processor_seconds

# The page as page.html polls it: what is new since the last time.
SCRAPE, PAGE = ("/metrics", 5), ("/status.json?after={launches}", 1)
POLLS = {"off": (), "default": (SCRAPE,), "full": (SCRAPE, PAGE)}
PAUSE = 0.5  # between laps: longer than a recorder's turn


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def client(devices):
    """Runs a lap for each line of standard input, which says how long; answers with computations per second."""
    import jax

    mesh, x = dispatch.on_stock(devices)
    call = jax.jit(dispatch.computation(mesh))
    for line in sys.stdin:
        print(dispatch.repeat(call, x, float(line), 1), flush=True)


class Asker:
    """Asks for a document every so often during laps, as a tool does all the time."""

    def __init__(self, page, path, period):
        self.page, self.path, self.period = page, path, period
        self.left = random.uniform(0, period)  # until the next time
        self.launches, self.answers = 0, 0

    def ask(self):
        with urllib.request.urlopen(self.page + self.path.format(launches=self.launches)) as answer:
            text = answer.read()
        self.answers += 1
        if counted := re.search(rb'"launches":(\d+),"failed', text[:1000]):
            self.launches = int(counted[1])

    def during(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() + self.left < end:
            time.sleep(self.left)
            self.ask()
            self.left = self.period
        self.left -= max(0, end - time.monotonic())


class Watched:
    """A cluster that is watched in one of the modes, and its client."""

    def __init__(self, mode, devices, folder):
        self.mode, port = mode, free_port()
        self.page = f"http://127.0.0.1:{port}"
        cluster = ["--history", 0] if mode == "off" else ["--http-port", port]
        command, environment = command_and_environment("gangway", devices, [__file__, "--client", devices], cluster)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command, env=environment, **pipes)
        self.askers = [Asker(self.page, *poll) for poll in POLLS[mode]]
        self.recorder = None
        self.lap(0.2)  # it is up, and has compiled
        self.trace = folder / "trace.json"
        if mode == "full":
            self.launches_before = self.launches()
            record = [GANGWAY, "trace", self.page, "--seconds", "3600", "-o", self.trace]
            self.recorder = subprocess.Popen(record, stderr=subprocess.DEVNULL)
            time.sleep(PAUSE)

    def processor_seconds(self):
        pids = descendants(self.process.pid) + ([self.recorder.pid] if self.recorder else [])
        return sum(map(processor_seconds, pids))

    def lap(self, seconds):
        """Computations in a second, and in a second of the processors."""
        before = self.processor_seconds()
        threads = [threading.Thread(target=asker.during, args=(seconds,)) for asker in self.askers]
        for thread in threads:
            thread.start()
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        for thread in threads:
            thread.join()
        if not answer:
            raise RuntimeError(f"{self.mode}: the client ended")
        rate = float(answer)
        return rate, rate * seconds / (self.processor_seconds() - before)

    def launches(self):
        with urllib.request.urlopen(f"{self.page}/metrics") as answer:
            return int(re.search(rb"^gangway_launches_total (\d+)", answer.read(), re.MULTILINE)[1])

    def check(self):
        """What was to be watched was."""
        for asker in self.askers:
            if asker.answers == 0:
                raise RuntimeError(f"{self.mode}: nothing was read of {asker.path}")
        if self.recorder:
            ran = self.launches() - self.launches_before
            time.sleep(2 * PAUSE)
            self.recorder.send_signal(signal.SIGINT)
            self.recorder.wait()
            with open(self.trace, "rb") as file:
                recorded = sum(b'"ph":"b"' in line and b'"cat":"launch"' in line for line in file)
            if recorded != ran:
                raise RuntimeError(f"{ran} launches, {recorded} of them recorded")

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()
        if self.recorder:
            self.recorder.kill()
            self.recorder.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20, help="of two laps in each mode (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1.5, help="of a lap (default: %(default)s)")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--client", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        return client(args.client)
    rates = {mode: [] for mode in POLLS}
    work = {mode: [] for mode in POLLS}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        sides = {}
        for mode in POLLS:
            sides[mode] = Watched(mode, args.devices, pathlib.Path(folder))
            stack.callback(sides[mode].close)
        for _ in range(args.rounds):
            laps = {mode: [] for mode in POLLS}
            for mode in [*POLLS, *reversed(POLLS)]:
                laps[mode].append(sides[mode].lap(args.seconds))
                time.sleep(PAUSE)
            for mode, both in laps.items():
                for kept, values in zip((rates, work), zip(*both)):
                    kept[mode].append(statistics.mean(values))
        for side in sides.values():
            side.check()
    figures = {mode: statistics.median(found) for mode, found in rates.items()}
    for mode in ("default", "full"):
        for name, found in ((f"{mode}_ratio", rates), (f"{mode}_processor_ratio", work)):
            ratios = [rate / off for rate, off in zip(found[mode], found["off"])]
            quarter, middle, three_quarters = statistics.quantiles(ratios, n=4)
            figures |= {name: middle, f"{name}_quarters": [round(quarter, 4), round(three_quarters, 4)]}
    emit(bench="overhead", devices=args.devices, rounds=args.rounds, unit="computations/s", **figures)


if __name__ == "__main__":
    main()
