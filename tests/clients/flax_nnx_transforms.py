"""flax.nnx: layers made by vmap, run by scan under remat, split parameters and optimizer states."""

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "flax"
LAYERS = 3


class Block(nnx.Module):
    def __init__(self, rngs):
        init = nnx.with_partitioning(nnx.initializers.lecun_normal(), (None, "x"))
        self.up = nnx.Linear(32, 64, kernel_init=init, rngs=rngs)
        self.down = nnx.Linear(64, 32, rngs=rngs)
        self.norm = nnx.LayerNorm(32, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)

    def __call__(self, x):
        return x + self.dropout(self.down(nnx.gelu(self.up(self.norm(x)))))


class Net(nnx.Module):
    def __init__(self, rngs):
        self.attend = nnx.MultiHeadAttention(4, 32, decode=False, rngs=rngs)
        self.recurrent = nnx.RNN(nnx.GRUCell(32, 32, rngs=rngs))
        self.embed = nnx.Embed(50, 32, rngs=rngs)

        @nnx.split_rngs(splits=LAYERS)
        @nnx.vmap(in_axes=0, out_axes=0)
        def make(rngs):
            return Block(rngs)

        self.blocks = make(rngs)

    def __call__(self, tokens):
        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        @nnx.remat
        def through(block, x):
            return block(x)

        x = self.embed(tokens)
        x = x + self.attend(x)
        return self.embed.attend(self.recurrent(through(self.blocks, x)))


def run(mesh):
    tokens = jax.random.randint(jax.random.key(0), (16, 12), 0, 50)
    tokens = jax.device_put(tokens, NamedSharding(mesh, P("x")))
    found = {}
    with jax.set_mesh(mesh):

        @nnx.jit
        def make():
            net = Net(nnx.Rngs(params=0, dropout=1))
            state = nnx.state(net, nnx.Param)
            specs = nnx.get_partition_spec(state)
            split = jax.tree.map(lambda v, s: jax.lax.with_sharding_constraint(v, s if s else P()), state, specs)
            nnx.update(net, split)
            return net

        net = make()
        optimizer = nnx.Optimizer(net, optax.adamw(1e-2), wrt=nnx.Param)

        @nnx.jit
        def train(net, optimizer, tokens):
            def loss_of(net):
                logits = net(tokens)
                return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], tokens[:, 1:]).mean()

            loss, gradients = nnx.value_and_grad(loss_of)(net)
            optimizer.update(net, gradients)
            return loss

        found["losses"] = jnp.stack([train(net, optimizer, tokens) for _ in range(5)])
        net.eval()
        found["logits"] = nnx.jit(lambda net, t: net(t))(net, tokens)
        graph, params, rest = nnx.split(net, nnx.Param, ...)
        found["merged"] = nnx.merge(graph, params, rest)(tokens)
    return found
