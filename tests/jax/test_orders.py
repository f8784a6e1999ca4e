"""What is asked of the server beside programs."""

import clusters
import pytest

MEMORY = """
import jax, numpy as np
x = jax.device_put(np.ones((1 << 20,), np.float32), jax.devices()[1])
x.block_until_ready()
stats = jax.devices()[1].memory_stats()
print(stats["bytes_reserved"] >= 4 << 20, sorted(stats))
from jax.experimental import transfer
try:
    transfer.start_transfer_server(jax.devices()[0].client)
except NotImplementedError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with clusters.Cluster(tmp_path_factory.mktemp("orders"), "--workers", "2") as cluster:
        yield cluster


def _run(cluster, script):
    done = cluster.client(script)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_memory_is_told_and_what_would_crash_is_refused(cluster):
    told, refused = _run(cluster, MEMORY).splitlines()
    assert told.startswith("True ") and "bytes_in_use" in told
    assert "jax.experimental.transfer" in refused
