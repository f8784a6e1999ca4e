"""evosax: evolution strategies whose populations lie over 8 devices: CMA-ES, OpenES and differential evolution."""

import evosax.algorithms as algorithms
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "evosax"


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def run(mesh):
    found, split = {}, NamedSharding(mesh, P("x"))
    start = jnp.zeros(6)
    for name in ("CMA_ES", "Open_ES", "DifferentialEvolution"):
        strategy = getattr(algorithms, name)(population_size=32, solution=start)
        settings, key = strategy.default_params, jax.random.key(3)

        @jax.jit
        def generation(state, key, strategy=strategy, settings=settings):
            ask, tell = jax.random.split(key)
            population, state = strategy.ask(ask, state, settings)
            population = jax.lax.with_sharding_constraint(population, split)
            fitness = jax.vmap(rosenbrock)(population)
            state, _ = strategy.tell(tell, population, fitness, state, settings)
            return state, fitness

        if name == "DifferentialEvolution":
            population = jax.device_put(jax.random.normal(key, (32, 6)), split)
            state = strategy.init(key, population, jax.vmap(rosenbrock)(population), settings)
        else:
            state = strategy.init(key, start, settings)
        for turn in range(4):
            state, fitness = generation(state, jax.random.fold_in(key, turn))
        found[name] = jnp.sort(fitness)
    return found
