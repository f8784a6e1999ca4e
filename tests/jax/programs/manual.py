"""Manual regions: every collective of lax in its forms, regions in regions, derivatives through them."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P
from meshes import integers, mesh, normal, put


def _manual(m, ins, outs, **options):
    return lambda f: jax.jit(jax.shard_map(f, mesh=m, in_specs=ins, out_specs=outs, **options))


def scattered_sums_in_every_form():
    m = mesh(x=4, y=2)
    x = put(normal(16, 8, 8), m, "x", "y")

    @_manual(m, P("x", "y"), (P("x", "y"), P("x", "y"), P("x", "y")))
    def f(x):
        rows = x.reshape(4, 4, 8)
        return (
            lax.psum_scatter(rows, "x", scatter_dimension=0)[None],
            lax.psum_scatter(rows, "x", scatter_dimension=2, tiled=True),
            lax.psum_scatter(rows[:, :2], "x", axis_index_groups=[[0, 1], [2, 3]], scatter_dimension=1)[None],
        )

    return f(x)


def all_to_all_in_every_form():
    m = mesh(x=4, y=2)
    x = put(integers(8, 8, 12), m, ("x", "y"))
    shapes = [(1, 1, True), (1, 2, True), (2, 1, True), (2, 0, True)]

    @_manual(m, P(("x", "y")), P(("x", "y")), check_vma=False)
    def f(x):
        tiled = [lax.all_to_all(x, "x", split, concat, tiled=t) for split, concat, t in shapes]
        untiled = lax.all_to_all(x.reshape(8, 4, 3), "x", 1, 0)
        grouped = lax.all_to_all(x, "x", 1, 2, axis_index_groups=[[0, 2], [1, 3]], tiled=True)
        both = lax.all_to_all(x, ("x", "y"), 1, 0, tiled=True)
        return [*tiled, untiled[None], grouped, both]

    return f(x)


def swapped_axes_and_shuffles():
    m = mesh(x=4)
    x = put(integers(8, 4, 2), m, "x")

    @_manual(m, P("x"), P("x"))
    def f(x):
        shuffled = lax.pshuffle(x, "x", [2, 0, 3, 1])
        return lax.pswapaxes(x, "x", 1)[:, None], shuffled, x + lax.axis_size("x")

    return f(x)


def gathered_invariant_and_varying():
    m = mesh(x=4, y=2)
    x = put(normal(8, 6), m, "x", "y")

    @_manual(m, P("x", "y"), (P(None, "y"), P("x", "y"), P(None, "y")))
    def f(x):
        total = lax.psum(x, "x")
        spread = lax.pcast(total, "x", to="varying")
        return total, x - spread / 4, lax.pmax(lax.all_gather(x, "x", axis=1, tiled=True).sum(1, keepdims=True), "x")

    return f(x)


def extrema_and_counts_over_devices():
    m = mesh(x=8)
    x = put(integers(8, 5, high=4), m, "x")

    @_manual(m, P("x"), (P(), P(), P(), P()))
    def f(x):
        return lax.pmax(x, "x"), lax.pmin(x, "x"), lax.psum(x > 0, "x"), lax.pmean(x, "x")

    return f(x)


def regions_in_regions():
    m = mesh(x=2, y=2, z=2)
    x = put(normal(8, 8, 4), m, "x", "y", "z")

    def innermost(x):
        return lax.psum(x, "z") * (1 + lax.axis_index("z"))

    def inner(x):
        y = lax.ppermute(x, "y", [(0, 1), (1, 0)])
        specs = {"in_specs": P(None, None, "z"), "out_specs": P(None, None, "z"), "axis_names": frozenset({"z"})}
        return jnp.sin(y) + jax.shard_map(innermost, **specs)(y)

    def outer(x):
        specs = {"in_specs": P(None, "y"), "out_specs": P(None, "y"), "axis_names": frozenset({"y"})}
        return jax.shard_map(inner, **specs)(x) + lax.pmean(x, "x")

    specs = {"in_specs": P("x"), "out_specs": P("x"), "axis_names": frozenset({"x"})}
    return jax.jit(jax.shard_map(outer, mesh=m, **specs))(x)


def partly_automatic_matmul():
    m = mesh(x=4, y=2)
    x, w = put(normal(16, 32), m, "x"), put(normal(32, 64, seed=1), m, None, "y")

    def block(x, w):
        h = jax.nn.relu(x @ w)
        return lax.pmean((h @ w.T).sum(), "x"), h

    f = jax.shard_map(block, mesh=m, in_specs=(P("x"), P()), out_specs=(P(), P("x")), axis_names=frozenset({"x"}))
    return jax.jit(f)(x, w)


def derivatives_of_every_collective():
    m = mesh(x=4)
    x = put(normal(16, 8), m, "x")
    moves = [(i, (i + 1) % 4) for i in range(4)]
    functions = {
        "psum": lambda x: lax.psum(x, "x"),
        "gather": lambda x: lax.all_gather(x, "x", tiled=True),
        "scatter": lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True),
        "permute": lambda x: lax.ppermute(x, "x", moves),
        "transpose": lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True),
        "max": lambda x: lax.psum(jnp.exp(x - lax.pmax(lax.stop_gradient(x), "x")), "x"),
    }

    def gradient(g):
        loss = jax.shard_map(
            lambda x: lax.psum(jnp.sum(jnp.sin(lax.pcast(g(x), (), to="varying")) * 0.3), "x"),
            mesh=m,
            in_specs=P("x"),
            out_specs=P(),
            check_vma=False,
        )
        return jax.jit(jax.grad(loss))(x)

    return {name: gradient(g) for name, g in functions.items()}


def own_derivatives_inside():
    m = mesh(x=8)
    x = put(normal(16, 4), m, "x")

    @jax.custom_vjp
    def clipped(x):
        return x * 2

    clipped.defvjp(lambda x: (x * 2, x), lambda x, g: (jnp.clip(g * x, -1, 1),))
    loss = jax.shard_map(lambda x: lax.psum((clipped(x) ** 2).sum(), "x"), mesh=m, in_specs=P("x"), out_specs=P())
    return jax.jit(jax.value_and_grad(loss))(x)


def loops_with_collectives_and_conditions():
    m = mesh(x=4)
    x = put(normal(8, 8), m, "x")

    @_manual(m, P("x"), (P("x"), P()), check_vma=False)
    def f(x):
        def step(c):
            i, x, norm = c
            x = lax.cond(norm > 10, lambda x: lax.ppermute(x, "x", [(0, 1), (1, 2), (2, 3), (3, 0)]) / 2, jnp.sin, x)
            return i + 1, x, lax.psum((x**2).sum(), "x")

        i, x, _ = lax.while_loop(lambda c: (c[0] < 7) & (c[2] > 0.5), step, (0, x * 3, lax.psum((x**2).sum(), "x")))
        return x, i

    return f(x)


def ring_attention():
    m = mesh(x=4, y=2)
    q, k, v = (put(normal(4, 16, 2, 8, seed=i), m, None, "x", "y") for i in range(3))
    moves = [(i, (i + 1) % 4) for i in range(4)]

    @_manual(m, P(None, "x", "y"), P(None, "x", "y"))
    def attend(q, k, v):
        def step(carry, _):
            k, v, top, bottom, scale = carry
            s = jnp.einsum("bqhd,bkhd->bhqk", q, k)
            new = jnp.maximum(scale, s.max(-1))
            p, old = jnp.exp(s - new[..., None]), jnp.exp(scale - new)
            top = top * old[..., None] + jnp.einsum("bhqk,bkhd->bhqd", p, v)
            bottom = bottom * old + p.sum(-1)
            return (lax.ppermute(k, "x", moves), lax.ppermute(v, "x", moves), top, bottom, new), None

        b, n, h, d = q.shape
        start = (jnp.zeros((b, h, n, d)), jnp.zeros((b, h, n)), jnp.full((b, h, n), -jnp.inf))
        start = jax.tree.map(lambda a: lax.pcast(a, ("x", "y"), to="varying"), start)
        (_, _, top, bottom, _), _ = lax.scan(step, (k, v, *start), None, length=4)
        return (top / bottom[..., None]).transpose(0, 2, 1, 3)

    return attend(q, k, v)


def maps_over_devices_the_old_way():
    n = 8
    x = normal(n, 4)
    f = jax.pmap(lambda x, y: (lax.psum(x * y, "i"), x + lax.axis_index("i")), axis_name="i", in_axes=(0, None))
    g = jax.pmap(lambda x: lax.all_gather(x, "i"), axis_name="i", out_axes=1)
    h = jax.pmap(functools.partial(jax.grad(lambda x, w: lax.pmean(jnp.sin(x * w).sum(), "i"))), "i", in_axes=(0, 0))
    return f(x, 3.0), g(x), h(x, x), jax.pmap(jnp.sum, devices=jax.devices()[2:6])(x[:4])
