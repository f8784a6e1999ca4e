"""A fixed sample of JAX's own tests (sample.txt), run through a Gangway server where a checkout of JAX is at hand.

JAX's tests are not part of this project. They are looked for in the folder that JAX_TESTS names, or in ../jax-tests and
../shared/jax_suite/src beside the checkout: `tests/` and `conftest.py` of the tag that belongs to the installed JAX.
"""

import importlib.util
import os
import pathlib
import sys
import xml.etree.ElementTree

import jax
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "jax"))
import clusters  # noqa: E402

SAMPLE = pathlib.Path(__file__).with_name("sample.txt").read_text().splitlines()
JAX_VERSION = "0.10.2"  # of the sample's names


def find_checkout():
    named = os.environ.get("JAX_TESTS")
    folders = [named] if named else [ROOT.parent / "jax-tests", ROOT.parent / "shared" / "jax_suite" / "src"]
    return next((pathlib.Path(f) for f in folders if pathlib.Path(f, "tests", "array_test.py").is_file()), None)


def why_not():
    if jax.__version__ != JAX_VERSION:
        return f"the sample is of JAX {JAX_VERSION}, installed is {jax.__version__}"
    if find_checkout() is None:
        return "no checkout of JAX: set JAX_TESTS to a folder with its tests/ and conftest.py"
    missing = [name for name in ("hypothesis", "mpmath", "absl") if importlib.util.find_spec(name) is None]
    return f"JAX's tests need {', '.join(missing)}" if missing else None


pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clusters.Cluster(tmp_path_factory.mktemp("jax_suite")) as cluster:
        yield cluster


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("file", sorted({name.partition("::")[0] for name in SAMPLE}))
def test_file(file, cluster, tmp_path):
    checkout = find_checkout()
    helper = "hypothesis_test_util"
    if helper in (checkout / "tests" / file).read_text() and importlib.util.find_spec(f"jax._src.{helper}") is None:
        pytest.skip(f"needs jax/_src/{helper}.py, which JAX's wheel leaves out")
    names = [f"tests/{name}" for name in SAMPLE if name.startswith(f"{file}::")]
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", "--timeout=180"]
    command += [f"--junitxml={report}", "--rootdir", str(checkout), "-c", str(checkout / "pyproject.toml"), *names]
    # Both platforms are named, as our plugin does otherwise: JAX's tests object when a test changes the configuration.
    environment = cluster.environment() | {
        "JAX_PLATFORMS": "gangway,cpu",
        "JAX_TEST_DUT": "cpu",
        "JAX_NUM_GENERATED_CASES": "1",
        "JAX_SKIP_SLOW_TESTS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    result = clusters.run(command, timeout=1700, env=environment, cwd=checkout)
    assert report.is_file(), result.stdout[-2000:] + result.stderr[-2000:]
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    failed = {case.get("name"): case[0].get("message") for case in cases if len(case) and case[0].tag != "skipped"}
    assert not failed
