"""jax.experimental.colocated_python: functions of Python that are to run on the hosts of their arrays' devices.

Natively that is this process. Nothing that a client sends is run on a server of ours, so here they run in this process
too: what they read of their arguments is fetched, what they return is sent.
"""

from jax_plugins.gangway.replacement import replace


def install():
    """Idempotent. Does nothing where this JAX has no such functions, or runs them in another way."""
    try:
        from jax.experimental.colocated_python import func
    except ImportError:
        return
    replace(func, "_uncached_get_specialized_func", _in_this_process)


def _in_this_process(original):
    def specialized(info, specialization):
        from jax._src import util
        from jax.experimental.colocated_python import serialization

        if "proxy" not in specialization.devices[0].client.runtime_type:
            return original(info, specialization)
        util.test_event("colocated_python_func._get_specialized_func")  # JAX counts them by this
        # As natively: the function has a copy of what it captured.
        function = serialization._deserialize(serialization._serialize(info.fun))

        def run(*args, **kwargs):
            return function(*args, **kwargs)

        return run

    return specialized
