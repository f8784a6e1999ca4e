"""jaxkd: a tree over points in space, and the nearest neighbours of queries that lie over 8 devices."""

import jax
import jax.numpy as jnp
import jaxkd
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "jaxkd"


def run(mesh):
    points = jax.random.normal(jax.random.PRNGKey(0), (200, 3))
    queries = jax.random.normal(jax.random.PRNGKey(1), (64, 3))
    queries = jax.device_put(queries, NamedSharding(mesh, P("x")))
    tree = jaxkd.build_tree(points)
    neighbours, distances = jaxkd.query_neighbors(tree, queries, k=5)
    counts = jaxkd.count_neighbors(tree, queries, r=jnp.array(0.7))
    slopes = jax.grad(lambda q: jaxkd.query_neighbors(tree, q, k=5)[1].sum())(queries)
    return {"neighbours": neighbours, "distances": distances, "counts": counts, "slopes": slopes}
