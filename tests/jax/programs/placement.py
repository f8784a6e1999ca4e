import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, SingleDeviceSharding
from meshes import mesh, normal, on, put

from programs import compiler_chooses


def put_everywhere():
    m = mesh(x=4, y=2)
    x = normal(8, 8)
    specs = (), ("x",), ("y",), (None, "x"), ("x", "y"), ("y", "x"), (("x", "y"),), (None, ("y", "x"))
    return [put(x, m, *spec) for spec in specs]


def reshard_between_all():
    m = mesh(x=4, y=2)
    specs = (), ("x",), (None, "x"), ("x", "y"), (("y", "x"),)
    x = normal(8, 8)
    return [jax.device_put(put(x, m, *a), on(m, *b)) for a in specs for b in specs]


def reshard_inside_jit():
    m = mesh(x=4, y=2)
    specs = (), ("x",), (None, "x"), ("x", "y"), ("y", "x")
    x = put(normal(8, 8), m, "x", "y")
    f = jax.jit(lambda x: [x + i for i in range(len(specs))], out_shardings=[on(m, *s) for s in specs])
    return f(x)


def single_devices():
    x = jax.device_put(normal(4, 4), jax.devices()[3])
    y = jax.jit(lambda x: x @ x)(x)
    return y, jax.device_put(y, jax.devices()[5]), jax.device_put(y, SingleDeviceSharding(jax.devices()[0]))


def sub_meshes():
    devices = np.array(jax.devices())
    a, b = Mesh(devices[:4], ("x",)), Mesh(devices[4:].reshape(2, 2), ("x", "y"))
    x = put(normal(8, 8), a, "x")
    y = jax.jit(lambda x: jnp.cumsum(x, 1), out_shardings=on(a, "x"))(x)
    z = jax.device_put(y, on(b, "x", "y"))
    return y, jax.jit(lambda z: z @ z, out_shardings=on(b, "y", "x"))(z)


def split_and_concatenated_by_mesh_axis():
    # What pathwaysutils calls; JAX has no public name for it.
    from jaxlib import _pathways

    devices = np.array(jax.devices()).reshape(4, 2)
    x = put(normal(8, 8), Mesh(devices, ("x", "y")), "x", "y")
    halves = [Mesh(half, ("x", "y")) for half in (devices[:2], devices[2:])]
    parts = _pathways._split_by_mesh_axis(
        arrays=[x],
        sharded_dim_idxs=[0],
        mesh_axis_sizes=(4, 2),
        mesh_axis_idx=0,
        mesh_axis_sections=[2, 4],
        submesh_shardings=[[on(half, "x", "y") for half in halves]],
        donate=False,
    )[0]
    doubled = [jax.jit(lambda x: 2 * x)(part) for part in parts]
    joined = _pathways._concatenate_by_mesh_axis(
        arrays=[doubled],
        sharded_dim_idxs=[0],
        mesh_axis_sizes=(4, 2),
        mesh_axis_idx=0,
        mesh_axis_sections=[2, 4],
        out_shardings=[x.sharding],
        donate=True,
    )
    return parts, joined


def permuted_devices():
    m = Mesh(np.array(jax.devices())[[3, 1, 0, 2, 7, 6, 4, 5]].reshape(4, 2), ("x", "y"))
    x = put(normal(8, 8), m, "x", "y")
    return x, jax.jit(lambda x: x @ x.T, out_shardings=on(m, "y", "x"))(x), jax.jit(jnp.sum, out_shardings=on(m))(x)


def partly_replicated():
    m = mesh(x=2, y=2, z=2)
    x = put(normal(8, 8), m, "y")
    return jax.jit(lambda x: (x * 2, x.sum(0)), out_shardings=(on(m, None, "z"), on(m, ("z", "x"))))(x)


def from_callback_and_shards():
    m = mesh(x=8)
    x = normal(16, 4)
    made = jax.make_array_from_callback(x.shape, on(m, "x"), lambda i: x[i])
    pieces = [jax.device_put(x[2 * i : 2 * i + 2] + 1, d) for i, d in enumerate(jax.devices()[:8])]
    return made, jax.make_array_from_single_device_arrays(x.shape, on(m, "x"), pieces)


def shards_one_by_one():
    m = mesh(x=4, y=2)
    x = put(normal(8, 8), m, "x", "y")
    return [np.asarray(s.data) for s in x.addressable_shards] + [np.asarray(x.addressable_data(3))]


