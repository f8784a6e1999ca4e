"""jaxley: a nerve cell of three branches with Hodgkin-Huxley channels, 16 stimuli over 8 devices, and gradients."""

import jax
import jax.numpy as jnp
import jaxley
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from jaxley.channels import HH

LIBRARY = "jaxley"


def run(mesh):
    cell = jaxley.Cell(jaxley.Branch(jaxley.Compartment(), ncomp=2), parents=[-1, 0, 0])
    cell.insert(HH())
    cell.branch(1).loc(1.0).record(verbose=False)
    pulse = jaxley.step_current(i_delay=0.5, i_dur=1.0, i_amp=1.0, delta_t=0.025, t_max=3.0)
    strengths = jax.device_put(jnp.linspace(0.02, 0.2, 16), NamedSharding(mesh, P("x")))

    def voltage(strength):
        stimulus = cell.branch(0).loc(0.0).data_stimulate(strength * pulse)
        return jaxley.integrate(cell, data_stimuli=stimulus, delta_t=0.025)[0]

    traces = jax.jit(jax.vmap(voltage))(strengths)
    slopes = jax.jit(jax.vmap(jax.grad(lambda s: voltage(s).mean())))(strengths)
    return {"traces": traces, "slopes": slopes}
