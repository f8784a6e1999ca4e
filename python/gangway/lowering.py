"""From a jitted function to what the server compiles."""

import dataclasses

import jax
import numpy as np
from jax import export
from jax._src.lib import _jax  # the serializer of portable artifacts has no public name
from jaxlib.mlir.dialects import stablehlo


@dataclasses.dataclass
class Lowered:
    artifact: bytes
    kept: list  # which of the flat arguments the program takes
    in_tree: object
    out_tree: object
    out_avals: list  # ShapeDtypeStruct of each flat output


def lower(function, examples, named=None):
    """Lowers a function, jitted or not, for arguments like `examples` (arrays or ShapeDtypeStructs) and, by name,
    `named`; or takes what jax.export made, which has its arguments."""
    if isinstance(function, export.Exported):
        return _exported(function, examples, named)
    jitted = function if hasattr(function, "trace") else jax.jit(function)
    shapes, named_shapes = jax.tree.map(_shape, (tuple(examples), named or {}))
    lowered = jitted.trace(*shapes, **named_shapes).lower(lowering_platforms=("cpu",))
    version = stablehlo.get_version_from_compatibility_requirement(stablehlo.StablehloCompatibilityRequirement.WEEK_4)
    artifact = _jax.mlir.serialize_portable_artifact(lowered.compiler_ir("stablehlo"), version, True)
    flat, in_tree = jax.tree.flatten((shapes, named_shapes))
    kept = lowered._lowering.compile_args.get("kept_var_idx")
    out_avals, out_tree = jax.tree.flatten(lowered.out_info)
    return Lowered(
        artifact=artifact,
        kept=sorted(kept) if kept is not None else list(range(len(flat))),
        in_tree=in_tree,
        out_tree=out_tree,
        out_avals=out_avals,
    )


def _exported(exported, examples, named):
    if examples or named:
        raise TypeError(f"{exported.fun_name} was exported for its arguments: no examples")
    return Lowered(
        artifact=exported.mlir_module_serialized,
        kept=list(exported.module_kept_var_idx),
        in_tree=exported.in_tree,
        out_tree=exported.out_tree,
        out_avals=[jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in exported.out_avals],
    )


def _shape(value):
    if isinstance(value, jax.ShapeDtypeStruct):
        return value
    if not hasattr(value, "dtype"):
        value = np.asarray(value, jax.dtypes.canonicalize_dtype(np.result_type(value)))
    return jax.ShapeDtypeStruct(value.shape, jax.dtypes.canonicalize_dtype(value.dtype))
