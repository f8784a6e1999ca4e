"""Every way of splitting a model that examples/ shows trains the model that one device trains."""

import json
import sys

import clusters
import pytest

NAMES = ["parallel_transformer", "mixture_of_experts", "unet3d", "conformer"]


@pytest.mark.parametrize("name", NAMES)
def test_eight_devices_train_like_one(name):
    arguments = [clusters.ROOT / "examples" / f"{name}.py", "--steps", "4"]

    def train(command, environment):
        result = clusters.run([*command], env=environment)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout)

    python = [sys.executable, *map(str, arguments)]
    alone = train(python, clusters.native_environment(devices=1) | {"PYTHONPATH": str(clusters.ROOT / "python")})
    split = train(clusters.gangway_run(*arguments), clusters.clean_environment())
    assert split["losses"] == pytest.approx(alone["losses"], rel=1e-3)
    assert split["losses"][-1] < split["losses"][0]
    assert max(split["mesh"].values()) > max(alone["mesh"].values()) == 1
