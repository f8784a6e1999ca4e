"""Some remedies that explain tells for the quality suite are applied: they hold (bench/remedies.py)."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITE = ROOT.parent / "shared" / "quality" / "artifacts"


@pytest.mark.skipif(not SUITE.is_dir(), reason="the quality suite is not beside the project")
def test_a_sample_holds():
    command = [sys.executable, ROOT / "bench" / "remedies.py", "--sample=12", "--seed=3", "--seconds=30"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["sample"] == 12
