"""jax.experimental.custom_partitioning: functions with a partitioning of their own.

XLA's partitioner calls back into the process that registered it. The one on a Gangway server is in another process, so
the function is lowered as it is defined for one device, and the server partitions that.
"""

from jax_plugins.gangway import host_callbacks
from jax_plugins.gangway.replacement import replace


def install():
    """Idempotent. Does nothing where this JAX has no such functions."""
    try:
        from jax._src import custom_partitioning
        from jax._src.interpreters import mlir
    except ImportError:
        return
    lowering = replace(custom_partitioning, "_custom_partitioning_lowering_rule", _lowering)
    if lowering is not None:
        mlir.register_lowering(custom_partitioning.custom_partitioning_p, lowering)


def _lowering(original):
    def lowering(ctx, *operands, call, **parameters):
        from jax._src import core
        from jax._src.interpreters import mlir

        if not host_callbacks.is_ours(ctx.module_context):
            return original(ctx, *operands, call=call, **parameters)
        return mlir.lower_fun(core.jaxpr_as_fun(call), multiple_results=True)(ctx, *operands)

    return lowering
