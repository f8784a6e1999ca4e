"""Mutable arrays, loops that carry state, custom rules for derivatives and batches."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P
from meshes import mesh, normal, on, put

from programs import compiler_chooses


def mutable_arrays():
    m = mesh(x=8)
    x = put(normal(8, 4), m, "x")

    @jax.jit
    def f(x):
        r = jax.new_ref(x)
        r[0] = jnp.ones(4)
        r[1:3] += 2
        total = jax.new_ref(0.0)

        def body(i, _):
            total[...] += r[i].sum()
            return _

        jax.lax.fori_loop(0, 8, body, None)
        return jax.freeze(r), total[...]

    outer = jax.new_ref(put(np.zeros((8, 4), np.float32), m, "x"))

    @jax.jit
    def add(r, x):
        r[...] += x
        return r[0]

    return f(x), add(outer, x), add(outer, x), outer[...]


def loops_with_references():
    m = mesh(x=8)
    x = put(normal(16), m, "x")

    def f(x):
        def body(i, r):
            r[i] = jnp.sin(r[i]) * i

        from jax._src.state.discharge import run_state

        return run_state(lambda r: jax.lax.fori_loop(0, 16, lambda i, _: body(i, r), None))(x)

    return jax.jit(f)(x)


def own_batching():
    @jax.custom_batching.custom_vmap
    def f(x, y):
        return x * y

    @f.def_vmap
    def _(size, batched, x, y):
        return x * y + 100 * size, True

    return jax.jit(jax.vmap(f, (0, None)))(put(normal(8), mesh(x=8), "x"), 2.0), f(2.0, 3.0)


def own_derivatives_of_every_kind():
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvps(lambda dx, ans, x: 10 * dx * ans)

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def g(n, x):
        return x**n

    g.defvjp(lambda n, x: (x**n, x), lambda n, x, d: (d * n * 100,))
    x = put(normal(8), mesh(x=8), "x")
    h = jax.custom_gradient(lambda x: (x * 2, lambda d: d * 7))
    return (
        jax.jit(jax.grad(lambda x: f(x).sum()))(x),
        jax.jit(jax.grad(lambda x: g(3, x).sum()))(x),
        jax.jit(jax.grad(lambda x: h(x).sum()))(x),
        jax.jit(lambda x: jax.linearize(f, x)[1](x))(x),
        jax.jit(lambda x: jax.vjp(f, x)[1](x))(x),
        jax.jit(jax.vmap(jax.hessian(f)))(x),
        jax.jit(lambda x: jax.linear_transpose(lambda y: jnp.cumsum(y) * 2, x)(x))(x),
    )


def second_derivatives_of_a_network():
    m = mesh(x=8)
    w, x = put(normal(8, 8) / 3, m), put(normal(16, 8, seed=1), m, "x")
    loss = lambda w: jnp.mean(jnp.tanh(jnp.tanh(x @ w) @ w) ** 2)  # noqa: E731
    v = normal(8, 8, seed=2)
    return jax.jit(
        lambda w: (jax.jvp(jax.grad(loss), (w,), (v,))[1], jax.grad(lambda w: jnp.vdot(jax.grad(loss)(w), v))(w))
    )(w)


def shaped_arrays_of_functions():
    m = mesh(x=8)
    x = put(normal(8, 4), m, "x")
    closed = jax.make_jaxpr(lambda x: jnp.sin(x).sum(0))(x)
    converted = jax.closure_convert(lambda y: jnp.sin(y) * 2, x)
    return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, x) if hasattr(jax.core, "eval_jaxpr") else (), converted[0](
        x, *converted[1]
    )


def barriers_and_tokens():
    m = mesh(x=8)
    x, y = put(normal(8, 4), m, "x"), put(normal(8, 4, seed=1), m, "x")

    def f(x, y):
        x, y = jax.lax.optimization_barrier((x, y))
        return jax.lax.reduce_precision(x, 5, 3), y, jax.lax.stop_gradient(x)

    return jax.jit(f)(x, y), jax.jit(jax.grad(lambda x: jax.lax.optimization_barrier(x**2).sum()))(x)


@compiler_chooses
def reductions_of_every_kind():
    m = mesh(x=4, y=2)
    x = put(normal(16, 8), m, "x", "y")
    i = put(np.arange(128, dtype=np.int32).reshape(16, 8), m, "x", "y")
    lax = jax.lax

    def f(x, i):
        return (
            lax.reduce(x, 0.0, lax.add, (0,)),
            lax.reduce(
                (x, i), (-jnp.inf, 0), lambda a, b: (jnp.maximum(a[0], b[0]), jnp.where(a[0] > b[0], a[1], b[1])), (0,)
            ),
            lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 1), "SAME"),
            lax.reduce_and(i > 3, (0,)),
            lax.reduce_prod(x, (0,)),
            lax.cummax(x, 0),
            lax.cumlogsumexp(x, 1, reverse=True),
            jnp.abs(lax.cumprod(x, 1)),
            lax.argmin(x, 0, np.int32),
            lax.sort((i, x), dimension=0, num_keys=1),
            lax.top_k(x, 3),
            lax.population_count(i),
            lax.clz(i),
            lax.nextafter(x, x + 1),
            lax.integer_pow(x, 3),
            lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (4,))[1] * 0,
        )

    return jax.jit(f)(x, i)


@compiler_chooses
def convolutions_of_every_kind():
    m = mesh(x=4)
    x = put(normal(4, 12, 10, 6), m, "x")
    w = normal(3, 3, 2, 12)
    lax = jax.lax
    dims = ("NHWC", "HWIO", "NHWC")

    def f(x, w):
        return (
            lax.conv_general_dilated(x, w, (1, 2), "SAME", dimension_numbers=dims, feature_group_count=3),
            lax.conv_general_dilated(
                x,
                normal(3, 3, 6, 4),
                (1, 1),
                [(2, 1), (0, 3)],
                lhs_dilation=(2, 1),
                rhs_dilation=(1, 2),
                dimension_numbers=dims,
            ),
            lax.conv_transpose(x, normal(3, 3, 6, 4), (2, 2), "SAME"),
            lax.conv_general_dilated(
                x, normal(3, 3, 6, 8), (1, 1), "VALID", dimension_numbers=dims, batch_group_count=4
            ),
            lax.conv_general_dilated_patches(x, (3, 2), (1, 1), "VALID", dimension_numbers=dims),
            lax.conv_general_dilated_local(x, normal(10, 9, 36, 5), (1, 1), "VALID", (3, 2), dimension_numbers=dims),
        )

    return jax.jit(f)(x, w)


@compiler_chooses
def gathers_and_scatters_of_every_kind():
    m = mesh(x=4, y=2)
    x = put(normal(16, 8), m, "x", "y")
    i = put(np.array([[3], [15], [0], [7]], np.int32), m, "x")
    lax = jax.lax
    g = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    s = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    u = put(normal(4, 8, seed=1), m, "x")

    def f(x, i, u):
        return (
            lax.gather(x, i, g, (1, 8)),
            lax.scatter_add(x, i, u, s),
            lax.scatter_min(x, i, u, s),
            lax.scatter_mul(x, i, u, s),
            lax.scatter_apply(x, i, jnp.sin, s, update_shape=(4, 8)),
            lax.scatter(x, i, u, s),
            x[jnp.array([2, 5]), jnp.array([1, 7])],
            x[:, None, jnp.array([1, 2])],
            jnp.take(x, i[:, 0], 0, mode="wrap"),
            jnp.choose(i[:, 0] % 2, [x[:4, 0], x[4:8, 0]], mode="clip"),
            jnp.select([x > 1, x < 0], [x, -x], 5),
            jnp.searchsorted(jnp.sort(x[:, 0]), x[:, 1]),
            jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])),
            jnp.histogram(x, 5),
            jnp.bincount(i[:, 0], length=16),
            jnp.unique(i, size=6),
            jnp.nonzero(x > 0, size=20),
            jnp.extract(x > 1, x, size=4),
            jnp.interp(x, jnp.array([-1.0, 1.0]), jnp.array([0.0, 2.0])),
            jnp.convolve(x[:, 0], x[:3, 1]),
            jnp.percentile(x, 30, axis=0),
            jnp.median(x),
            jnp.cov(x),
            jnp.corrcoef(x.T),
            jnp.lexsort((x[:, 0], x[:, 1])),
            jnp.argpartition(x, 3)[:, :1].shape,
            jnp.trapezoid(x),
            jnp.gradient(x),
            jnp.cross(x[:, :3], x[:, 3:6]),
            jnp.kron(x[:2, :2], x[:2, :2]),
            jnp.polyfit(jnp.arange(8.0), x[0], 2),
            jnp.packbits(x > 0),
            jnp.unwrap(x),
            jnp.vander(x[0], 3),
        )

    return jax.jit(f)(x, i, u)


@compiler_chooses
def loops_of_every_kind():
    m = mesh(x=4, y=2)
    x = put(normal(16, 8), m, "x", "y")
    lax = jax.lax

    def f(x):
        def halve(c):
            return c[0] + 1, c[1] / 2

        n, small = lax.while_loop(lambda c: jnp.abs(c[1]).max() > 0.1, halve, (0, x))
        up = lax.scan(lambda c, v: (c + v, c * v), x[0], x, reverse=True, unroll=2)
        table = [jnp.sin, jnp.cos, lambda v: v * 2]
        each = lax.map(lambda v: lax.switch(jnp.int32(v[0] > 0) + jnp.int32(v[1] > 0), table, v), x, batch_size=4)
        trees = lax.scan(
            lambda c, v: ({"a": c["a"] + v["b"], "n": c["n"] + 1}, v["b"].sum()), {"a": x[0], "n": 0}, {"b": x}
        )
        pre = lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x * 0.1, x), axis=0)
        nested = lax.fori_loop(0, 3, lambda i, a: lax.fori_loop(0, i, lambda j, a: a + j, a), x)
        return (
            n,
            small,
            up,
            each,
            trees,
            pre,
            nested,
            lax.cond(x.sum() > 0, lambda: x, lambda: -x),
            jax.vmap(lambda v: lax.while_loop(lambda c: c.sum() < 5, lambda c: c * c + 1, v))(x),
        )

    return jax.jit(f)(x), jax.jit(
        jax.grad(lambda x: lax.scan(lambda c, v: (jnp.sin(c * v), c.sum()), x[0], x)[1].sum())
    )(x)


def manual_region_with_references():
    m = mesh(x=8)
    x = put(normal(8, 4), m, "x")

    def block(x):
        r = jax.new_ref(x)
        r[...] = r[...] * 2 + jax.lax.axis_index("x")
        return jax.freeze(r)

    return jax.jit(jax.shard_map(block, mesh=m, in_specs=P("x"), out_specs=P("x")))(x), jax.jit(
        lambda x: x, out_shardings=on(m)
    )(x)
