"""Functions of the client in every form JAX has them: batched, differentiated, typed, sharded, failing, printing."""

import contextlib
import functools
import io

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import PartitionSpec as P
from meshes import mesh, normal, on, put, text, why


def _why(f):
    return why(f, lambda error: f"{type(error).__name__}: {str(error).splitlines()[0][:60]}")


def batched_in_every_way():
    x = put(normal(6, 4), mesh(x=2), "x")
    found = {}
    for method in ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"):

        def f(v, w, method=method):
            return jax.pure_callback(
                lambda a, b: np.asarray(a) + np.asarray(b),
                jax.ShapeDtypeStruct((4,), np.float32),
                v,
                w,
                vmap_method=method,
            )

        wide = jnp.ones(4) if method != "legacy_vectorized" else jnp.ones((6, 4))
        found[method] = jax.jit(jax.vmap(f, (0, None if method != "legacy_vectorized" else 0)))(x, wide)
    return found


def differentiated_by_own_rules():
    @jax.custom_jvp
    def f(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims")

    @f.defjvp
    def _(primals, tangents):
        return f(*primals), jax.pure_callback(
            np.cos, jax.ShapeDtypeStruct(primals[0].shape, np.float32), primals[0], vmap_method="expand_dims"
        ) * tangents[0]

    x = put(normal(8, 4), mesh(x=8), "x")
    return jax.jit(jax.grad(lambda x: f(x).sum()))(x), jax.jit(jax.vmap(jax.grad(f)))(x[:, 0])


def of_every_type():
    types = [
        np.bool_,
        np.int8,
        np.uint16,
        np.int32,
        np.float16,
        jnp.bfloat16,
        np.float32,
        np.complex64,
        jnp.int4,
        jnp.float8_e4m3fn,
    ]
    found = {}
    for t in types:
        x = jnp.arange(6).reshape(2, 3).astype(t)
        same = jax.jit(
            lambda x: jax.pure_callback(lambda a: np.asarray(a)[::-1], jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        )
        got = same(x)
        found[str(np.dtype(t))] = got.astype(np.complex64), [got.dtype == t]
    return found


def of_trees_and_nothing():
    seen = []

    def visit(tree, *, how):
        seen.append((how, jax.tree.map(lambda a: np.asarray(a).sum().item(), tree)))
        return {"double": np.asarray(tree["a"]) * 2, "none": None}

    def f(x):
        shape = {"double": jax.ShapeDtypeStruct(x.shape, x.dtype), "none": None}
        out = jax.pure_callback(functools.partial(visit, how="pure"), shape, {"a": x, "b": (x[0], 3)})
        io_callback(lambda: seen.append("nothing"), None, ordered=True)
        return out["double"]

    y = jax.jit(f)(jnp.asarray(normal(4)))
    jax.effects_barrier()
    return y, text([s if isinstance(s, str) else s[0] for s in seen])


def in_order_through_loops():
    seen = []

    def f(x):
        def step(i, x):
            io_callback(lambda i, s: seen.append((int(i), round(float(s), 3))), None, i, x.sum(), ordered=True)
            return jax.lax.cond(
                i % 2 == 0,
                lambda x: x * 2,
                lambda x: (
                    x + io_callback(lambda: np.float32(len(seen)), jax.ShapeDtypeStruct((), np.float32), ordered=True)
                ),
                x,
            )

        return jax.lax.fori_loop(0, 5, step, x)

    y = jax.jit(f)(jnp.ones(4))
    jax.effects_barrier()
    return y, np.array(seen)


def with_a_device_of_their_own():
    m = mesh(x=4)
    x = put(normal(8, 4), m, "x")
    seen = []

    def f(x):
        token = io_callback(
            lambda a: seen.append(np.asarray(a).shape) or np.float32(1),
            jax.ShapeDtypeStruct((), np.float32),
            x,
            sharding=jax.sharding.SingleDeviceSharding(jax.devices()[0]),
        )
        return x + token

    y = jax.jit(f)(x)
    jax.effects_barrier()
    return y, text(seen)


def prints():
    x = jnp.arange(8.0)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):

        @jax.jit
        def f(x):
            jax.debug.print("sum {s} of {n:>4} {x}", s=x.sum(), n=8, x=x, ordered=True)
            jax.debug.print("{} {:.2f}", x[0], x[1], ordered=True)
            jax.lax.fori_loop(0, 2, lambda i, c: jax.debug.print("in a loop {i}", i=i, ordered=True) or c, 0)
            jax.debug.print("%d {{braces}}", ordered=True)
            return x

        f(x)
        jax.effects_barrier()
        jax.vmap(lambda v: jax.debug.print("each {v}", v=v))(jnp.arange(3))
        jax.effects_barrier()
        jax.grad(lambda v: jax.debug.print("forward {v}", v=v) or jnp.sin(v))(1.0)
        jax.effects_barrier()
    return text(out.getvalue())


def errors_of_every_form():
    def broken(*_):
        raise KeyError("broken on purpose")

    shape = jax.ShapeDtypeStruct((4,), np.float32)
    x = jnp.ones(4)

    def run(f):
        def once():
            jax.block_until_ready(jax.jit(f)(x))
            jax.effects_barrier()

        try:
            once()
        except Exception as error:
            return text(f"{type(error).__name__} {'broken on purpose' in str(error)}")
        return text("nothing")

    return (
        run(lambda x: jax.pure_callback(broken, shape, x)),
        run(lambda x: io_callback(broken, shape, x)),
        run(lambda x: jax.pure_callback(lambda a: np.zeros(3, np.float32), shape, x)) is not None,
        run(lambda x: jax.pure_callback(lambda a: np.zeros(4, np.float64), shape, x)) is not None,
        jax.jit(lambda x: x + 1)(x),
    )


def in_manual_regions():
    m = mesh(x=4, y=2)
    x = put(normal(8, 4), m, "x", "y")

    def block(x):
        y = jax.pure_callback(
            lambda a, i: np.asarray(a) * (1 + int(i)),
            jax.ShapeDtypeStruct(x.shape, x.dtype),
            x,
            jax.lax.axis_index("x"),
            vmap_method="sequential",
        )
        return y + jax.lax.psum(y, "y")

    f = jax.shard_map(block, mesh=m, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False)
    return jax.jit(f)(x), jax.jit(f, out_shardings=on(m))(x)


def that_use_jax():
    def inner(a):
        return np.asarray(jnp.fft.ifft(jnp.fft.fft(jnp.asarray(np.asarray(a)))).real, np.float32)

    x = jnp.asarray(normal(8))
    return jax.jit(lambda x: jax.pure_callback(inner, jax.ShapeDtypeStruct((8,), np.float32), x) + 1)(x)
