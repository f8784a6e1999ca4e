"""What is asked of the server beside programs: memory of devices, arrays elsewhere, orders of pathwaysutils."""

import clusters
import pytest

# An array on eight devices becomes one on four of them, split otherwise: by device_put, and by IFRT's own request.
ELSEWHERE = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxlib import _pathways
devices = np.array(jax.devices())
whole, part = Mesh(devices.reshape(4, 2), ("x", "y")), Mesh(devices[[6, 1, 4, 3]].reshape(2, 2), ("x", "y"))
value = np.arange(64.0, dtype=np.float32).reshape(8, 8)
x = jax.device_put(value, NamedSharding(whole, P("x", "y")))
target = NamedSharding(part, P(None, ("y", "x")))
for moved in (jax.device_put(x, target), _pathways._transfer_to_shardings([x], [target], False)[0]):
    assert moved.sharding == target and moved.committed
    np.testing.assert_array_equal(moved, value)
    np.testing.assert_array_equal(jax.jit(lambda a: a + 1)(moved), value + 1)
back = jax.device_put(moved, NamedSharding(whole, P(("x", "y"))), donate=True)
assert moved.is_deleted() and not x.is_deleted()
np.testing.assert_array_equal(back, value)
one = jax.device_put(jax.device_put(value, devices[5]), NamedSharding(whole, P()))
np.testing.assert_array_equal(one, value)
"""

# As pathwaysutils' PluginExecutable does.
ORDER = """
import base64, json, jax, numpy as np
from jax.extend import ifrt_programs
from jax.interpreters import pxla
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
programs = ifrt_programs.ifrt_programs
devices = np.array(jax.devices())
value = np.arange(64.0, dtype=np.float32).reshape(8, 8)
x = jax.device_put(value, NamedSharding(Mesh(devices, ("x",)), P("x")))
target = NamedSharding(Mesh(devices[:2], ("x",)), P(None, "x"))

def run(order, arrays=(), shardings=(), avals=()):
    program = programs.make_plugin_program(json.dumps(order))
    executable = jax.local_devices()[0].client.compile_ifrt_program(program, programs.make_plugin_compile_options())
    results = executable.execute_sharded(arrays, with_tokens=True)
    made = results.consume_with_handlers(pxla.global_avals_to_results_handler(avals, shardings, True).handlers)
    results.consume_token().block_until_ready()
    return made

def text(sharding):
    proto = sharding._to_xla_hlo_sharding(2).to_proto().SerializeToString()
    ids = [d.id for d in sharding._addressable_device_assignment]
    return {"devices": {"device_ids": ids}, "xla_hlo_sharding": base64.b64encode(proto).decode()}

order = {"reshardRequest": {"donateInput": True, "inSharding": [text(x.sharding)], "outSharding": [text(target)]}}
(moved,) = run(order, [x], [target], [x.aval])
np.testing.assert_array_equal(moved, value)
assert moved.sharding == target
try:
    run({"profileRequest": {}})
except Exception as error:
    print(error)
"""

MEMORY = """
import jax, numpy as np
from jax.experimental import transfer  # before there is a backend
x = jax.device_put(np.ones((1 << 20,), np.float32), jax.devices()[1])
x.block_until_ready()
stats = jax.devices()[1].memory_stats()
print(stats["bytes_reserved"] >= 4 << 20, sorted(stats))
try:
    transfer.start_transfer_server(jax.devices()[0].client)
except NotImplementedError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clusters.Cluster(tmp_path_factory.mktemp("orders"), "--workers", "2") as cluster:
        yield cluster


def _run(cluster, script):
    done = cluster.client(script)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_arrays_go_to_other_devices_split_in_another_way(cluster):
    _run(cluster, ELSEWHERE)


def test_orders_of_pathwaysutils_are_served_or_refused_by_name(cluster):
    assert "gangway does not serve the plugin program profileRequest" in _run(cluster, ORDER)


def test_memory_is_told_and_what_would_crash_is_refused(cluster):
    told, refused = _run(cluster, MEMORY).splitlines()
    assert told.startswith("True ") and "bytes_in_use" in told
    assert "jax.experimental.transfer" in refused
