import sys

import clusters
import programs
import pytest


@pytest.fixture(scope="session")
def native_outcomes(tmp_path_factory):
    """Every program's outcome on native JAX with eight host devices."""
    folder = tmp_path_factory.mktemp("native")
    return clusters.run_all_programs([sys.executable], clusters.native_environment(), folder, programs.load())


@pytest.fixture(scope="session")
def gangway_outcomes(tmp_path_factory):
    """Every program's outcome through one Gangway cluster of eight devices."""
    folder = tmp_path_factory.mktemp("gangway")
    return clusters.run_all_programs(clusters.gangway_run(), clusters.clean_environment(), folder, programs.load())


@pytest.fixture(scope="session")
def two_worker_outcomes(tmp_path_factory):
    """The same with the devices spread over two workers."""
    folder = tmp_path_factory.mktemp("two_workers")
    command = clusters.gangway_run(workers=2)
    return clusters.run_all_programs(command, clusters.clean_environment(), folder, programs.load())
