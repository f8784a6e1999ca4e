"""Python functions of the client, called by programs that run on the server."""

import contextlib
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.errors import JaxRuntimeError
from jax.experimental import buffer_callback, io_callback
from jax.sharding import PartitionSpec as P
from meshes import mesh, normal, on, put, why


def _result(x):
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


def pure():
    def f(x):
        return jax.pure_callback(lambda x: np.sin(x) + 1, _result(x), x) * 2

    return jax.jit(f)(normal(4, 3)), jax.jit(
        jax.vmap(lambda x: jax.pure_callback(lambda x: np.cumsum(x, axis=-1), _result(x), x, vmap_method="expand_dims"))
    )(normal(3, 4))


def several_types_and_results():
    def host(a, b, c):
        return a + 1, ~b, (c * 2).astype(np.complex64), np.int32(7), np.zeros((0, 3), np.float32)

    def f(a, b, c):
        shapes = [_result(a), _result(b), _result(c), jax.ShapeDtypeStruct((), np.int32)]
        return jax.pure_callback(host, [*shapes, jax.ShapeDtypeStruct((0, 3), np.float32)], a, b, c)

    return jax.jit(f)(np.arange(3, dtype=np.int8), np.array([True, False]), normal(2).astype(np.complex64))


def of_split_arrays():
    """The callback sees the whole array, once, wherever its parts are."""
    seen = []

    def host(x):
        seen.append(x.shape)
        return np.asarray(x)[::-1]

    m = mesh(x=8)
    f = jax.jit(lambda x: jax.pure_callback(host, _result(x), x) + x, out_shardings=on(m, "x"))
    result = jax.block_until_ready(f(put(normal(16, 2), m, "x")))
    return result, len(seen), seen[0]


def in_a_shard_map():
    m = mesh(x=8)

    def f(x):
        return jax.pure_callback(lambda x: np.asarray(x) * 3, _result(x), x)

    return jax.jit(jax.shard_map(f, mesh=m, in_specs=P("x"), out_specs=P("x")))(put(normal(16, 2), m, "x"))


def that_wait_for_one_another():
    m = mesh(x=8)
    everybody = threading.Barrier(8, timeout=30)

    def host(x):
        everybody.wait()
        return x + 1

    def f(x):
        x = io_callback(host, _result(x), x)
        return io_callback(host, _result(x), x)

    return jax.jit(jax.shard_map(f, mesh=m, in_specs=P("x"), out_specs=P("x")))(put(normal(8, 2), m, "x"))


def ordered_effects():
    log = []

    def f(x):
        io_callback(lambda x: log.append(("first", float(x))), None, x, ordered=True)
        y = io_callback(lambda x: np.float32(x + len(log)), jax.ShapeDtypeStruct((), np.float32), x, ordered=True)
        io_callback(lambda y: log.append(("last", float(y))), None, y, ordered=True)
        return y

    results = [jax.jit(f)(np.float32(i)) for i in range(3)]
    jax.effects_barrier()
    return results, [value for _, value in log], [name == "first" for name, _ in log]


def in_loops():
    log = []

    def step(carry, x):
        io_callback(lambda c: log.append(float(c)), None, carry, ordered=True)
        return carry + jax.pure_callback(lambda x: np.float32(x * 2), jax.ShapeDtypeStruct((), np.float32), x), carry

    carry, out = jax.jit(lambda xs: jax.lax.scan(step, jnp.float32(0), xs))(jnp.arange(5, dtype=np.float32))
    jax.effects_barrier()

    def body(c):
        return c[0] + 1, jax.pure_callback(lambda v: np.asarray(v) + 1, jax.ShapeDtypeStruct((2,), np.float32), c[1])

    last = jax.jit(lambda: jax.lax.while_loop(lambda c: c[0] < 4, body, (0, jnp.zeros(2))))()
    return carry, out, log, last


def in_branches():
    def f(x):
        return jax.lax.cond(
            x.sum() > 0,
            lambda x: jax.pure_callback(lambda x: np.asarray(x) + 10, _result(x), x),
            lambda x: jax.pure_callback(lambda x: np.asarray(x) - 10, _result(x), x),
            x,
        )

    return jax.jit(f)(np.ones(3, np.float32)), jax.jit(f)(-np.ones(3, np.float32))


