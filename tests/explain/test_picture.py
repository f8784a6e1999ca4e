"""The picture of gangway.shardings: which part of an array is on which devices, against what JAX itself says."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GANGWAY = ROOT / "build" / "gangway"

SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import gangway
from gangway import picture

mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("x", "y", "z"))
axes = {"x": 2, "y": 2, "z": 2}
assert picture.mesh_axes("mesh['x'=2,'y'=2,'z'=2]") == axes
for spec in (P(), P("x"), P(None, "y"), P(("z", "x"), "y"), P("y", None, ("x", "z")), P("x", "y", "z")):
    sharding = NamedSharding(mesh, spec)
    held = picture.blocks(spec, axes)
    shape = (8, 8, 8)
    for index, devices in held.items():
        counts = [1 + max(i[d] for i in held) for d in range(len(spec))]
        start = [index[d] * (8 // counts[d]) if d < len(spec) else 0 for d in range(3)]
        told = {d.id for d, s in sharding.devices_indices_map(shape).items() if [r.start or 0 for r in s] == start}
        assert told == set(devices), (spec, index, devices, told)


def f(x, w):
    with jax.named_scope("layer"):
        return jnp.tanh(x @ w)


x = jax.ShapeDtypeStruct((16, 8), jnp.float32, sharding=NamedSharding(mesh, P("x")))
w = jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=NamedSharding(mesh, P(None, ("y", "z"))))
found = gangway.shardings(f, x, w)
print(found)
print(found.picture())
assert found._repr_html_() == found.picture()
"""


@pytest.mark.skipif(not GANGWAY.exists(), reason="build/gangway is not built")
def test_every_array_is_drawn_with_the_devices_that_hold_it():
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(ROOT / "python"),
        "GANGWAY_BINARY": str(GANGWAY),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
    }
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    table, _, page = done.stdout.partition("<!DOCTYPE html>")
    names = re.findall(r"^(?:in|out|) +(\S+)  ", table, re.MULTILINE)
    drawn = re.findall(r'<svg role="img" aria-label="([^"]*)".*?</svg>', page)
    assert len(drawn) >= 4 and any("layer/tanh" in label for label in drawn), drawn
    assert len(drawn) == len(table.splitlines()) - 1 and len(names) > 0
    assert not re.search(r"https?://|src=|<script", page)
    rows = re.search(r'aria-label="in  ?\[0\]\[0\]: [^"]*"(.*?)</svg>', page)[1]
    assert rows.count("<rect") == 2 and "0-3" in rows and "4-7" in rows
