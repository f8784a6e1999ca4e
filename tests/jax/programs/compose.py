import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import custom_partitioning
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from meshes import mesh, normal, on, put

from gangway import mesh_split, pipeline


def _layer(p, x):
    return x + jnp.tanh(x @ p["in"]) @ p["out"]


def _stages(m, *leading):
    wide = [None] * (len(leading) - 1)
    return {
        "in": put(0.3 * normal(*leading, 16, 32), m, "stage", *wide, None, "model"),
        "out": put(0.3 * normal(*leading, 32, 16, seed=1), m, "stage", *wide, "model", None),
    }


def _microbatches(m, count):
    return put(normal(count, 4, 16, seed=2), m)


def pipeline_gpipe():
    m = mesh(stage=4, model=2)
    run = jax.jit(lambda p, x: pipeline(_layer, p, x, mesh=m, axis="stage"), out_shardings=on(m))
    return run(_stages(m, 4), _microbatches(m, 8))


def pipeline_circular():
    m = mesh(stage=4, model=2)
    run = jax.jit(lambda p, x: pipeline(_layer, p, x, mesh=m, axis="stage", repeats=2), out_shardings=on(m))
    return run(_stages(m, 4, 2), _microbatches(m, 8))


def pipeline_is_the_layers_one_after_the_other():
    m = mesh(stage=4, model=2)
    p, x = _stages(m, 4, 3), _microbatches(m, 4)

    def in_turn(p, x):
        for repeat in range(3):
            for stage in range(4):
                x = _layer(jax.tree.map(lambda a: a[stage, repeat], p), x)  # noqa: B023
        return x

    run = jax.jit(lambda p, x: pipeline(_layer, p, x, mesh=m, axis="stage", repeats=3), out_shardings=on(m))
    difference = jnp.max(jnp.abs(run(p, x) - jax.jit(in_turn, out_shardings=on(m))(p, x)))
    return np.asarray(difference < 1e-4)


def pipeline_gradient():
    m = mesh(stage=4, data=2)
    p = {"in": put(0.3 * normal(4, 16, 32), m, "stage"), "out": put(0.3 * normal(4, 32, 16, seed=1), m, "stage")}
    x = put(normal(4, 4, 16, seed=2), m, None, "data")

    def loss(p, x):
        return jnp.mean(pipeline(jax.checkpoint(_layer), p, x, mesh=m, axis="stage") ** 2)

    places = {"in": on(m, "stage"), "out": on(m, "stage")}
    return jax.jit(jax.value_and_grad(loss), out_shardings=(on(m), places))(p, x)


def _collectives(run, *arguments):
    """{(kind, replica groups or nothing)} of the compiled program."""
    text = run.lower(*arguments).compile().as_text()
    found = re.findall(r" (all-[a-z-]+|reduce-scatter|collective-[a-z]+)(?:-start)?\((.*)", text)
    groups = [(kind, re.search(r"replica_groups=([^a-z]*?), ", rest)) for kind, rest in found]
    return {(kind, match[1] if match else "") for kind, match in groups}


def pipeline_only_permutes():
    m = mesh(stage=8)
    p = {"in": put(normal(8, 64, 32), m, "stage"), "out": put(normal(8, 32, 64), m, "stage")}
    x = put(normal(8, 2, 64, 64), m, "stage")

    def run(p, x):
        return pipeline(_layer, p, x.reshape(16, 64, 64), mesh=m, axis="stage").reshape(x.shape)

    return np.asarray(_collectives(jax.jit(run, out_shardings=x.sharding), p, x) == {("collective-permute", "")})


def pipeline_gradients_only_permute_between_stages():
    m, x = mesh(stage=4, model=2), normal(4, 2, 4, 16, seed=2)
    x = put(x, m, "stage")
    within_a_stage = ("all-reduce", "[4,2]<=[8]")  # the products' sums over "model"

    def only_permutes(repeats, p):
        def loss(p, x):
            y = pipeline(jax.checkpoint(_layer), p, x.reshape(8, 4, 16), mesh=m, axis="stage", repeats=repeats)
            return jnp.mean(y**2)

        places = jax.tree.map(lambda a: a.sharding, (p, x))
        found = _collectives(jax.jit(jax.grad(loss, argnums=(0, 1)), out_shardings=places), p, x)
        return found == {("collective-permute", ""), within_a_stage}

    return np.asarray([only_permutes(1, _stages(m, 4)), only_permutes(2, _stages(m, 4, 2))])


def mesh_split_as_in_the_paper():
    m = mesh(x=4, y=2)

    @jax.jit
    def f(bd, df):
        bd = mesh_split(bd, m, [0, -1])
        df = mesh_split(df, m, [-1, 1])
        return mesh_split(jnp.einsum("bd,df->bf", bd, df), m, [0, 1])

    return f(put(normal(16, 8), m), put(normal(8, 16, seed=1), m))


def custom_partitioning_gives_the_values():
    @custom_partitioning.custom_partitioning
    def centred(x):
        return x - x.mean(axis=-1, keepdims=True)

    def partition(mesh, arguments, result):
        sharding = NamedSharding(mesh, P(arguments[0].sharding.spec[0], None))
        return mesh, lambda x: x - x.mean(axis=-1, keepdims=True), sharding, (sharding,)

    centred.def_partition(partition, sharding_rule="i j -> i j", need_replication_factors=("j",))
    m = mesh(x=4, y=2)
    f = jax.jit(lambda x: centred(2 * x) + 1, in_shardings=on(m, "x"), out_shardings=on(m, "x"))
    return f(normal(8, 16)), jax.jit(centred)(normal(3, 5))