def unordered_effects():
    seen = []
    f = jax.jit(lambda x: (jax.debug.callback(lambda v: seen.append(float(v)), x.sum()), x + 1)[1])
    result = [f(np.full(3, i, np.float32)) for i in range(4)]
    jax.effects_barrier()
    return result, sorted(seen)


def without_arguments():
    count = []

    def f():
        io_callback(lambda: count.append(1), None, ordered=True)
        return io_callback(lambda: np.int32(len(count)), jax.ShapeDtypeStruct((), np.int32), ordered=True)

    return [jax.jit(f)() for _ in range(2)]


def debug_callback_of_split_arrays():
    seen = []
    m = mesh(x=4, y=2)
    f = jax.jit(lambda x: (jax.debug.callback(lambda v: seen.append(np.asarray(v).copy()), x * 2), x + 1)[1])
    result = f(put(normal(8, 4), m, "x", "y"))
    jax.effects_barrier()
    return result, seen


def debug_callback_in_a_shard_map():
    seen = []
    m = mesh(x=8)

    def f(x):
        jax.debug.callback(lambda v: seen.append(float(np.asarray(v).sum())), x)
        return x + 1

    result = jax.jit(jax.shard_map(f, mesh=m, in_specs=P("x"), out_specs=P("x")))(
        put(np.arange(16, dtype=np.float32), m, "x")
    )
    jax.effects_barrier()
    return result, sorted(seen)


def partitioned_debug_callback():
    """Every device calls with its parts; what is not split comes whole."""
    seen = []
    m = mesh(x=4, y=2)

    def f(x, y):
        jax.debug.callback(lambda x, y, s: seen.append((x.shape, x.sum(), y, s)), x, y, x.sum(), partitioned=True)
        return x + 1

    result = jax.jit(f)(put(np.arange(32, dtype=np.float32).reshape(8, 4), m, "x", "y"), put(np.arange(6), m))
    jax.effects_barrier()
    shapes, sums, wholes, totals = zip(*seen)
    return result, sorted(shapes), sorted(map(float, sums)), np.array(wholes), np.array(totals)


def ordered_in_a_shard_map():
    """Each device keeps its own order."""
    seen = []
    m = mesh(x=8)

    def f(x):
        io_callback(lambda v: seen.append(float(v[0])), None, x, ordered=True)
        io_callback(lambda v: seen.append(float(v[0])), None, x + 100, ordered=True)
        return x * 2

    mapped = jax.jit(jax.shard_map(f, mesh=m, in_specs=P("x"), out_specs=P("x")))
    result = mapped(put(np.arange(8, dtype=np.float32), m, "x"))
    jax.effects_barrier()
    return result, sorted(seen), all(seen.index(i) < seen.index(i + 100.0) for i in range(8))


def buffers():
    """Functions that read and write buffers in place."""

    def host(ctx, out, x, *, scale):
        np.asarray(out["y"])[...] = np.asarray(x) * np.asarray(scale)
        np.asarray(out["shape"])[...] = x.shape
        states.append((out["y"].writeable, x.writeable, x.ndim, str(x.dtype), ctx.stage.name))

    states = []
    out = {"y": jax.ShapeDtypeStruct((2, 3), np.float32), "shape": jax.ShapeDtypeStruct((2,), np.int32)}
    call = buffer_callback.buffer_callback(host, out)
    x = normal(2, 3)
    in_place = buffer_callback.buffer_callback(
        lambda ctx, out, x: np.copyto(np.asarray(out), 2 * np.asarray(x)), _result(x), input_output_aliases={0: 0}
    )
    results = jax.block_until_ready((call(x, scale=2.0), jax.jit(in_place)(x)))
    return results, [flags[:3] for flags in states], [name == "EXECUTE" for *_, name in states]


