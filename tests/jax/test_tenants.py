"""A cluster with tenants: who shows a tenant's token may use it, as that tenant."""

import json
import urllib.request

import clusters
import pytest

WORKS = """
import jax, jax.numpy as jnp
print(float(jax.jit(jnp.sum)(jnp.arange(8.0))), flush=True)
"""
STAYS = WORKS + "import time; time.sleep(120)"
PROGRAM_API = """
import gangway
print(len(gangway.connect().devices))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tenants")
    tenants = [{"name": "red", "token": "of-red", "weight": 3}, {"name": "blue", "token": "of-blue", "max_sessions": 1}]
    (folder / "tenants.json").write_text(json.dumps(tenants))
    with clusters.Cluster(folder, f"--tenants={folder / 'tenants.json'}", devices=2) as cluster:
        yield cluster


def client(cluster, token, script=WORKS):
    environment = cluster.environment(**({"GANGWAY_TOKEN": token} if token else {}))
    return clusters.run([clusters.sys.executable, "-c", script], 120, env=environment)


def sessions(cluster):
    with urllib.request.urlopen(f"http://{cluster.status_page}/status.json", timeout=30) as answer:
        return json.load(answer)["sessions"]


@pytest.mark.parametrize("script, output", [(WORKS, "28.0\n"), (PROGRAM_API, "2\n")], ids=["jax", "program_api"])
def test_a_tenant_works(cluster, script, output):
    shown = client(cluster, "of-red", script)
    assert shown.stdout == output, shown.stderr


@pytest.mark.parametrize("token, why", [(None, "wants a tenant's token"), ("of-green", "no tenant has this token")])
@pytest.mark.parametrize("script", [WORKS, PROGRAM_API], ids=["jax", "program_api"])
def test_others_are_refused(cluster, token, why, script):
    refusals = cluster.errors().count(why)
    shown = client(cluster, token, script)
    assert shown.returncode != 0
    assert why in shown.stderr, shown.stderr
    assert cluster.errors().count(why) == refusals + 1  # it does not ask again what will not change
    assert "of-green" not in cluster.errors()


def test_sessions_of_a_tenant_are_counted(cluster):
    first = clusters.subprocess.Popen(
        [clusters.sys.executable, "-c", STAYS],
        env=cluster.environment(GANGWAY_TOKEN="of-blue"),
        stdout=clusters.subprocess.PIPE,
        text=True,
    )
    assert first.stdout.readline() == "28.0\n"
    assert [(session["tenant"], session["weight"]) for session in sessions(cluster)] == [("blue", 1.0)]
    second = client(cluster, "of-blue")
    assert second.returncode != 0 and "tenant blue has 1 sessions" in second.stderr, second.stderr
    first.kill()
    first.communicate()
    assert clusters.eventually(lambda: not sessions(cluster))
    assert client(cluster, "of-blue").stdout == "28.0\n"


@pytest.mark.parametrize(
    "content, why",
    [
        ("[]", "no list of tenants"),
        ('[{"name": "red"}]', "no token"),
        ('[{"nmae": "red"}]', "'nmae'"),
        ('[{"max_bytes": "4 reds"}]', "'max_bytes'"),
    ],
)
def test_files_that_say_nothing_clear(tmp_path, content, why):
    (tmp_path / "tenants.json").write_text(content)
    refused = clusters.run([clusters.GANGWAY, "serve", f"--tenants={tmp_path / 'tenants.json'}"], 60)
    assert refused.returncode == 1 and why in refused.stderr, refused.stderr


def test_clients_of_other_machines_need_tokens():
    refused = clusters.run([clusters.GANGWAY, "controller", "--listen=0.0.0.0:0"], 60)
    assert refused.returncode == 1 and "--tenants" in refused.stderr
