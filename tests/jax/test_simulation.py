"""gangway.simulate: a forecast for devices that are not there, from a function and the shardings of its arguments."""

import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
import gangway  # noqa: E402


def product(devices):
    mesh = AbstractMesh((devices // 8, 8), ("data", "model"))

    def array(shape, *spec):
        return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, P(*spec)))

    return (lambda x, w: jnp.tanh(x @ w)), array((65536, 4096), "data", None), array((4096, 4096), "data", "model")


def test_more_devices_compute_less_each():
    few, many = (json.loads(gangway.simulate(*product(n), machine="h100", format="json")) for n in (64, 1024))
    assert (few["devices"], many["devices"]) == (64, 1024)
    assert many["compute_seconds"] < few["compute_seconds"] / 8
    assert few["seconds"] == pytest.approx(few["compute_seconds"] + few["waited_seconds"])


def test_what_was_exported_knows_its_arguments():
    function, *arguments = product(64)
    exported = jax.export.export(jax.jit(function), platforms=["cpu"])(*arguments)
    one, other = (json.loads(gangway.simulate(*f, format="json")) for f in ((function, *arguments), (exported,)))
    assert one["seconds"] == other["seconds"]
    with pytest.raises(TypeError, match="was exported for its arguments"):
        gangway.simulate(exported, *arguments)


def test_what_is_no_machine_is_said():
    with pytest.raises(RuntimeError, match="no model of abacus"):
        gangway.simulate(*product(64), machine="abacus")