def inspected_shardings():
    """Told while the program is compiled."""
    seen = []
    m = mesh(x=4, y=2)

    def f(x):
        jax.debug.inspect_array_sharding(x, callback=lambda sharding: seen.append(sharding))
        y = x @ x.T
        jax.debug.inspect_array_sharding(y, callback=lambda sharding: seen.append(sharding))
        return y

    with jax.set_mesh(m):
        compiled = jax.jit(f, in_shardings=on(m, "x", "y"), out_shardings=on(m, "x")).lower(normal(8, 4)).compile()
    first, second = seen
    return first.is_equivalent_to(on(m, "x", "y"), 2), second.is_equivalent_to(on(m, "x"), 2), compiled(normal(8, 4))


def outside_of_jit():
    seen = []
    jax.debug.callback(lambda key: seen.append(float(jax.random.key_data(key)[1])), jax.random.key(7))
    jax.debug.callback(lambda v: seen.append(float(v)), jnp.float32(3))
    jax.effects_barrier()
    return jax.pure_callback(lambda x: np.asarray(x) * 2, jax.ShapeDtypeStruct((2,), np.float32), jnp.ones(2)), seen


def large_arrays():
    x = np.arange(1 << 20, dtype=np.float32)
    return jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x)[::-1], _result(x), x))(x)[:5]


def errors_reach_the_caller():
    def host(x):
        raise ValueError("the host says no")

    f = jax.jit(lambda x: jax.pure_callback(host, _result(x), x))
    try:
        jax.block_until_ready(f(normal(3)))
    except Exception as error:
        told = "the host says no" in str(error)
        return told, jax.jit(lambda x: x + 1)(1.0)  # the session lives on
    return False


def a_failure_does_not_end_the_wait_for_others():
    done = []

    def fails(x):
        raise ValueError("the host says no")

    def slow(x):
        time.sleep(0.5)
        done.append(x)

    here, there = (jax.device_put(normal(3), d) for d in jax.devices()[:2])
    with contextlib.suppress(JaxRuntimeError):
        jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(fails, _result(x), x))(here))
    jax.jit(lambda x: jax.debug.callback(slow, x))(there)
    with contextlib.suppress(JaxRuntimeError):
        jax.effects_barrier()
    return len(done)


def errors_tell_where():
    def innermost(x):
        raise ValueError("the host says no")

    def host(x):
        return innermost(x)

    def words(error):
        *_, last = str(error).strip().split("/callback.py")  # of JAX; what called that is the client's business
        return last, "host_callbacks.py" in str(error)

    x, wrong = normal(3), jax.ShapeDtypeStruct((2,), np.float32)
    return (
        why(lambda: jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(host, _result(x), x))(x)), words),
        why(lambda: jax.block_until_ready(jax.jit(lambda x: jax.pure_callback(np.sin, wrong, x))(x)), words),
    )


def from_lowerings_of_libraries():
    """A primitive whose lowering emits a callback by JAX's public name for it; and one of JAX's own."""
    from jax.experimental.sparse.linalg import spsolve
    from jax.extend.core import Primitive
    from jax.interpreters import mlir

    reversed_p = Primitive("reversed_by_the_host")
    reversed_p.def_abstract_eval(lambda x: x)

    def lowering(ctx, x):
        result, _, _ = mlir.emit_python_callback(
            ctx,
            lambda x: (np.asarray(x)[::-1].copy(),),
            None,
            [x],
            ctx.avals_in,
            ctx.avals_out,
            has_side_effect=False,
            returns_token=False,
        )
        return result

    mlir.register_lowering(reversed_p, lowering)
    dense = np.eye(6, dtype=np.float32) * 3 + np.diag(np.ones(5, np.float32), 1)
    rows, columns = np.nonzero(dense)
    starts = np.searchsorted(rows, np.arange(7)).astype(np.int32)
    data, columns = jnp.asarray(dense[rows, columns]), jnp.asarray(columns.astype(np.int32))
    solve = jax.jit(lambda b: spsolve(data, columns, jnp.asarray(starts), b))
    return (
        jax.jit(reversed_p.bind)(jnp.arange(5.0)),
        solve(jnp.arange(6.0)),
        jax.grad(lambda b: solve(b).sum())(jnp.ones(6)),
    )
