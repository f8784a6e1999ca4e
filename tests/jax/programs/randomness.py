"""Random numbers: every generator, distributions, keys as arrays."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import random
from meshes import mesh, on, why

GENERATORS = "threefry2x32", "rbg", "unsafe_rbg"


def every_generator():
    m = mesh(x=8)

    def draw(key):
        a, b = random.split(key)
        c = random.fold_in(a, 7)
        bits = [random.bits(c, (8, 4), t) for t in (np.uint8, np.uint16, np.uint32)]
        return (
            random.normal(b, (16, 8)),
            random.randint(c, (16,), 0, 100),
            bits,
            random.key_data(random.split(c, (2, 3))),
        )

    return (
        [jax.jit(draw)(random.key(3, impl=g)) for g in GENERATORS],
        [jax.jit(draw, out_shardings=None)(random.key(4, impl=g)) for g in GENERATORS[:1]],
        jax.jit(lambda k: random.uniform(k, (64, 8)), out_shardings=on(m, "x"))(random.key(5)),
    )


def keys_as_arrays():
    m = mesh(x=8)
    keys = random.split(random.key(0), 8)
    keys = jax.device_put(keys, on(m, "x"))
    rows = jax.jit(jax.vmap(lambda k: random.normal(k, (4,))), out_shardings=on(m, "x"))(keys)
    old = random.PRNGKey(1)
    wrapped = random.wrap_key_data(jnp.array([1, 2], jnp.uint32))
    return (
        rows,
        random.key_data(keys),
        random.key_data(keys[::2].reshape(2, 2)),
        old,
        random.normal(wrapped),
        [keys.shape, str(keys.dtype) == "key<fry>", random.key_impl(keys) is not None],
        random.key_data(jnp.concatenate([keys[:1], keys[3:5]])),
        random.key_data(random.clone(keys[0])),
        random.key_data(
            jax.lax.scan(lambda k, _: (random.split(k)[0], random.key_data(k)), keys[0], None, length=3)[0]
        ),
    )


def distributions():
    m = mesh(x=8)
    s = (16, 4)

    def draw(k):
        return {
            "bernoulli": random.bernoulli(k, 0.3, s),
            "beta": random.beta(k, 2.0, 3.0, s),
            "categorical": random.categorical(k, jnp.zeros((16, 5))),
            "cauchy": random.cauchy(k, s),
            "choice": random.choice(k, 10, s),
            "no replacement": random.choice(k, 20, (6,), replace=False),
            "dirichlet": random.dirichlet(k, jnp.ones(4), (16,)),
            "exponential": random.exponential(k, s),
            "gamma": random.gamma(k, 2.0, s),
            "gumbel": random.gumbel(k, s),
            "laplace": random.laplace(k, s),
            "multivariate": random.multivariate_normal(k, jnp.zeros(3), jnp.eye(3), (16,)),
            "normal": random.normal(k, s),
            "orthogonal": random.orthogonal(k, 4),
            "permutation": random.permutation(k, 32),
            "poisson": random.poisson(k, 3.0, s),
            "rademacher": random.rademacher(k, s),
            "randint": random.randint(k, s, -5, 5),
            "truncated": random.truncated_normal(k, -1.0, 1.0, s),
            "uniform": random.uniform(k, s),
            "rows": random.permutation(k, jnp.arange(32).reshape(8, 4)),
        }

    return jax.jit(draw, out_shardings=on(m))(random.key(11))


def low_precision():
    return [
        random.normal(random.key(1), (16,), t).astype(np.float32) for t in (jnp.bfloat16, jnp.float16)
    ], random.uniform(random.key(1), (16,), jnp.bfloat16).astype(np.float32)


def mismatched_keys_are_refused():
    key = random.key(0)
    return why(lambda: key + 1), why(lambda: np.asarray(key)), why(lambda: random.split(random.split(key)))
