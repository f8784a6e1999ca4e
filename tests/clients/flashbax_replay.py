"""flashbax: replay buffers, flat and prioritised, filled and sampled; what is added comes from 8 devices."""

import flashbax
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "flashbax"


def run(mesh):
    split = NamedSharding(mesh, P("x"))
    flat = flashbax.make_flat_buffer(max_length=128, min_length=16, sample_batch_size=32, add_batch_size=16)
    weighted = flashbax.make_prioritised_flat_buffer(
        max_length=128, min_length=16, sample_batch_size=32, add_batch_size=16, priority_exponent=0.7
    )
    example = {"seen": jnp.zeros(4), "reward": jnp.float32(0), "action": jnp.int32(0)}
    found = {}
    for name, buffer in {"flat": flat, "prioritised": weighted}.items():
        add, sample = jax.jit(buffer.add, donate_argnums=0), jax.jit(buffer.sample)
        state = buffer.init(example)
        for turn in range(10):
            keys = jax.random.split(jax.random.key(turn), 2)
            batch = {
                "seen": jax.random.normal(keys[0], (16, 4)),
                "reward": jax.random.uniform(keys[1], (16,)),
                "action": jnp.arange(16) + turn,
            }
            state = add(state, jax.device_put(batch, split))
        drawn = sample(state, jax.random.key(7))
        if name == "prioritised":
            state = jax.jit(buffer.set_priorities)(state, drawn.indices, jnp.abs(drawn.experience.first["reward"]))
            drawn = sample(state, jax.random.key(8))
        found |= {f"{name}_{key}": value for key, value in drawn.experience.first.items()}
    return found
