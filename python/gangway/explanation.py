"""Why a function communicates, and how completion lays it out, without running it.

Both ask the `gangway` executable, on the machine that asks: nothing is sent to a server. Arguments may be arrays or
jax.ShapeDtypeStruct with a sharding; functions may be jitted already, with output shardings and all.
"""

import ast
import dataclasses
import json
from typing import Any

import jax
from jax.sharding import PartitionSpec

from gangway import picture
from gangway.executable import ask, export_program


def explain(f, *args, format="text", options=(), **kwargs):
    """What `gangway explain` says about f(*args, **kwargs): "text", "json" or "html"; `options` are its other flags."""
    return ask("explain", export_program(f, args, kwargs), [f"--format={format}", *options])


@dataclasses.dataclass
class Shardings:
    """What completion decided. A PartitionSpec for each array, a string where JAX has no word for it."""

    inputs: Any  # as the arguments: (args, kwargs); None where the function does not use one
    outputs: Any  # as the result
    named: dict  # arrays in between, by their path of jax.named_scope and operation
    mesh: str
    devices: int

    def _rows(self):
        rows = [(f"in  {jax.tree_util.keystr(path)}", spec) for path, spec in _leaves(self.inputs)]
        rows += [(f"    {name}", spec) for name, spec in self.named.items()]
        return rows + [(f"out {jax.tree_util.keystr(path)}", spec) for path, spec in _leaves(self.outputs)]

    def picture(self):
        """All of them drawn, as a page (HTML) that needs nothing else; what a notebook shows."""
        return picture.page([(name.strip(), spec) for name, spec in self._rows()], self.mesh, self.devices)

    _repr_html_ = picture

    def __str__(self):
        rows = self._rows()
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join([f"{self.devices} devices, {self.mesh}", *(f"{name:<{width}}  {spec}" for name, spec in rows)])


def shardings(f, *args, **kwargs):
    """How completion lays out the inputs, the outputs and every named array of f(*args, **kwargs)."""
    exported = export_program(f, args, kwargs)
    everything = ["--remedy-seconds=0", "--min-tensor-bytes=0", "--max-tensors=100000"]
    told = json.loads(ask("explain", exported, ["--format=json", *everything]))
    inputs = [None] * len(exported.in_avals)
    for index, tensor in zip(exported.module_kept_var_idx, told["inputs"], strict=True):
        inputs[index] = _spec(tensor["sharding"])
    named = {}
    for tensor in told["tensors"]:
        name = tensor["place"]["op_name"].partition("/")[2]
        if name:
            named.setdefault(name, _spec(tensor["sharding"]))
    return Shardings(
        inputs=jax.tree.unflatten(exported.in_tree, inputs),
        outputs=jax.tree.unflatten(exported.out_tree, [_spec(tensor["sharding"]) for tensor in told["outputs"]]),
        named=named,
        mesh=told["mesh"],
        devices=told["devices"],
    )


def _leaves(tree):
    return jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda leaf: isinstance(leaf, PartitionSpec))


def _spec(text):
    if not (text.startswith("P(") and text.endswith(")")):
        return text
    try:
        entries = ast.literal_eval(f"[{text[2:-1]}]")
    except (SyntaxError, ValueError):  # parts of axes
        return text
    return PartitionSpec(*entries)
