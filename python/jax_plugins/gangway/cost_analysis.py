"""Lowered.cost_analysis(): JAX asks the backend's own compiler for it, which a proxy does not have.

The analysis looks at the program only; the local CPU's compiler makes it just as well.
"""

import functools


def install():
    """Idempotent. Does nothing where this JAX asks in another way."""
    try:
        from jax._src import xla_bridge
        from jaxlib import _jax
    except ImportError:
        return
    original = getattr(_jax, "hlo_module_cost_analysis", None)
    if original is None or hasattr(original, "gangway"):
        return

    @functools.wraps(original)
    def hlo_module_cost_analysis(backend, module):
        if "proxy" in backend.runtime_type:
            backend = xla_bridge.get_backend("cpu")
        return original(backend, module)

    hlo_module_cost_analysis.gangway = True
    _jax.hlo_module_cost_analysis = hlo_module_cost_analysis
