"""How long completion and partitioning take: against the number of partitions, and against the length of the program.

Training steps of a Transformer (layers written out, and scanned), lowered for abstract meshes, so that no device is
needed, and given to `gangway partition --stats`. One JSON line for each program, then the ratios. XLA's partitioner
runs only inside a compilation for devices that exist; with --peer it compiles the first program for 8 CPU devices.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
GANGWAY = ROOT / "build" / "gangway"
STAGES = "propagated", "partitioned"

VOCABULARY, WIDTH, HEADS, HIDDEN, SEQUENCE, BATCH = 32768, 2048, 16, 8192, 512, 4096


def parameters(jax, layers, scan):
    """Shapes and axes of each parameter."""
    spec = jax.sharding.PartitionSpec
    block = {
        "norm": ((WIDTH,), (None,)),
        "qkv": ((WIDTH, 3, HEADS, WIDTH // HEADS), ("data", None, "model", None)),
        "out": ((HEADS, WIDTH // HEADS, WIDTH), ("model", None, "data")),
        "up": ((WIDTH, HIDDEN), ("data", "model")),
        "down": ((HIDDEN, WIDTH), ("model", "data")),
    }
    tree = {"embed": ((VOCABULARY, WIDTH), spec("model", "data"))}
    if scan:
        tree["layers"] = {k: ((layers, *shape), spec(None, *axes)) for k, (shape, axes) in block.items()}
    else:
        tree["layers"] = [{k: (shape, spec(*axes)) for k, (shape, axes) in block.items()} for _ in range(layers)]
    return tree


def training_step(jax, mesh, scan):
    """A step of gradient descent, the batch on "data", matrices on both axes."""
    jnp, spec = jax.numpy, jax.sharding.PartitionSpec

    def on(x, *axes):
        return jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh, spec(*axes)))

    def block(h, p):
        a = h * jax.lax.rsqrt(jnp.mean(h * h, -1, keepdims=True) + 1e-6) * p["norm"]
        q, k, v = jnp.moveaxis(jnp.einsum("bsd,dchk->bschk", a, p["qkv"]), 2, 0)
        scores = jax.nn.softmax(jnp.einsum("bqhk,bshk->bhqs", q, k) / 8, -1)
        attended = on(jnp.einsum("bhqs,bshk->bqhk", scores, v), "data", None, "model", None)
        h = on(h + jnp.einsum("bshk,hkd->bsd", attended, p["out"]), "data", None, None)
        up = on(jax.nn.relu(h @ p["up"]), "data", None, "model")
        return on(h + up @ p["down"], "data", None, None)

    def loss(p, tokens):
        h = on(p["embed"][tokens], "data", None, None)
        if scan:
            h, _ = jax.lax.scan(lambda h, q: (block(h, q), None), h, p["layers"])
        else:
            for layer in p["layers"]:
                h = block(h, layer)
        logits = on(h @ p["embed"].T, "data", None, "model")
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[..., None], -1))

    def step(p, tokens):
        value, gradient = jax.value_and_grad(loss)(p, tokens)
        return jax.tree.map(lambda a, g: a - 0.1 * g, p, gradient), value

    return step


def program(layers, data, model, scan, mesh=None):
    """The step as a jitted function, and what it takes."""
    import jax
    from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

    mesh = mesh or AbstractMesh((data, model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def described(leaf):
        shape, spec = leaf
        return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, spec))

    is_leaf = lambda x: isinstance(x, tuple) and len(x) == 2 and isinstance(x[1], PartitionSpec)  # noqa: E731
    p = jax.tree.map(described, parameters(jax, layers, scan), is_leaf=is_leaf)
    tokens = jax.ShapeDtypeStruct((BATCH, SEQUENCE), "int32", sharding=NamedSharding(mesh, PartitionSpec("data")))
    out = (jax.tree.map(lambda x: x.sharding, p), NamedSharding(mesh, PartitionSpec()))
    return jax.jit(training_step(jax, mesh, scan), out_shardings=out), (p, tokens)


def artifact(folder, name, layers, data, model, scan):
    import jax.export

    path = folder / f"{name}.mlirbc"
    step, arguments = program(layers, data, model, scan)
    path.write_bytes(jax.export.export(step, platforms=["cpu"])(*arguments).mlir_module_serialized)
    return path


def measure(path, rounds, **what):
    """Seconds of completion and partitioning, the fastest of the runs; prints a line."""
    found = []
    for _ in range(rounds):
        done = subprocess.run([GANGWAY, "partition", "--stats", path], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{path.name}: {done.stderr}")
        found.append(json.loads(done.stdout))
    seconds = min(sum(run[f"seconds_{stage}"] for stage in STAGES) for run in found)
    whole = min(run["seconds"] for run in found)
    fallbacks = len(found[0]["replicated_fallbacks"])
    line = dict(bench="partition_time", program=path.stem, **what, propagate_and_partition_s=seconds, all_s=whole)
    print(json.dumps(line | dict(fallbacks=fallbacks)), flush=True)
    return seconds


def peer(layers, scan):
    """Seconds XLA takes to compile the same step for 8 CPU devices, code generation included."""
    import jax
    import numpy as np
    from jax.sharding import AxisType, Mesh

    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    step, arguments = program(layers, 4, 2, scan, mesh)
    lowered = step.lower(*arguments)
    begin = time.perf_counter()
    lowered.compile()
    print(json.dumps(dict(bench="partition_time", system="xla", layers=layers, compile_s=time.perf_counter() - begin)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12, help="of the shorter program (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each program (default: %(default)s)")
    parser.add_argument("--peer", action="store_true", help="compile the first program with XLA as well")
    args = parser.parse_args()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

    meshes = {8: (4, 2), 64: (16, 4), 512: (64, 8), 4096: (512, 8)}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for scan in False, True:
            kind = "scanned" if scan else "unrolled"
            seconds = {}
            for partitions, (data, model) in meshes.items():
                path = artifact(folder, f"{kind}_{partitions}", args.layers, data, model, scan)
                seconds[partitions] = measure(path, args.rounds, layers=args.layers, partitions=partitions)
            ratio = seconds[4096] / seconds[8]
            print(json.dumps(dict(bench="partition_time", figure=f"{kind}: 4096 / 8 partitions", ratio=ratio)))
        lengths = {}
        for layers in args.layers, 10 * args.layers:
            path = artifact(folder, f"unrolled_{layers}_layers", layers, 4, 2, False)
            lengths[layers] = measure(path, args.rounds, layers=layers, partitions=8)
        ratio = lengths[10 * args.layers] / lengths[args.layers]
        print(json.dumps(dict(bench="partition_time", figure="10 x layers", ratio=ratio)))
        if args.peer:
            peer(args.layers, False)


if __name__ == "__main__":
    main()
