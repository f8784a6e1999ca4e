"""gemma: its own loop samples from a small Gemma with its KV cache; prompts over "x", heads and vocabulary over "y"."""

import jax
import jax.numpy as jnp
import numpy as np
from gemma import gm
from gemma.gm.nn import _config, _modules
from gemma.gm.text import _sampler_loop
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "gemma"
BATCH, PROMPT, CACHE = 8, 6, 32


def run(mesh):
    mesh = Mesh(np.array(mesh.devices).reshape(4, 2), ("x", "y"))
    model = gm.nn.Transformer(
        config=_config.TransformerConfig(
            num_embed=128,
            embed_dim=64,
            hidden_dim=128,
            num_heads=4,
            head_dim=16,
            num_kv_heads=2,
            final_logit_softcap=30.0,
            use_post_attn_norm=True,
            use_post_ffw_norm=True,
            attention_types=(_modules.AttentionType.LOCAL_SLIDING, _modules.AttentionType.GLOBAL),
            sliding_window_size=8,
            use_qk_norm=True,
        ),
        tokens="batch.tokens",
        dtype=jnp.float32,
    )
    tokens = jax.random.randint(jax.random.key(0), (BATCH, PROMPT), 3, 128)
    params = jax.jit(model.init)(jax.random.key(1), tokens)["params"]
    params = jax.tree.map(lambda p: 0.5 * jax.random.normal(jax.random.key(p.size), p.shape), params)

    def split(leaf):  # the vocabulary and the hidden units, whichever dimension has them
        axes = ["y" if size in (128, 4) else None for size in leaf.shape]
        return NamedSharding(mesh, P(*axes[: axes.index("y") + 1]) if "y" in axes else P())

    params = jax.device_put(params, jax.tree.map(split, params))
    by_prompt = NamedSharding(mesh, P("x"))
    tokens = jax.device_put(tokens, by_prompt)

    positions = jnp.broadcast_to(jnp.arange(PROMPT), (BATCH, PROMPT))
    causal = jnp.arange(CACHE)[None] <= jnp.arange(PROMPT)[:, None]
    cache = model.config.init_cache(batch_size=BATCH, dtype=jnp.float32, cache_length=CACHE)
    cache = jax.device_put(cache, by_prompt)
    out = model.apply(
        {"params": params},
        tokens=tokens,
        cache=cache,
        positions=positions,
        attention_mask=jnp.broadcast_to(causal, (BATCH, PROMPT, CACHE)),
    )
    loop = _sampler_loop.SamplerLoop(
        model=model,
        end_tokens=(1,),
        forbidden_tokens=(0, 2),
        sampling=gm.text.TopkSampling(k=16),
        cache_length=CACHE,
        special_tokens=None,
    )
    state = _sampler_loop.SamplingState(
        step=jnp.asarray(0),
        done=jnp.zeros(BATCH, bool),
        last_token=jnp.argmax(out.logits[:, -1], axis=-1).astype(jnp.int32),
        last_token_pos=jnp.full(BATCH, PROMPT, jnp.int32),
        predicted_tokens=jnp.zeros((BATCH, 16), jnp.int32),
        cache=out.cache,
        rng=jax.random.key(2),
        init_cache_length=jnp.asarray(PROMPT),
        full_attention_mask=jnp.ones((BATCH, CACHE), bool),
    )
    state = loop.sample(params=params, init_state=state, max_new_tokens=jnp.asarray(12))
    return {"tokens": state.predicted_tokens, "keys": state.cache["layer_1"]["k"], "steps": state.step}
