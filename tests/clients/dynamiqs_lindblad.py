"""dynamiqs: damped oscillators, one initial state for each of 8 devices, and the gradient by the rate of damping."""

import dynamiqs as dq
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "dynamiqs"


def run(mesh):
    a = dq.destroy(8)
    number = dq.dag(a) @ a
    times = jnp.linspace(0.0, 1.0, 6)
    amplitudes = jax.device_put(jnp.linspace(0.2, 1.2, 8), NamedSharding(mesh, P("x")))

    def numbers(rate, amplitude):
        start = dq.coherent(8, amplitude)
        result = dq.mesolve(0.5 * number, [jnp.sqrt(rate) * a], start, times, exp_ops=[number], progress_meter=False)
        return result.expects[0].real

    found = jax.jit(jax.vmap(numbers, in_axes=(None, 0)))(0.3, amplitudes)
    gradient = jax.jit(jax.grad(lambda rate: numbers(rate, 0.8)[-1]))(0.3)
    return {"numbers": found, "gradient": gradient}
