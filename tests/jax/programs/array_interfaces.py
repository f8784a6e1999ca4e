"""What an array is to Python: numbers, bytes, files, other libraries."""

import copy
import io
import pickle

import jax
import jax.numpy as jnp
import numpy as np
from meshes import integers, mesh, normal, on, put, text, why


def parts_by_device():
    m = mesh(x=4, y=2)
    x = put(normal(8, 4), m, "x", "y")
    x.copy_to_host_async()
    shards = sorted(x.addressable_shards, key=lambda s: s.device.id)
    flags = [x.is_fully_addressable, x.is_fully_replicated, x.committed, len(x.global_shards), x.nbytes, x.itemsize]
    return [x.addressable_data(i) for i in range(8)], [s.replica_id for s in shards], flags, len(x.devices())


def numbers_of_python():
    m = mesh(x=8)
    one, many = jax.jit(jnp.sum, out_shardings=on(m))(put(integers(8), m, "x")), put(normal(8), m, "x")
    shown = f"{one} {float(one):.1f} {int(one)} {bool(one)} {complex(one)} {many[0]:.3f} {one.item()} {hex(one)}"
    return (
        text(shown),
        many.tolist(),
        list(many),
        [float(v) for v in many],
        divmod(one, 3),
        many[::-1],
        round(many[3], 1),
    )


def looks():
    m = mesh(x=8)
    x = put(np.arange(16.0, dtype=np.float32), m, "x")
    return text(repr(x)), text(str(x)), text(str(x.aval)), text(repr(jax.typeof(x))), text(str(x.sharding.spec))


def as_numpy():
    x = put(normal(8, 4), mesh(x=8), "x")
    read_only = np.asarray(x)
    own = np.array(x, copy=True, dtype=np.float64)
    own += 1
    return [read_only.flags.writeable, own.flags.writeable], own, np.add(x, read_only), np.stack([x, x]), np.float16(x)


def copies():
    m = mesh(x=8)
    x = put(normal(8, 4), m, "x")
    a, b, c, d = copy.copy(x), copy.deepcopy(x), jnp.copy(x), jnp.array(x, copy=True)
    x.delete()
    return b, c, d, [a is x, b.sharding == c.sharding]


def pickled():
    x = put(normal(8, 4), mesh(x=8), "x")
    key = jax.random.key(3)
    again = pickle.loads(pickle.dumps({"x": x, "y": x.astype(jnp.bfloat16)}))
    return np.asarray(again["x"]), np.asarray(again["y"], np.float32), jax.random.key_data(key)


def files():
    x = put(normal(8, 4), mesh(x=8), "x")
    one, several = io.BytesIO(), io.BytesIO()
    jnp.save(one, x)
    jnp.savez(several, x=x, y=x.astype(jnp.int8))
    one.seek(0), several.seek(0)
    loaded = jnp.load(several)
    return jnp.load(one), loaded["x"], loaded["y"]


def refusals():
    x = put(normal(8), mesh(x=8), "x")
    return (
        why(lambda: hash(x)),
        why(lambda: bool(x)),
        why(lambda: x.__setitem__(0, 1)),
        why(lambda: x.item()),
        why(lambda: int(x)),
        why(lambda: jnp.zeros(3)[1.5]),
        why(lambda: jax.device_put(np.array(["a"]))),
        why(lambda: x.__cuda_array_interface__),
        why(lambda: jnp.zeros(3).__cuda_array_interface__),
        why(lambda: jax.device_put(np.zeros(3), on(mesh(x=8), "x"))),
    )


def deleted_arrays_say_so():
    m = mesh(x=8)
    x, y, z = (put(normal(8, seed=i), m, "x") for i in range(3))
    x.delete()
    jax.jit(lambda y: y + 1, donate_argnums=0)(y)
    jax.device_put(z, on(m), donate=True)
    return [a.is_deleted() for a in (x, y)], [why(lambda a=a: np.asarray(a)) for a in (x, y)], why(lambda: x + 1)


def exchanged_by_dlpack():
    x = jnp.arange(12.0).reshape(3, 4)
    there = np.from_dlpack(np.array(x))
    return jnp.from_dlpack(there), there


def living():
    before = {id(a) for a in jax.live_arrays()}
    x = put(normal(8, 4), mesh(x=8), "x")
    y = jax.jit(lambda x: x @ x.T)(x)
    alive = [a.shape for a in jax.live_arrays() if id(a) not in before]
    del y
    jax.clear_caches()
    return sorted(alive), jax.jit(lambda x: x + 1)(x)


def updates_in_every_form():
    x = put(normal(8, 6), mesh(x=4, y=2), "x", "y")
    at = x.at[jnp.array([1, 1, 5]), :3]
    return (
        at.set(7),
        at.add(1),
        at.multiply(2),
        at.divide(2),
        at.min(0),
        at.max(0),
        at.power(2),
        x.at[20].get(mode="fill", fill_value=3),
        x.at[-1].set(0),
        x.at[20].set(1, mode="drop"),
        at.apply(jnp.sin),
        x.at[::2, ::-1].set(1),
        x.at[..., None].get(),
        x.at[x > 0].set(0),
        x.at[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]))].add(1),
    )


def blocks_and_readiness():
    x = put(normal(256, 256), mesh(x=8), "x")
    y = jax.jit(lambda x: x @ x.T)(x)
    jax.block_until_ready([x, y, 3])
    return jax.block_until_ready(y).sum(), [y.is_ready()]


def made_in_every_way():
    m = mesh(x=4, y=2)
    s = on(m, "x", "y")
    value = normal(8, 4)
    pieces = [jax.device_put(value[i], d) for d, i in s.addressable_devices_indices_map((8, 4)).items()]
    return (
        jax.make_array_from_process_local_data(s, value),
        jax.make_array_from_single_device_arrays((8, 4), s, pieces),
        jax.make_array_from_callback((8, 4), s, lambda i: value[i]),
        jax.make_array_from_callback((8, 4), s, lambda i: jax.random.normal(jax.random.key(0), value[i].shape)),
        jnp.zeros((8, 4), device=s),
        jnp.full((8, 4), 3, device=s),
        jnp.arange(8, device=on(m, "x")),
        jnp.asarray(value, device=s),
        jnp.empty((8, 4), device=s),
        jnp.ones_like(value, device=s),
        jax.device_put({"a": value, "b": 3}, {"a": s, "b": on(m)}),
    )
