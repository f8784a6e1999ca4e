"""Programs of compiled functions, traced into one dataflow graph and run by one message."""

import functools
import threading

import jax
import numpy as np

from gangway.array import Array


class Programs:
    """`client.program`: the decorator, and control flow inside programs.

    Branches and bodies may use values of the program around them; such values are operands that nobody wrote down.
    """

    def __init__(self, client):
        self._client = client

    def __call__(self, function=None, *, sequential=False):
        if function is None:
            return functools.partial(self, sequential=sequential)
        return Program(self._client, function, sequential)

    def cond(self, predicate, then, otherwise, *operands):
        """`then(*operands)` where the scalar `predicate` is not 0, else `otherwise(*operands)`."""
        return _traced("cond").cond(predicate, then, otherwise, operands)

    def while_loop(self, condition, body, state):
        """`state = body(state)` while the scalar `condition(state)` is not 0."""
        return _traced("while_loop").while_loop(condition, body, state)


_tracing = threading.local()


def current_graph():
    """The innermost graph that this thread traces, or None."""
    graphs = getattr(_tracing, "graphs", None)
    return graphs[-1] if graphs else None


def _traced(what):
    graph = current_graph()
    if graph is None:
        raise RuntimeError(f"client.program.{what} is for the inside of a program: @client.program")
    return graph


class Tracer:
    """A value inside a program that is being traced."""

    def __init__(self, graph, aval, device_ids):
        self.graph = graph
        self.aval = aval
        self.device_ids = device_ids  # None: not known yet, an input

    @property
    def shape(self):
        return self.aval.shape

    @property
    def dtype(self):
        return self.aval.dtype

    def __bool__(self):
        raise TypeError("a program's value is not known while it is traced; use client.program.cond or while_loop")

    def __array__(self, dtype=None, copy=None):
        raise TypeError("a program's value is not known while it is traced: compile what is to compute with it")

    def __repr__(self):
        return f"gangway.Tracer({self.dtype}{list(self.shape)})"


