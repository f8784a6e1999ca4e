"""pennylane: a variational circuit of three qubits, trained on a batch over 8 devices."""

import jax
import jax.numpy as jnp
import pennylane as qml
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "pennylane"
WIRES = 3


@qml.qnode(qml.device("default.qubit", wires=WIRES), interface="jax", diff_method="backprop")
def circuit(weights, x):
    qml.AngleEmbedding(x, wires=range(WIRES))
    qml.StronglyEntanglingLayers(weights, wires=range(WIRES))
    return qml.expval(qml.PauliZ(0)), qml.probs(wires=[1, 2])


def run(mesh):
    weights = jax.random.normal(jax.random.key(0), (2, WIRES, 3))
    x = jax.device_put(jax.random.normal(jax.random.key(1), (16, WIRES)), NamedSharding(mesh, P("x")))

    @jax.jit
    def train(weights):
        def loss_of(weights):
            value, _ = jax.vmap(circuit, (None, 0))(weights, x)
            return jnp.mean((value - jnp.sign(x[:, 0])) ** 2)

        loss, gradient = jax.value_and_grad(loss_of)(weights)
        return weights - 0.2 * gradient, loss

    losses = []
    for _ in range(4):
        weights, loss = train(weights)
        losses.append(loss)
    return {
        "loss": jnp.stack(losses),
        "probabilities": jax.jit(jax.vmap(lambda x: circuit(weights, x)[1]))(x),
    }
