"""diffrax: a neural ODE fitted to spirals, adaptive steps, 64 trajectories over 8 devices."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "diffrax"


def run(mesh):
    times = jnp.linspace(0.0, 1.0, 10)
    start = jax.random.normal(jax.random.key(0), (64, 2))
    start = jax.device_put(start, NamedSharding(mesh, P("x")))

    def solve(field, y0, controller):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Tsit5(),
            t0=0.0,
            t1=1.0,
            dt0=0.1,
            y0=y0,
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=controller,
        ).ys

    controller = diffrax.PIDController(rtol=1e-3, atol=1e-5)
    spiral = jnp.array([[-0.3, 2.0], [-2.0, -0.3]])
    wanted = jax.jit(jax.vmap(lambda y0: solve(lambda t, y, args: spiral @ y, y0, controller)))(start)

    model = eqx.nn.MLP(2, 2, 32, 1, activation=jax.nn.softplus, key=jax.random.key(1))
    optimizer = optax.adam(1e-2)

    @eqx.filter_jit
    def train(model, state, start, wanted):
        def loss_of(model):
            found = jax.vmap(lambda y0: solve(lambda t, y, args: model(y), y0, controller))(start)
            return jnp.mean((found - wanted) ** 2)

        loss, gradient = eqx.filter_value_and_grad(loss_of)(model)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(model, updates), state, loss

    state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))
    losses = []
    for _ in range(8):
        model, state, loss = train(model, state, start, wanted)
        losses.append(loss)
    return {"wanted": wanted[:, -1], "losses": jnp.stack(losses)}
