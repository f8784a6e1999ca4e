"""`import gangway`: compiled functions and whole programs on slices, without JAX's backend."""

import clusters
import pytest

SETUP = """
import jax, numpy as np
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
import gangway

client = gangway.connect()
slice = client.slice(devices=4)
mesh = slice.mesh(x=4)
def spread(f, *specs):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=specs[:-1], out_specs=specs[-1]))
x = np.float32(1)
step = client.compile(spread(lambda x: jax.lax.psum(x, "x") / 4 + 1, P(), P()), slice, x)
"""


@pytest.fixture(scope="module", params=[1, 2], ids=["one_worker", "two_workers"])
def cluster(request, tmp_path_factory):
    with clusters.Cluster(tmp_path_factory.mktemp("programs"), "--workers", str(request.param)) as cluster:
        yield cluster


def outcome(cluster, script):
    command = [clusters.sys.executable, "-c", SETUP + script]
    result = clusters.run(command, 120, env=cluster.environment() | {"JAX_PLATFORMS": "cpu"})
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_functions_run_one_by_one(cluster):
    script = """
add = client.compile(spread(lambda a, b: {"sum": a + b, "product": a * b}, P("x"), P("x"), P("x")), slice,
                     *[np.zeros((8, 3), np.int32)] * 2)
a = np.arange(24, dtype=np.int32).reshape(8, 3)
y = add(a, a + 1)
np.testing.assert_array_equal(y["sum"].numpy(), 2 * a + 1)
z = add(y["product"], y["sum"])
np.testing.assert_array_equal(z["sum"].numpy(), a * (a + 1) + 2 * a + 1)
print(float(step(step(x))))
"""
    assert outcome(cluster, script) == ["3.0"]


def test_a_chain_in_one_program(cluster):
    script = """
@client.program
def chain(x):
    for _ in range(128):
        x = step(x)
    return x
y = chain(x)
for _ in range(3):
    y = chain(y)
print(float(y))
"""
    assert outcome(cluster, script) == ["513.0"]


def test_several_slices_and_results(cluster):
    script = """
other = client.slice(devices=4)
assert set(other.device_ids).isdisjoint(slice.device_ids), other
far = client.compile(jax.jit(lambda x: x * 10), other, x)
@client.program
def there_and_back(x):
    y = far(step(x))
    return step(y), y, (x,)
z, y, (same,) = there_and_back(x)
print(float(z), float(y), float(same))
"""
    assert outcome(cluster, script) == ["21.0 20.0 1.0"]


def test_control_flow_on_device_values(cluster):
    script = """
below = client.compile(jax.jit(lambda x: x < 10), slice, x)
half = client.compile(jax.jit(lambda x: x / 2), slice, x)
@client.program
def climb(x):
    top = client.program.while_loop(below, step, x)
    return client.program.cond(below(x), lambda t: half(t), lambda t: t, top)
print(float(climb(x)), float(climb(np.float32(20))))
"""
    assert outcome(cluster, script) == ["5.0 20.0"]


def test_the_cplusplus_client_chains_an_artifact(cluster, tmp_path):
    artifact = tmp_path / "step.mlirbc"
    script = f"""
from gangway import lowering
step = spread(lambda x: jax.lax.psum(x, "x") / 4 + 1, P(), P())
open({str(artifact)!r}, "wb").write(lowering.lower(step, (x,)).artifact)
"""
    outcome(cluster, script)
    chain = clusters.GANGWAY.with_name("chain")
    result = clusters.run([str(chain), cluster.address, str(artifact)], 60)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == ["jit__lambda: 2", "three times: 4"]


def test_errors_name_what_failed(cluster):
    script = """
try:
    unknown = jax.ffi.ffi_call("no_such_target", jax.ShapeDtypeStruct((), x.dtype))
    client.compile(jax.jit(lambda x: unknown(x)), slice, x)
except gangway.GangwayError as error:
    print("no_such_target" in str(error))
try:
    client.slice(devices=1000)
except gangway.GangwayError as error:
    print(error)
try:
    step(np.zeros((3,), np.float32))
except TypeError as error:
    print(error)
"""
    lines = outcome(cluster, script)
    assert lines[0] == "True"
    assert "no island has 1000" in lines[1]
    assert "parameter 0 is of shape []" in lines[2]


def test_memory_is_told_by_device(cluster):
    script = """
double = client.compile(spread(lambda a: a * 2, P("x"), P("x")), slice, np.zeros((4096, 4), np.float32))
y = double(np.ones((4096, 4), np.float32))
y.block_until_ready()
held = {device.id: device.bytes_reserved for device in client.memory()}
print(len(held), [held[device] for device in slice.device_ids])
"""
    assert outcome(cluster, script) == [f"8 {[16384] * 4}"]


def test_a_client_leaves_nothing(cluster):
    outcome(cluster, "held = [step(x) for _ in range(10)]; held[-1].block_until_ready()")
    keys = ("sessions", "arrays", "programs", "pending_launches", "store_bytes")
    left = clusters.eventually(lambda: all(cluster.status()[key] == 0 for key in keys))
    assert left, cluster.status()
