"""Files of the workers' hosts, written and read by programs on their devices (gangway/device/pjrt/file_calls.h).

Texts and numbers are operands, so that a program serves every path; they are padded, so that it serves similar ones.
Each device has rows of its own in them.
"""

import functools

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

ANSWER = jax.ShapeDtypeStruct((1,), np.int32)


def write_arrays(mesh, files, parts):
    """Device i of the mesh writes its shards to files[i]. Parts: (per device [offset, size], array)."""
    numbers = np.stack([_numbers(offsets) for offsets, _ in parts], axis=1)
    arrays = [array for _, array in parts]
    run = _writer(mesh, tuple(array.sharding.spec for array in arrays))
    jax.block_until_ready(run(_texts([[file] for file in files]), numbers, arrays))


def write_bytes(devices, files, contents):
    """Device i writes contents[i] to the start of files[i]."""
    numbers = _numbers([[0, len(content)] for content in contents])[:, None]
    run = _writer(_row(devices), (PartitionSpec("row"),))
    jax.block_until_ready(run(_texts([[file] for file in files]), numbers, [_rows(contents)]))


def commit(devices, files, sizes):
    """Device i makes files[i] = [partial, final, *obsolete] the final file, of sizes[i] bytes."""
    numbers = _numbers([[size, 1] for size in sizes])
    jax.block_until_ready(_committer(_row(devices))(_texts(files), numbers))


def read_file(device, file):
    """The bytes of a file, as uint8."""
    mesh, text = _row([device]), _texts([[file]])
    size = int(np.asarray(_sizer(mesh)(text)).view(np.int64)[0, 0])
    content = _starter(mesh, _padded(size))(text, _numbers([[size]]))
    return np.asarray(content)[0, :size]


def read_arrays(mesh, files, parts):
    """Arrays put together of pieces. Parts: (per device its plan, ShapeDtypeStruct with a sharding on the mesh)."""
    plans = [_rows([np.asarray(plan, np.int64).tobytes() for plan in device_plans]) for device_plans, _ in parts]
    types = tuple((t.sharding.shard_shape(t.shape), np.dtype(t.dtype), t.sharding.spec) for _, t in parts)
    return _reader(mesh, types)(_rows(["\n".join(files).encode()])[0], plans)


def _row(devices):
    return Mesh(np.array(devices), ("row",))


def _own(mesh):
    """The first dimension has a row for each device of the mesh, in its order."""
    return PartitionSpec(mesh.axis_names)


def _program(mesh, function, in_specs, out_specs):
    program = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False))
    shardings = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec), in_specs, is_leaf=lambda x: isinstance(x, PartitionSpec)
    )
    return lambda *operands: program(*jax.device_put(operands, shardings))


def _call(name, result):
    """Its answer is always asked for, so it needs no side effect to be called."""
    return jax.ffi.ffi_call(f"gangway.file_{name}", result)


@functools.lru_cache(maxsize=64)
def _writer(mesh, specs):
    def write(text, numbers, arrays):
        return [_call("write", ANSWER)(text, numbers[:, i], array) for i, array in enumerate(arrays)]

    own = _own(mesh)
    return _program(mesh, write, (own, own, list(specs)), [own] * len(specs))


@functools.lru_cache(maxsize=64)
def _committer(mesh):
    return _program(mesh, _call("commit", ANSWER), (_own(mesh), _own(mesh)), _own(mesh))


@functools.lru_cache(maxsize=64)
def _sizer(mesh):
    def size(text):
        return _call("size", jax.ShapeDtypeStruct((8,), np.uint8))(text)[None]

    return _program(mesh, size, (_own(mesh),), _own(mesh))


@functools.lru_cache(maxsize=64)
def _starter(mesh, size):
    def start(text, numbers):
        return _call("start", jax.ShapeDtypeStruct((size,), np.uint8))(text, numbers)[None]

    return _program(mesh, start, (_own(mesh), _own(mesh)), _own(mesh))


@functools.lru_cache(maxsize=64)
def _reader(mesh, types):
    def read(text, plans):
        return [
            _call("read", jax.ShapeDtypeStruct(shape, dtype))(text, plan)
            for plan, (shape, dtype, _) in zip(plans, types)
        ]

    return _program(mesh, read, (PartitionSpec(), [_own(mesh)] * len(types)), [spec for *_, spec in types])


def _texts(lines):
    return _rows(["\n".join(row).encode() for row in lines])


def _numbers(rows):
    """Each row as the bytes of 64-bit integers: JAX without x64 has none."""
    return np.asarray(rows, np.int64).view(np.uint8)


def _rows(contents):
    """Rows of equal length, padded with zeros."""
    rows = np.zeros((len(contents), _padded(max(map(len, contents)))), np.uint8)
    for row, content in zip(rows, contents):
        row[: len(content)] = np.frombuffer(content, np.uint8)
    return rows


def _padded(size):
    return max(256, 1 << (size - 1).bit_length()) if size else 256
