"""Arrays copied from a device of one worker to a device of another, on one host, beside what ucx_perftest moves there.

jax.device_put between two devices, each copy into memory of its own; "cold" is the first of a fresh cluster, when the
receiver has touched none of its memory. Bytes a second, a line of JSON per size; medians over the rounds.
"""

import argparse
import json
import shutil
import socket
import statistics
import subprocess
import sys
import time

from side_by_side import emit, measure

COPIES = 8  # of one run


def copies(mib):
    """Seconds of each copy, in order."""
    import jax
    import numpy as np

    source, target = jax.devices()[:2]
    x = jax.block_until_ready(jax.device_put(np.ones(mib << 18, np.float32), source))
    times = []
    for _ in range(COPIES):
        start = time.perf_counter()
        y = jax.block_until_ready(jax.device_put(x, target))
        times.append(time.perf_counter() - start)
        del y
    return times


def perftest(executable, mib):
    """Bytes a second of UCX's own benchmark between two processes, for messages of that size."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with subprocess.Popen([executable, "-p", port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        time.sleep(0.5)  # until it listens
        command = [executable, "127.0.0.1", "-p", port, "-t", "tag_bw", "-s", str(mib << 20), "-n", "10", "-w", "2"]
        try:
            done = subprocess.run([*command, "-f"], capture_output=True, text=True, timeout=120, check=True)
        finally:
            server.kill()
    numbers = [line.split() for line in done.stdout.splitlines() if line.strip()[:1].isdigit()]
    # iterations, three latencies, then megabytes a second: average and overall
    return float(numbers[-1][5]) * (1 << 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, nargs="+", default=[256], help="sizes (default: %(default)s)")
    parser.add_argument("--perftest", default=shutil.which("ucx_perftest"), help="Debian's ucx-utils has it")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(copies(args.mib[0])))
        return
    if args.perftest is None:
        sys.exit("ucx_perftest is not there: it is in Debian's ucx-utils")
    for mib in args.mib:
        peer, cold, warm = [], [], []
        for _ in range(args.rounds):
            peer.append(perftest(args.perftest, mib))
            arguments = [__file__, "--measure", "--mib", mib]
            out, _ = measure("gangway", 2, arguments, timeout_s=120, cluster=["--workers", 2])
            times = json.loads(out)
            cold.append((mib << 20) / times[0])
            warm.append((mib << 20) / statistics.median(times[1:]))
        emit(
            bench="copies",
            mib=mib,
            unit="bytes/s",
            ucx_perftest=statistics.median(peer),
            cold=statistics.median(cold),
            warm=statistics.median(warm),
            cold_ratio=statistics.median(a / b for a, b in zip(cold, peer, strict=True)),
            warm_ratio=statistics.median(a / b for a, b in zip(warm, peer, strict=True)),
        )


if __name__ == "__main__":
    main()
