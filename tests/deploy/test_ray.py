"""python/gangway/ray_cluster.py on a real Ray of this machine."""

import subprocess
import sys
import textwrap

import clusters
import pytest

ray = pytest.importorskip("ray", reason="no Ray: pip install -r requirements-clusters.lock")

ROOT = clusters.ROOT
SCRIPT = """
import os, subprocess, sys
import ray
from gangway import ray_cluster

ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
with ray_cluster.start(islands=[3], devices=2) as cluster:
    environment = dict(os.environ, GANGWAY_ADDRESS=cluster.address, JAX_PLATFORMS="gangway")
    print(subprocess.run([sys.executable, {steps!r}], env=environment, text=True, capture_output=True).stdout, end="")
    states = [group["strategy"] for group in ray.util.placement_group_table().values() if group["state"] == "CREATED"]
    print(len(states), [len(island) for island in cluster.workers])
    print(ray.available_resources()["CPU"])
left = [group for group in ray.util.placement_group_table().values() if group["state"] == "CREATED"]
print(left)
"""


def test_trains_and_gives_everything_back(native_losses):
    script = textwrap.dedent(SCRIPT).format(steps=str(ROOT / "tests/deploy/train_steps.py"))
    path = f"{clusters.GANGWAY.parent}:{sys.executable.rpartition('/')[0]}:{clusters.os.environ['PATH']}"
    environment = clusters.clean_environment(
        PATH=path, PYTHONPATH=str(ROOT / "python"), RAY_USAGE_STATS_ENABLED="0", GANGWAY_TEST_MARK="ray"
    )
    done = clusters.run([sys.executable, "-c", script], 300, env=environment, stdout=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == native_losses(6) + "1 [3]\n1.0\n[]\n", done.stdout + done.stderr
    assert clusters.eventually(
        lambda: not any("gangway" in c for c in clusters.marked_processes("GANGWAY_TEST_MARK=ray").values())
    )
