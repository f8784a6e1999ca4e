"""Dispatch rates: a scalar all-reduce over N devices then + 1, each computation feeding the next.

OpByOp: one call each from Python, stock JAX through Gangway beside native JAX. Chained: programs of 128 calls of a
compiled function, submitted whole by the program API, beside native JAX's OpByOp. Fused: one compiled program of 128,
by the program API beside native JAX. All beside Ray too, an actor for each device that get each other's values as
futures. They take turns; computations per second, a line of JSON for each variant and N.
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
LENGTH = 128  # computations of a chained or fused program


def repeat(call, x, seconds, length):
    """Computations per second of x = call(x), each call `length` of them; checks their count."""
    in_flight = IN_FLIGHT if length == 1 else IN_FLIGHT // 4
    x, calls, start = call(x), 1, None
    while start is None or time.perf_counter() < start + seconds:
        for _ in range(in_flight):
            x = call(x)
        x.block_until_ready()
        calls += in_flight
        if start is None:  # the first lap warms up
            start, counted = time.perf_counter(), calls
    rate = (calls - counted) * length / (time.perf_counter() - start)
    if float(x) != calls * length:
        raise RuntimeError(f"{calls * length} computations gave {float(x)}")
    return rate


def computation(mesh):
    import jax
    from jax.sharding import PartitionSpec as P

    return jax.shard_map(lambda x: jax.lax.pmean(x, "x") + 1, mesh=mesh, in_specs=P(), out_specs=P())


def fused(mesh):
    import jax

    one = computation(mesh)
    return jax.jit(lambda x: jax.lax.scan(lambda carry, _: (one(carry), None), x, None, length=LENGTH)[0])


def on_stock(devices):
    """A mesh of this process's JAX backend, and a zero on all of it."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()[:devices]), ("x",))
    return mesh, jax.device_put(np.float32(0), NamedSharding(mesh, P()))


def stock(variant, devices, seconds):
    """Through the JAX backend of this process."""
    import jax

    mesh, x = on_stock(devices)
    if variant == "Fused":
        return repeat(fused(mesh), x, seconds, LENGTH)
    return repeat(jax.jit(computation(mesh)), x, seconds, 1)


def program(variant, devices, seconds):
    """Through the program API."""
    import jax
    import numpy as np

    import gangway

    with gangway.connect() as client:
        part = client.slice(devices=devices)
        mesh, x = part.mesh(x=devices), np.float32(0)
        if variant == "Fused":
            return repeat(client.compile(fused(mesh), part, x), x, seconds, LENGTH)
        step = client.compile(jax.jit(computation(mesh)), part, x)

        @client.program
        def chain(x):
            for _ in range(LENGTH):
                x = step(x)
            return x

        return repeat(chain, x, seconds, LENGTH)


def ray_actors(devices, seconds):
    """What Ray does with the same computations, submitted ahead: no value comes back to the driver within a lap."""
    import ray

    class Device:
        def step(self, *values):
            return sum(values) / len(values) + 1

    ray.init(num_cpus=devices, include_dashboard=False, log_to_driver=False)
    try:
        actors = [ray.remote(num_cpus=0)(Device).remote() for _ in range(devices)]
        values, computations, start = [0.0] * devices, 0, None
        while start is None or time.perf_counter() < start + seconds:
            for _ in range(IN_FLIGHT):
                values = [actor.step.remote(*values) for actor in actors]
            found = ray.get(values)
            computations += IN_FLIGHT
            if start is None:  # the first lap warms up
                start, counted = time.perf_counter(), computations
        rate = (computations - counted) / (time.perf_counter() - start)
    finally:
        ray.shutdown()
    if set(found) != {float(computations)}:
        raise RuntimeError(f"{computations} computations gave {found}")
    return rate


# variant -> how Gangway runs it, and the native variant beside it
VARIANTS = {
    "OpByOp": (stock, "OpByOp"),
    "Chained": (program, "OpByOp"),
    "Fused": (program, "Fused"),
}


def compare(variant, devices, workers, rounds, seconds, ray):
    beside = VARIANTS[variant][1]
    rates = {"native": [], "gangway": []} | ({"ray": []} if ray else {})
    for _ in range(rounds):
        for system, found in rates.items():
            name = beside if system == "native" else variant
            arguments = [__file__, "--measure", name, "--system", system, "--devices", devices, "--seconds", seconds]
            cluster = ["--workers", workers] if system == "gangway" else []
            runs_as = "gangway" if system == "gangway" else "native"
            try:
                out, _ = measure(runs_as, devices, arguments, timeout_s=seconds + 60, cluster=cluster)
                found.append(json.loads(out.splitlines()[-1]))
            except RuntimeError as error:
                print(error, file=sys.stderr)
    medians = {system: statistics.median(found) if found else None for system, found in rates.items()}

    def ratio(to):
        return medians["gangway"] / medians[to] if medians["gangway"] and medians.get(to) else None

    emit(
        bench="dispatch",
        variant=variant,
        beside=beside,
        devices=devices,
        workers=workers,
        unit="computations/s",
        **medians,
        ratio=ratio("native"),
        **({"ratio_to_ray": ratio("ray")} if ray else {}),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each system (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3, help="of measuring a run (default: %(default)s)")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2], help="worker processes (default: %(default)s)"
    )
    parser.add_argument("--no-ray", dest="ray", action="store_false", help="native JAX only")
    parser.add_argument("--measure", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--system", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        if args.system == "ray":
            print(ray_actors(args.devices[0], args.seconds))
            return
        run = VARIANTS[args.measure][0] if args.system == "gangway" else stock
        print(run(args.measure, args.devices[0], args.seconds))
        return
    for variant in args.variants:
        for devices in args.devices:
            for workers in args.workers:
                if workers <= devices:
                    compare(variant, devices, workers, args.rounds, args.seconds, args.ray)


if __name__ == "__main__":
    main()
