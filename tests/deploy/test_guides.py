"""The console blocks of the cluster guides, each run where its launcher is; docs/clusters/ marks them by title."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import clusters
import pytest
import slurm

ROOT = clusters.ROOT
BLOCK = re.compile(r'^```console title="(\w+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)

spec = importlib.util.spec_from_file_location("console_blocks", ROOT / "tests/docs/test_console_blocks.py")
console_blocks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(console_blocks)


def blocks(page, title):
    found = [block for name, block in BLOCK.findall((ROOT / "docs/clusters" / page).read_text()) if name == title]
    assert found
    return found


def run_blocks(page, title, **extra):
    path = f"{clusters.GANGWAY.parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = clusters.clean_environment(PATH=path, GANGWAY_PORT=str(slurm.free_port()), **extra)
    for block in blocks(page, title):
        exported = ""
        for command, expected in console_blocks.steps(block):
            if command.startswith("export "):
                exported += command + "\n"
                continue
            done = subprocess.run(
                ["bash", "-c", exported + command],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=300,
            )
            actual = "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())
            actual = re.sub(r"batch job \d+", "batch job ...", actual)
            assert console_blocks.matches(expected, actual), f"$ {command}\n{actual}\n{done.stderr}"


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun: apt-get install openmpi-bin")
def test_mpirun():
    # What Open MPI asks for where the tests run: as root, with fewer cores than ranks.
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    run_blocks("mpi.md", "mpirun", **allowed, OMPI_MCA_rmaps_base_oversubscribe="1")


@slurm.needs_slurm
def test_slurm(tmp_path):
    with slurm.Slurm(tmp_path, {f"h{i}": "127.0.0.1" for i in (1, 2, 3)}) as cluster:
        run_blocks("slurm.md", "Slurm", GANGWAY_HOST="127.0.0.1", SLURM_CONF=cluster.environment["SLURM_CONF"])
