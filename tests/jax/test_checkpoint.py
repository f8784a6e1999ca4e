"""gangway.checkpoint on eight devices of two workers."""

import json
import pathlib
import struct
import sys

import clusters
import numpy as np
import pytest

STEPS = pathlib.Path(__file__).with_name("checkpoint_steps.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def cluster(folder, tmp_path_factory):
    log = tmp_path_factory.mktemp("cluster")
    with clusters.Cluster(log, "--workers", "2", "--files", str(folder)) as cluster:
        yield cluster


def step(cluster, name, path, **extra):
    python = str(clusters.ROOT / "python")
    environment = cluster.environment() | {"JAX_PLATFORMS": "gangway,cpu", "PYTHONPATH": python} | extra
    result = clusters.run([sys.executable, str(STEPS), name, str(path)], env=environment)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


def test_each_worker_writes_a_file_of_its_own(cluster, folder):
    assert step(cluster, "save", folder / "a") == ["1-worker0.safetensors", "1-worker1.safetensors", "index.json"]


def test_restores_in_any_sharding(cluster, folder):
    step(cluster, "save", folder / "b")
    assert step(cluster, "restore", folder / "b") == []


def test_files_are_safetensors(cluster, folder):
    step(cluster, "save", folder / "c")
    index = json.loads((folder / "c" / "index.json").read_text())
    rebuilt = np.zeros((1000, 64), np.float32)
    for file in index["files"]:
        content = (folder / "c" / file).read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        table = json.loads(content[8 : 8 + length])
        data = content[8 + length :]
        # No holes, and nothing behind the last tensor.
        spans = sorted(entry["data_offsets"] for entry in table.values())
        assert [0] + [end for _, end in spans] == [begin for begin, _ in spans] + [len(data)]
        for name, entry in table.items():
            array, _, start = name.partition("@")
            if array == "params/split":
                begin, end = entry["data_offsets"]
                part = np.frombuffer(data[begin:end], np.float32).reshape(entry["shape"])
                row, column = map(int, start.split(","))
                rebuilt[row : row + part.shape[0], column : column + part.shape[1]] = part
    np.testing.assert_array_equal(rebuilt, np.arange(64000, dtype=np.float32).reshape(1000, 64))


def test_a_save_replaces_the_one_before(cluster, folder):
    different, files = step(cluster, "save_twice", folder / "d")
    assert different == []
    assert files == ["2-worker0.safetensors", "2-worker1.safetensors", "index.json"]


def test_a_save_that_was_interrupted_goes_on(cluster, folder):
    """Without its index nothing is a checkpoint; what it wrote is used by the next save."""
    path = folder / "e"
    step(cluster, "save", path)
    (path / "index.json").unlink()
    whole = path / "1-worker0.safetensors"
    content = whole.read_bytes()
    # Half of a file is there, of the other one more than belongs to it.
    (path / "1-worker0.safetensors.partial").write_bytes(content[: len(content) // 2])
    (path / "1-worker1.safetensors").rename(path / "1-worker1.safetensors.partial")
    with (path / "1-worker1.safetensors.partial").open("ab") as file:
        file.write(b"more")
    whole.unlink()
    assert "NOT_FOUND" in step(cluster, "restore", path)
    step(cluster, "save", path)
    assert whole.read_bytes() == content
    assert step(cluster, "restore", path) == []


def test_the_checkpoint_before_survives_a_save_that_fails(cluster, folder):
    path = folder / "f"
    step(cluster, "save", path)
    # The next save cannot write worker 1's file.
    (path / "2-worker1.safetensors.partial").mkdir()
    error = step(cluster, "save", path)
    assert error.startswith(f"cannot save {path}: ") and "2-worker1.safetensors.partial" in error
    assert step(cluster, "restore", path) == []


def test_a_file_that_is_cut_is_named(cluster, folder):
    path = folder / "g"
    step(cluster, "save", path)
    with (path / "1-worker1.safetensors").open("r+b") as file:
        file.truncate(1000)
    error = step(cluster, "restore", path)
    assert error.startswith(f"cannot restore {path}: ") and "1-worker1.safetensors ends at byte" in error


def test_explicit_axes(cluster, folder):
    assert step(cluster, "save_explicit", folder / "h") == []


def test_restored_arrays_are_ordinary(cluster, folder):
    assert step(cluster, "train", folder / "i") == [0.0, 4.0, 8.0]


def test_what_cannot_be_is_one_line(cluster, folder):
    path = folder / "j"
    errors = step(cluster, "refuse", path)
    expected = {
        "missing": f"cannot restore {path}/none: ",
        "outside": f"/gangway_outside/index.json is not in {folder}, where clients' files may be",
        "name": "it holds no array v",
        "shape": "w is of shape (8,) there, (9,) is wanted",
        "type": "w is I32 there, float32 is wanted",
        "int4": "w is of type int4, which safetensors has not: convert it before",
        "key": "w is of shape (8,) there, (2,) is wanted",
        "text": "w is no array: Value 'a word'",
        "local": "w is not on a Gangway server",
        "none": "the tree holds no arrays",
    }
    for name, text in expected.items():
        assert text in errors[name] and "\n" not in errors[name].strip(), errors[name]


def test_tenants_keep_to_their_folders(tmp_path):
    files, log = tmp_path / "files", tmp_path / "log"
    files.mkdir()
    log.mkdir()
    tenants = [{"name": name, "token": f"of-{name}"} for name in ("red", "blue", "../red")]
    (log / "tenants.json").write_text(json.dumps(tenants))
    with clusters.Cluster(log, "--files", str(files), f"--tenants={log / 'tenants.json'}") as cluster:

        def as_tenant(name, verb, path):
            return step(cluster, verb, files / path, GANGWAY_TOKEN=f"of-{name}")

        assert as_tenant("red", "save", "red/a") == ["1-worker0.safetensors", "index.json"]
        assert as_tenant("red", "restore", "red/a") == []
        (files / "blue").mkdir()
        (files / "blue" / "link").symlink_to(files / "red")
        for verb, path in [("restore", "red/a"), ("save", "red/b"), ("save", "b"), ("restore", "blue/link/a")]:
            assert f"is not in {files}/blue, where clients' files may be" in as_tenant("blue", verb, path)
        assert as_tenant("../red", "save", "%2E.%2Fred/a") == ["1-worker0.safetensors", "index.json"]
        assert "is not in" in as_tenant("../red", "restore", "red/a")
        assert sorted(path.name for path in files.iterdir()) == ["%2E.%2Fred", "blue", "red"]


def test_a_cluster_without_a_folder_says_so(tmp_path):
    command = [*clusters.gangway_run(STEPS, "save", tmp_path / "x")]
    result = clusters.run(command, env=clusters.clean_environment(JAX_PLATFORMS="gangway,cpu"))
    assert "this worker keeps no files of clients; start it with --files=FOLDER" in result.stdout, result.stderr[-3000:]
