"""What reading a scalar after every step costs: stock JAX through Gangway beside native JAX, which take turns.

A step is a few matrix products over all devices and a loss. Milliseconds a step with and without the read, and their
ratio, a line of JSON for each system.
"""

import argparse
import json
import statistics
import sys
import time

from side_by_side import emit, measure

STEPS = 30  # of one lap


def steps(size, products, seconds):
    """Milliseconds a step: without reads, with one each."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = jax.sharding.Mesh(jax.devices(), ("x",))
    rows = NamedSharding(mesh, P("x"))

    @jax.jit
    def step(w):
        for _ in range(products):
            w = jnp.tanh(w @ jnp.eye(size, dtype=w.dtype) * 0.99)
        return jax.lax.with_sharding_constraint(w, rows), jnp.mean(w * w)

    w = jax.device_put(jnp.ones((size, size), jnp.float32), rows)

    def lap(w, read):
        start = time.perf_counter()
        for _ in range(STEPS):
            w, loss = step(w)
            if read:
                float(loss)
        jax.block_until_ready(w)
        return w, (time.perf_counter() - start) / STEPS * 1e3

    found = {False: [], True: []}
    for read in found:
        w, _ = lap(w, read)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not found[True]:
        for read, times in found.items():
            w, took = lap(w, read)
            times.append(took)
    return [statistics.median(times) for times in found.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each system (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=4, help="of measuring a run (default: %(default)s)")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--size", type=int, default=256, help="rows and columns (default: %(default)s)")
    parser.add_argument("--products", type=int, nargs="+", default=[2, 8], help="of a step (default: %(default)s)")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(steps(args.size, args.products[0], args.seconds)))
        return
    for products in args.products:
        found = {"native": [], "gangway": []}
        for _ in range(args.rounds):
            for system, lists in found.items():
                arguments = [__file__, "--measure", "--size", args.size, "--products", products]
                arguments += ["--seconds", args.seconds]
                out, _ = measure(system, args.devices, arguments, timeout_s=args.seconds + 90)
                lists.append(json.loads(out))
        for system, lists in found.items():
            without, with_read = (statistics.median(run[i] for run in lists) for i in (0, 1))
            emit(
                bench="reads",
                system=system,
                devices=args.devices,
                products=products,
                unit="ms",
                without_read=without,
                with_read=with_read,
                ratio=statistics.median(run[1] / run[0] for run in lists),
            )


if __name__ == "__main__":
    sys.exit(main())
