import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P
from meshes import integers, mesh, normal, on, put


def _manual(m, f, ins, outs, **options):
    return jax.jit(jax.shard_map(f, mesh=m, in_specs=ins, out_specs=outs, **options))


def psum_and_friends():
    m = mesh(x=8)
    x = put(normal(16, 4), m, "x")

    def f(x):
        return lax.psum(x, "x"), lax.pmax(x, "x"), lax.pmin(x, "x"), lax.pmean(x.sum(), "x")

    return _manual(m, f, P("x"), P())(x)


def psum_in_groups_of_different_sizes():
    m = mesh(x=8)
    x = put(integers(16, 4), m, "x")
    groups = [[0, 1], [2, 3, 4, 5, 7], [6]]

    def f(x):
        return lax.psum(x, "x", axis_index_groups=groups), lax.pmax(x, "x", axis_index_groups=groups)

    return _manual(m, f, P("x"), P("x"), check_vma=False)(x)


def psum_over_one_of_two_axes():
    m = mesh(x=4, y=2)
    x = put(normal(8, 4), m, "x", "y")
    f = _manual(m, lambda x: (lax.psum(x, "x"), lax.psum(x, "y")), P("x", "y"), (P(None, "y"), P("x")))
    return f(x)


def all_gather():
    m = mesh(x=4, y=2)
    x = put(normal(8, 4), m, ("x", "y"))
    f = _manual(
        m,
        lambda x: (lax.all_gather(x, ("x", "y"), tiled=True), lax.all_gather(x, "x")),
        P(("x", "y")),
        (P(), P(None, "y")),
        check_vma=False,
    )
    return f(x)


def psum_scatter():
    m = mesh(x=8)
    x = put(normal(8, 16), m, None, "x")
    return _manual(m, lambda x: lax.psum_scatter(x, "x", scatter_dimension=0, tiled=True), P(None, "x"), P("x"))(x)


def all_to_all():
    m = mesh(x=8)
    x = put(normal(8, 16, 2), m, "x")
    return _manual(m, lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x"), P(None, "x"))(x)


def ppermute():
    m = mesh(x=8)
    x = put(normal(16), m, "x")

    def f(x):
        return lax.ppermute(x, "x", [(i, (i + 1) % 8) for i in range(8)]), lax.ppermute(x, "x", [(0, 3), (3, 5)])

    return _manual(m, f, P("x"), P("x"))(x)


def axis_index():
    m = mesh(x=4, y=2)
    x = put(integers(8, 2), m, "x", "y")
    f = _manual(m, lambda x: x * 0 + 10 * lax.axis_index("x") + lax.axis_index("y"), P("x", "y"), P("x", "y"))
    return f(x)


def ring_matmul():
    m = mesh(x=8)
    a, b = put(normal(16, 32), m, "x"), put(normal(32, 8, seed=1), m, "x")

    def f(a, b):
        me, total = lax.axis_index("x"), jnp.zeros((a.shape[0], b.shape[1]))

        def step(i, c):
            total, b = c
            part = lax.dynamic_slice_in_dim(a, ((me + i) % 8) * b.shape[0], b.shape[0], 1)
            return total + part @ b, lax.ppermute(b, "x", [(j, (j - 1) % 8) for j in range(8)])

        return lax.fori_loop(0, 8, step, (total, b))[0]

    return _manual(m, f, P("x"), P("x"), check_vma=False)(a, b)


def gradient_through_a_psum():
    m = mesh(x=8)
    w, x = put(normal(4), m), put(normal(16, 4, seed=1), m, "x")
    loss = jax.shard_map(
        lambda w, x: lax.pmean(jnp.mean(jnp.tanh(x @ w) ** 2), "x"), mesh=m, in_specs=(P(), P("x")), out_specs=P()
    )
    return jax.jit(jax.value_and_grad(loss), out_shardings=on(m))(w, x)


def manual_over_one_axis_only():
    m = mesh(x=4, y=2)
    x = put(normal(8, 8), m, "x", "y")

    def f(x):
        inner = jax.shard_map(
            lambda x: lax.psum(x.sum(0), "x"), mesh=m, in_specs=P("x"), out_specs=P(), axis_names=frozenset({"x"})
        )
        return inner(jnp.sin(x)) + x.mean(0)

    return jax.jit(f, out_shardings=on(m))(x)


def collective_in_a_loop():
    m = mesh(x=8)
    x = put(normal(16), m, "x")

    def f(x):
        return lax.fori_loop(0, 6, lambda i, c: c * 0.5 + lax.ppermute(c, "x", [(j, (j + 1) % 8) for j in range(8)]), x)

    return _manual(m, f, P("x"), P("x"))(x)


def vmapped_psum():
    m = mesh(x=8)
    x = put(normal(8, 3, 4), m, "x")
    return _manual(m, jax.vmap(lambda x: lax.psum(x, "x"), in_axes=1, out_axes=1), P("x"), P())(x)


def pending_sums_at_the_border_of_a_manual_region():
    """Sums left to be made outside, and summands that come in."""
    m = jax.make_mesh((4,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,), devices=jax.devices()[:4])
    with jax.set_mesh(m):
        leaves = jax.shard_map(lambda x: lax.pcast(x, "x", to="unreduced"), out_specs=P(unreduced={"x"}))
        enters = jax.shard_map(lambda x: lax.psum_scatter(x, "x", tiled=True), out_specs=P("x"))
        x = jax.device_put(normal(16), P("x"))
        left = jax.jit(leaves)(x)
        summed = jax.reshard(left, P())
        scattered = enters(jax.reshard(jnp.asarray(normal(8)), P(unreduced={"x"})))
        gradient = jax.grad(lambda x: jnp.sin(jax.reshard(leaves(x), P())).sum())(x)
        both = jax.jit(lambda x: enters(leaves(x)))(x)
    return [np.asarray(shard.data) for shard in left.addressable_shards], summed, scattered, gradient, both
