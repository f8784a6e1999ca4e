"""Network namespaces that stand for hosts: each has an eth0 with an address of its own, on a switch of theirs."""

import os
import shutil
import signal
import subprocess

import pytest


def _can_make_hosts():
    """In a chroot the kernel's modules cannot be loaded, and some containers make no namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    bridge = ["unshare", "--net", "ip", "link", "add", "bridge", "type", "bridge"]
    return subprocess.run(bridge, capture_output=True).returncode == 0


needs_hosts = pytest.mark.skipif(
    not _can_make_hosts(), reason="network namespaces with a bridge are made as root, by ip (iproute2)"
)


class Hosts:
    """A context manager. `addresses`: name -> address, all of one /24."""

    def __init__(self, addresses):
        self.addresses = addresses
        self._switch = self._namespace("switch")

    @staticmethod
    def _namespace(host):
        return f"gangway-{os.getpid()}-{host}"

    @staticmethod
    def _ip(*arguments):
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    def prefix(self, host):
        """What a command line on that host begins with. `ip netns exec` would also hide the control groups of /sys."""
        return ["nsenter", f"--net=/run/netns/{self._namespace(host)}"]

    def processes(self, host):
        listed = subprocess.run(["ip", "netns", "pids", self._namespace(host)], capture_output=True, text=True)
        return [int(pid) for pid in listed.stdout.split()]

    def lose_power(self, host):
        """The link goes down and everything that runs there is gone."""
        self._ip("-n", self._namespace(host), "link", "set", "eth0", "down")
        for pid in self.processes(host):
            os.kill(pid, signal.SIGKILL)

    def power_up(self, host):
        self._ip("-n", self._namespace(host), "link", "set", "eth0", "up")

    def __enter__(self):
        self._ip("netns", "add", self._switch)
        self._ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
        self._ip("-n", self._switch, "link", "set", "bridge", "up")
        for host, address in self.addresses.items():
            namespace, port = self._namespace(host), f"to-{host}"
            self._ip("netns", "add", namespace)
            self._ip("-n", self._switch, "link", "add", port, "type", "veth", "peer", "eth0", "netns", namespace)
            self._ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
            self._ip("-n", namespace, "address", "add", f"{address}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                self._ip("-n", namespace, "link", "set", link, "up")
        return self

    def __exit__(self, *_):
        for host in self.addresses:
            for pid in self.processes(host):
                os.kill(pid, signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", self._namespace(host)], check=False)
        subprocess.run(["ip", "netns", "delete", self._switch], check=False)
