"""jraph: a graph network learns how many neighbours each node has; nodes and edges are split over 8 devices."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "jraph"
NODES, EDGES, WIDTH = 64, 256, 16


def run(mesh):
    random = np.random.default_rng(0)
    split = NamedSharding(mesh, P("x"))
    receivers = random.integers(0, NODES, EDGES)
    graph = jraph.GraphsTuple(
        nodes=random.normal(size=(NODES, WIDTH)).astype(np.float32),
        edges=random.normal(size=(EDGES, WIDTH)).astype(np.float32),
        senders=random.integers(0, NODES, EDGES),
        receivers=receivers,
        globals=np.zeros((1, WIDTH), np.float32),
        n_node=np.array([NODES]),
        n_edge=np.array([EDGES]),
    )
    whole = NamedSharding(mesh, P())
    by_field = graph._replace(
        **{name: split for name in ("nodes", "edges", "senders", "receivers")},
        **{name: whole for name in ("globals", "n_node", "n_edge")},
    )
    graph = jax.device_put(graph, by_field)
    degree = jax.device_put(np.bincount(receivers, minlength=NODES).astype(np.float32), split)

    names = ("edge", "node", "read")
    shapes = ((4 * WIDTH, WIDTH), (4 * WIDTH, WIDTH), (WIDTH, 1))
    keys = jax.random.split(jax.random.key(0), 3)
    params = {n: jax.random.normal(k, s) * s[0] ** -0.5 for n, k, s in zip(names, keys, shapes)}

    def loss_of(params, graph, degree):
        network = jraph.GraphNetwork(
            update_edge_fn=jraph.concatenated_args(lambda x: jax.nn.relu(x @ params["edge"])),
            update_node_fn=jraph.concatenated_args(lambda x: jax.nn.relu(x @ params["node"])),
            attention_logit_fn=lambda edges, sent, received, context: edges.sum(axis=-1, keepdims=True),
            attention_reduce_fn=lambda edges, weights: edges * (1 + weights),
        )
        found = (network(graph).nodes @ params["read"])[:, 0]
        return jnp.mean((found - degree) ** 2)

    optimizer = optax.adam(1e-2)

    @jax.jit
    def train(params, state, graph, degree):
        loss, gradient = jax.value_and_grad(loss_of)(params, graph, degree)
        updates, state = optimizer.update(gradient, state)
        return optax.apply_updates(params, updates), state, loss

    state = optimizer.init(params)
    losses = []
    for _ in range(10):
        params, state, loss = train(params, state, graph, degree)
        losses.append(loss)
    return {"losses": jnp.stack(losses)}
