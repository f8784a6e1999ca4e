"""Regions that are manual along some axes of the mesh only: the compiler goes on splitting inside along the others."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from meshes import integers, mesh, normal, on, put


def _region(m, f, ins, outs, axes):
    return jax.shard_map(f, mesh=m, in_specs=ins, out_specs=outs, axis_names=frozenset(axes))


def _free(x, *spec):
    """A constraint inside a region, on the axes that it leaves free."""
    return lax.with_sharding_constraint(x, P(*spec))


def constraint_on_a_free_axis():
    m = mesh(x=4, y=2)
    x = put(normal(8, 8), m, "x", None)

    def f(x):
        return lax.psum(_free(jnp.sin(x), None, "y").sum(0), "x")

    return jax.jit(_region(m, f, P("x"), P(), {"x"}), out_shardings=on(m))(x)


def products_split_by_a_free_axis():
    m = mesh(x=4, y=2)
    x, w, v = put(normal(8, 16), m, "x"), put(normal(16, 32, seed=1), m, None, "y"), put(normal(32, 16, seed=2), m, "y")

    def f(x, w, v):
        h = _free(jnp.tanh(x @ w), None, "y")
        return _free(h @ v, None, None)

    return jax.jit(_region(m, f, (P("x"), P(), P()), P("x"), {"x"}), out_shardings=on(m, "x"))(x, w, v)


def gradients_of_such_products():
    m = mesh(x=4, y=2)
    x, w, v = put(normal(8, 16), m, "x"), put(normal(16, 32, seed=1), m, None, "y"), put(normal(32, 16, seed=2), m, "y")

    def f(x, w, v):
        h = _free(jnp.tanh(x @ w), None, "y")
        return lax.pmean(jnp.mean((h @ v) ** 2), "x")

    region = _region(m, f, (P("x"), P(), P()), P(), {"x"})
    out = (on(m), (on(m, "x"), on(m, None, "y"), on(m, "y")))
    return jax.jit(jax.value_and_grad(region, (0, 1, 2)), out_shardings=out)(x, w, v)


def region_within_a_region():
    m = mesh(x=2, y=2, z=2)
    x = put(normal(8, 8, 4), m, "x", "y", "z")

    def inner(x):
        return lax.psum(_free(x * 2.0, None, None, "z"), "y")

    def outer(x):
        x = _free(jnp.cos(x), None, "y", "z")
        return lax.pmax(jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})(x), "x")

    return jax.jit(_region(m, outer, P("x"), P(), {"x"}), out_shardings=on(m))(x)


def loop_in_a_region():
    m = mesh(x=4, y=2)
    x, w = put(normal(8, 16), m, "x"), put(normal(16, 16, seed=1), m, None, "y")

    def f(x, w):
        def step(c, i):
            c = _free(jnp.tanh(c @ w + i), None, "y")
            return lax.ppermute(c, "x", [(j, (j + 1) % 4) for j in range(4)]), c.sum()

        c, sums = lax.scan(step, _free(x, None, "y"), jnp.arange(3.0))
        return c, sums[None]

    return jax.jit(_region(m, f, (P("x"), P()), (P("x"), P("x")), {"x"}), out_shardings=on(m, "x"))(x, w)


def gradient_of_a_loop_in_a_region():
    m = mesh(x=4, y=2)
    x, w = put(normal(8, 16), m, "x"), put(normal(3, 16, 16, seed=1), m, None, None, "y")

    def f(x, w):
        def step(c, w):
            c = _free(jnp.tanh(c @ w), None, "y")
            return lax.ppermute(c, "x", [(j, (j + 1) % 4) for j in range(4)]), None

        return lax.psum(jnp.sum(lax.scan(step, _free(x, None, "y"), w)[0] ** 2), "x")

    region = _region(m, f, (P("x"), P()), P(), {"x"})
    out = (on(m), (on(m, "x"), on(m, None, None, "y")))
    return jax.jit(jax.value_and_grad(region, (0, 1)), out_shardings=out)(x, w)


def branches_in_a_region():
    m = mesh(x=4, y=2)
    x = put(normal(8, 16), m, "x", "y")

    def f(x):
        me = lax.axis_index("x")
        return lax.switch(me % 2, [jnp.sin, lambda x: x * 2.0], x)

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x", "y"))(x)


def what_a_region_makes_itself():
    m = mesh(x=4, y=2)
    x = put(normal(8, 16), m, "x", "y")

    def f(x):
        place = jnp.arange(16.0) * 3 + lax.axis_index("x")
        mask = _free(lax.broadcasted_iota(jnp.int32, (2, 16), 1) % 3 == 0, None, "y")
        return jnp.where(mask, x + place, 0.0)

    outer = jnp.arange(16.0) * 3
    return jax.jit(lambda x: _region(m, f, P("x"), P("x"), {"x"})(x) + outer, out_shardings=on(m, "x", "y"))(x)


def two_regions_over_different_axes():
    m = mesh(x=4, y=2)
    x = put(normal(8, 16), m, "x", "y")
    rows = _region(
        m,
        lambda x: lax.psum_scatter(_free(x, None, "y"), "x", scatter_dimension=0, tiled=True),
        P(None, None),
        P("x"),
        {"x"},
    )
    columns = _region(
        m,
        lambda x: lax.all_gather(_free(jnp.sin(x), "x", None), "y", axis=1, tiled=True).sum(1),
        P(None, "y"),
        P("y"),
        {"y"},
    )
    return jax.jit(lambda x: (rows(x), columns(x)), out_shardings=(on(m, "x"), on(m)))(x)


def gathers_and_scatters_in_a_region():
    m = mesh(x=4, y=2)
    x, i = put(normal(32, 16), m, "x"), put(integers(8, 4), m, "x")

    def f(x, i):
        x = _free(x, None, "y")
        g = x[jnp.abs(i) % 8]
        s = _free(jnp.zeros_like(x).at[jnp.abs(i[:, 0]) % 8].add(g[:, 0]), "y", None)
        return _free(g, "y", None, None), s

    return jax.jit(_region(m, f, (P("x"), P("x")), P("x"), {"x"}), out_shardings=on(m, "x"))(x, i)


def attention_in_a_region():
    m = mesh(x=2, y=4)
    x, w = put(normal(2, 8, 16), m, None, "x"), put(normal(3, 16, 4, 4, seed=1), m, None, None, "y")

    def f(x, w):
        q, k, v = _free(jnp.einsum("bsd,ndhk->nbshk", x, w), None, None, None, "y", None)
        k, v = (lax.all_gather(t, "x", axis=1, tiled=True) for t in (k, v))
        p = jax.nn.softmax(jnp.einsum("bqhk,bthk->bhqt", q, k), -1)
        return jnp.einsum("bhqt,bthk->bqhk", p, v)

    out = on(m, None, "x", "y")
    return jax.jit(_region(m, f, (P(None, "x"), P()), P(None, "x"), {"x"}), out_shardings=out)(x, w)


def extrema_and_scans_in_a_region():
    m = mesh(x=4, y=2)
    x = put(normal(8, 16), m, "x", "y")

    def f(x):
        x = _free(x, None, "y")
        return jnp.cumsum(_free(x, "y", None), 0), jnp.argmax(x, 1), jnp.flip(x, 1), lax.top_k(x, 3)[0]

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x"))(x)


def convolution_in_a_region():
    m = mesh(x=4, y=2)
    x, w = put(normal(4, 16, 3), m, "x"), put(normal(3, 3, 8, seed=1), m)

    def f(x, w):
        x = _free(x, None, "y", None)
        return lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))

    def loss(x, w):
        return jnp.sum(_region(m, f, (P("x"), P()), P("x"), {"x"})(x, w) ** 2)

    return jax.jit(jax.grad(loss, (0, 1)), out_shardings=(on(m, "x"), on(m)))(x, w)


def recomputed_region():
    m = mesh(x=4, y=2)
    x, w = put(normal(8, 16), m, "x"), put(normal(16, 16, seed=1), m, None, "y")

    @jax.checkpoint
    def f(x, w):
        return _region(m, lambda x, w: _free(jnp.tanh(x @ w), None, "y"), (P("x"), P()), P("x"), {"x"})(x, w)

    def loss(x, w):
        return jnp.sum(f(f(x, w), w) ** 2)

    return jax.jit(jax.grad(loss, (0, 1)), out_shardings=(on(m, "x"), on(m, None, "y")))(x, w)


def random_bits_in_a_region():
    m = mesh(x=4, y=2)
    x = put(normal(8, 16), m, "x", "y")

    def f(x):
        key = jax.random.fold_in(jax.random.key(0), lax.axis_index("x"))
        return x + _free(jax.random.uniform(key, x.shape), None, "y")

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x"))(x)


def while_in_a_region_made_of_constants():
    m = mesh(x=4, y=2)
    x = put(normal(8, 16), m, "x", "y")

    def f(x):
        def step(s):
            i, total = s
            return i + 1, _free(total + i * 0.5, None, "y")

        total = lax.while_loop(lambda s: s[0] < 4, step, (0.0, jnp.zeros((2, 16))))[1]
        return x + total

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x", "y"))(x)


def explicit_sharding_of_the_mesh_inside():
    m = mesh(x=4, y=2)
    x = put(normal(8, 16), m, "x", "y")

    def f(x):
        inside = jax.sharding.get_abstract_mesh()
        return lax.with_sharding_constraint(x * 2, NamedSharding(inside, P("y", None))).sum(0, keepdims=True)

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x"))(x)


def sorts_in_a_region():
    m = mesh(x=4, y=2)
    x = put(normal(32, 16), m, "x", "y")

    def f(x):
        x = _free(x, None, "y")
        pairs = lax.sort((jnp.round(x), _free(x, "y", None)), dimension=1, num_keys=1)
        return jnp.sort(x, 0), jnp.argsort(x, 1), jnp.sort(_free(x, "y", None), 0), jnp.median(x, 1), pairs

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x"))(x)


def best_of_a_free_axis_in_a_region():
    m = mesh(x=2, y=4)
    x = put(normal(8, 64), m, "x", "y")

    def f(x):
        values, places = lax.top_k(_free(x, None, "y"), 5)
        return values, places, jnp.take_along_axis(_free(x, None, "y"), places, 1), lax.cummax(x, 1)

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x"))(x)


def matrices_in_a_region():
    m = mesh(x=4, y=2)
    x = put(normal(8, 6, 6), m, "x")

    def f(x):
        spd = _free(jnp.einsum("bij,bkj->bik", x, x) + 6 * jnp.eye(6), "y", None, None)
        c = jnp.linalg.cholesky(spd)
        return c, jax.scipy.linalg.solve_triangular(c, _free(x, "y", None, None), lower=True), jnp.linalg.inv(spd)

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x"))(x)


def pooled_in_a_region():
    m = mesh(x=2, y=4)
    x = put(normal(4, 16, 8, 3), m, "x", "y")

    def f(x):
        x = _free(x, None, "y", None, None)
        pooled = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return (
            pooled,
            jax.image.resize(x, (x.shape[0], 32, 16, 3), "bilinear"),
            jnp.roll(x, 3, 1),
            jnp.pad(x, 1)[:, ::2],
        )

    def loss(x):
        return sum(jnp.sum(y**2) for y in _region(m, f, P("x"), P("x"), {"x"})(x)[:3])

    return jax.jit(jax.grad(loss), out_shardings=on(m, "x", "y"))(x)


def segments_in_a_region():
    m = mesh(x=2, y=4)
    x, i = put(normal(64, 4), m, "x"), put(np.abs(integers(64)) % 8, m, "x")

    def f(x, i):
        x, i = _free(x, "y", None), _free(i, "y")
        hits = jnp.bincount(i, length=8)
        return lax.psum(jax.ops.segment_sum(x, i, 8), "x"), lax.psum(hits, "x"), jnp.cumsum(i), jnp.unique(i, size=8)

    return jax.jit(_region(m, f, (P("x"), P("x")), (P(), P(), P("x"), P("x")), {"x"}))(x, i)


def dynamic_parts_in_a_region():
    m = mesh(x=2, y=4)
    x = put(normal(8, 64), m, "x", "y")

    def f(x):
        x = _free(x, None, "y")
        at = lax.axis_index("x") * 7 + 3
        part = lax.dynamic_slice(x, (0, at), (4, 10))
        moved = lax.dynamic_update_slice(x, part * 2, (0, at + 11))
        return part, moved, jnp.concatenate([x[:, :5], x[:, 9:]], 1), lax.cond(at > 5, jnp.sin, jnp.cos, x)

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x"))(x)


def random_orders_in_a_region():
    m = mesh(x=4, y=2)
    x = put(normal(32, 16), m, "x", "y")

    def f(x):
        key = jax.random.fold_in(jax.random.key(3), lax.axis_index("x"))
        drawn = jax.random.categorical(key, _free(x, None, "y"), axis=1)
        return jax.random.permutation(key, x, axis=1), drawn, jax.random.normal(key, x.shape)

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x"))(x)


def scatter_and_max_over_rounds_in_a_region():
    m = mesh(x=4, y=2)
    x = put(normal(16, 8), m, "x", "y")

    def f(x):
        def more(s):
            return (jnp.max(s[1]) < 40) & (s[0] < 9)

        def step(s):
            return s[0] + 1, _free(jnp.sort(s[1] * 1.7, 1), None, "y")

        return lax.while_loop(more, step, (0, _free(x, None, "y")))[1]

    return jax.jit(_region(m, f, P("x"), P("x"), {"x"}), out_shardings=on(m, "x"))(x)
