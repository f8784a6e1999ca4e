"""A square root by Newton's method, until it is good enough: the controller decides, nothing comes to the client."""

import jax.numpy as jnp
import numpy as np

import gangway

client = gangway.connect()
with client.slice(devices=2) as slice:
    number = np.float32(0)
    step = client.compile(lambda guess, a: (guess + a / guess) / 2, slice, number, number)
    far = client.compile(lambda guess, a: jnp.abs(guess * guess - a) > 1e-5 * a, slice, number, number)
    negative = client.compile(lambda a: a < 0, slice, number)
    nothing = client.compile(lambda a: jnp.full_like(a, jnp.nan), slice, number)

    @client.program
    def root(a):
        def search():
            return client.program.while_loop(lambda x: far(x, a), lambda x: step(x, a), step(a, a))

        return client.program.cond(negative(a), lambda: nothing(a), search)

    print([round(float(root(value)), 4) for value in (2.0, 81.0, -1.0)])
