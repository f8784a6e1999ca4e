"""python/gangway/ray_cluster.py on a real Ray of this machine."""

import sys

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


def run(script, mark):
    path = f"{clusters.GANGWAY.parent}:{sys.executable.rpartition('/')[0]}:{clusters.os.environ['PATH']}"
    environment = clusters.clean_environment(
        PATH=path,
        PYTHONPATH=str(ROOT / "python"),
        RAY_USAGE_STATS_ENABLED="0",
        RAY_AUTH_MODE="disabled",
        GANGWAY_TEST_MARK=mark,
    )
    return clusters.run([sys.executable, "-c", script], 300, env=environment)


ISLANDS = """
import gangway, numpy as np, ray
from gangway import ray_cluster

ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
with ray_cluster.start(islands=[2, 1], devices=2) as cluster:
    groups = [group for group in ray.util.placement_group_table().values() if group["state"] == "CREATED"]
    print(sorted((group["name"], len(group["bundles"])) for group in groups))
    client = gangway.connect(cluster.address)
    first, second = client.slice(4, island=0), client.slice(2, island=1)
    x = np.arange(8, dtype=np.float32)
    double, add = client.compile(lambda x: x * 2, first, x), client.compile(lambda x: x + 1, second, x)
    print(double(x).numpy().sum(), add(x).numpy().sum())
    client.close()
print([group["name"] for group in ray.util.placement_group_table().values() if group["state"] == "CREATED"])
"""


def test_an_island_is_a_placement_group():
    done = run(ISLANDS, "ray-islands")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[('gangway island 0', 2), ('gangway island 1', 1)]\n56.0 36.0\n[]\n", done.stderr


def test_trains_and_gives_everything_back(native_losses):
    done = run(SCRIPT.format(steps=str(ROOT / "tests/deploy/train_steps.py")), "ray")
    assert done.returncode == 0, done.stderr
    assert done.stdout == native_losses(6) + "1 [3]\n1.0\n[]\n", done.stdout + done.stderr
    assert clusters.eventually(
        lambda: not any("gangway" in c for c in clusters.marked_processes("GANGWAY_TEST_MARK=ray").values())
    )
