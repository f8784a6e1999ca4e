"""Which device writes what where, and which device reads what from where; pure.

A box is (start, shape) of a part of an array. The files of a save carry its generation in their names: a new save
never touches what the index of the one before names.
"""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

VERSION = 1
KEY = "gangway_checkpoint"
# Element types as safetensors names them.
DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fn": "F8_E4M3",
    "int16": "I16",
    "uint16": "U16",
    "float16": "F16",
    "bfloat16": "BF16",
    "int32": "I32",
    "uint32": "U32",
    "float32": "F32",
    "complex64": "C64",
    "float64": "F64",
    "int64": "I64",
    "uint64": "U64",
}


class CheckpointError(RuntimeError):
    """A checkpoint cannot be saved or restored; the text says which part and why."""


def flatten(tree):
    """(names, arrays or ShapeDtypeStructs whose sharding is a NamedSharding, tree definition)."""
    leaves, definition = jax.tree.flatten_with_path(tree)
    names = [jax.tree_util.keystr(path, simple=True, separator="/") or "value" for path, _ in leaves]
    if twice := {name for name in names if names.count(name) > 1}:
        raise CheckpointError(f"several arrays are called {min(twice)}")
    return names, [_on_mesh(name, leaf) for name, (_, leaf) in zip(names, leaves)], definition


def _on_mesh(name, leaf):
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        try:
            leaf = jnp.asarray(leaf)
        except TypeError as error:
            raise CheckpointError(f"{name} is no array: {error}") from error
    if jnp.issubdtype(leaf.dtype, jax.dtypes.extended) or np.dtype(leaf.dtype).name not in DTYPES:
        raise CheckpointError(f"{name} is of type {leaf.dtype}, which safetensors has not: convert it before")
    sharding = leaf.sharding or SingleDeviceSharding(jax.devices()[0])
    if isinstance(sharding, SingleDeviceSharding):
        mesh = Mesh(np.array(list(sharding.device_set)), ("one",))
        sharding = NamedSharding(mesh, PartitionSpec())
    if not isinstance(sharding, NamedSharding):
        raise CheckpointError(f"{name} has a {type(sharding).__name__}; a NamedSharding is needed")
    sharding = sharding.with_memory_kind("device")
    if not all(hasattr(device, "gangway_session") for device in sharding.device_set):
        raise CheckpointError(f"{name} is not on a Gangway server")
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)
    return jax.device_put(leaf, sharding)


def device_list(array):
    return list(array.sharding.mesh.devices.flat)


def by_mesh(arrays):
    """(mesh, numbers of the arrays on it)."""
    groups = {}
    for i, array in enumerate(arrays):
        groups.setdefault(array.sharding.mesh, []).append(i)
    return groups.items()


def boxes(array):
    """Per device of the array's mesh its box."""
    slices = array.sharding.devices_indices_map(array.shape)
    shape = array.sharding.shard_shape(array.shape)
    starts = ([s.start or 0 for s in slices[device]] for device in device_list(array))
    return [(tuple(start), tuple(shape)) for start in starts]


def partial(file):
    return f"{file}.partial"


