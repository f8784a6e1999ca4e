"""`deploy/` under the launchers it is for, each a real one on this machine; skipped where one is missing."""

import os
import pathlib
import shutil
import sys

import clusters
import pytest
import slurm

ROOT = pathlib.Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
STEPS = pathlib.Path(__file__).with_name("train_steps.py")


def environment(**extra):
    path = f"{clusters.GANGWAY.parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    return clusters.clean_environment(PATH=path, GANGWAY_PORT=str(slurm.free_port()), GANGWAY_HOST="127.0.0.1", **extra)


def nothing_is_left(mark):
    return clusters.eventually(lambda: not clusters.marked_processes(mark))


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun: apt-get install openmpi-bin")
class TestMpirun:
    def mpirun(self, *command, ranks=3, **extra):
        options = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader", "-np", str(ranks)]
        return clusters.run(["mpirun", *options, DEPLOY / "rank.sh", *command], 300, env=environment(**extra))

    def test_trains(self, native_losses):
        done = self.mpirun(sys.executable, STEPS, GANGWAY_WORKER_DEVICES="2", GANGWAY_TEST_MARK="mpirun-trains")
        assert done.returncode == 0, done.stderr
        assert done.stdout == native_losses(6), done.stderr
        assert nothing_is_left("GANGWAY_TEST_MARK=mpirun-trains")

    def test_a_program_that_fails_fails_the_job(self):
        script = "import jax, sys; print(len(jax.devices()), flush=True); sys.exit(3)"
        done = self.mpirun(sys.executable, "-c", script, ranks=2, GANGWAY_TEST_MARK="mpirun-fails")
        assert done.returncode == 3 and done.stdout.startswith("2\n"), done.stderr
        assert nothing_is_left("GANGWAY_TEST_MARK=mpirun-fails")

    def test_a_worker_that_cannot_start_fails_the_job(self):
        done = self.mpirun("true", ranks=2, GANGWAY_WORKER_PLUGIN="/nonexistent.so", GANGWAY_CONTROLLER_DEVICE_WAIT="5")
        assert done.returncode != 0
        assert "/nonexistent.so" in done.stderr, done.stderr


@slurm.needs_slurm
class TestSlurm:
    @pytest.fixture(scope="class")
    def cluster(self, tmp_path_factory):
        nodes = {f"h{i}": "127.0.0.1" for i in (1, 2, 3)}
        with slurm.Slurm(tmp_path_factory.mktemp("slurm"), nodes) as cluster:
            yield cluster

    def sbatch(self, cluster, tmp_path, *command, **extra):
        job = {"SLURM_CONF": cluster.environment["SLURM_CONF"], "GANGWAY_DEPLOY": str(DEPLOY), "OUT": str(tmp_path)}
        options = ["--wait", "--nodes=3", f"--output={tmp_path}/out", f"--error={tmp_path}/err"]
        done = clusters.run(
            ["sbatch", *options, DEPLOY / "slurm" / "gangway.sbatch", *command], 300, env=environment(**job, **extra)
        )
        return done.returncode, (tmp_path / "out").read_text(), (tmp_path / "err").read_text()

    def test_trains(self, cluster, tmp_path, native_losses):
        code, out, err = self.sbatch(cluster, tmp_path, sys.executable, STEPS, GANGWAY_WORKER_DEVICES="2")
        assert code == 0, err + cluster.logs()
        assert out == native_losses(6), err

    def test_a_program_that_fails_fails_the_job(self, cluster, tmp_path):
        script = "import jax, sys; print(len(jax.devices()), flush=True); sys.exit(3)"
        code, out, err = self.sbatch(cluster, tmp_path, sys.executable, "-c", script)
        assert (code, out) == (3, "3\n"), err + cluster.logs()
