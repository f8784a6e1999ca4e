"""Dispatch rate, OpByOp: a scalar all-reduce over N devices then + 1, one call each from Python, each feeding the next.

Stock JAX through Gangway beside native JAX, which take turns; computations per second, a line of JSON for each N.
"""

import argparse
import json
import statistics
import sys
import time

from side_by_side import emit, measure

# Launches a client lets run ahead of it, the same for both. Native JAX deadlocks now and then with collective programs
# in flight, the more often the more there are; such a run is reported, left out, and costs a minute.
IN_FLIGHT = 16


def chain(devices, seconds):
    """Computations per second of the chain on the first `devices` devices of this process's backend."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()[:devices]), ("x",))
    step = jax.jit(jax.shard_map(lambda x: jax.lax.pmean(x, "x") + 1, mesh=mesh, in_specs=P(), out_specs=P()))
    x = step(jax.device_put(np.float32(0), NamedSharding(mesh, P())))
    calls, start = 1, None
    while start is None or time.perf_counter() < start + seconds:
        for _ in range(IN_FLIGHT):
            x = step(x)
        x.block_until_ready()
        calls += IN_FLIGHT
        if start is None:  # the first lap warms up
            start, counted = time.perf_counter(), calls
    rate = (calls - counted) / (time.perf_counter() - start)
    if float(x) != calls:
        raise RuntimeError(f"the chain of {calls} computations gave {float(x)}")
    return rate


def compare(devices, rounds, seconds):
    rates = {"native": [], "gangway": []}
    for _ in range(rounds):
        for system, found in rates.items():
            arguments = [__file__, "--chain", devices, "--seconds", seconds]
            try:
                out, _ = measure(system, devices, arguments, timeout_s=seconds + 60)
                found.append(json.loads(out))
            except RuntimeError as error:
                print(error, file=sys.stderr)
    medians = {system: statistics.median(found) if found else None for system, found in rates.items()}
    ratio = medians["gangway"] / medians["native"] if all(medians.values()) else None
    emit(bench="dispatch", variant="OpByOp", devices=devices, unit="computations/s", **medians, ratio=ratio)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each system (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3, help="of measuring a run (default: %(default)s)")
    parser.add_argument("--chain", type=int, metavar="N", help="only measure N devices of this process's own backend")
    args = parser.parse_args()
    if args.chain:
        print(chain(args.chain, args.seconds))
        return
    for devices in 1, 2, 4, 8:
        compare(devices, args.rounds, args.seconds)


if __name__ == "__main__":
    main()
