"""The program of docs/simulate.md: one step of a decoder with 8 billion parameters on 2,048 devices that nobody has.

Writes the step to a file, for `gangway simulate`: Megatron over `model`, FSDP over `data`.
"""

import sys

import jax
import jax.numpy as jnp
from jax import export
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY = 32, 4096, 32, 16384, 32768
BATCH, LENGTH = 1024, 4096
mesh = AbstractMesh((int(sys.argv[2]) // 8, 8), ("data", "model"))


def array(shape, *spec, dtype=jnp.bfloat16):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def constrain(x, *spec):
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(*spec)))


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6).astype(x.dtype)


def block(x, layer):
    q, k, v = (jnp.einsum("btd,dhk->bthk", norm(x), layer[name]) for name in "qkv")
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k) * (WIDTH // HEADS) ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    x = x + jnp.einsum("bhqs,bshk,hkd->bqd", jax.nn.softmax(scores.astype(jnp.float32)).astype(x.dtype), v, layer["o"])
    x = x + jax.nn.silu(norm(x) @ layer["up"]) @ layer["down"]
    return constrain(x, "data", None, None), None


def loss(parameters, tokens):
    x = constrain(parameters["embed"][tokens], "data", None, None)
    x, _ = jax.lax.scan(jax.checkpoint(block), x, parameters["layers"])
    logits = (norm(x) @ parameters["embed"].T).astype(jnp.float32)
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits[:, :-1]), tokens[:, 1:, None], -1)
    return -picked.mean()


@jax.jit
def step(parameters, tokens):
    value, gradients = jax.value_and_grad(loss)(parameters, tokens)
    return jax.tree.map(lambda p, g: p - (1e-3 * g).astype(p.dtype), parameters, gradients), value


heads = (LAYERS, WIDTH, HEADS, WIDTH // HEADS)
layers = {name: array(heads, None, "data", "model", None) for name in "qkv"}
layers["o"] = array((LAYERS, HEADS, WIDTH // HEADS, WIDTH), None, "model", None, "data")
layers["up"] = array((LAYERS, WIDTH, HIDDEN), None, "data", "model")
layers["down"] = array((LAYERS, HIDDEN, WIDTH), None, "model", "data")
parameters = {"embed": array((VOCABULARY, WIDTH), "model", "data"), "layers": layers}
tokens = array((BATCH, LENGTH), "data", None, dtype=jnp.int32)

with open(sys.argv[1], "wb") as file:
    file.write(export.export(step, platforms=["cpu"])(parameters, tokens).mlir_module_serialized)
