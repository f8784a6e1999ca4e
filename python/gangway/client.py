"""Connections, slices, compiled functions and arrays."""

import itertools
import math
import os
import threading

import jax
import numpy as np

from gangway import lowering
from gangway.array import DTYPES, Array, kind_of
from gangway.program import Programs, current_graph
from gangway.wire import Connection, GangwayError


def connect(address=None, *, name="", tenant="", weight=1.0, priority=0, token=None, timeout=30):
    """A session on the server at `address` (default: GANGWAY_ADDRESS). Its end frees all that it made.

    `token` is the tenant's, where the cluster asks for one (default: GANGWAY_TOKEN).
    """
    address = address or os.environ.get("GANGWAY_ADDRESS")
    if not address:
        raise GangwayError("no Gangway server is known: set GANGWAY_ADDRESS=host:port, or use 'gangway run'")
    token = token if token is not None else os.environ.get("GANGWAY_TOKEN", "")
    who = {"name": name, "tenant": tenant, "weight": weight, "priority": priority, "token": token}
    return Client(Connection(address, timeout), who)


class Client:
    """A session. Thread-safe, but for tracing."""

    def __init__(self, connection, who):
        self.connection = connection
        self._numbers = itertools.count(1)
        self._garbage = []
        self._garbage_lock = threading.Lock()
        opened = connection.ask(open=who)
        self.devices = list(opened.open.devices)
        self.program = Programs(self)

    def slice(self, devices, *, island=None, policy=""):
        """Devices for programs: policy "spread" (default), "first_fit" (to this client alone) or "pack"."""
        request = {"devices": devices, "policy": policy}
        if island is not None:
            request["island"] = island
        return Slice(self, tuple(self.connection.ask(make_slice=request).make_slice.devices))

    def compile(self, function, slice, *examples, **named):
        """Compiles for the devices of a slice: a function, jitted or not, for arguments like `examples`, or what
        jax.export made of one, which knows its arguments."""
        lowered = lowering.lower(function, examples, named)
        number = next(self._numbers)
        answer = self.connection.ask(
            compile={"function": number, "artifact": lowered.artifact, "devices": slice.device_ids}
        )
        return Function(self, number, slice, lowered, answer.compile)

    def memory(self):
        """What each device holds, in bytes: id, bytes_in_use, bytes_reserved, bytes_limit (0: not known)."""
        return list(self.send(read_memory={}).result().read_memory.devices)

    def new_number(self):
        return next(self._numbers)

    def throw_away(self, number):
        """An array nobody holds any more; told along with the next request. Called by the garbage collector."""
        self._garbage.append(number)

    def send(self, **kind):
        if self._garbage:
            with self._garbage_lock:
                garbage, self._garbage = self._garbage, []
            if garbage:
                self.connection.send(release={"arrays": garbage})
        return self.connection.send(**kind)

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Slice:
    """Devices, by their numbers in the cluster. The session's until it is freed or the session ends."""

    def __init__(self, client, device_ids):
        self.client = client
        self.device_ids = device_ids
        self._freed = False

    def free(self):
        """Gives the devices back; what was compiled for them goes on."""
        if not self._freed:
            self.client.connection.ask(free_slice={"devices": self.device_ids})
            self._freed = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def __len__(self):
        return len(self.device_ids)

    def __repr__(self):
        return f"Slice{self.device_ids}"

    def mesh(self, **axes):
        """A mesh over the slice for jax.jit and shard_map: slice.mesh(data=2, model=2)."""
        if math.prod(axes.values()) != len(self):
            raise ValueError(f"a mesh of {' x '.join(map(str, axes.values()))} devices over a slice of {len(self)}")
        return jax.sharding.AbstractMesh(tuple(axes.values()), tuple(axes))


class Function:
    """A compiled function. Called with arrays it runs, called in a program it becomes a node of it."""

    def __init__(self, client, number, slice, lowered, compiled):
        self.client = client
        self.number = number
        self.slice = slice
        self.name = compiled.name.decode()
        self._lowered = lowered
        self._parameters = list(compiled.parameters)

    def flat_arguments(self, arguments, named):
        """Those of the flat arguments that the compiled function takes."""
        flat, tree = jax.tree.flatten((arguments, named))
        if tree != self._lowered.in_tree:
            raise TypeError(f"{self.name} was compiled for arguments like {self._lowered.in_tree}, got {tree}")
        return [flat[i] for i in self._lowered.kept]

    @property
    def out_avals(self):
        return self._lowered.out_avals

    def unflatten(self, results):
        return jax.tree.unflatten(self._lowered.out_tree, results)

    def parameter_aval(self, parameter):
        wanted = self._parameters[parameter]
        return jax.ShapeDtypeStruct(tuple(wanted.dims), np.dtype(DTYPES[wanted.dtype]))

    def put(self, value, parameter):
        """The value as this parameter wants it, spread over the slice. TypeError unless it is of the same shape and of
        the same or a simpler kind of number: an integer may become a float, a wide float a narrow one, as JAX has them.
        """
        wanted = self.parameter_aval(parameter)
        value = np.asarray(value)
        if value.shape != wanted.shape or kind_of(value.dtype) > kind_of(wanted.dtype):
            given = f"{value.dtype}{list(value.shape)}"
            raise TypeError(f"{self.name}: parameter {parameter} is {wanted.dtype}{list(wanted.shape)}, got {given}")
        value = value.astype(wanted.dtype)
        array = Array(self.client, value.shape, value.dtype)
        array.sent = self.client.send(
            put={"array": array.number, "function": self.number, "parameter": parameter, "value": value.tobytes()}
        )
        return array

    def __call__(self, *arguments, **named):
        flat = self.flat_arguments(arguments, named)
        graph = current_graph()
        if graph is not None:
            return self.unflatten(graph.call(self, flat))
        arrays = [value if isinstance(value, Array) else self.put(value, i) for i, value in enumerate(flat)]
        results = [Array(self.client, aval.shape, aval.dtype) for aval in self.out_avals]
        sent = self.client.send(
            run={
                "function": self.number,
                "arguments": [array.alive().number for array in arrays],
                "results": [array.number for array in results],
            }
        )
        for result in results:
            result.sent = sent
        return self.unflatten(results)

    def __repr__(self):
        return f"gangway.Function({self.name} on {self.slice})"
