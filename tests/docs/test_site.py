"""The docs site: builds strictly, every link leads somewhere, and its pages are those of the code."""

import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[2]
GANGWAY = ROOT / "build" / "gangway"

pytestmark = [
    pytest.mark.skipif(not GANGWAY.exists(), reason="build/gangway is not built"),
    pytest.mark.skipif(shutil.which("mkdocs") is None, reason="no mkdocs"),
]


def build(folder, *options):
    return subprocess.run(
        ["mkdocs", "build", "--strict", "--site-dir", folder, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def text_of(page):
    return re.sub(r"<[^>]+>", "", page.read_text())


def test_it_asks_nobody_else(site):
    for page in site.rglob("*.html"):
        loads = re.findall(
            r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(https?://[^"]+)"', page.read_text()
        )
        assert not loads, (page, loads)


def test_every_command_and_option_is_described(site):
    page = text_of(site / "reference" / "cli.html")
    shown = subprocess.run([GANGWAY, "--help"], capture_output=True, text=True).stdout
    commands = re.findall(r"^  ([a-z]+)  +\S", shown.rpartition("ubcommands:")[2], re.MULTILINE)
    assert len(commands) >= 12
    for command in commands:
        shown = subprocess.run([GANGWAY, command, "--help"], capture_output=True, text=True).stdout
        for option in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", shown, re.MULTILINE):
            assert option in page.partition(f"gangway {command}")[2], (command, option)


def test_every_metric_is_described(site):
    page = text_of(site / "reference" / "metrics.html")
    names = set(re.findall(r'"(gangway_\w+)"', (ROOT / "gangway/status/metrics.cc").read_text()))
    assert len(names) > 10
    assert [name for name in sorted(names) if name not in page] == []


def test_the_program_api_is_described(site):
    page = text_of(site / "reference" / "python.html")
    for name in ("connect(", "pipeline", "Client", "mesh_split", "ray_cluster"):
        assert name in page, name


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with open(tmp_path / "docs" / "install.md", "a") as page:
        page.write("\n[nowhere](nowhere.md)\n")
    settings = (ROOT / "mkdocs.yml").read_text().replace("docs/site/pages.py", str(ROOT / "docs/site/pages.py"))
    (tmp_path / "mkdocs.yml").write_text(settings.replace("docs_dir: docs", f"docs_dir: {tmp_path}/docs"))
    built = build(tmp_path / "site", "--config-file", tmp_path / "mkdocs.yml")
    assert built.returncode != 0
    assert "nowhere.md" in built.stdout + built.stderr


def test_every_page_is_in_the_navigation():
    def pages(entry):
        if isinstance(entry, str):
            return [entry]
        return [page for part in (entry.values() if isinstance(entry, dict) else entry) for page in pages(part)]

    text = re.sub(r"!\S+", "", (ROOT / "mkdocs.yml").read_text())
    listed = set(pages(yaml.safe_load(text)["nav"]))
    written = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in written if not page.startswith("decisions/")} <= listed
