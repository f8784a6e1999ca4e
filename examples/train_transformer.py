"""Train a small Transformer language model on the sources of the Python standard library, one byte a token.

Plain JAX and optax: a decoder-only model with RMSNorm, rotary positions, causal attention and SwiGLU, its layers
stacked and scanned, each layer rematerialised in the backward pass. The devices form a mesh data x model; every matrix
and its optimizer state is sharded over both axes (fully sharded data parallelism over "data", Megatron's tensor
parallelism over "model") and the batch over "data". The annotations are the only distributed part of this file.

    build/gangway run --devices 8 -- python examples/train_transformer.py
    JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 python examples/train_transformer.py
"""

import argparse
import dataclasses
import json
import pathlib
import sysconfig
import time

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from tqdm import tqdm

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

VOCABULARY = 256  # a token is a byte


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int = 6
    width: int = 128
    heads: int = 4
    hidden: int = 384
    sequence: int = 256
    batch: int = 32

    @property
    def head_width(self):
        return self.width // self.heads


# --- The model ---

# How each parameter lies on the mesh. A matrix has one dimension on "model" (Megatron: columns of the first matrix of a
# block, rows of the second) and the other on "data" (gathered where it is used). The norms' scales are too small to
# shard.
PARAMETER_SPECS = {
    "embed": P("data", "model"),
    "layers": {
        "attention_norm": P(),
        "wq": P(None, "data", "model", None),
        "wk": P(None, "data", "model", None),
        "wv": P(None, "data", "model", None),
        "wo": P(None, "model", None, "data"),
        "mlp_norm": P(),
        "w_gate": P(None, "data", "model"),
        "w_up": P(None, "data", "model"),
        "w_down": P(None, "model", "data"),
    },
    "final_norm": P(),
    "unembed": P("data", "model"),
}
ACTIVATION = P("data", None, None)  # batch, position, width
HEADS = P("data", None, "model", None)  # batch, position, head, head width
HIDDEN = P("data", None, "model")  # batch, position, hidden or vocabulary


def init_parameters(config, key):
    """Random parameters; the leaves of "layers" are stacked over the layers."""
    n, d, h, k, f = config.layers, config.width, config.heads, config.head_width, config.hidden
    keys = iter(jax.random.split(key, 9))

    def matrix(shape, inputs):
        return jax.random.normal(next(keys), shape) * inputs**-0.5

    return {
        "embed": matrix((VOCABULARY, d), 1),
        "layers": {
            "attention_norm": jnp.ones((n, d)),
            "wq": matrix((n, d, h, k), d),
            "wk": matrix((n, d, h, k), d),
            "wv": matrix((n, d, h, k), d),
            # What writes into the residual stream starts smaller, so that the stream does not grow with the depth.
            "wo": matrix((n, h, k, d), 2 * n * d),
            "mlp_norm": jnp.ones((n, d)),
            "w_gate": matrix((n, d, f), d),
            "w_up": matrix((n, d, f), d),
            "w_down": matrix((n, f, d), 2 * n * f),
        },
        "final_norm": jnp.ones(d),
        "unembed": matrix((d, VOCABULARY), d),
    }


def rms_norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def rotate(x):
    """Rotary position embedding of x [batch, position, head, head width]."""
    half = x.shape[-1] // 2
    frequency = 10000.0 ** (-jnp.arange(half) / half)
    angle = jnp.arange(x.shape[1])[:, None] * frequency
    cos, sin = jnp.cos(angle)[:, None, :], jnp.sin(angle)[:, None, :]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def attention(x, layer, constrain):
    q = constrain(rotate(jnp.einsum("bsd,dhk->bshk", x, layer["wq"])), HEADS)
    k = constrain(rotate(jnp.einsum("bsd,dhk->bshk", x, layer["wk"])), HEADS)
    v = constrain(jnp.einsum("bsd,dhk->bshk", x, layer["wv"]), HEADS)
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k) * q.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e30), axis=-1)
    mixed = constrain(jnp.einsum("bhqs,bshk->bqhk", weights, v), HEADS)
    return jnp.einsum("bqhk,hkd->bqd", mixed, layer["wo"])


