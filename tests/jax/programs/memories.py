"""Memory kinds: arrays on the host, programs that put there what they need later."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.compute_on import compute_on
from meshes import mesh, normal, on, put, text, why

from programs import compiler_chooses


def _host(m, *spec):
    return on(m, *spec).with_memory_kind("pinned_host")


def there_and_back():
    m = mesh(x=4, y=2)
    x = put(normal(8, 4), m, "x", "y")
    there = jax.device_put(x, _host(m, "x", "y"))
    back = jax.device_put(there, on(m, "y", "x"))
    return (
        x,
        there,
        back,
        text(there.sharding.memory_kind),
        text(x.sharding.memory_kind),
        jax.device_put(there, _host(m, "y")),
    )


def inside_a_program():
    m = mesh(x=8)
    x = put(normal(16, 8), m, "x")

    def f(x):
        kept = jax.device_put(jnp.sin(x), jax.memory.Space.Host)
        y = x @ x.T
        return jax.device_put(kept, jax.memory.Space.Device) + y[:, :8], jnp.cos(x)

    a, b = jax.jit(f, out_shardings=(on(m, "x"), _host(m, "x")))(x)
    return a, b, text(b.sharding.memory_kind)


def arguments_on_the_host():
    m = mesh(x=8)
    w, x = jax.device_put(normal(8, 8), _host(m, None, "x")), put(normal(16, 8, seed=1), m, "x")

    def f(w, x):
        return x @ jax.device_put(w, jax.memory.Space.Device)

    def step(w, x):
        g = jax.grad(lambda w: (f(w, x) ** 2).sum())(w)
        w = jax.device_put(w, jax.memory.Space.Device) - 0.1 * jax.device_put(g, jax.memory.Space.Device)
        return jax.device_put(w, jax.memory.Space.Host)

    new = jax.jit(step, donate_argnums=0, out_shardings=_host(m, None, "x"))(w, x)
    return new, text(new.sharding.memory_kind)


@compiler_chooses
def work_on_the_host():
    m = mesh(x=8)
    x = put(normal(16, 8), m, "x")

    @compute_on("device_host")
    @jax.jit
    def on_host(x):
        return jnp.cumsum(x * 2, 1)

    return jax.jit(lambda x: on_host(x) + 1)(x)


@compiler_chooses
def kept_by_policies():
    m = mesh(x=8)
    w, x = put(normal(4, 16, 16) / 4, m), put(normal(16, 16, seed=1), m, "x")
    from jax.ad_checkpoint import checkpoint_name

    def layer(h, w):
        return checkpoint_name(jnp.tanh(h @ w), "kept"), None

    policies = jax.checkpoint_policies
    chosen = {
        "offload": policies.save_and_offload_only_these_names(
            names_which_can_be_saved=[],
            names_which_can_be_offloaded=["kept"],
            offload_src="device",
            offload_dst="pinned_host",
        ),
        "names": policies.save_only_these_names("kept"),
        "dots": policies.dots_with_no_batch_dims_saveable,
        "nothing": policies.nothing_saveable,
        "everything": policies.everything_saveable,
        "dots on the host": policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
    }

    def loss(w, x, policy):
        return (jax.lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0] ** 2).sum()

    return {name: jax.jit(jax.grad(functools.partial(loss, policy=p)))(w, x) for name, p in chosen.items()}


def kinds_of_devices():
    d = jax.devices()[0]
    kinds = sorted(m.kind for m in d.addressable_memories())
    return (
        text(kinds),
        text(d.default_memory().kind),
        text(d.memory("pinned_host").kind),
        _why(lambda: d.memory("none")),
    )


def _why(f):
    return why(f, lambda error: type(error).__name__)


def streams_of_layers():
    """Weights stay on the host and come to the devices one layer at a time."""
    m = mesh(x=8)
    w = jax.device_put(normal(4, 16, 16) / 4, _host(m, None, None, "x"))
    x = put(normal(8, 16, seed=1), m, "x")

    def f(w, x):
        def layer(h, w):
            return jnp.tanh(h @ jax.device_put(w, jax.memory.Space.Device)), None

        return jax.lax.scan(layer, x, w)[0]

    return jax.jit(f, out_shardings=on(m, "x"))(w, x)


def kinds_given_to_jit():
    m = mesh(x=8)
    x = jax.device_put(normal(16, 8), _host(m, "x"))
    f = jax.jit(
        lambda x: jax.device_put(x, jax.memory.Space.Device) * 2, in_shardings=_host(m, "x"), out_shardings=on(m, "x")
    )
    g = jax.jit(lambda x: x, out_shardings=_host(m))
    return f(x), g(put(np.arange(8.0), m, "x")), text(g(np.arange(8.0)).sharding.memory_kind)
