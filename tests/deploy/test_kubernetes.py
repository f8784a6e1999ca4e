"""deploy/kubernetes against what JobSet publishes as its schema, and against our own options."""

import json
import os
import pathlib
import shutil
import subprocess

import clusters
import jsonschema
import pytest
import yaml

MANIFEST = clusters.ROOT / "deploy/kubernetes/jobset.yaml"
MODULE, SUM = "sigs.k8s.io/jobset@v0.9.1", "h1:0VWakCej3FuYFxsoTrMEibosO9PjpxgawT+U146dgjM="
DEFINITION = "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    """The schema of jobset.x-k8s.io/v1alpha2, as JSON schema that allows no field it does not know."""
    if shutil.which("go") is None:
        pytest.skip("no go to get JobSet's published schema with")
    # The checksum stands above, so no database of checksums need be asked.
    environment = dict(os.environ, GONOSUMDB="sigs.k8s.io/*", GOFLAGS="-modcacherw")
    folder = tmp_path_factory.mktemp("go")
    got = subprocess.run(
        ["go", "mod", "download", "-json", MODULE],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    module = json.loads(got.stdout or "{}")
    if "Dir" not in module:
        pytest.skip(f"JobSet's published schema cannot be had: {module.get('Error', got.stderr)}")
    assert module["Sum"] == SUM
    definition = yaml.safe_load((pathlib.Path(module["Dir"]) / DEFINITION).read_text())
    versions = {version["name"]: version for version in definition["spec"]["versions"]}
    return strict(versions["v1alpha2"]["schema"]["openAPIV3Schema"])


def strict(schema):
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    if (
        "properties" in schema
        and not schema.get("x-kubernetes-preserve-unknown-fields")
        and schema.get("type") == "object"
    ):
        out.setdefault("additionalProperties", False)
    return out


@pytest.fixture
def manifest():
    return yaml.safe_load(MANIFEST.read_text())


def jobs(manifest):
    return {job["name"]: job["template"]["spec"] for job in manifest["spec"]["replicatedJobs"]}


def test_is_a_job_set(schema, manifest):
    schema["properties"]["metadata"] = {"type": "object"}  # of Kubernetes itself
    jsonschema.validate(manifest, schema)


def test_a_field_that_is_none_is_noticed(schema, manifest):
    manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(jsonschema.ValidationError, match="imagee"):
        jsonschema.validate(manifest, schema)


@pytest.mark.parametrize("job", ["controller", "workers"])
def test_our_options_are_options(manifest, job):
    container = jobs(manifest)[job]["template"]["spec"]["containers"][0]
    assert container["command"][0] == "gangway"
    arguments = [argument.replace("$(JOB_COMPLETION_INDEX)", "0") for argument in container["args"]]
    shown = clusters.run([clusters.GANGWAY, "config", container["command"][1], *arguments], 60)
    assert shown.returncode == 0, shown.stderr


def test_names_and_numbers_fit(manifest):
    spec = jobs(manifest)
    workers, controller = spec["workers"], spec["controller"]["template"]["spec"]["containers"][0]
    devices = sum(
        int(a.split("=")[1]) for a in workers["template"]["spec"]["containers"][0]["args"] if a.startswith("--devices=")
    )
    assert f"--expect-devices={devices * workers['parallelism']}" in controller["args"]
    host = f"{manifest['metadata']['name']}-controller-0-0.{manifest['spec']['network']['subdomain']}"
    assert f"--controller={host}:7001" in workers["template"]["spec"]["containers"][0]["args"]
    program = spec["program"]["template"]["spec"]["containers"][0]
    assert f"--connect={host}:7002" in program["args"]
    script = pathlib.Path(program["args"][-1])
    assert (clusters.ROOT / "examples" / script.name).exists()