def mlp(x, layer, constrain):
    gate = constrain(jnp.einsum("bsd,df->bsf", x, layer["w_gate"]), HIDDEN)
    up = constrain(jnp.einsum("bsd,df->bsf", x, layer["w_up"]), HIDDEN)
    return jnp.einsum("bsf,fd->bsd", jax.nn.silu(gate) * up, layer["w_down"])


def logits_of(parameters, tokens, constrain):
    @jax.checkpoint
    def layer_step(x, layer):
        x = constrain(x + attention(rms_norm(x, layer["attention_norm"]), layer, constrain), ACTIVATION)
        x = constrain(x + mlp(rms_norm(x, layer["mlp_norm"]), layer, constrain), ACTIVATION)
        return x, None

    x = constrain(parameters["embed"][tokens], ACTIVATION)
    x, _ = jax.lax.scan(layer_step, x, parameters["layers"])
    x = rms_norm(x, parameters["final_norm"])
    return constrain(jnp.einsum("bsd,dv->bsv", x, parameters["unembed"]), HIDDEN)


def loss_of(parameters, tokens, constrain):
    """Mean cross-entropy in nats per byte of tokens [batch, sequence + 1]: each position predicts the next byte."""
    logits = logits_of(parameters, tokens[:, :-1], constrain)
    target = jax.nn.one_hot(tokens[:, 1:], VOCABULARY)
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - jnp.sum(logits * target, axis=-1))


# --- Data ---


