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


SPLITS = """
from jax.sharding import NamedSharding
def split(f, slice, mesh, spec, shape, **options):
    sharding = NamedSharding(mesh, spec)
    jitted = jax.jit(f, in_shardings=sharding, out_shardings=sharding, **options)
    return client.compile(jitted, slice, np.zeros(shape, np.float32))
square = slice.mesh(x=2, y=2)
m = np.arange(64, dtype=np.float32).reshape(8, 8)
rows = split(lambda m: m + 1, slice, square, P("x"), m.shape)
other_rows = split(lambda m: m * 2, slice, square, P("y"), m.shape)  # equal shards, other parts
"""


def test_arguments_are_brought_where_a_function_wants_them(cluster):
    script = """
pair = client.slice(devices=2)
columns = split(lambda m: m - 3, pair, pair.mesh(x=2), P(None, "x"), m.shape)
wanted = (m + 1) * 2
np.testing.assert_array_equal(other_rows(rows(m)), wanted)
np.testing.assert_array_equal(columns(other_rows(rows(m))), wanted - 3)
@client.program
def there_and_back(m):
    far = columns(rows(m))
    return other_rows(far), rows(far), far
for _ in range(2):
    back, again, far = there_and_back(m)
    np.testing.assert_array_equal(far, m - 2)
    np.testing.assert_array_equal(back, (m - 2) * 2)
    np.testing.assert_array_equal(again, m - 1)
print("brought")
"""
    assert outcome(cluster, SPLITS + script) == ["brought"]


def test_what_is_brought_is_donated(cluster):
    script = """
taking = split(lambda m: m * 2, slice, square, P("y"), m.shape, donate_argnums=0)
y = rows(m)
np.testing.assert_array_equal(taking(y), (m + 1) * 2)
try:
    y.numpy()
except gangway.GangwayError as error:
    print("donated" in str(error))
y = rows(m)
kept = client.program(lambda y: (taking(y), taking(taking(y)), y))(y)
for array, factor in zip(kept, (2, 4, 1)):
    np.testing.assert_array_equal(array, (m + 1) * factor)
np.testing.assert_array_equal(y, m + 1)
"""
    assert outcome(cluster, SPLITS + script) == ["True"]


def test_programs_hold_constants_and_close_over_values(cluster):
    script = """
add = client.compile(lambda x, y: x + y, slice, x, x)
less = client.compile(lambda x, y: x < y, slice, x, x)
far = client.slice(devices=2)
ten = client.compile(lambda: np.float32(10), far)()
@client.program
def climb(x, top, by):
    def turn(state):
        x, top = state
        x = client.program.while_loop(lambda x: less(x, top), lambda x: add(x, by), x)
        return x, client.program.cond(less(top, ten), lambda: add(top, ten), lambda: add(top, by))
    return client.program.while_loop(lambda state: less(state[0], 20.0), turn, (x, top))
def climbed(x, top, by):
    while x < 20:
        while x < top:
            x += by
        top = top + 10 if top < 10 else top + by
    return x, top
for arguments in ((0.0, 5.0, 1.0), (0.0, 5.0, 3.0), (7.0, 12.0, 0.5), (30.0, 1.0, 1.0)):
    assert tuple(map(float, climb(*arguments))) == climbed(*arguments), arguments
inner = client.program(lambda x: add(x, ten))
print(float(client.program(lambda x: add(inner(x), 0.5))(1.0)))
"""
    assert outcome(cluster, script) == ["11.5"]


def test_exported_functions_and_named_arguments(cluster):
    script = """
from jax import export
exported = export.export(jax.jit(lambda a, b: {"sum": a + b}), platforms=["cpu"])(x, x)
print(float(client.compile(exported, slice)(1.0, 2.0)["sum"]))
scaled = client.compile(lambda x, *, by: x * by, slice, x, by=x)
print(float(scaled(3.0, by=2.0)), float(client.program(lambda x, *, by: scaled(x, by=by))(3.0, by=4.0)))
"""
    assert outcome(cluster, script) == ["3.0", "6.0 12.0"]


def test_slices_go_back_and_arrays_are_deleted(cluster):
    script = """
with client.slice(devices=2, policy="first_fit") as alone:
    taken = alone.device_ids
    function = client.compile(lambda x: x + 1, alone, x)
assert client.slice(devices=2, policy="first_fit").device_ids == taken
print(float(function(1.0)))
y = step(x)
y.delete()
for use in (y.numpy, lambda: step(y), lambda: client.program(lambda y: step(y))(y)):
    try:
        use()
    except RuntimeError as error:
        print(str(error).split(" ", 1)[1])
"""
    assert outcome(cluster, script) == ["2.0"] + ["float32[]) has been deleted"] * 3


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
for mistake in (
    lambda: step(np.zeros((3,), np.float32)),
    lambda: client.compile(lambda n: n + 1, slice, np.int32(1))(1.5),
    lambda: client.program(lambda x: step(x) if step(x) else x)(x),
    lambda: client.program(lambda x: client.program.cond(step(x), lambda: step(x), lambda: (x, x)))(x),
    lambda: slice.mesh(x=8),
    lambda: client.program.cond(True, step, step, x),
):
    try:
        mistake()
    except (TypeError, ValueError, RuntimeError) as error:
        print(error)
"""
    lines = outcome(cluster, script)
    assert lines[0] == "True"
    assert "no island has 1000" in lines[1]
    assert "parameter 0 is float32[], got float32[3]" in lines[2]
    assert "parameter 0 is int32[], got float64[]" in lines[3]
    assert "not known while it is traced" in lines[4]
    assert "branches of a conditional give" in lines[5]
    assert lines[6:] == [
        "a mesh of 8 devices over a slice of 4",
        "client.program.cond is for the inside of a program: @client.program",
    ]


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
