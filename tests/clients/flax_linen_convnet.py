"""flax.linen: a convolutional net with batch statistics, dropout and a scanned body, its batch split over 8 devices."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "flax"


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        y = nn.Conv(16, (3, 3))(nn.relu(nn.BatchNorm(use_running_average=not train)(x)))
        return x + nn.Dropout(0.1, deterministic=not train)(y), None


class Net(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(16, (3, 3), strides=2)(x)
        body = nn.scan(
            nn.remat(Block, static_argnums=2),
            variable_axes={"params": 0, "batch_stats": 0},
            split_rngs={"params": True, "dropout": True},
            in_axes=nn.broadcast,
            length=3,
        )
        x, _ = body()(x, train)
        x = nn.GroupNorm(4)(nn.avg_pool(x, (2, 2), strides=(2, 2)))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


def run(mesh):
    keys = jax.random.split(jax.random.key(0), 4)
    split = NamedSharding(mesh, P("x"))
    images = jax.device_put(jax.random.normal(keys[0], (32, 16, 16, 3)), split)
    labels = jax.device_put(jax.random.randint(keys[1], (32,), 0, 10), split)
    net = Net()
    variables = jax.jit(lambda key: net.init(key, images, False))(keys[2])
    params, statistics = variables["params"], variables["batch_stats"]
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.lamb(1e-2))
    state = optimizer.init(params)

    @jax.jit
    def train(params, statistics, state, key):
        def loss_of(params):
            logits, changed = net.apply(
                {"params": params, "batch_stats": statistics},
                images,
                True,
                rngs={"dropout": key},
                mutable=["batch_stats"],
            )
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
            return loss, changed["batch_stats"]

        (loss, statistics_now), gradient = jax.value_and_grad(loss_of, has_aux=True)(params)
        updates, state_now = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), statistics_now, state_now, loss

    losses = []
    for key in jax.random.split(keys[3], 6):
        params, statistics, state, loss = train(params, statistics, state, key)
        losses.append(loss)
    logits = jax.jit(lambda p, s: net.apply({"params": p, "batch_stats": s}, images, False))(params, statistics)
    return {"losses": jnp.stack(losses), "logits": logits}
