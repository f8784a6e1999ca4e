"""Programs of compiled functions, traced into one dataflow graph and run by one message."""

import functools

import jax
import numpy as np

from gangway.array import Array


class Programs:
    """`client.program`: the decorator, and control flow inside programs."""

    def __init__(self, client):
        self._client = client

    def __call__(self, function=None, *, sequential=False):
        if function is None:
            return functools.partial(self, sequential=sequential)
        return Program(self._client, function, sequential)

    def cond(self, predicate, then, otherwise, *operands):
        """`then(*operands)` where the scalar `predicate` is not 0, else `otherwise(*operands)`."""
        return predicate.graph.cond(predicate, then, otherwise, operands)

    def while_loop(self, condition, body, state):
        """`state = body(state)` while the scalar `condition(state)` is not 0."""
        leaves = jax.tree.leaves(state)
        if not leaves or not all(isinstance(leaf, Tracer) for leaf in leaves):
            raise TypeError("a loop's state consists of values of the program")
        return leaves[0].graph.while_loop(condition, body, state)


class Tracer:
    """A value inside a program that is being traced."""

    def __init__(self, graph, index, aval, device_ids):
        self.graph = graph
        self.index = index
        self.aval = aval  # None: not known yet, an input
        self.device_ids = device_ids  # None: not known yet, an input

    @property
    def shape(self):
        return self.aval.shape

    @property
    def dtype(self):
        return self.aval.dtype

    def __bool__(self):
        raise TypeError("a program's value is not known while it is traced; use client.program.cond or while_loop")


class Graph:
    """A graph under construction, as the fields of the protocol's message."""

    def __init__(self, avals):
        self.inputs = [Tracer(self, i, aval, device_ids) for i, (aval, device_ids) in enumerate(avals)]
        self.nodes = []
        self.first_use = {}  # input -> (function, parameter)
        self._values = len(self.inputs)

    def _add(self, kind, arguments, avals, device_ids):
        self.nodes.append(kind | {"arguments": [argument.index for argument in arguments]})
        results = [Tracer(self, self._values + i, aval, device_ids) for i, aval in enumerate(avals)]
        self._values += len(results)
        return results

    def call(self, function, flat):
        arguments = [self._argument(function, i, value) for i, value in enumerate(flat)]
        return self._add({"call": function.number}, arguments, function.out_avals, function.slice.device_ids)

    def _argument(self, function, parameter, value):
        if not isinstance(value, Tracer):
            raise TypeError(f"{function.name}: argument {parameter} must be a value of the program, not {type(value)}")
        if value.graph is not self:
            raise TypeError(f"{function.name}: argument {parameter} is a value of another program")
        if value.device_ids is None:
            self.first_use[value.index] = (function, parameter)
            value.device_ids = function.slice.device_ids
        if value.device_ids == function.slice.device_ids:
            return value
        copy = {"copy": {"function": function.number, "parameter": parameter}}
        return self._add(copy, [value], [value.aval], function.slice.device_ids)[0]

    def cond(self, predicate, then, otherwise, operands):
        flat, tree = jax.tree.flatten(operands)
        branches = [self._inner(branch, flat, tree) for branch in (then, otherwise)]
        (then_graph, results, out_tree), (otherwise_graph, other_results, other_tree) = branches
        if out_tree != other_tree:
            raise TypeError(f"the branches of a conditional give {out_tree} and {other_tree}")
        del other_results
        kind = {"cond": {"then": then_graph, "otherwise": otherwise_graph}}
        device_ids = results[0].device_ids if results else None
        values = self._add(kind, [predicate, *flat], [result.aval for result in results], device_ids)
        return jax.tree.unflatten(out_tree, values)

    def while_loop(self, condition, body, state):
        flat, tree = jax.tree.flatten((state,))
        condition_graph, _, _ = self._inner(condition, flat, tree)
        body_graph, results, out_tree = self._inner(body, flat, tree)
        if out_tree != jax.tree.structure(state):
            raise TypeError(f"a loop's body takes {jax.tree.structure(state)} and gives {out_tree}")
        device_ids = results[0].device_ids if results else None
        kind = {"loop": {"condition": condition_graph, "body": body_graph}}
        values = self._add(kind, flat, [result.aval for result in results], device_ids)
        return jax.tree.unflatten(out_tree, values)

    def _inner(self, function, flat, tree):
        """A graph of its own over the same values: its message, its results and their structure."""
        graph = Graph([(value.aval, value.device_ids) for value in flat])
        results, out_tree = jax.tree.flatten(function(*jax.tree.unflatten(tree, graph.inputs)))
        for value, inner in zip(flat, graph.inputs, strict=True):
            if value.device_ids is None and inner.device_ids is not None:  # used in there first
                self.first_use[value.index] = graph.first_use[inner.index]
                value.device_ids = inner.device_ids
        return graph.message(results), results, out_tree

    def message(self, results):
        for result in results:
            if not isinstance(result, Tracer) or result.graph is not self:
                raise TypeError(f"a program gives values of its own, not {result}")
        return {
            "inputs": len(self.inputs),
            "nodes": self.nodes,
            "results": [result.index for result in results],
        }


class Program:
    """A Python function of compiled functions, traced once for each structure of its arguments."""

    def __init__(self, client, function, sequential):
        self._client = client
        self._function = function
        self._sequential = sequential
        self._traced = {}
        functools.update_wrapper(self, function)

    def __call__(self, *arguments):
        flat, tree = jax.tree.flatten(arguments)
        shapes = tuple((tuple(np.shape(value)), str(getattr(value, "dtype", None))) for value in flat)
        traced = self._traced.get((tree, shapes))
        if traced is None:
            traced = self._traced[tree, shapes] = self._trace(flat, tree)
        return traced.run(flat)

    def _trace(self, flat, tree):
        avals = [jax.ShapeDtypeStruct(np.shape(v), getattr(v, "dtype", np.result_type(type(v)))) for v in flat]
        graph = Graph([(aval, None) for aval in avals])
        results, out_tree = jax.tree.flatten(self._function(*jax.tree.unflatten(tree, graph.inputs)))
        number = self._client.new_number()
        self._client.connection.ask(define={"program": number, "graph": graph.message(results)})
        return Traced(self._client, number, graph, results, out_tree, self._sequential)


class Traced:
    """A program the server knows."""

    def __init__(self, client, number, graph, results, out_tree, sequential):
        self._client = client
        self._number = number
        self._first_use = graph.first_use
        self._avals = [result.aval for result in results]
        self._out_tree = out_tree
        self._dispatch = int(sequential)

    def run(self, flat):
        arrays = [value if isinstance(value, Array) else self._put(i, value) for i, value in enumerate(flat)]
        results = [Array(self._client, aval.shape, aval.dtype) for aval in self._avals]
        sent = self._client.send(
            run={
                "program": self._number,
                "arguments": [array.number for array in arrays],
                "results": [array.number for array in results],
                "dispatch": self._dispatch,
            }
        )
        for result in results:
            result.sent = sent
        return jax.tree.unflatten(self._out_tree, results)

    def _put(self, index, value):
        if index not in self._first_use:
            raise TypeError(f"argument {index} is used by no function: give it as a gangway.Array")
        function, parameter = self._first_use[index]
        return function.put(value, parameter)