def indexing_an_array_outside_jit():
    m = mesh(x=8)
    x = put(normal(16, 4), m, "x")
    return np.asarray(x[3]), np.asarray(x[2:9, 1]), [np.asarray(row) for row in x[:3]], float(x[4, 2])


def donation():
    m = mesh(x=8)
    f = jax.jit(lambda x, y: (x + y, x * y), donate_argnums=0, out_shardings=on(m, "x"))
    x, y = put(normal(16, 4), m, "x"), put(normal(16, 4, seed=1), m, "x")
    a, b = f(x, y)
    gone = x.is_deleted()
    a2, _ = f(a, b)
    return a2, b, y, np.array([gone, a.is_deleted(), y.is_deleted()])


def deletion():
    x = put(normal(8), mesh(x=8), "x")
    y = x + 1
    x.delete()
    try:
        np.asarray(x)
        message = "no error"
    except RuntimeError as error:
        message = "deleted" if "deleted" in str(error) else str(error)
    return y, message


def large_array():
    m = mesh(x=8)
    x = put(np.arange(6 << 20, dtype=np.float32).reshape(6, 1 << 20), m, None, "x")
    return jax.jit(lambda x: (x[:, ::4099], x.sum(1)), out_shardings=on(m))(x), np.asarray(x)[:, 1 << 19 :: 77777]


def inputs_committed_by_in_shardings():
    m = mesh(x=4, y=2)
    f = jax.jit(lambda a, b: a @ b, in_shardings=(on(m, "x"), on(m, None, "y")), out_shardings=on(m, "x", "y"))
    return f(normal(8, 16), normal(16, 4, seed=1))


@compiler_chooses
def results_feed_the_next_program():
    m = mesh(x=8)
    f = jax.jit(lambda x: jnp.tanh(x) + x.mean())
    x = put(normal(16, 4), m, "x")
    for _ in range(20):
        x = f(x)
    return x


def arrays_with_strides():
    x = normal(6, 8, 4).transpose(2, 0, 1)[:, ::2]
    return put(x, mesh(x=2), "x"), jnp.asarray(x) + 1


def layouts():
    """A layout is how an array is seen to lie; one that is left open follows the transposes."""

    def order(x):
        return x.format.layout.major_to_minor

    m = mesh(x=2, y=2)
    x = normal(8, 16)
    column_major = Format(Layout(major_to_minor=(1, 0)), on(m, "x", "y"))
    seen = jax.device_put(x, column_major)
    open_result = jax.jit(lambda x: (x.T, x + x, x @ x.T), out_shardings=Format(Layout.AUTO))
    results = open_result(put(x, m, "x", "y"))
    return seen, jax.jit(lambda x: x.T * 2)(seen), results, order(seen), jax.tree.map(order, results)


def dlpack():
    """To NumPy and back, by a copy where the array is elsewhere."""
    x = jax.device_put(normal(4, 3), jax.devices()[1])
    out = np.from_dlpack(x * 2)
    back = jnp.from_dlpack(np.arange(6, dtype=np.int32).reshape(2, 3)) + 1
    placed = jnp.from_dlpack(normal(5), device=jax.devices()[2])
    return out, back, placed, placed.devices() == {jax.devices()[2]}, hasattr(x, "__cuda_array_interface__")


def looks_of_devices():
    device = jax.devices()[3]
    numbers = [d.local_hardware_id for d in jax.devices()]
    return [repr(device) == "CpuDevice(id=3)", str(device) == "cpu:3", device.platform == "cpu", device.id, *numbers]


def arrays_sharded_alike():
    from jax.experimental.shard_alike import shard_alike

    m = mesh(x=4, y=2)

    def f(x):
        y = jnp.arange(8 * 16.0).reshape(8, 16)
        x, y = shard_alike(x, y)
        return x + 1, y * 2

    return jax.jit(f, out_shardings=(on(m, "x", "y"), None))(put(normal(8, 16), m, "x", "y"))


def arrays_that_run_backward_or_repeat():
    x = normal(4, 3)
    views = [x[::-1], x.T[:, ::-1], np.broadcast_to(x[0], (5, 3)), np.broadcast_to(np.float32(2), (2, 2)), x[:0:-1]]
    m = mesh(x=2)
    split = [jax.device_put(x[::-1], on(m, "x")), jax.device_put(np.broadcast_to(x[0], (4, 3)), on(m, None, None))]
    return [jax.device_put(v) for v in views], [jax.jit(lambda v: v + 1)(v) for v in views * 2], split
