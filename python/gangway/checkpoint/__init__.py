"""Checkpoints that the workers write and read themselves: no array's bytes come to the client.

    gangway.checkpoint.save("/shared/run/step_100", state)
    state = gangway.checkpoint.restore("/shared/run/step_100", state)

`save` puts the shards of each worker into a safetensors file of its own, and then an index that names them all.
`restore` gives the arrays any shardings, on any devices: each device reads the parts it is to hold. The workers need
`--files=FOLDER` and the same files under that folder; docs/checkpoints.md has the format.
"""

import contextlib
import json
import os

import jax
import numpy as np

from gangway.checkpoint import calls, keys, layout
from gangway.checkpoint.layout import CheckpointError

__all__ = ["CheckpointError", "restore", "save"]

INDEX = "index.json"


def save(path, tree):
    """Writes the arrays of a tree; returns when they are on the disk.

    Until the last moment the checkpoint that `path` held before stays whole and is what `restore` reads. A save that
    was interrupted and is done again writes only what is not there yet. Several at once to one path are an error of
    the caller's. CheckpointError names the array or the file.
    """
    path = _absolute(path)
    names, arrays, _ = layout.flatten(keys.words(tree))
    if not arrays:
        raise CheckpointError(f"cannot save {path}: the tree holds no arrays")
    device = layout.device_list(arrays[0])[0]
    with _named("save", path):
        old = _index(path, device, must=False)
        plan = layout.plan_save(names, arrays, old["generation"] + 1 if old else 1)
        for mesh, numbers in plan.by_mesh():
            parts = [(plan.offsets[i], arrays[i]) for i in numbers]
            calls.write_arrays(mesh, [f"{path}/{f}" for f in plan.partial_files(mesh)], parts)
        homes = list(plan.homes.values())
        partial = [f"{path}/{layout.partial(file)}" for file in plan.homes]
        calls.write_bytes(homes, partial, [plan.headers[file] for file in plan.homes])
        final = [f"{path}/{file}" for file in plan.homes]
        calls.commit(homes, [[a, b] for a, b in zip(partial, final)], [plan.size(file) for file in plan.homes])
        index, target = json.dumps(plan.index()).encode(), f"{path}/{INDEX}"
        partial_index = layout.partial(target)
        calls.write_bytes([device], [partial_index], [index])
        obsolete = [f"{path}/{file}" for file in old["files"]] if old else []
        calls.commit([device], [[partial_index, target, *obsolete]], [len(index)])


def restore(path, like):
    """A tree like `like` with the arrays that were saved under the same names.

    `like` holds arrays or jax.ShapeDtypeStructs; those with a sharding say where their array shall be, others are put
    on the default device. Shapes and element types are checked; what else the checkpoint holds is left alone.
    """
    path = _absolute(path)
    described = keys.words(like)
    names, targets, tree = layout.flatten(described)
    if not targets:
        return like
    with _named("restore", path):
        index = _index(path, layout.device_list(targets[0])[0], must=True)
        files = list(index["files"])
        plans = [layout.plan_restore(name, target, index, files) for name, target in zip(names, targets)]
        results = [None] * len(targets)
        for mesh, numbers in layout.by_mesh(targets):
            parts = [(plans[i], targets[i]) for i in numbers]
            for i, array in zip(numbers, calls.read_arrays(mesh, [f"{path}/{file}" for file in files], parts)):
                results[i] = array
        jax.block_until_ready(results)
    wanted = [getattr(target, "sharding", None) for target in jax.tree.leaves(described)]
    results = [x if s is None or x.sharding == s else jax.device_put(x, s) for x, s in zip(results, wanted)]
    return keys.wrap(jax.tree.unflatten(tree, results), like)


def _absolute(path):
    return os.path.abspath(os.fspath(path))


@contextlib.contextmanager
def _named(verb, path):
    """Failures say what was being done to which checkpoint."""
    try:
        yield
    except (CheckpointError, jax.errors.JaxRuntimeError) as error:
        raise CheckpointError(f"cannot {verb} {path}: {error}") from error


def _index(path, device, must):
    """The index as `device`'s worker finds it; None when there is none and it need not be."""
    try:
        text = calls.read_file(device, f"{path}/{INDEX}")
    except jax.errors.JaxRuntimeError as error:
        if not must and str(error).startswith("NOT_FOUND"):
            return None
        raise
    return layout.check_index(np.asarray(text).tobytes())
