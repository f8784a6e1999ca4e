"""What being watched costs: OpByOp dispatch (dispatch.py) with nothing remembered, at default settings, and all of it.

    off      no history, no status page
    default  the history that a controller keeps, scraped by Prometheus every 5 s
    full     the same, while somebody records: the trace of the last minute and the page's document, every second

They take turns; computations per second, and the ratios to "off", in a line of JSON.
"""

import argparse
import contextlib
import socket
import statistics
import sys
import threading
import urllib.request

import dispatch
from side_by_side import emit, measure

POLLS = {
    "off": (),
    "default": (("/metrics", 5),),
    "full": (("/metrics", 5), ("/trace.json?seconds=60", 1), ("/status.json", 1)),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def polling(port, polls):
    """Asks for each document now and then, as tools do."""
    ended, asked = threading.Event(), {path: 0 for path, _ in polls}

    def poll(path, period):
        while not ended.wait(period):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                answer.read()
                asked[path] += 1

    threads = [threading.Thread(target=poll, args=of) for of in polls]
    for thread in threads:
        thread.start()
    try:
        yield asked
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def rate(mode, devices, seconds):
    port = free_port()
    cluster = ["--history", 0] if mode == "off" else ["--http-port", port]
    arguments = [
        dispatch.__file__,
        "--measure",
        "OpByOp",
        "--system",
        "gangway",
        "--devices",
        devices,
        "--seconds",
        seconds,
    ]
    with polling(port, POLLS[mode]) as asked:
        out, _ = measure("gangway", devices, arguments, timeout_s=seconds + 60, cluster=cluster)
    if not all(asked.values()):
        print(f"{mode}: nothing was read of {[path for path, n in asked.items() if n == 0]}", file=sys.stderr)
    return float(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="runs of each (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=6, help="of measuring a run (default: %(default)s)")
    parser.add_argument("--devices", type=int, default=8)
    args = parser.parse_args()
    rates = {mode: [] for mode in POLLS}
    for _ in range(args.rounds):
        for mode, found in rates.items():
            found.append(rate(mode, args.devices, args.seconds))
    medians = {mode: statistics.median(found) for mode, found in rates.items()}
    # Of the same round: what changes from round to round is the machine.
    ratios = {
        f"{mode}_ratio": statistics.median(found / off for found, off in zip(rates[mode], rates["off"]))
        for mode in ("default", "full")
    }
    emit(bench="overhead", devices=args.devices, rounds=args.rounds, unit="computations/s", **medians, **ratios)


if __name__ == "__main__":
    main()
