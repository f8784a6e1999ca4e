"""jax.experimental.buffer_callback: Python functions that read and write buffers in place.

Natively they get the program's own buffers. Here the buffers are in another process, so the function gets arrays of
this one with the same interface, and what it left in its outputs goes back, as the results of a host callback do.
"""

import numpy as np
from jax_plugins.gangway import host_callbacks
from jax_plugins.gangway.replacement import replace


def install():
    """Idempotent. Does nothing where this JAX has no such callbacks."""
    try:
        from jax._src import buffer_callback
        from jax._src.interpreters import mlir
    except ImportError:
        return
    lowering = replace(buffer_callback, "_buffer_callback_lowering", _lowering)
    if lowering is not None:
        mlir.register_lowering(buffer_callback.buffer_callback_p, lowering)


def _lowering(original):
    def lowering(ctx, *operands, **parameters):
        ours = host_callbacks.is_ours(ctx.module_context)
        return (_lower if ours else original)(ctx, *operands, **parameters)

    return lowering


def _lower(ctx, *operands, callback, in_tree, out_tree, has_side_effect, input_output_aliases, **_):
    from jax import tree_util
    from jax._src import callback as jax_callback

    def run(*arguments):
        arguments = [np.asarray(argument) for argument in arguments]
        outputs = [np.zeros(aval.shape, aval.dtype) for aval in ctx.avals_out]
        for operand, output in input_output_aliases:
            outputs[output][...] = arguments[operand]
            arguments[operand] = outputs[output]
        args, kwargs = tree_util.tree_unflatten(in_tree, [Buffer(array, writeable=False) for array in arguments])
        out = tree_util.tree_unflatten(out_tree, [Buffer(array, writeable=True) for array in outputs])
        if callback(ExecutionContext(), out, *args, **kwargs) is not None:
            raise ValueError("buffer_callback callback must not return any values.")
        return tuple(outputs)

    results, _, _ = jax_callback.emit_python_callback(
        ctx, run, None, operands, ctx.avals_in, ctx.avals_out, has_side_effect=has_side_effect
    )
    return results


class Buffer:
    """Has the interface of jax.experimental.buffer_callback.Buffer on a CPU; valid only during the call."""

    def __init__(self, array, writeable):
        self._array = array.view()
        self._array.flags.writeable = writeable

    @property
    def shape(self):
        return self._array.shape

    @property
    def dtype(self):
        return self._array.dtype

    @property
    def ndim(self):
        return self._array.ndim

    @property
    def writeable(self):
        return self._array.flags.writeable

    def __array__(self, dtype=None, copy=None):
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class ExecutionContext:
    """Has the interface of jax.experimental.buffer_callback.ExecutionContext on a CPU."""

    @property
    def stage(self):
        from jax.experimental import buffer_callback

        return buffer_callback.ExecutionStage.EXECUTE

    @property
    def stream(self):
        import jax

        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")
