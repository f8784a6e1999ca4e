"""optax.contrib: a sharded model under optimizers that orthogonalize, estimate curvature or step twice."""

import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from optax import contrib

LIBRARY = "optax"
OPTIMIZERS = {
    "muon": lambda: contrib.muon(1e-2),
    "sophia": lambda: contrib.sophia(1e-2),
    "prodigy": lambda: contrib.prodigy(1.0),
    "schedule_free": lambda: contrib.schedule_free_adamw(1e-2),
    "dadapt": lambda: contrib.dadapt_adamw(1.0),
    "dog": lambda: contrib.dog(1.0),
    "adopt": lambda: contrib.adopt(1e-2),
    "ademamix": lambda: contrib.ademamix(1e-2),
    "sam": lambda: contrib.sam(optax.sgd(0.1), optax.chain(contrib.normalize(), optax.sgd(0.01)), opaque_mode=False),
    "mechanized": lambda: contrib.mechanize(optax.adam(1e-2)),
    "plateau": lambda: optax.chain(optax.adam(1e-2), contrib.reduce_on_plateau(patience=1)),
    "scheduled": lambda: optax.inject_hyperparams(optax.adamw)(optax.warmup_cosine_decay_schedule(0.0, 1e-2, 2, 8)),
    "masked": lambda: optax.multi_transform(
        {"slow": optax.sgd(1e-3), "fast": optax.rmsprop(1e-2)}, {"first": "fast", "second": "slow", "bias": "fast"}
    ),
    "lbfgs": lambda: optax.lbfgs(),
}
OF_CURVATURE = ("sophia",)
OF_VALUES = ("lbfgs", "plateau")


def run(mesh):
    def put(x, *spec):
        return jax.device_put(x, NamedSharding(mesh, P(*spec)))

    keys = jax.random.split(jax.random.key(0), 3)
    x = put(jax.random.normal(keys[0], (64, 32)), "x")
    params = {
        "first": put(0.2 * jax.random.normal(keys[1], (32, 64)), None, "x"),
        "second": put(0.2 * jax.random.normal(keys[2], (64, 8)), "x"),
        "bias": put(jnp.zeros(8)),
    }

    def loss_of(params):
        y = jnp.tanh(x @ params["first"]) @ params["second"] + params["bias"]
        return jnp.mean((y - jnp.sin(x[:, :8])) ** 2)

    found = {}
    for name, make in OPTIMIZERS.items():
        optimizer = optax.with_extra_args_support(make())

        @jax.jit
        def train(params, state, optimizer=optimizer, name=name):
            loss, gradient = jax.value_and_grad(loss_of)(params)
            more = {"value": loss} if name in OF_VALUES else {}
            if name == "lbfgs":
                more |= {"grad": gradient, "value_fn": loss_of}
            if name in OF_CURVATURE:
                more |= {"obj_fn": loss_of}
            updates, state = optimizer.update(gradient, state, params, **more)
            return optax.apply_updates(params, updates), state, loss

        now, state, losses = params, optimizer.init(params), []
        for _ in range(6):
            now, state, loss = train(now, state)
            losses.append(loss)
        found[name] = jnp.stack(losses)
    return found
