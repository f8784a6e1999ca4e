"""A part of the programs through the newest JAX, whose client speaks a newer protocol; `make test` sets it up where the
machine has a Python that is new enough."""

import clusters
import programs
import pytest
from test_programs import assert_same

PYTHON = clusters.ROOT / ".venv-newest" / "bin" / "python"
NAMES = [n for n in programs.load() if n.split(".")[0] in ("matmul", "control", "placement", "collective", "training")]

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no Python 3.12 or later here, which the newest JAX needs")


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("newest")
    command = [clusters.GANGWAY, "run", "--devices", "8", "--", PYTHON]
    return (
        clusters.run_all_programs([PYTHON], clusters.native_environment(), folder / "native", NAMES),
        clusters.run_all_programs(command, clusters.clean_environment(), folder / "gangway", NAMES),
    )


@pytest.mark.parametrize("name", NAMES)
def test_program(name, outcomes):
    native, gangway = outcomes
    missing = native[name].description.get("error", "")
    if missing.startswith("ModuleNotFoundError"):
        pytest.skip(f"not part of this JAX: {missing}")
    assert_same(name, gangway[name], native[name])


def test_the_backend_named_proxy():
    script = "import jax; print(len(jax.devices()), jax.jit(lambda x: x + 1)(1))"
    environment = clusters.clean_environment(JAX_PLATFORMS="proxy")
    result = clusters.run([clusters.GANGWAY, "run", "--devices", "2", "--", PYTHON, "-c", script], env=environment)
    assert result.stdout == "2 2\n", result.stderr
