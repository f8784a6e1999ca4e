"""keras: layers of several kinds (recurrent, attention, convolutions, normalisations) trained on split batches."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "keras"
TOLERANCE = {"images": 1e-2, "words": 1e-2}


def images():
    return keras.Sequential(
        [
            keras.layers.Input((12, 12, 3)),
            keras.layers.SeparableConv2D(8, 3, padding="same"),
            keras.layers.BatchNormalization(),
            keras.layers.Activation("gelu"),
            keras.layers.Conv2DTranspose(6, 3, strides=2),
            keras.layers.GroupNormalization(2),
            keras.layers.DepthwiseConv2D(3, strides=2),
            keras.layers.AveragePooling2D(2),
            keras.layers.Flatten(),
            keras.layers.Dense(5),
        ]
    )


def words():
    tokens = keras.layers.Input((10,), dtype="int32")
    x = keras.layers.Embedding(20, 8)(tokens)
    x = keras.layers.Bidirectional(keras.layers.GRU(6, return_sequences=True))(x)
    x = keras.layers.LayerNormalization()(x + keras.layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True))
    x = keras.layers.Conv1D(8, 3, dilation_rate=2, padding="causal")(x)
    return keras.Model(tokens, keras.layers.Dense(5)(keras.layers.LSTM(6)(x)))


def losses(model, inputs, labels, steps=4):
    optimizer = keras.optimizers.AdamW(0.01)
    optimizer.build(model.trainable_variables)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def forward(trained, kept):
        out, kept = model.stateless_call(trained, kept, inputs, training=True)
        return loss(labels, out), kept

    @jax.jit
    def step(trained, kept, state):
        (value, kept), gradients = jax.value_and_grad(forward, has_aux=True)(trained, kept)
        trained, state = optimizer.stateless_apply(state, gradients, trained)
        return value, trained, kept, state

    variables = [[v.value for v in part] for part in (model.trainable_variables, model.non_trainable_variables)]
    state = [v.value for v in optimizer.variables]
    found = []
    for _ in range(steps):
        value, *variables, state = step(*variables, state)
        found.append(value)
    return jnp.stack(found)


def run(mesh):
    batch = NamedSharding(mesh, P("x"))
    random = np.random.default_rng(0)
    put = lambda x: jax.device_put(x, batch)  # noqa: E731
    pictures, tokens = put(random.normal(size=(16, 12, 12, 3)).astype("float32")), put(random.integers(0, 20, (16, 10)))
    labels = put(random.integers(0, 5, 16))
    keras.utils.set_random_seed(1)
    found = {"images": losses(images(), pictures, labels)}
    keras.utils.set_random_seed(2)
    return found | {"words": losses(words(), tokens, labels)}
