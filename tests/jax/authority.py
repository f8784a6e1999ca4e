"""Certificates for the tests of TLS, made by openssl."""

import shutil
import subprocess

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")


class Authority:
    """Signs certificates for 127.0.0.1 and other names, in a folder."""

    def __init__(self, folder, name="authority"):
        self.folder, self.name = folder, name
        self.certificate = folder / f"{name}.pem"
        self._openssl("req", "-x509", *self._new_key(name), "-days", "2", "-subj", f"/CN={name}", "-out", f"{name}.pem")

    def _new_key(self, name):
        return "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"

    def _openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def options(self, name, days=2, addresses=("127.0.0.1",)):
        """The options of a process with a new certificate."""
        names = ",".join(f"IP:{address}" for address in addresses)
        (self.folder / "names").write_text(f"subjectAltName={names}")
        self._openssl("req", "-new", *self._new_key(name), "-subj", f"/CN={name}", "-out", f"{name}.csr")
        sign = ["x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.pem", "-CAkey", f"{self.name}.key"]
        self._openssl(*sign, "-CAcreateserial", "-days", str(days), "-extfile", "names", "-out", f"{name}.pem")
        files = {"ca": f"{self.name}.pem", "cert": f"{name}.pem", "key": f"{name}.key"}
        return [f"--tls-{option}={self.folder / file}" for option, file in files.items()]
