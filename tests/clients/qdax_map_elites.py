"""qdax: MAP-Elites fills a map of behaviours; its candidates are split over 8 devices."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from qdax.core.containers.mapelites_repertoire import compute_cvt_centroids
from qdax.core.emitters.mutation_operators import isoline_variation
from qdax.core.emitters.standard_emitters import MixingEmitter
from qdax.core.map_elites import MAPElites
from qdax.utils.metrics import default_qd_metrics

LIBRARY = "qdax"
CANDIDATES = 32


def score(x, key):
    return -jnp.sum(x**2, -1), jax.nn.sigmoid(x[:, :2]), {}


def run(mesh):
    places = compute_cvt_centroids(2, 500, 64, 0.0, 1.0, jax.random.key(0))
    emitter = MixingEmitter(None, functools.partial(isoline_variation, iso_sigma=0.05, line_sigma=0.1), 1.0, CANDIDATES)
    search = MAPElites(score, emitter, functools.partial(default_qd_metrics, qd_offset=10.0))
    first = jax.random.normal(jax.random.key(1), (CANDIDATES, 4))
    found, state, *_ = search.init(jax.device_put(first, NamedSharding(mesh, P("x"))), places, jax.random.key(2))
    scores, update = [], jax.jit(search.update)
    for key in jax.random.split(jax.random.key(3), 3):
        found, state, metrics = update(found, state, key)
        scores.append(metrics["qd_score"])
    return {"scores": jnp.stack(scores), "fitness": jnp.where(jnp.isfinite(found.fitnesses), found.fitnesses, 0)}
