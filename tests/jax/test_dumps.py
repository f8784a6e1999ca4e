"""Programs as files, where XLA's options ask for them."""

import json

import clusters

PROGRAM = """
import json, pathlib, sys
import jax
from jaxlib import _hlo
from jax.experimental import serialize_executable

folder = pathlib.Path(sys.argv[1])
def double(x):
    return x * 2
options = {"xla_dump_to": str(folder / "one"), "xla_dump_hlo_as_proto": True, "xla_dump_hlo_as_text": True}
compiled = jax.jit(double, compiler_options=options).lower(1.0).compile()
jax.jit(lambda x: x, compiler_options={"xla_cpu_enable_fast_math": False})(1.0)
found = {p.name.split("_after_")[1]: p for p in (folder / "one").iterdir() if ".jit_double." in p.name}
print(json.dumps({
    "files": sorted(found),
    "all": len(list((folder / "one").iterdir())),
    "text": found["optimizations.txt"].read_text() == compiled.as_text(),
    "proto": "multiply" in _hlo.HloModule.from_serialized_hlo_module_proto(
        found["optimizations.hlo.pb"].read_bytes()).to_string(),
}))
"""
# Of a program that JAX found in its cache.
CACHED = """
import pathlib, sys
import jax
folder = pathlib.Path(sys.argv[1])
jax.config.update("jax_compilation_cache_dir", str(folder / "cache"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
texts = []
for name in "first", "second":
    jax.jit(lambda x: x + 1, compiler_options={"xla_dump_to": str(folder / name)})(1)
    texts += [p.read_text() for p in (folder / name).glob("*after_optimizations.txt")]
    jax.clear_caches()
print(len(texts), texts[0] == texts[1])
"""


def test_the_client_writes_what_its_devices_run(tmp_path):
    done = clusters.run(clusters.gangway_run("-c", PROGRAM, tmp_path))
    assert done.returncode == 0, done.stderr
    files = ["optimizations.hlo.pb", "optimizations.txt"]
    assert json.loads(done.stdout) == {"files": files, "all": 2, "text": True, "proto": True}


def test_programs_of_the_cache_are_written_too(tmp_path):
    done = clusters.run(clusters.gangway_run("-c", CACHED, tmp_path))
    assert done.stdout == "2 True\n", done.stderr


def test_flags_of_xla_ask_for_them_too(tmp_path):
    environment = clusters.clean_environment(XLA_FLAGS=f"--xla_dump_to={tmp_path}")
    program = "import jax; jax.jit(lambda x: x + 1)(1.0)"
    done = clusters.run(clusters.gangway_run("-c", program), env=environment)
    assert done.returncode == 0, done.stderr
    assert [p.name for p in tmp_path.glob("*.jit__lambda.*after_optimizations.txt")]
