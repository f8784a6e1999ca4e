"""grain: a shuffled, batched dataset feeds a regression whose batches are split over 8 devices."""

import grain
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "grain"


def run(mesh):
    random = np.random.default_rng(0)
    rows = random.normal(size=(512, 16)).astype(np.float32)
    truth = random.normal(size=16).astype(np.float32)
    dataset = (
        grain.MapDataset.source(rows)
        .seed(7)
        .shuffle()
        .repeat(2)
        .map(lambda row: {"x": row, "y": row @ truth})
        .batch(64, drop_remainder=True)
        .to_iter_dataset()
    )
    sharding = NamedSharding(mesh, P("x"))

    @jax.jit
    def train(w, x, y):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        return w - 0.1 * gradient, loss

    w = jnp.zeros(16)
    losses = []
    for batch in dataset:
        batch = jax.tree.map(lambda x: jax.make_array_from_process_local_data(sharding, x), batch)
        w, loss = train(w, batch["x"], batch["y"])
        losses.append(loss)
    return {"losses": jnp.stack(losses), "weights": w}
