"""What test_checkpoint.py has a client do: `checkpoint_steps.py STEP PATH`; prints a line of JSON, or the error."""

import json
import pathlib
import sys

import gangway.checkpoint
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

MESH = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
OTHER = Mesh(np.array(jax.devices()[::-1]).reshape(2, 4), ("a", "b"))


def on(mesh, *spec):
    return NamedSharding(mesh, PartitionSpec(*spec))


def state(scale=1):
    """Arrays of many element types, ranks and shardings, on two meshes and on one device."""
    big = np.arange(1000 * 64, dtype=np.float32).reshape(1000, 64) * scale
    cube = np.arange(8 * 6 * 4).reshape(8, 6, 4)
    return {
        "params": {
            "split": jax.device_put(big, on(MESH, "data", "model")),
            "columns": jax.device_put(big, on(MESH, None, ("model", "data"))),
            "whole": jax.device_put(big[:3], on(MESH)),
            "backwards": jax.device_put(big, on(OTHER, "b", "a")),
        },
        "types": [
            jax.device_put((cube % 7).astype(dtype), on(MESH, "data", None, "model"))
            for dtype in (np.int8, np.uint16, jnp.bfloat16, np.complex64, np.bool_, jnp.float8_e5m2)
        ],
        "one": jax.device_put(cube.astype(np.int32), jax.devices()[5]),
        "scalar": jnp.float32(3.5 * scale),
        "empty": jax.device_put(np.zeros((8, 0), np.float16), on(MESH, "data")),
        "count": 7,
        "keys": jax.device_put(jax.random.split(jax.random.key(3, impl="rbg"), 8), on(MESH, "data")),
    }


def differences(restored, expected):
    def equal(a, b):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        return a.dtype == b.dtype and np.array_equal(a, b)

    same = jax.tree.map(equal, restored, expected)
    return [jax.tree_util.keystr(path) for path, ok in jax.tree.leaves_with_path(same) if not ok]


def save(path):
    gangway.checkpoint.save(path, state())
    return sorted(file.name for file in pathlib.Path(path).iterdir())


def restore(path):
    """As it was, and laid out in other ways."""
    expected = jax.tree.map(jnp.asarray, state())
    restored = gangway.checkpoint.restore(path, expected)
    found = differences(restored, expected)
    found += [str(a.sharding) for a, b in zip(*map(jax.tree.leaves, (restored, expected))) if a.sharding != b.sharding]
    specs = {"split": on(OTHER, None, ("a", "b")), "columns": on(OTHER, "b"), "whole": on(OTHER, None, "b")}
    names = [*specs, "backwards"]
    for name in names:
        value = expected["params"][name]
        wanted = jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=specs.get(name))
        again = gangway.checkpoint.restore(path, {"params": {name: wanted}})
        found += differences(again, {"params": {name: value}})
        if name in specs and again["params"][name].sharding != specs[name]:
            found.append(f"{name}: {again['params'][name].sharding}")
    return found


def save_twice(path):
    """A save over another replaces it and leaves nothing of it."""
    save(path)
    gangway.checkpoint.save(path, state(scale=2))
    value = state(scale=2)["params"]["split"]
    again = gangway.checkpoint.restore(path, {"params": {"split": value}})
    return [
        differences(again, {"params": {"split": value}}),
        sorted(file.name for file in pathlib.Path(path).iterdir()),
    ]


def save_explicit(path):
    """Arrays of a mesh with explicit axes."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    value = {"w": jax.device_put(np.arange(64.0, dtype=np.float32), on(mesh, "x"))}
    gangway.checkpoint.save(path, value)
    return differences(gangway.checkpoint.restore(path, value), value)


def train(path):
    """Restored parameters are ordinary arrays: used, donated, saved again."""
    value = {"w": jax.device_put(np.arange(64.0, dtype=np.float32), on(MESH, "data"))}
    gangway.checkpoint.save(path, value)
    step = jax.jit(lambda x: jax.tree.map(lambda y: 2 * y, x), donate_argnums=0)
    gangway.checkpoint.save(path, step(step(gangway.checkpoint.restore(path, value))))
    return np.asarray(gangway.checkpoint.restore(path, value)["w"])[:3].tolist()


def refuse(path):
    """One line for each thing that cannot be."""
    value = jax.device_put(np.arange(8, dtype=np.int32), on(MESH, "data"))
    gangway.checkpoint.save(path, {"w": value})

    def text(function, *arguments):
        try:
            function(*arguments)
        except gangway.checkpoint.CheckpointError as error:
            return str(error)
        return "no error"

    shape = jax.ShapeDtypeStruct
    restore, save = gangway.checkpoint.restore, gangway.checkpoint.save
    return {
        "missing": text(restore, path + "/none", {"w": value}),
        "outside": text(save, "/gangway_outside", {"w": value}),
        "name": text(restore, path, {"v": value}),
        "shape": text(restore, path, {"w": shape((9,), np.int32)}),
        "type": text(restore, path, {"w": shape((8,), np.float32)}),
        "int4": text(save, path, {"w": value.astype(jnp.int4)}),
        "key": text(restore, path, {"w": jax.random.key(0)}),
        "text": text(save, path, {"v": value, "w": "a word"}),
        "local": text(save, path, {"w": jax.device_put(np.ones(4), jax.local_devices(backend="cpu")[0])}),
        "none": text(save, path, {}),
    }


if __name__ == "__main__":
    try:
        print(json.dumps(globals()[sys.argv[1]](sys.argv[2])))
    except gangway.checkpoint.CheckpointError as error:
        print(json.dumps(str(error)))
