"""The main job: the example's first losses through Gangway are native JAX's, and it shows its pictures."""

import json
import sys

import clusters
import pytest

EXAMPLE = clusters.ROOT / "examples" / "train_transformer.py"
# A quarter of the example's batch and half of its sequence: the same program, sooner done.
ARGUMENTS = [EXAMPLE, "--steps", "20", "--batch", "8", "--sequence", "128"]


def test_losses_agree_with_native_jax(tmp_path):
    def train(command, environment, name):
        out = tmp_path / name
        result = clusters.run([*command, "--out", out, "--json", tmp_path / f"{name}.json"], env=environment)
        assert result.returncode == 0, result.stderr
        assert (out / "loss.png").read_bytes().startswith(b"\x89PNG")
        return result.stdout, json.loads((tmp_path / f"{name}.json").read_text())

    shown, got = train(clusters.gangway_run(*ARGUMENTS), clusters.clean_environment(), "gangway")
    native_shown, wanted = train([sys.executable, *map(str, ARGUMENTS)], clusters.native_environment(), "native")
    assert got["losses"] == pytest.approx(wanted["losses"], rel=1e-4)
    assert got["losses"][-1] < got["losses"][0]
    assert got["parameters"] == wanted["parameters"]

    def picture(text):
        return [line for line in text.splitlines() if line[:1] in "┌│├└"]

    assert picture(shown) == picture(native_shown) != []