class Graph:
    """A graph under construction: a program's, or one of a branch, a condition or a body inside it."""

    def __init__(self, client, inputs, outer=None):
        self.client = client
        self.outer = outer
        self.inputs = [Tracer(self, aval, device_ids) for aval, device_ids in inputs]
        self.captured = {}  # value of the graph around this one -> the input that it is here
        self.constants = {}  # key -> (input, array), of the outermost graph
        self.first_use = {}  # input -> (function, parameter)
        self._nodes = []  # (kind, arguments): `kind` makes the protocol's field
        self._results = []  # of the nodes, one after the other
        self._copies = {}  # (value, devices) -> the value there

    def trace(self, function, arguments):
        """Flat results of the function and their structure; every call meanwhile becomes a node."""
        if not hasattr(_tracing, "graphs"):
            _tracing.graphs = []
        _tracing.graphs.append(self)
        try:
            results, tree = jax.tree.flatten(function(*arguments))
        finally:
            _tracing.graphs.pop()
        return [self._value(value) for value in results], tree

    def _value(self, value):
        if isinstance(value, Array):
            return self._constant(id(value), value.aval, lambda: value)
        if not isinstance(value, Tracer):
            raise TypeError(f"inside a program values are what its functions make, and its arguments; not {value!r}")
        return self._own(value)

    def _own(self, value):
        """The value in this graph: one of a graph around it becomes an input."""
        if value.graph is self:
            return value
        if self.outer is None:
            raise TypeError("a value of another program, or of a branch that is over")
        outside = self.outer._own(value)
        if outside not in self.captured:
            self.captured[outside] = Tracer(self, outside.aval, outside.device_ids)
        return self.captured[outside]

    def _constant(self, key, aval, make):
        """A value that every run gets, as an input of the outermost graph."""
        outermost = self
        while outermost.outer is not None:
            outermost = outermost.outer
        if key not in outermost.constants:
            outermost.constants[key] = (Tracer(outermost, aval, None), make())
        return self._own(outermost.constants[key][0])

    def _add(self, kind, arguments, results):
        self._nodes.append((kind, arguments))
        made = [Tracer(self, aval, device_ids) for aval, device_ids in results]
        self._results.extend(made)
        return made

    def call(self, function, flat):
        if function.client is not self.client:
            raise TypeError(f"{function.name} was compiled by another client than the program's")
        arguments = [self._argument(function, i, value) for i, value in enumerate(flat)]
        results = [(aval, function.slice.device_ids) for aval in function.out_avals]
        return self._add(lambda: {"call": function.number}, arguments, results)

    def _argument(self, function, parameter, value):
        value = self._value(value) if isinstance(value, Array | Tracer) else self._put(function, parameter, value)
        self._use(value, function, parameter)
        devices = function.slice.device_ids
        if value.device_ids == devices:
            return value
        if (value, devices) not in self._copies:
            copy = {"function": function.number, "parameter": parameter}
            [there] = self._add(lambda: {"copy": copy}, [value], [(value.aval, devices)])
            self._copies[value, devices] = there
        return self._copies[value, devices]

    def _put(self, function, parameter, value):
        key = (id(value), function.number, parameter)
        aval = function.parameter_aval(parameter)
        return self._constant(key, aval, lambda: _Held(function.put(value, parameter), value))

    def _use(self, value, function, parameter):
        """An input takes the form of its first use, also where that is in a branch."""
        while value.device_ids is None:
            value.device_ids = function.slice.device_ids
            value.aval = function.parameter_aval(parameter)
            value.graph.first_use[value] = (function, parameter)
            value = next((outside for outside, inner in value.graph.operands() if inner is value), value)

    def operands(self):
        """Pairs of a value of the graph around this one and the input that it is here."""
        return [*zip(getattr(self, "given", ()), self.inputs, strict=False), *self.captured.items()]

    def cond(self, predicate, then, otherwise, operands):
        flat, tree = jax.tree.flatten(operands)
        predicate, flat = self._value(predicate), [self._value(value) for value in flat]
        (yes, results, out_tree), (no, others, other_tree) = (self._inner(f, flat, tree) for f in (then, otherwise))
        if out_tree != other_tree:
            raise TypeError(f"the branches of a conditional give {out_tree} and {other_tree}")
        _want_equal("the branches of a conditional give", results, others)
        shared = list(dict.fromkeys([*yes.captured, *no.captured]))

        def kind():
            return {"cond": {"then": yes.message(results, shared), "otherwise": no.message(others, shared)}}

        made = self._add(kind, [predicate, *flat, *shared], [(value.aval, value.device_ids) for value in results])
        return jax.tree.unflatten(out_tree, made)

    def while_loop(self, condition, body, state):
        flat, tree = jax.tree.flatten((state,))
        if not flat:
            raise TypeError("a loop without a state")
        flat = [self._value(value) for value in flat]
        asks, answers, _ = self._inner(condition, flat, tree)
        if len(answers) != 1:
            raise TypeError(f"a loop's condition gives one scalar, not {len(answers)} values")
        turns, results, out_tree = self._inner(body, flat, tree)
        if out_tree != jax.tree.structure(state):
            raise TypeError(f"a loop's body takes {jax.tree.structure(state)} and gives {out_tree}")
        _want_equal("a loop's body takes and gives", flat, results)
        shared = list(dict.fromkeys([*asks.captured, *turns.captured]))

        def kind():  # what is captured goes round unchanged
            round_trip = [*results, *(turns._own(value) for value in shared)]
            return {"loop": {"condition": asks.message(answers, shared), "body": turns.message(round_trip, shared)}}

        made = [(value.aval, value.device_ids) for value in [*results, *shared]]
        values = self._add(kind, [*flat, *shared], made)
        return jax.tree.unflatten(out_tree, values[: len(flat)])

    def _inner(self, function, flat, tree):
        graph = Graph(self.client, [(value.aval, value.device_ids) for value in flat], outer=self)
        graph.given = flat
        results, out_tree = graph.trace(function, jax.tree.unflatten(tree, graph.inputs))
        return graph, results, out_tree

    def message(self, results, captured=()):
        """The protocol's message; `captured`, values of the graph around, are its last inputs in this order."""
        inputs = [*self.inputs, *(self._own(value) for value in captured), *(of for of, _ in self.constants.values())]
        index = {value: i for i, value in enumerate([*inputs, *self._results])}
        nodes = [kind() | {"arguments": [index[value] for value in arguments]} for kind, arguments in self._nodes]
        return {"inputs": len(inputs), "nodes": nodes, "results": [index[value] for value in results]}


