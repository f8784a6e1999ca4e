"""sympy2jax: a formula with trained constants, evaluated and fitted on points over 8 devices."""

import equinox
import jax
import jax.numpy as jnp
import sympy
import sympy2jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "sympy2jax"


def run(mesh):
    x, y = sympy.symbols("x y")
    formula = 1.5 * sympy.sin(0.7 * x) ** 2 + sympy.exp(-y * 0.3) * x / (1 + y**2)
    module = sympy2jax.SymbolicModule([formula, sympy.diff(formula, x), sympy.Max(x, y)])
    points = {name: jax.random.normal(jax.random.PRNGKey(i), (64,)) for i, name in enumerate("xy")}
    points = jax.device_put(points, NamedSharding(mesh, P("x")))

    @equinox.filter_jit
    def step(module):
        loss, gradients = equinox.filter_value_and_grad(lambda m: jnp.mean((m(**points)[0] - 1) ** 2))(module)
        return loss, jax.tree.map(lambda p, g: p if g is None else p - 0.1 * g, module, gradients)

    losses = []
    for _ in range(5):
        loss, module = step(module)
        losses.append(loss)
    value, slope, largest = module(**points)
    return {"losses": jnp.stack(losses), "value": value, "slope": slope, "largest": largest}
