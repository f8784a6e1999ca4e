"""google-tunix: its trainer fine-tunes a small Llama by LoRA on a mesh fsdp=4, tp=2."""

import contextlib
import io

import jax
import jax.numpy as jnp
import numpy as np
import optax
import qwix
from flax import nnx
from jax.sharding import Mesh
from tunix.models.llama3 import model as llama
from tunix.sft import peft_trainer

LIBRARY = "google-tunix"
STEPS = 5


def run(mesh):
    mesh = Mesh(np.array(mesh.devices).reshape(4, 2), ("fsdp", "tp"))
    config = llama.ModelConfig(
        num_layers=2,
        vocab_size=64,
        embed_dim=32,
        hidden_dim=64,
        num_heads=4,
        head_dim=8,
        num_kv_heads=2,
        rope_theta=10_000,
        norm_eps=1e-5,
    )
    losses = []

    class Trainer(peft_trainer.PeftTrainer):
        def _post_process_train_step(self, aux):
            pass

        def _train_step(self, model, optimizer, inputs):
            loss, aux, norm = super()._train_step(model, optimizer, inputs)
            jax.debug.callback(lambda value: losses.append(float(value)), loss)
            return loss, aux, norm

    with mesh:

        @nnx.jit
        def create():
            model = llama.Llama3(config, rngs=nnx.Rngs(0))
            state = nnx.state(model)
            nnx.update(model, jax.lax.with_sharding_constraint(state, nnx.get_partition_spec(state)))
            return model

        model = create()
        provider = qwix.LoraProvider(module_path=".*q_proj|.*kv_proj|.*gate_proj", rank=4, alpha=8.0)
        model = qwix.apply_lora_to_model(model, provider, **model.get_model_input(), rngs=nnx.Rngs(1))
        trainer = Trainer(
            model, optax.adamw(1e-2), peft_trainer.TrainingConfig(eval_every_n_steps=100, max_steps=STEPS)
        )
        trainer = trainer.with_gen_model_input_fn(model_input)
        with contextlib.redirect_stdout(io.StringIO()):
            trainer.train(batches())
        adapters = jax.tree.leaves(nnx.state(model, nnx.LoRAParam))
    jax.effects_barrier()
    return {"losses": jnp.array(losses), "adapters": jnp.array([float(jnp.abs(a).sum()) for a in adapters])}


def model_input(batch):
    tokens = batch.input_tokens
    positions = jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
    causal = jnp.tril(jnp.ones((tokens.shape[1],) * 2, bool))
    return {
        "input_tokens": tokens,
        "input_mask": batch.input_mask,
        "positions": positions,
        "attention_mask": jnp.broadcast_to(causal, (tokens.shape[0], *causal.shape)),
    }


def batches():
    random = np.random.default_rng(0)
    for _ in range(STEPS):
        tokens = (random.integers(0, 64, (8, 1)) + 3 * np.arange(16)) % 64
        yield peft_trainer.TrainingInput(input_tokens=tokens.astype(np.int32), input_mask=np.ones((8, 16), bool))
