"""Meshes of every kind: explicit axes, sharding in types, meshes made by helpers, helpers for several hosts."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils, multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P
from meshes import mesh, normal, on, put, text, why


def _explicit(**axes):
    shape, names = tuple(axes.values()), tuple(axes)
    count = int(np.prod(shape))
    return jax.make_mesh(shape, names, axis_types=(AxisType.Explicit,) * len(shape), devices=jax.devices()[:count])


def sharding_in_types():
    m = _explicit(x=4, y=2)
    with jax.set_mesh(m):
        x = jax.device_put(normal(8, 16), P("x", "y"))
        w = jax.device_put(normal(16, 8, seed=1), P("y"))
        f = jax.jit(lambda x, w: jnp.einsum("bi,io->bo", x, w, out_sharding=P("x")))
        y = f(x, w)
        types = [jax.typeof(v) for v in (x, w, y, x.T, x.sum(0), x.reshape(8, 2, 8), x * 2, jnp.sin(x))]
        g = jax.jit(jax.grad(lambda w: (f(x, w) ** 2).sum()))(w)
        r = jax.reshard(y, P(None, "y"))
        return y, g, r, text(types), jax.jit(lambda x: jax.reshard(x, P("y", "x")) * 2)(x)


def explicit_mistakes():
    m = _explicit(x=4, y=2)

    with jax.set_mesh(m):
        x, w = jax.device_put(normal(8, 16), P("x", "y")), jax.device_put(normal(16, 8), P("y"))
        return (
            why(lambda: jax.jit(jnp.dot)(x, w)),
            why(lambda: x + jax.reshard(x, P("y", "x"))),
            why(lambda: x.reshape(128)),
            why(lambda: jax.lax.with_sharding_constraint(x, P("z"))),
            why(lambda: jax.reshard(x, P("x", "x"))),
        )


def automatic_inside_explicit():
    m = _explicit(x=4, y=2)
    with jax.set_mesh(m):
        x = jax.device_put(normal(8, 16), P("x", "y"))
        inner = jax.sharding.auto_axes(lambda x: (x @ x.T).reshape(-1), out_sharding=P("x"))
        both = jax.jit(lambda x: inner(x) * 2)(x)
        some = jax.sharding.auto_axes(lambda x: x.reshape(8, 4, 4) + 1, axes="y", out_sharding=P("x", None, "y"))
        return both, jax.jit(some)(x)


def explicit_inside_automatic():
    m = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    with jax.set_mesh(m):
        x = jax.device_put(normal(8, 16), NamedSharding(m, P("x", "y")))
        inner = jax.sharding.explicit_axes(jnp.sin, in_sharding=P("x", "y"))
        return jax.jit(lambda x: inner(x) + 1)(x)


def explicit_layers():
    m = _explicit(x=2, y=4)
    with jax.set_mesh(m):
        x = jax.device_put(normal(8, 32), P("x"))
        w1 = jax.device_put(normal(3, 32, 64, seed=1) / 6, P(None, None, "y"))
        w2 = jax.device_put(normal(3, 64, 32, seed=2) / 8, P(None, "y", None))

        def layer(h, ws):
            up = jax.nn.gelu(jnp.dot(h, ws[0], out_sharding=P("x", "y")))
            return h + jnp.dot(up, ws[1], out_sharding=P("x")), None

        loss = lambda ws: (jax.lax.scan(layer, x, ws)[0] ** 2).mean()  # noqa: E731
        return jax.jit(jax.value_and_grad(loss))((w1, w2))


def meshes_by_helpers():
    devices = mesh_utils.create_device_mesh((4, 2))
    m = Mesh(devices, ("a", "b"))
    made = jax.make_mesh((2, 2, 2), ("x", "y", "z"))
    x = jax.device_put(normal(8, 8), NamedSharding(m, P("a", "b")))
    return (
        [d.id for d in devices.flat],
        x,
        jnp.sin(jax.device_put(x, NamedSharding(made, P(("x", "z"), "y")))),
        text(made),
        text(m),
    )


def helpers_for_several_hosts():
    m = mesh(x=8)
    x = put(normal(8, 4), m, "x")
    multihost_utils.sync_global_devices("here")
    everywhere = multihost_utils.process_allgather(x, tiled=True)
    one = multihost_utils.broadcast_one_to_all(np.arange(4.0))
    made = multihost_utils.host_local_array_to_global_array(np.arange(8.0), m, P("x"))
    local = multihost_utils.global_array_to_host_local_array(made, m, P("x"))
    multihost_utils.assert_equal({"a": np.arange(3)}, "equal")
    return (
        everywhere,
        one,
        made,
        local,
        [jax.process_index(), jax.process_count(), jax.device_count(), jax.local_device_count()],
    )


def several_meshes_in_one_program():
    devices = np.array(jax.devices())
    a, b = Mesh(devices.reshape(4, 2), ("x", "y")), Mesh(devices.reshape(2, 4), ("p", "q"))
    c = Mesh(devices.reshape(2, 2, 2), ("x", "y", "z"))
    x = jax.device_put(normal(8, 8), NamedSharding(a, P("x", "y")))

    def f(x):
        y = jax.lax.with_sharding_constraint(x @ x.T, NamedSharding(b, P("q", "p")))
        return jax.lax.with_sharding_constraint(jnp.sin(y), NamedSharding(c, P(("x", "z"), "y")))

    return jax.jit(f, out_shardings=NamedSharding(b, P("p")))(x)


def across_meshes():
    devices = np.array(jax.devices())
    whole, half = Mesh(devices.reshape(4, 2), ("x", "y")), Mesh(devices[2:6].reshape(2, 2), ("x", "y"))
    back = Mesh(devices[::-1].reshape(2, 4), ("a", "b"))
    value = normal(8, 8)
    x = jax.device_put(value, NamedSharding(whole, P("x", "y")))
    y = jax.device_put(x, NamedSharding(half, P("y", "x")))
    z = jax.device_put(y, NamedSharding(back, P("b", "a")))
    return (
        x,
        y,
        z,
        jax.device_put(z, SingleDeviceSharding(jax.devices()[7])),
        jax.device_put(jax.device_put(value, jax.devices()[1]), x.sharding),
        jax.device_put([x, y], [y.sharding, x.sharding]),
    )


def abstract_meshes():
    m = mesh(x=4, y=2)
    abstract = m.abstract_mesh
    spec = jax.ShapeDtypeStruct((8, 8), np.float32, sharding=NamedSharding(abstract, P("x", "y")))
    out = jax.eval_shape(lambda x: x @ x.T, spec)
    lowered = jax.jit(lambda x: x + 1).trace(jax.ShapeDtypeStruct((8, 8), np.float32, sharding=on(m, "x"))).lower()
    with jax.set_mesh(m):
        y = jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, P("x")))(normal(8, 8))
    return text(out), lowered.compile()(put(normal(8, 8), m, "x")), y


def default_devices():
    with jax.default_device(jax.devices()[3]):
        x = jnp.arange(4.0)
        y = jax.jit(lambda x: x * 2)(x)
    return x, y, [d.id for d in x.devices()], [d.id for d in (x + 1).devices()]


def shardings_tell():
    m = mesh(x=4, y=2)
    s = on(m, ("x", "y"), None)
    return (
        text(s),
        text(s.shard_shape((16, 4))),
        text(s.is_fully_replicated),
        text(s.num_devices),
        text(s.is_equivalent_to(on(m, ("x", "y")), 2)),
        text(sorted(d.id for d in s.device_set)),
        text({d.id: i for d, i in s.devices_indices_map((16, 4)).items()}),
        text(SingleDeviceSharding(jax.devices()[0]).is_fully_replicated),
    )
