"""The program API: whole dataflow programs on slices of a Gangway cluster, beside the JAX backend.

    import gangway

    client = gangway.connect()                   # GANGWAY_ADDRESS, as `gangway run` sets it
    slice = client.slice(devices=4)
    step = client.compile(jax.jit(f), slice, x)  # anything jax.jit can lower, for the shapes of x

    @client.program
    def chain(x):
        for _ in range(128):
            x = step(x)
        return x

    y = chain(x)                                 # one message; y is a future
    y.numpy()

Inside a program, calling a compiled function records a node; outside it runs at once. Its arguments may lie on any
slice and be split in any way: they are brought where the function wants them, worker to worker. `client.program.cond`
and `client.program.while_loop` are decided at the controller, by values that never come to the client; their branches
and bodies may use values of the program around them. Numbers and arrays that a program names are put once and kept.

`pipeline` and `mesh_split` are wrappers for composing parallelism (GSPMD, sections 3.2 and 3.3), plain JAX for every
backend. `explain` says why a function communicates, `shardings` how completion lays it out, `simulate` how long it
would take on thousands of devices; none of them runs it.
`gangway.checkpoint` has the workers write and read arrays.
"""

import importlib

from gangway.explanation import Shardings, explain, shardings
from gangway.mesh_split import mesh_split
from gangway.pipeline import pipeline
from gangway.simulation import simulate

# Loaded when first used: they need grpcio, which the wrappers do not.
_CLIENT = {
    "Array": "gangway.array",
    "Client": "gangway.client",
    "Function": "gangway.client",
    "GangwayError": "gangway.wire",
    "Program": "gangway.program",
    "Slice": "gangway.client",
    "connect": "gangway.client",
}

__all__ = [*_CLIENT, "Shardings", "explain", "mesh_split", "pipeline", "shardings", "simulate"]


def __getattr__(name):
    if name not in _CLIENT:
        raise AttributeError(f"module 'gangway' has no attribute {name!r}")
    return getattr(importlib.import_module(_CLIENT[name]), name)
