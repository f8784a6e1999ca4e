"""transformers: its Flax models BERT and GPT-2 from their configurations, a batch over 8 devices, greedy decoding."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from transformers import BertConfig, FlaxBertModel, FlaxGPT2LMHeadModel, GPT2Config

LIBRARY = "transformers"


def run(mesh):
    words = jax.random.randint(jax.random.key(0), (16, 8), 0, 100)
    words = jax.device_put(words, NamedSharding(mesh, P("x")))
    reader = FlaxBertModel(
        BertConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            vocab_size=100,
            max_position_embeddings=32,
        ),
        seed=0,
        input_shape=(1, 8),
    )
    writer = FlaxGPT2LMHeadModel(
        GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=100, n_positions=32), seed=0, input_shape=(1, 8)
    )

    @jax.jit
    def loss(params):
        logits = writer(words, params=params).logits[:, :-1]
        picked = jnp.take_along_axis(jax.nn.log_softmax(logits), words[:, 1:, None], -1)
        return -picked.mean()

    value, slopes = jax.value_and_grad(loss)(writer.params)
    written = writer.generate(words[:, :4], max_length=10, pad_token_id=0, do_sample=False).sequences
    return {
        "hidden": reader(words).last_hidden_state,
        "loss": value,
        "slope": slopes["transformer"]["wte"]["embedding"],
        "written": written,
    }