def read_text(limit=8 << 20):
    """The standard library's modules, concatenated in the order of their names, as bytes."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    files = sorted(p for p in library.glob("*.py")) + sorted(library.glob("[a-z]*/*.py"))
    files = [p for p in files if p.parent.name not in ("site-packages", "test", "idlelib")]
    return np.frombuffer(b"".join(p.read_bytes() for p in files)[:limit], np.uint8)


def batches(text, config, seed):
    """Endless random windows, the same for the same seed."""
    random = np.random.default_rng(seed)
    window = np.arange(config.sequence + 1)
    while True:
        start = random.integers(0, len(text) - len(window), config.batch)
        yield text[start[:, None] + window].astype(np.int32)


# --- Training ---


def make_training(config, mesh, steps, learning_rate):
    """Returns (init, step): init(key) -> (parameters, state); step(parameters, state, tokens) -> (..., loss)."""

    def sharding(spec):
        return NamedSharding(mesh, spec)

    def constrain(x, spec):
        return jax.lax.with_sharding_constraint(x, sharding(spec))

    schedule = optax.warmup_cosine_decay_schedule(
        0.0, learning_rate, min(20, steps), max(steps, 21), 0.1 * learning_rate
    )
    optimizer = optax.adam(schedule, b2=0.99)

    parameter_shardings = jax.tree.map(sharding, PARAMETER_SPECS, is_leaf=lambda x: isinstance(x, P))
    shapes = jax.eval_shape(lambda key: init_parameters(config, key), jax.random.key(0))
    # Adam's moments lie like the parameters they belong to, its counters everywhere.
    state_shardings = optax.tree.map_params(
        optimizer,
        lambda _, where: where,
        jax.eval_shape(optimizer.init, shapes),
        parameter_shardings,
        transform_non_params=lambda _: sharding(P()),
    )

    def init(key):
        parameters = init_parameters(config, key)
        return parameters, optimizer.init(parameters)

    def step(parameters, state, tokens):
        loss, gradients = jax.value_and_grad(loss_of)(parameters, tokens, constrain)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    shardings = (parameter_shardings, state_shardings)
    return (
        jax.jit(init, out_shardings=shardings),
        jax.jit(
            step,
            in_shardings=(*shardings, sharding(P("data", None))),
            out_shardings=(*shardings, sharding(P())),
            donate_argnums=(0, 1),
        ),
    )


def train(config, mesh, steps, learning_rate, seed):
    """Returns the losses, the time at which each became known, and the final parameters."""
    init, step = make_training(config, mesh, steps, learning_rate)
    parameters, state = init(jax.random.key(seed))
    data = batches(read_text(), config, seed)
    tokens_sharding = NamedSharding(mesh, P("data", None))
    losses, times, previous = [], [], None
    progress = tqdm(total=steps, unit="step", smoothing=0.1, mininterval=0.5)

    def record(loss):
        losses.append(float(loss))
        times.append(time.perf_counter())
        speed = config.batch * config.sequence / (times[-1] - times[-2]) if len(times) > 1 else 0.0
        progress.set_postfix_str(f"loss {losses[-1]:.3f}, {speed:,.0f} tokens/s", refresh=False)
        progress.update()

    for _ in range(steps):
        tokens = jax.device_put(next(data), tokens_sharding)
        parameters, state, loss = step(parameters, state, tokens)
        # The loss is read one step late, so that the devices already have their next step while the host waits.
        if previous is not None:
            record(previous)
        previous = loss
    record(previous)
    progress.close()
    return losses, times, parameters


def draw_losses(losses, path):
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(np.arange(1, len(losses) + 1), losses, linewidth=1.2)
    axes.set(xlabel="step", ylabel="loss, nats per byte", title="Transformer on the Python standard library")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120, bbox_inches="tight")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="training steps (default: %(default)s)")
    parser.add_argument("--data", type=int, default=4, help="size of the mesh axis 'data' (default: %(default)s)")
    parser.add_argument("--model", type=int, default=2, help="size of the mesh axis 'model' (default: %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=4e-3, help="peak of the schedule (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of parameters and data order (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default="out", help="folder of loss.png (default: %(default)s)")
    parser.add_argument("--json", type=pathlib.Path, help="file for losses and speed")
    for field in dataclasses.fields(Config):
        parser.add_argument(f"--{field.name}", type=int, default=field.default, help="default: %(default)s")
    args = parser.parse_args()
    config = Config(**{field.name: getattr(args, field.name) for field in dataclasses.fields(Config)})

    count = args.data * args.model
    devices = jax.devices()
    if len(devices) < count:
        parser.error(f"a mesh of {args.data} x {args.model} needs {count} devices; JAX has {len(devices)}")
    mesh = Mesh(np.array(devices[:count]).reshape(args.data, args.model), ("data", "model"))
    print(f"{count} devices ({devices[0].platform}, {devices[0].client.runtime_type}), mesh {dict(mesh.shape)}")

    start = time.perf_counter()
    losses, times, parameters = train(config, mesh, args.steps, args.learning_rate, args.seed)
    count_parameters = sum(x.size for x in jax.tree.leaves(parameters))
    # The first steps include compilation; they are left out of the speed.
    skip = min(2, args.steps - 1)
    speed = (args.steps - 1 - skip) / (times[-1] - times[skip]) if args.steps > skip + 1 else 0.0
    print(f"{count_parameters:,} parameters, loss {losses[0]:.3f} -> {losses[-1]:.3f}, {speed:.3f} steps/s")
    print("unembed [width, vocabulary] on the mesh:")
    jax.debug.visualize_array_sharding(parameters["unembed"])

    args.out.mkdir(parents=True, exist_ok=True)
    draw_losses(losses, args.out / "loss.png")
    print(f"picture of the loss: {args.out / 'loss.png'}")
    if args.json:
        figures = {
            "steps": args.steps,
            "losses": losses,
            "losses_known_s": [time - times[0] for time in times],
            "steps_per_s": speed,
            "tokens_per_s": speed * config.batch * config.sequence,
            "first_step_s": times[0] - start,
            "parameters": count_parameters,
            "devices": count,
        }
        args.json.write_text(json.dumps(figures) + "\n")


if __name__ == "__main__":
    main()
