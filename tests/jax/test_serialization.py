"""Executables as bytes, and the caches that hold them."""

import json
import sys

import clusters
import pytest

SETUP = """
import json, pickle, sys
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import serialize_executable
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
put = lambda a, *spec: jax.device_put(a, NamedSharding(mesh, P(*spec)))
x = put(np.arange(64.0, dtype=np.float32).reshape(8, 8), "x", "y")
f = jax.jit(lambda x, n: {"product": x @ x, "total": x.sum() * n}, donate_argnums=())
"""
SERIALIZE = """
with open(PATH, "wb") as file:
    pickle.dump(serialize_executable.serialize(f.lower(x, 2.0).compile()), file)
"""
LOAD = """
with open(PATH, "rb") as file:
    loaded = serialize_executable.deserialize_and_load(*pickle.load(file))
found, wanted = loaded(x, 2.0), f(x, 2.0)
print(all(np.array_equal(found[k], wanted[k]) and found[k].sharding == wanted[k].sharding for k in wanted))
"""
ONE_DEVICE = """
g = jax.jit(lambda x: x + 1)
there = jax.device_put(np.float32(1), jax.devices()[3])
payload = serialize_executable.serialize(g.lower(there).compile())
result = serialize_executable.deserialize_and_load(*payload)(there)
print(float(result), result.devices() == there.devices())
"""
REFUSED = """
client = jax.devices()[0].client
good = f.lower(x, 2.0).compile().runtime_executable().serialize()
def text(data):
    try:
        client.deserialize_executable(data, jax.devices())
    except Exception as error:
        return str(error)
called = jax.jit(lambda x: jax.pure_callback(np.sin, x, x)).lower(jnp.float32(1)).compile()
try:
    called.runtime_executable().serialize()
    callback = None
except Exception as error:
    callback = str(error)
print(json.dumps({
    "foreign": text(b"something else"),
    "version": text(good.replace(b"gangway 0.", b"gangway 9.", 1)),
    "damaged": text(good[:-1]),
    "callback": callback,
}))
"""
# Counts what JAX's persistent cache finds.
CACHED = """
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
found = f(x, 2.0)
print(json.dumps([len(hits), float(found["total"]), float(found["product"][7, 7])]))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clusters.Cluster(tmp_path_factory.mktemp("serialization")) as cluster:
        yield cluster


def output(result):
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout.splitlines()


def test_an_executable_runs_in_another_process_and_cluster(cluster, tmp_path):
    path = f"PATH = {str(tmp_path / 'executable')!r}\n"
    output(cluster.client(SETUP + path + SERIALIZE))
    assert output(cluster.client(SETUP + path + LOAD)) == ["True"]
    script = tmp_path / "load.py"
    script.write_text(SETUP + path + LOAD)
    assert output(clusters.run(clusters.gangway_run(script, workers=2))) == ["True"]


def test_an_executable_keeps_its_device(cluster):
    assert output(cluster.client(SETUP + ONE_DEVICE)) == ["2.0 True"]


def test_what_is_no_executable_of_ours_is_refused_in_one_line(cluster):
    environment = cluster.environment() | {"JAX_PLATFORMS": "gangway,cpu"}
    (line,) = output(clusters.run([sys.executable, "-c", SETUP + REFUSED], env=environment))
    errors = json.loads(line)
    assert "these bytes are no executable of Gangway's" in errors["foreign"]
    assert "an executable of gangway 9.1 is not one of gangway 0.1" in errors["version"]
    assert "a damaged executable: " in errors["damaged"]
    assert "executable jit__lambda: it calls functions of its client's process" in errors["callback"]
    assert all("\n" not in error.strip() for error in errors.values())


def test_jax_finds_its_programs_in_its_cache(cluster, tmp_path):
    environment = cluster.environment(JAX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"))
    command = [sys.executable, "-c", SETUP + CACHED]
    (first,) = output(clusters.run(command, env=environment))
    (second,) = output(clusters.run(command, env=environment))
    assert json.loads(first) == [0, 4032.0, 16996.0]
    hits, *values = json.loads(second)
    assert hits > 0 and values == [4032.0, 16996.0]


def test_a_cluster_keeps_machine_code_for_the_next(tmp_path):
    script, folder = tmp_path / "script.py", tmp_path / "code"
    script.write_text(SETUP + 'print(float(f(x, 2.0)["total"]))')
    command = clusters.gangway_run(script)
    command[2:2] = [f"--cache={folder}"]
    assert output(clusters.run(command)) == ["4032.0"]
    kept = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert kept
    assert output(clusters.run(command)) == ["4032.0"]
    # Nothing was compiled, what is there was used.
    again = {file: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert kept.keys() == again.keys()
    assert all(again[file] > kept[file] for file in kept)
