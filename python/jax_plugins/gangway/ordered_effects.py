"""Ordered callbacks go on after one that failed.

JAX strings the programs with ordered effects together by tokens: what one program returned the next one takes. A failed
program's token is an error, and so would be every program behind it. Natively nobody sees that: the call itself raises
and returns no token. A Gangway server answers before a program runs.

Its devices run programs in the order of their calls, so where the devices stay the same the order needs no token: each
program gets one of its own. Where they change, the last one is waited for.
"""

import contextlib

from jax_plugins.gangway import host_callbacks
from jax_plugins.gangway.replacement import replace


def install():
    """Idempotent. Does nothing where this JAX orders effects in another way."""
    try:
        from jax._src import dispatch
    except ImportError:
        return
    tokens = getattr(dispatch, "RuntimeTokenSet", None)
    replace(tokens, "get_token_input", _a_token_of_its_own)
    replace(tokens, "block_until_ready", _telling_once)


def _a_token_of_its_own(original):
    def get_token_input(self, effect, devices):
        last = self.current_tokens.get(effect)
        if last is not None and "proxy" in devices[0].client.runtime_type:
            if tuple(last._buf.sharding._device_assignment) != tuple(devices):
                _wait(last)
            del self.current_tokens[effect]
        return original(self, effect, devices)

    return get_token_input


def _wait(token):
    """Until its program is over. That it failed is told by the program's results."""
    from jax.errors import JaxRuntimeError

    with contextlib.suppress(JaxRuntimeError):
        token.block_until_ready()


def _telling_once(original):
    """jax.effects_barrier(): also of failures whose tokens nobody holds any more, and of none a second time."""

    def block_until_ready(self):
        from jax.errors import JaxRuntimeError

        try:
            original(self)
        finally:
            # One that failed ended the wait; what the others call may use the client still.
            for token in (*self.current_tokens.values(), *self.output_runtime_tokens.values()):
                _wait(token)
            self.clear()
            untold = host_callbacks.take_untold()
        if untold:
            raise JaxRuntimeError(untold[0])

    return block_until_ready
