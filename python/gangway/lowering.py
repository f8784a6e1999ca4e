"""From a jitted function to what the server compiles."""

import dataclasses

import jax
import numpy as np
from jax._src.lib import _jax  # the serializer of portable artifacts has no public name
from jaxlib.mlir.dialects import stablehlo


@dataclasses.dataclass
class Lowered:
    artifact: bytes
    kept: list  # which of the flat arguments the program takes
    in_tree: object
    out_tree: object
    out_avals: list  # ShapeDtypeStruct of each flat output


def lower(function, examples):
    """Lowers a function, jitted or not, for arguments like `examples` (arrays or ShapeDtypeStructs)."""
    jitted = function if hasattr(function, "trace") else jax.jit(function)
    shapes = jax.tree.map(_shape, examples)
    traced = jitted.trace(*shapes)
    lowered = traced.lower(lowering_platforms=("cpu",))
    version = stablehlo.get_version_from_compatibility_requirement(stablehlo.StablehloCompatibilityRequirement.WEEK_4)
    artifact = _jax.mlir.serialize_portable_artifact(lowered.compiler_ir("stablehlo"), version, True)
    flat, in_tree = jax.tree.flatten((tuple(shapes), {}))
    kept = lowered._lowering.compile_args.get("kept_var_idx")
    out_avals, out_tree = jax.tree.flatten(lowered.out_info)
    return Lowered(
        artifact=artifact,
        kept=sorted(kept) if kept is not None else list(range(len(flat))),
        in_tree=in_tree,
        out_tree=out_tree,
        out_avals=out_avals,
    )


def _shape(value):
    if isinstance(value, jax.ShapeDtypeStruct):
        return value
    if not hasattr(value, "dtype"):
        value = np.asarray(value, jax.dtypes.canonicalize_dtype(np.result_type(value)))
    return jax.ShapeDtypeStruct(value.shape, jax.dtypes.canonicalize_dtype(value.dtype))
