"""Controller and worker over TLS: who shows a certificate of the cluster's authority may join, nobody else."""

import os
import shutil
import subprocess
import threading

import clusters
import pytest

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")


class Authority:
    """Signs certificates for 127.0.0.1, in a folder."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self._openssl("req", "-x509", *self._new_key(name), "-days", "2", "-subj", f"/CN={name}", "-out", f"{name}.pem")

    def _new_key(self, name):
        return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def options(self, name, days=2):
        """The options of a process with a new certificate."""
        (self.folder / "names").write_text("subjectAltName=IP:127.0.0.1")
        self._openssl("req", "-new", *self._new_key(name), "-subj", f"/CN={name}", "-out", f"{name}.csr")
        sign = ["x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key"]
        self._openssl(*sign, "-CAcreateserial", "-days", str(days), "-extfile", "names", "-out", f"{name}.pem")
        files = {"ca": f"{self.name}.pem", "cert": f"{name}.pem", "key": f"{name}.key"}
        return [f"--tls-{option}={self.folder / file}" for option, file in files.items()]


class Controller:
    """`gangway controller` that waits for two devices; says where workers connect, then "ready"."""

    def __init__(self, options):
        read, write = os.pipe()
        command = [clusters.GANGWAY, "controller", "--expect-devices=2", f"--announce-fd={write}", *options]
        self.process = subprocess.Popen(command, pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        self.lines = os.fdopen(read)
        self.workers = self.lines.readline().split()[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.lines.close()


def worker(controller, options, seconds=60):
    """A worker until it ends by itself, or is taken down after a while."""
    command = [clusters.GANGWAY, "worker", f"--controller={controller.workers}", "--devices=2", "--reconnect=0"]
    return clusters.run([*command, "--log-level=error", *options], seconds)


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "authority")


def test_workers_of_the_authority_join(authority):
    with Controller(authority.options("controller")) as controller:
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
    with Controller(authority.options("controller")) as controller:
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