class _Held:
    """A constant's array, and the value whose id names it for as long."""

    def __init__(self, array, value):
        self.array = array
        self._value = value

    def alive(self):
        return self.array


def _want_equal(what, some, others):
    for one, other in zip(some, others, strict=True):
        a, b = (f"{value.dtype}{list(value.shape)}" for value in (one, other))
        if a != b:
            raise TypeError(f"{what} {a} and {b}")


class Program:
    """A Python function of compiled functions, traced once for each structure of its arguments."""

    def __init__(self, client, function, sequential):
        self._client = client
        self._function = function
        self._sequential = sequential
        self._traced = {}
        functools.update_wrapper(self, function)

    def __call__(self, *arguments, **named):
        if current_graph() is not None:  # part of the program around it
            return self._function(*arguments, **named)
        flat, tree = jax.tree.flatten((arguments, named))
        avals = tuple((tuple(np.shape(value)), str(getattr(value, "dtype", type(value)))) for value in flat)
        traced = self._traced.get((tree, avals))
        if traced is None:
            traced = self._traced[tree, avals] = self._trace(flat, tree)
        return traced.run(flat)

    def _trace(self, flat, tree):
        graph = Graph(self._client, [(_aval(value), None) for value in flat])
        arguments, named = jax.tree.unflatten(tree, graph.inputs)
        results, out_tree = graph.trace(lambda: self._function(*arguments, **named), ())
        number = self._client.new_number()
        self._client.connection.ask(define={"program": number, "graph": graph.message(results)})
        return Traced(self._client, number, graph, results, out_tree, self._sequential)

    def __repr__(self):
        return f"gangway.Program({getattr(self._function, '__name__', self._function)})"


def _aval(value):
    dtype = getattr(value, "dtype", None) or np.result_type(type(value))
    return jax.ShapeDtypeStruct(np.shape(value), jax.dtypes.canonicalize_dtype(dtype))


class Traced:
    """A program the server knows."""

    def __init__(self, client, number, graph, results, out_tree, sequential):
        self._client = client
        self._number = number
        self._uses = [graph.first_use.get(value) for value in graph.inputs]
        self._constants = [array for _, array in graph.constants.values()]
        self._avals = [result.aval for result in results]
        self._out_tree = out_tree
        self._dispatch = int(sequential)

    def run(self, flat):
        arrays = [value if isinstance(value, Array) else self._put(i, value) for i, value in enumerate(flat)]
        results = [Array(self._client, aval.shape, aval.dtype) for aval in self._avals]
        sent = self._client.send(
            run={
                "program": self._number,
                "arguments": [array.alive().number for array in [*arrays, *self._constants]],
                "results": [array.number for array in results],
                "dispatch": self._dispatch,
            }
        )
        for result in results:
            result.sent = sent
        return jax.tree.unflatten(self._out_tree, results)

    def _put(self, index, value):
        if self._uses[index] is None:
            raise TypeError(f"argument {index} is used by no function: give it as a gangway.Array")
        function, parameter = self._uses[index]
        return function.put(value, parameter)
