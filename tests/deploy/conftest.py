import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "jax"))  # clusters, authority
os.environ["PATH"] += ":/usr/sbin"  # Debian's daemons

import clusters  # noqa: E402

STEPS = pathlib.Path(__file__).with_name("train_steps.py")


@pytest.fixture(scope="session")
def native_losses():
    """What train_steps.py prints on native JAX, by number of devices."""
    known = {}

    def losses(devices):
        if devices not in known:
            done = clusters.run([sys.executable, STEPS], env=clusters.native_environment(devices))
            assert done.returncode == 0, done.stderr
            known[devices] = done.stdout
        return known[devices]

    return losses
