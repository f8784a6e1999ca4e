"""Two stages of a network on slices of their own, joined into one program."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import gangway

client = gangway.connect()
first, second = client.slice(devices=4), client.slice(devices=2)

data = NamedSharding(first.mesh(data=4), P("data"))
model = NamedSharding(second.mesh(model=2), P(None, "model"))
x, w = np.ones((8, 16), np.float32), np.full((16, 16), 0.1, np.float32)

encode = client.compile(jax.jit(lambda x, w: jnp.tanh(x @ w), in_shardings=(data, None)), first, x, w)
decode = client.compile(jax.jit(lambda h, w: h @ w.T, in_shardings=(model, None)), second, x, w)


@client.program
def network(x):
    hidden = encode(x, w)  # w is put once and kept with the program
    return decode(hidden, w), hidden  # hidden goes from four devices, split by rows, to two, split by columns


y, hidden = network(x)  # futures: nothing was waited for
print(y.shape, round(float(jnp.sum(y.numpy())), 2))
y, hidden = network(hidden)  # arrays stay on the cluster
print(hidden, round(float(hidden.numpy()[0, 0]), 4))
