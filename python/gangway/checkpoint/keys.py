"""Random keys are saved as the words they consist of."""

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec


def words(tree):
    """The tree with the words of keys in place of keys, or what describes those."""
    return jax.tree.map(lambda leaf: _words(leaf) if _is_key(leaf) else leaf, tree)


def wrap(tree, like):
    """The tree with keys where `like` has some."""
    return jax.tree.map(lambda leaf, wanted: _wrap(leaf, wanted) if _is_key(wanted) else leaf, tree, like)


def _is_key(leaf):
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _words(leaf):
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.random.key_data(leaf)
    flat = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(leaf.shape, leaf.dtype))
    sharding = leaf.sharding
    if isinstance(sharding, NamedSharding):
        whole = [None] * (len(flat.shape) - len(sharding.spec))
        sharding = NamedSharding(sharding.mesh, PartitionSpec(*sharding.spec, *whole))
    return jax.ShapeDtypeStruct(flat.shape, flat.dtype, sharding=sharding)


def _wrap(leaf, wanted):
    keys = jax.random.wrap_key_data(leaf, impl=jax.random.key_impl(wanted))
    sharding = getattr(wanted, "sharding", None)
    return keys if sharding is None or keys.sharding == sharding else jax.device_put(keys, sharding)
