"""Collectives that are started in one place and waited for in another."""

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.lax import parallel
from jax.sharding import PartitionSpec as P
from meshes import mesh, normal, put


def _round(mesh, by):
    return [(i, (i + by) % mesh.size) for i in range(mesh.size)]


def collectives_that_are_waited_for_later():
    m = mesh(x=8)

    def shard(x):
        total, moved = parallel.psum_start(x.sum(), "x"), parallel.ppermute_start(x, "x", _round(m, 1))
        both = jnp.concatenate([x, 2 * x] * 4)
        scattered = parallel.psum_scatter_start(both, "x", scatter_dimension=0, tiled=True)
        exchanged = parallel.all_to_all_start(both, "x", split_axis=0, concat_axis=0, tiled=True)
        mine = jnp.cos(x)
        return mine + total.done() + moved.done(), scattered.done(), exchanged.done()

    return jax.jit(jax.shard_map(shard, mesh=m, in_specs=P("x"), out_specs=P("x")))(put(normal(32), m, "x"))


def collectives_that_are_waited_for_in_a_loop():
    m = mesh(x=8)

    def shard(x):
        def step(x, _):
            return jnp.sin(parallel.ppermute_start(x, "x", _round(m, 3)).done()) + x, None

        return jax.lax.scan(step, x, None, length=3)[0]

    run = jax.jit(jax.shard_map(shard, mesh=m, in_specs=P("x"), out_specs=P("x")))
    lowered = run.lower(put(normal(32), m, "x"))
    result = lowered.compile()(put(normal(32), m, "x"))
    return result, np.asarray("async_start" in lowered.as_text())


def operations_in_a_given_order():
    from jax.experimental.control_deps import schedule

    m = mesh(x=8)

    def plain(x):
        a, b = jnp.sin(x @ x.T), jnp.cos(x.T @ x)
        schedule([b, a])
        return a.sum() + b.sum()

    def layers(x, weights):
        asked = [parallel.all_gather_start(w, "x", tiled=True) for w in weights]
        whole = [gather.done() for gather in asked]
        steps = [x]
        for w in whole:
            steps.append(jnp.tanh(steps[-1] @ w))
        schedule([asked[0].x, whole[0], asked[1].x, steps[1], whole[1], steps[2]])
        return steps[-1]

    run = jax.shard_map(layers, mesh=m, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    weights = [put(normal(16, 16, seed=i), m, "x") for i in range(2)]
    return jax.jit(plain)(normal(8, 8)), jax.jit(run)(put(normal(16, 16), m, "x"), weights)
