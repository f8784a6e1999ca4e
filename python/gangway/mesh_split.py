"""The annotation of GSPMD's listing: which mesh dimension splits which dimension of an array."""

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def mesh_split(x, mesh: Mesh, dims_mapping):
    """`x`, dimension i split along mesh dimension `dims_mapping[i]`: an index or a name; -1 or None leaves it whole.

    A tuple of mesh dimensions splits one dimension along all of them, the first one major. Works inside and outside
    jit, and its gradient is split in the same way (arXiv 2105.04663, section 3.2).
    """
    if len(dims_mapping) != x.ndim:
        raise ValueError(f"mesh_split: {len(dims_mapping)} entries for an array of rank {x.ndim}")
    spec = PartitionSpec(*(_axis_names(mesh, entry) for entry in dims_mapping))
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, spec))


def _axis_names(mesh, entry):
    if entry is None or entry == -1:
        return None
    if isinstance(entry, tuple):
        return tuple(_axis_names(mesh, part) for part in entry)
    if isinstance(entry, str):
        return entry
    if not 0 <= entry < len(mesh.axis_names):
        raise ValueError(f"mesh_split: mesh dimension {entry} of a mesh with {len(mesh.axis_names)}")
    return mesh.axis_names[entry]
