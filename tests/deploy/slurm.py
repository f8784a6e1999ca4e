"""A real Slurm on this machine: munged, slurmctld and a slurmd for each node, as root and from one folder."""

import os
import shutil
import socket
import subprocess
import time

import pytest

needs_slurm = pytest.mark.skipif(
    os.geteuid() != 0
    or not all(map(shutil.which, ("slurmctld", "slurmd", "srun", "munged")))
    or not os.path.ismount("/sys/fs/cgroup"),  # slurmd does not start without, as in a bare chroot
    reason="no Slurm to start as root: apt-get install slurm-wlm; mount /sys/fs/cgroup",
)

CONFIGURATION = """
ClusterName=gangway
SlurmctldHost={host}({address})
MailProg=/bin/true
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
SlurmdTimeout={silent_after}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Slurm:
    """A context manager. `nodes`: name -> address; `prefix(node)`: what a daemon's command line begins with there;
    a node that is silent for `silent_after` seconds is down."""

    def __init__(self, folder, nodes, prefix=lambda node: [], silent_after=30):
        self.folder, self.nodes, self.prefix = folder, nodes, prefix
        self.processes = {}
        first = next(iter(nodes))
        lines = "\n".join(
            f"NodeName={name} NodeHostname={name} NodeAddr={address} Port={free_port()} CPUs=4 State=UNKNOWN"
            for name, address in nodes.items()
        )
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text(
            CONFIGURATION.format(
                folder=folder,
                nodes=lines,
                host=socket.gethostname(),
                address=nodes[first],
                port=free_port(),
                silent_after=silent_after,
            )
        )
        (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        (folder / "munge.key").write_bytes(os.urandom(128))
        (folder / "munge.key").chmod(0o400)
        self.environment = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"))

    def _start(self, name, node, *command):
        log = open(self.folder / f"{name}.out", "w")  # noqa: SIM115
        self.processes[name] = subprocess.Popen(
            [*self.prefix(node), *command], env=self.environment, stdout=log, stderr=log, start_new_session=True
        )
        log.close()

    def start_node(self, node):
        """Also again, after stop_node()."""
        self._start(f"slurmd-{node}", node, "slurmd", "-D", "-N", node, "-f", str(self.folder / "slurm.conf"))

    def stop_node(self, node):
        """The daemon and the steps it started are killed."""
        self.run("scancel", "--signal=KILL", f"--nodelist={node}", "--state=RUNNING", check=False)
        self.processes[f"slurmd-{node}"].kill()
        self.processes[f"slurmd-{node}"].wait()

    def run(self, *command, check=True, timeout=60):
        node = next(iter(self.nodes))
        return subprocess.run(
            [*self.prefix(node), *command],
            env=self.environment,
            check=check,
            timeout=timeout,
            capture_output=True,
            text=True,
        )

    def popen(self, *command, **options):
        node = next(iter(self.nodes))
        options.setdefault("env", self.environment)
        return subprocess.Popen([*self.prefix(node), *command], start_new_session=True, **options)

    def logs(self):
        return "\n".join(
            f"== {path.name}\n{path.read_text()[-600:]}" for path in sorted(self.folder.glob("*.[lo][ou][gt]"))
        )

    def __enter__(self):
        first = next(iter(self.nodes))
        files = {option: self.folder / f"munge.{option}" for option in ("socket", "pid", "log", "seed")}
        munged = [
            "munged",
            "--foreground",
            "--force",
            f"--key-file={self.folder}/munge.key",
            f"--socket={files['socket']}",
        ]
        munged += [f"--{option}-file={files[option]}" for option in ("pid", "log", "seed")]
        self._start("munged", first, *munged)
        self._start("slurmctld", first, "slurmctld", "-D", "-i", "-f", str(self.folder / "slurm.conf"))
        for node in self.nodes:
            self.start_node(node)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            idle = self.run("sinfo", "--noheader", "--states=idle", "--format=%D", check=False)
            if idle.stdout.strip() == str(len(self.nodes)):
                return self
            time.sleep(0.3)
        logs = self.logs()
        self.__exit__()
        raise RuntimeError(f"Slurm did not start\n{logs}")

    def __exit__(self, *_):
        self.run("scancel", "--user=root", check=False)
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
