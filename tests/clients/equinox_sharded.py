"""equinox: filtered jit, gradients, shardings and state; lineax and optimistix where it is used."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "equinox"


class Net(eqx.Module):
    conv: eqx.nn.Conv1d
    norm: eqx.nn.BatchNorm
    cell: eqx.nn.LSTMCell
    out: eqx.nn.MLP
    scale: float = eqx.field(static=True)

    def __init__(self, key):
        keys = jax.random.split(key, 3)
        self.conv = eqx.nn.Conv1d(4, 8, 3, padding=1, key=keys[0])
        self.norm = eqx.nn.BatchNorm(8, "batch", mode="batch")
        self.cell = eqx.nn.LSTMCell(8, 16, key=keys[1])
        self.out = eqx.nn.MLP(16, 4, 32, 2, key=keys[2])
        self.scale = 0.5

    def __call__(self, x, state):
        y, state = self.norm(jax.nn.relu(self.conv(x)), state)
        carry = (jnp.zeros(16), jnp.zeros(16))
        (h, _), _ = jax.lax.scan(lambda c, v: (self.cell(v, c), None), carry, y.T)
        return self.out(h) * self.scale, state


def run(mesh):
    data, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (32, 4, 10))
    y = jnp.sin(x.sum((1, 2)))[:, None] * jnp.ones(4)
    x, y = eqx.filter_shard((x, y), data)
    net, state = eqx.nn.make_with_state(Net)(keys[1])
    optimizer = optax.adam(1e-2)
    held = optimizer.init(eqx.filter(net, eqx.is_inexact_array))
    net, state, held = eqx.filter_shard((net, state, held), whole)

    @eqx.filter_value_and_grad(has_aux=True)
    def loss_of(net, state, x, y):
        mapped = jax.vmap(net, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        guess, state = mapped(x, state)
        return jnp.mean((guess - y) ** 2), state

    @eqx.filter_jit(donate="all-except-first")
    def train(batch, net, state, held):
        net, state, held = eqx.filter_shard((net, state, held), whole)
        (loss, state), gradient = loss_of(net, state, *batch)
        updates, held = optimizer.update(gradient, held, eqx.filter(net, eqx.is_inexact_array))
        return *eqx.filter_shard((eqx.apply_updates(net, updates), state, held), whole), loss

    losses = []
    for _ in range(5):
        net, state, held, loss = train((x, y), net, state, held)
        losses.append(loss)
    still = eqx.nn.inference_mode(net)
    guess = eqx.filter_jit(lambda n, s, x: jax.vmap(lambda v: n(v, s)[0])(x))(still, state, x)

    @eqx.filter_jit
    def checked(v):
        return eqx.error_if(v, v.sum() > 1e9, "too large") * 2

    hessian = eqx.filter_jit(eqx.filter_hessian(lambda v: jnp.sum(jnp.sin(v) ** 2)))(x[0, 0])
    return {"losses": jnp.stack(losses), "guess": guess, "checked": checked(x), "hessian": hessian}
