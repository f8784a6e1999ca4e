"""Arrays of strings: they are put, read, moved and taken apart, and no program takes them."""

import jax
import jax.numpy as jnp
import numpy as np
from meshes import mesh, on, text, why

WORDS = np.array(
    [["", "a"], ["ähnlich", "two words"], ["line\nbreak", "x" * 1000], ["0", "日本"]], np.dtypes.StringDType()
)


def _read(x):
    return text(repr(np.asarray(x).tolist())), text(f"{x.dtype} {x.shape}")


def in_every_split():
    m = mesh(x=4, y=2)
    arrays = [
        jax.device_put(WORDS, jax.devices()[3]),
        *(jax.device_put(WORDS, on(m, *spec)) for spec in (("x",), ("x", "y"), (None, "y"))),
        jax.device_put(np.array("alone", np.dtypes.StringDType()), jax.devices()[1]),
    ]
    return [_read(x) for x in arrays]


def taken_apart_and_joined():
    m = mesh(x=4)
    x = jax.device_put(WORDS, on(m, "x"))
    shards = [s.data for s in sorted(x.addressable_shards, key=lambda s: s.device.id)]
    upper = [
        jax.device_put(np.array([[w.upper() + "!" for w in row] for row in np.asarray(s)], WORDS.dtype), s.device)
        for s in shards
    ]
    joined = jax.make_array_from_single_device_arrays(x.shape, x.sharding, upper)
    made = jax.make_array_from_callback(WORDS.shape, on(m, "x"), lambda index: WORDS[index])
    return [_read(s) for s in shards], _read(joined), _read(made)


def moved():
    m = mesh(x=4)
    x = jax.device_put(WORDS, jax.devices()[2])
    there = jax.device_put(x, jax.devices()[5])
    everywhere = jax.device_put(x, on(m))
    split = jax.device_put(jax.device_put(WORDS, on(m, "x")), on(mesh(x=2, y=2), "x", "y"))
    there.block_until_ready()
    x.delete()
    return _read(there), _read(everywhere), _read(split), [x.is_deleted()]


def no_program_takes_them():
    x = jax.device_put(WORDS, jax.devices()[0])
    return why(lambda: jax.jit(lambda x: x)(x)), why(lambda: x + 1), why(lambda: jnp.sort(x))
