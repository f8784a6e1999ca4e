"""What the way through the proxy costs: small calls, small reads, large copies, and calls while a program runs.

Three systems take turns: native JAX, Gangway, and a null server that speaks the same protocol, answers every request at
once and runs nothing: the floor of everything that stock JAX's client does. One JSON line for each figure of each
system, medians over the rounds, then the ratios.
"""

import argparse
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import time

from side_by_side import ROOT, command_and_environment, emit, environment

NULL_SERVER = ROOT / "build" / "null_server"
SYSTEMS = "native", "null", "gangway"
IN_FLIGHT = 64  # calls before the client waits for the last one


def calls_per_second(jax, seconds):
    """A chain of tiny one-device programs, each given the last one's result."""
    step = jax.jit(lambda x: x + 1)
    x = step(jax.numpy.float32(0)).block_until_ready()
    calls, begin = 0, time.perf_counter()
    while time.perf_counter() < begin + seconds:
        for _ in range(IN_FLIGHT):
            x = step(x)
        x.block_until_ready()
        calls += IN_FLIGHT
    return calls / (time.perf_counter() - begin)


def read_latency(jax, seconds):
    """From a call to its four bytes in Python."""
    step = jax.jit(lambda x: x + 1)
    x = step(jax.numpy.float32(0))
    times, begin = [], time.perf_counter()
    while time.perf_counter() < begin + seconds:
        start = time.perf_counter()
        float(step(x))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def copy_rate(jax, mib, rounds=3):
    """Bytes a second of an array on its way to the device and back."""
    import numpy as np

    x = np.ones(mib << 18, np.float32)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        y = np.asarray(jax.device_put(x))
        times.append(time.perf_counter() - start)
        del y
    return 2 * x.nbytes / statistics.median(times)


def blocked_seconds(jax, busy_s):
    """How long a client's calls take while a program of about `busy_s` seconds has the device."""
    work = jax.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda _, x: jax.numpy.tanh(x @ x), x))
    x = jax.numpy.ones((512, 512))
    work(x, 1).block_until_ready()
    start = time.perf_counter()
    work(x, 20).block_until_ready()
    turns = max(20, int(20 * busy_s / max(time.perf_counter() - start, 1e-6)))
    step = jax.jit(lambda x: x + 1)
    step(x).block_until_ready()
    y = work(x, min(turns, 10_000_000))
    start = time.perf_counter()
    for _ in range(10):
        y = step(y)
    blocked = time.perf_counter() - start
    y.block_until_ready()
    return blocked / 10


def client(args):
    import jax

    figures = {
        "calls_per_s": calls_per_second(jax, args.seconds),
        "read_s": read_latency(jax, args.seconds),
        "copy_bytes_per_s": copy_rate(jax, args.mib),
        "blocked_s": blocked_seconds(jax, args.seconds),
    }
    print("FIGURES " + json.dumps(figures))


@contextlib.contextmanager
def null_server():
    process = subprocess.Popen([NULL_SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(30)


def run(system, args):
    arguments = [pathlib.Path(__file__), "--client", f"--seconds={args.seconds}", f"--mib={args.mib}"]
    with contextlib.ExitStack() as stack:
        if system == "null":
            address = stack.enter_context(null_server())
            command = [sys.executable, *map(str, arguments)]
            env = environment(JAX_PLATFORMS="gangway", GANGWAY_ADDRESS=address, PYTHONPATH=str(ROOT / "python"))
        else:
            command, env = command_and_environment(system, 1, arguments)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    if done.returncode != 0 or not lines:
        raise RuntimeError(f"{system} ended with {done.returncode}: " + "\n".join(done.stderr.splitlines()[-5:]))
    return json.loads(lines[0].removeprefix("FIGURES "))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="of all systems (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=2, help="for each figure (default: %(default)s)")
    parser.add_argument("--mib", type=int, default=1024, help="size of the copied array (default: %(default)s)")
    parser.add_argument("--client", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        return client(args)
    if not NULL_SERVER.exists():
        sys.exit("build/null_server is not built: ninja -C build null_server")
    found = {system: [] for system in SYSTEMS}
    for _ in range(args.rounds):
        for system in SYSTEMS:
            found[system].append(run(system, args))
    median = {s: {k: statistics.median(row[k] for row in rows) for k in rows[0]} for s, rows in found.items()}
    for system, figures in median.items():
        emit(system=system, **figures)
    ours, floor, native = median["gangway"], median["null"], median["native"]
    emit(
        calls_of_floor=ours["calls_per_s"] / floor["calls_per_s"],
        read_of_floor=ours["read_s"] / floor["read_s"],
        copy_of_floor=ours["copy_bytes_per_s"] / floor["copy_bytes_per_s"],
        calls_of_native=ours["calls_per_s"] / native["calls_per_s"],
        blocked_ms=1e3 * ours["blocked_s"],
    )


if __name__ == "__main__":
    main()
