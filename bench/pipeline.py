"""A pipeline by wrapper (gangway.pipeline) beside the same schedule written by hand for a stage (shard_map, ppermute).

A training step of a stack of residual blocks, GPipe over four stages, on a mesh data x stage. Both programs run in one
process and take turns. For each, a line of JSON: the median of the steps/s of its laps and the bytes that a device
receives in a step; then their ratios, wrapper to by hand.
"""

import argparse
import functools
import json
import statistics
import sys
import time

from side_by_side import ROOT, emit, measure

STEPS = 5  # of one lap


def by_hand(layer, params, microbatches, *, mesh, axis):
    """As gangway.pipeline: microbatches [M, ...], split over the stages, stream towards the first and results back."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import PartitionSpec as P

    stages = mesh.shape[axis]
    columns = microbatches.shape[0] // stages
    onwards = [(s, (s + 1) % stages) for s in range(stages)]
    back = [(s, (s - 1) % stages) for s in range(stages)]

    def stage_program(params, stream):
        stage = jax.lax.axis_index(axis)
        params = jax.tree.map(lambda p: p[0], params)

        def take_step(carry, step):
            stream, arriving = carry
            column = step % columns
            waiting = jax.lax.dynamic_index_in_dim(stream, column, 0, keepdims=False)
            outputs = layer(params, jnp.where(stage == 0, waiting, arriving))
            moved = jnp.where(stage == stages - 1, outputs, jax.lax.ppermute(waiting, axis, back))
            stream = jax.lax.dynamic_update_index_in_dim(stream, moved, column, 0)
            return (stream, jax.lax.ppermute(outputs, axis, onwards)), None

        stream = stream[0]
        steps = jnp.arange(columns * stages + stages - 1)
        (stream, _), _ = jax.lax.scan(take_step, (stream, stream[0]), steps)
        return jnp.roll(stream, 1 - stages, axis=0)[None]

    stream = microbatches.reshape(stages, columns, *microbatches.shape[1:])
    where = P(axis, None, "data")
    run = jax.shard_map(stage_program, mesh=mesh, in_specs=(P(axis), where), out_specs=where)
    return run(params, stream).reshape(microbatches.shape)


def make_step(wrapper, mesh):
    import jax
    import jax.numpy as jnp

    def layer(params, x):
        return x + jnp.tanh(x @ params["up"]) @ params["down"]

    def loss_of(params, microbatches):
        return jnp.mean(wrapper(layer, params, microbatches, mesh=mesh, axis="stage") ** 2)

    def step(params, microbatches):
        loss, gradients = jax.value_and_grad(loss_of)(params, microbatches)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients), loss

    return jax.jit(step)


def received_bytes(compiled):
    """By a device in a step, by our backend's figures."""
    return sum(value for name, value in compiled.cost_analysis().items() if name.endswith("bytes received"))


def compare(args):
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    from gangway import pipeline

    mesh = Mesh(np.array(jax.devices()).reshape(-1, args.stages), ("data", "stage"))
    random = functools.partial(jax.random.normal, dtype=jnp.float32)
    up, down, x = jax.random.split(jax.random.key(0), 3)
    split = NamedSharding(mesh, P("stage"))
    width, hidden = args.width, 4 * args.width
    params = {
        "up": jax.device_put(random(up, (args.stages, width, hidden)) * width**-0.5, split),
        "down": jax.device_put(random(down, (args.stages, hidden, width)) * hidden**-0.5, split),
    }
    shape = (args.microbatches, args.rows, width)
    microbatches = jax.device_put(random(x, shape), NamedSharding(mesh, P("stage", "data")))

    programs = {"wrapper": pipeline, "by_hand": by_hand}
    steps = {name: make_step(wrapper, mesh).lower(params, microbatches).compile() for name, wrapper in programs.items()}
    losses = {name: float(step(params, microbatches)[1]) for name, step in steps.items()}
    np.testing.assert_allclose(losses["wrapper"], losses["by_hand"], rtol=1e-5)

    speeds = {name: [] for name in steps}
    end = time.perf_counter() + args.seconds
    while time.perf_counter() < end or not speeds["by_hand"]:
        for name, step in steps.items():
            start, state = time.perf_counter(), params
            for _ in range(STEPS):
                state, loss = step(state, microbatches)
            jax.block_until_ready((state, loss))
            speeds[name].append(STEPS / (time.perf_counter() - start))
    return {
        name: {"steps_per_s": statistics.median(speeds[name]), "received_bytes": received_bytes(step)}
        for name, step in steps.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stages", type=int, default=4)
    parser.add_argument("--devices", type=int, default=8, help="a multiple of the stages (default: %(default)s)")
    parser.add_argument("--microbatches", type=int, default=16)
    parser.add_argument("--rows", type=int, default=256, help="of a microbatch (default: %(default)s)")
    parser.add_argument("--width", type=int, default=256, help="of a row (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="of measuring (default: %(default)s)")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        sys.path.insert(0, str(ROOT / "python"))
        print(json.dumps(compare(args)))
        return
    out, _ = measure("gangway", args.devices, [__file__, "--measure", *sys.argv[1:]], timeout_s=args.seconds + 120)
    found = json.loads(out)
    for program, figures in found.items():
        emit(bench="pipeline", program=program, stages=args.stages, devices=args.devices, **figures)
    for figure in "steps_per_s", "received_bytes":
        wrapper, hand = found["wrapper"][figure], found["by_hand"][figure]
        emit(bench="pipeline", figure=figure, wrapper=wrapper, by_hand=hand, ratio=wrapper / hand)


if __name__ == "__main__":
    main()
