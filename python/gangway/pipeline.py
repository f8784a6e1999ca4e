"""Pipelining by a wrapper (GSPMD, section 3.3): one program whose arrays have a stage dimension, split over the mesh.

The layers of all stages run as one vmapped layer; between two steps the stages' outputs move on by one stage, which the
partitioner makes a collective-permute. Nothing else crosses stages: microbatches stream in and results out through a
buffer that is split over the stages and shifts the other way.
"""

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def pipeline(layer, params, microbatches, *, mesh: Mesh, axis: str, repeats: int = 1):
    """Applies all layers, one after the other, to every microbatch; returns an array like `microbatches`.

    layer         (parameters of one layer, one microbatch) -> an array like the microbatch
    params        tree of arrays [stages, ...], or [stages, repeats, ...] when `repeats` > 1
    microbatches  [M, ...]; M is a multiple of the number of stages, which is the size of mesh axis `axis`
    repeats       1: GPipe, stage s runs layer s. More: circular, stage s runs layers s, stages + s, 2 stages + s, ...;
                  the bubble is then a `repeats`-th of GPipe's, for as many more steps of a `repeats`-th the size.

    M * repeats + stages - 1 steps. Other mesh axes are free: data and tensor parallelism combine with it by the
    annotations of `params`, `microbatches` and inside `layer`. Differentiable; wrap `layer` in jax.checkpoint to keep
    only its inputs.
    """
    stages = mesh.shape[axis]
    count = microbatches.shape[0]
    _check(params, stages, count, repeats)
    columns = count // stages

    def by_stage(x):
        rest = [PartitionSpec.UNCONSTRAINED] * (x.ndim - 1)
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(axis, *rest)))

    params = jax.tree.map(by_stage, params)
    stream = by_stage(microbatches.reshape(stages, columns, *microbatches.shape[1:]))
    stage = jnp.arange(stages).reshape(stages, *[1] * (microbatches.ndim - 1))

    def parameters_at(step):
        if repeats == 1:
            return params
        turn = jnp.clip((step - jnp.arange(stages)) // count, 0, repeats - 1)
        return jax.tree.map(lambda p: by_stage(jax.vmap(lambda own, i: own[i])(p, turn)), params)

    def take_step(carry, step):
        stream, arriving, returned = carry
        column = step % columns
        waiting = jax.lax.dynamic_index_in_dim(stream, column, 1, keepdims=False)
        first = waiting
        if repeats > 1:
            again = jax.lax.dynamic_index_in_dim(returned, step % count, 1, keepdims=False)
            first = jnp.where(step < count, waiting, again)
        inputs = by_stage(jnp.where(stage == 0, first, arriving))
        outputs = by_stage(jax.vmap(layer, spmd_axis_name=axis)(parameters_at(step), inputs))
        # Inputs move towards the first stage; the last stage's output takes the place that this frees.
        moved = jnp.where(stage == stages - 1, outputs, by_stage(jnp.roll(waiting, -1, axis=0)))
        stream = by_stage(jax.lax.dynamic_update_index_in_dim(stream, moved, column, 1))
        arriving = by_stage(jnp.roll(outputs, 1, axis=0))
        if repeats > 1:
            place = (step - stages + 1) % count
            returned = by_stage(jax.lax.dynamic_update_index_in_dim(returned, arriving, place, 1))
        return (stream, arriving, returned), None

    # What stages work on before their first microbatch arrives is thrown away, but it must be no source of NaNs: a
    # gradient would keep them. Any microbatch does.
    carry = (stream, stream[:, 0], None)
    if repeats > 1:
        carry = (*carry[:2], by_stage(jnp.zeros((stages, *microbatches.shape), microbatches.dtype)))
    steps = jnp.arange(count * repeats + stages - 1)
    (stream, _, _), _ = jax.lax.scan(take_step, carry, steps)
    # The last results went into the column after the last step's.
    return jnp.roll(stream, 1 - stages, axis=1).reshape(microbatches.shape)


def _check(params, stages, count, repeats):
    if count % stages:
        raise ValueError(f"pipeline: {count} microbatches are no multiple of {stages} stages")
    wanted = (stages,) if repeats == 1 else (stages, repeats)
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        if leaf.shape[: len(wanted)] != wanted:
            name = jax.tree_util.keystr(path)
            raise ValueError(f"pipeline: parameter {name} of shape {leaf.shape} does not begin with {wanted}")
