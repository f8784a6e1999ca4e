"""Controller and worker over TLS: who shows a certificate of the cluster's authority may join, nobody else."""

import threading

import clusters
import pytest
from authority import Authority, needs_openssl
from clusters import Controller

pytestmark = needs_openssl


def worker(controller, options, seconds=60):
    """A worker until it ends by itself, or is taken down after a while."""
    command = [clusters.GANGWAY, "worker", f"--controller={controller.workers}", "--devices=2", "--reconnect=0"]
    return clusters.run([*command, "--log-level=error", *options], seconds)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


def test_workers_of_the_authority_join(authority):
    with Controller(*authority.options("controller")) as controller:
        joined = threading.Thread(target=worker, args=(controller, authority.options("worker"), 20))
        joined.start()
        assert controller.lines.readline() == "ready\n"
        controller.process.kill()
        joined.join()


@pytest.mark.parametrize("who", ["nobody", "stranger", "expired"])
def test_others_do_not(authority, tmp_path, who):
    (tmp_path / "other").mkdir()
    options = {
        "nobody": lambda: [],
        "stranger": lambda: Authority(tmp_path / "other", "other").options("stranger"),
        "expired": lambda: authority.options("late", days=-1),
    }[who]()
    with Controller(*authority.options("controller")) as controller:
        refused = worker(controller, [*options, "--connect-timeout=3"])
        assert refused.returncode == 1
        assert len(refused.stderr.splitlines()) == 1 and "cannot reach 127.0.0.1:" in refused.stderr, refused.stderr
        assert controller.process.poll() is None


def test_other_machines_need_certificates():
    refused = clusters.run([clusters.GANGWAY, "controller", "--listen-workers=0.0.0.0:0", "--log-level=error"], 60)
    assert refused.returncode == 1 and "--tls-ca" in refused.stderr


def test_files_that_hold_no_certificate(tmp_path):
    (tmp_path / "empty").write_text("")
    options = [f"--tls-{option}={tmp_path / 'empty'}" for option in ("ca", "cert", "key")]
    refused = clusters.run([clusters.GANGWAY, "worker", "--controller=127.0.0.1:1", *options], 60)
    assert refused.returncode == 1 and "holds no PEM text" in refused.stderr