class SavePlan:
    """Filled by plan_save."""

    def __init__(self, arrays, generation):
        self.arrays = arrays
        self.generation = generation
        self.homes = {}  # file -> the device that completes it
        self.offsets = []  # per array, per device of its mesh: [offset, size]; nothing to write: size 0
        self.headers = {}  # file -> the bytes it begins with
        self._shards = {}  # name of the array -> its shards for the index
        self._tensors = {}  # file -> safetensors' table
        self._ends = {}  # file -> bytes of shards so far

    def file_of(self, device):
        return f"{self.generation}-{device.worker}.safetensors"

    def by_mesh(self):
        return by_mesh(self.arrays)

    def partial_files(self, mesh):
        return [partial(self.file_of(device)) for device in mesh.devices.flat]

    def place(self, name, array, device, box):
        """Appends a shard to the device's file; returns where in its data, and the size."""
        file, (start, shape) = self.file_of(device), box
        self.homes.setdefault(file, device)
        size = math.prod(shape) * array.dtype.itemsize
        begin = self._ends.get(file, 0)
        self._ends[file] = begin + size
        tensor = f"{name}@{','.join(map(str, start))}"
        entry = {"dtype": DTYPES[array.dtype.name], "shape": shape, "data_offsets": [begin, begin + size]}
        self._tensors.setdefault(file, {})[tensor] = entry
        shard = {"file": file, "offset": begin, "start": start, "shape": shape}
        self._shards.setdefault(name, []).append(shard)
        return [begin, size]

    def finish(self):
        """Offsets in the data become offsets in the files, behind headers whose length is known then."""
        self.headers = {file: _header(tensors) for file, tensors in self._tensors.items()}
        for shards in self._shards.values():
            for shard in shards:
                shard["offset"] += len(self.headers[shard["file"]])
        for array, offsets in zip(self.arrays, self.offsets):
            for device, entry in zip(device_list(array), offsets):
                if entry[1]:
                    entry[0] += len(self.headers[self.file_of(device)])

    def size(self, file):
        return len(self.headers[file]) + self._ends[file]

    def index(self):
        arrays = {
            name: {"dtype": DTYPES[array.dtype.name], "shape": array.shape, "shards": shards}
            for (name, shards), array in zip(self._shards.items(), self.arrays)
        }
        files = {file: self.size(file) for file in self.homes}
        return {KEY: VERSION, "generation": self.generation, "files": files, "arrays": arrays}


def _header(tensors):
    """The length of what follows in 64 bits, then JSON, padded so that the data is aligned."""
    text = json.dumps(tensors, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    return len(text).to_bytes(8, "little") + text


def plan_save(names, arrays, generation):
    """Of the devices that hold the same box one writes it: another one for each array, so that all have work."""
    plan = SavePlan(arrays, generation)
    for number, (name, array) in enumerate(zip(names, arrays)):
        holders = {}
        for position, box in enumerate(boxes(array)):
            holders.setdefault(box, []).append(position)
        devices = device_list(array)
        offsets = [[0, 0] for _ in devices]
        for box, positions in holders.items():
            writer = positions[number % len(positions)]
            offsets[writer] = plan.place(name, array, devices[writer], box)
        plan.offsets.append(offsets)
    plan.finish()
    return plan


def check_index(text):
    try:
        index = json.loads(text)
        version = index[KEY]
    except (ValueError, KeyError, TypeError):
        raise CheckpointError("its index is no index of a checkpoint") from None
    if version != VERSION:
        raise CheckpointError(f"its index is of version {version}; this Gangway reads version {VERSION}")
    return index


def plan_restore(name, target, index, files):
    """Per device of the target's mesh: the number of pieces, then each as file_calls.h has it."""
    saved = index["arrays"].get(name)
    if saved is None:
        raise CheckpointError(f"it holds no array {name}")
    if tuple(saved["shape"]) != tuple(target.shape):
        raise CheckpointError(f"{name} is of shape {tuple(saved['shape'])} there, {tuple(target.shape)} is wanted")
    if saved["dtype"] != DTYPES[np.dtype(target.dtype).name]:
        raise CheckpointError(f"{name} is {saved['dtype']} there, {target.dtype} is wanted")
    plans = {box: _pieces(name, box, saved["shards"], files) for box in set(boxes(target))}
    return [plans[box] for box in boxes(target)]


def _pieces(name, box, shards, files):
    pieces, found = [], 0
    for shard in shards:
        start, shape = _intersection(box, (shard["start"], shard["shape"]))
        if min(shape, default=1) <= 0:
            continue
        found += math.prod(shape)
        pieces += [files.index(shard["file"]), shard["offset"], *shard["shape"]]
        pieces += [a - b for a, b in zip(start, shard["start"])]
        pieces += [a - b for a, b in zip(start, box[0])]
        pieces += shape
    if found != math.prod(box[1]):
        raise CheckpointError(f"parts of {name} are missing in its index")
    return [len(pieces) // (2 + 4 * len(box[0])), *pieces]


def _intersection(a, b):
    start = [max(x, y) for x, y in zip(a[0], b[0])]
    ends = (min(x + n, y + m) for x, n, y, m in zip(*a, *b))
    return start, [end - first for end, first in zip(ends, start)]
