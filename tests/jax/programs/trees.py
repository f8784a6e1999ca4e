"""How programs take and give values: trees, static arguments, caching, many programs in flight."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from meshes import mesh, normal, on, put, through_proxy


def nested_containers():
    m = mesh(x=8)
    tree = {"a": [put(normal(8), m, "x"), (put(normal(8, seed=1), m),)], "b": {}}
    return jax.jit(lambda t: jax.tree.map(lambda x: x * 2, t), out_shardings=on(m))(tree)


def same_result_twice():
    m = mesh(x=8)
    x = put(normal(8), m, "x")
    return jax.jit(lambda x: (x, x + 1, x), out_shardings=on(m, "x"))(x)


def unused_and_passed_through_arguments():
    m = mesh(x=8)
    x, y = put(normal(8), m, "x"), put(normal(8, seed=1), m)
    return jax.jit(lambda x, y: (y, jnp.ones(3)), out_shardings=on(m))(x, y)


def static_arguments():
    m = mesh(x=8)

    @functools.partial(jax.jit, static_argnums=1, static_argnames="negate", out_shardings=on(m, "x"))
    def power(x, n, negate=False):
        return -(x**n) if negate else x**n

    x = put(normal(8), m, "x")
    return [power(x, n) for n in (1, 2, 3)] + [power(x, 2, negate=True)]


def calls_of_jitted_functions():
    m = mesh(x=8)
    inner = jax.jit(lambda x: jnp.sin(x) * 2)
    return jax.jit(lambda x: inner(x) + inner(x + 1), out_shardings=on(m, "x"))(put(normal(8), m, "x"))


def many_programs_in_flight():
    m = mesh(x=8)
    f = jax.jit(lambda x, y: (x + y.sum(), y * 0.9), out_shardings=on(m, "x"))
    x, y = put(normal(16), m, "x"), put(normal(16, seed=1), m, "x")
    for _ in range(200):
        x, y = f(x, y)
        if not through_proxy():  # native JAX deadlocks now and then with many collective programs in flight
            x.block_until_ready()
    return x, y


def operations_outside_jit():
    m = mesh(x=8)
    x = put(normal(16, 4), m, "x")
    y = jnp.where(x > 0, x, 0) + x.mean() - x[0]
    return np.asarray(y), np.asarray((x.T @ y)[1]), np.asarray(jnp.sort(y, axis=0)[:3])


def ahead_of_time():
    m = mesh(x=8)
    x = put(normal(16), m, "x")
    compiled = jax.jit(lambda x: x * 3 + x.sum(), out_shardings=on(m, "x")).lower(x).compile()
    flops = compiled.cost_analysis()
    flops = flops[0] if isinstance(flops, list) else flops
    return compiled(x), "HloModule" in compiled.as_text(), flops["flops"] > 0


def shape_error():
    """What JAX itself refuses never reaches the server, and the server goes on."""
    x = put(normal(8), mesh(x=8), "x")
    try:
        jax.jit(lambda x: x @ jnp.ones((3, 3)))(x)
        message = "no error"
    except TypeError as error:
        message = type(error).__name__
    return x + 1, message
