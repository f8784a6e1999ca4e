"""Programs that other systems got wrong (shared/cases beside the checkout), each run unchanged by `gangway run`.

All must pass.
"""

import pathlib

import clusters
import pytest

CASES = clusters.ROOT.parent / "shared" / "cases"


@pytest.mark.skipif(not CASES.is_dir(), reason=f"{CASES} is not there")
@pytest.mark.parametrize("name", sorted(p.name for p in CASES.glob("*.py")))
def test_case(name):
    result = clusters.run(clusters.gangway_run(pathlib.Path(CASES, name)), timeout=150)
    ok = result.returncode == 0 and "RESULT ok" in result.stdout
    lines = (result.stdout + result.stderr).splitlines()
    failed = "\n".join(line for line in lines if line.startswith(("FAIL", "RESULT"))) or "\n".join(lines[-5:])
    assert ok, failed
