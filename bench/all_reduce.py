"""All-reduce between two workers of one host beside native JAX in two processes (gloo).

One compiled program of many all-reduces of zeros, each feeding the next and nothing between them; microseconds for
each, a line of JSON per size.
"""

import argparse
import json
import socket
import statistics
import subprocess
import sys
import time

from side_by_side import emit, environment, measure

SIZES = [4 << 10, 1 << 20, 16 << 20]  # bytes of each device's operand


def one(mesh, devices, size, seconds):
    """Microseconds of an all-reduce over the mesh's two devices."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    length = max(4, min(256, (64 << 20) // size))

    def many(x):
        body = lambda carry, _: (jax.lax.psum(carry, "x"), None)  # noqa: E731
        return jax.lax.scan(body, x, None, length=length)[0]

    step = jax.jit(jax.shard_map(many, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
    make = jax.jit(lambda: jnp.zeros((devices, size // 4), jnp.float32), out_shardings=NamedSharding(mesh, P("x")))
    x = jax.block_until_ready(step(make()))
    calls, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds:
        x = jax.block_until_ready(step(x))
        calls += 1
    return (time.perf_counter() - start) / calls / length * 1e6


def run(sizes, seconds, address=None, rank=None):
    import jax
    import numpy as np

    if address:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(address, 2, rank)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    found = [one(mesh, 2, size, seconds) for size in sizes]
    if not rank:
        print(json.dumps(found), flush=True)


def native(seconds):
    """Two processes, one device each."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, __file__, "--measure", "--seconds", str(seconds), "--address", address, "--rank"]
    env = environment(JAX_PLATFORMS="cpu")
    ranks = [
        subprocess.Popen([*command, str(rank)], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for rank in (0, 1)
    ]
    try:
        out = ranks[0].communicate(timeout=120)[0]
        return json.loads(next(line for line in out.splitlines() if line.startswith("[") and "Gloo" not in line))
    finally:
        for process in ranks:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        return run(SIZES, args.seconds, args.address, args.rank)
    found = {"native": [], "gangway": []}
    for _ in range(args.rounds):
        found["native"].append(native(args.seconds))
        arguments = [__file__, "--measure", "--seconds", args.seconds]
        out, _ = measure("gangway", 2, arguments, timeout_s=120, cluster=["--workers", 2])
        found["gangway"].append(json.loads(out))
    for i, size in enumerate(SIZES):
        medians = {system: statistics.median(rounds[i] for rounds in lists) for system, lists in found.items()}
        ratio = medians["native"] / medians["gangway"]
        emit(bench="all_reduce", workers=2, devices=2, bytes=size, unit="us", **medians, ratio=ratio)


if __name__ == "__main__":
    main()
