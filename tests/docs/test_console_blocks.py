"""Every `console` block of docs/ is executed: lines after "$ " are commands, the lines below them their output.

A line that is only "..." stands for any lines. UPDATE_DOCS=1 rewrites the outputs of blocks without such a line.
"""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GANGWAY = ROOT / "build" / "gangway"
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if BLOCK.search(page.read_text()))

pytestmark = pytest.mark.skipif(not GANGWAY.exists(), reason="build/gangway is not built")


def steps(block):
    """[(command, expected output)] of a block; a command goes on after a line that ends in a backslash."""
    found, lines = [], block.splitlines()
    while lines:
        line = lines.pop(0)
        assert line.startswith("$ "), f"a console block starts with a command, not with {line!r}"
        command = line[2:]
        while command.endswith("\\"):
            command += "\n" + lines.pop(0)
        expected = []
        while lines and not lines[0].startswith("$ "):
            expected.append(lines.pop(0))
        found.append((command, "\n".join(expected)))
    return found


def run(command, cwd):
    environment = dict(os.environ, PATH=f"{GANGWAY.parent}:{ROOT}/.venv/bin:{os.environ['PATH']}", COLUMNS="120")
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)  # importing JAX in this process sets it; readers have not
    done = subprocess.run(
        ["bash", "-c", command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).strip("\n").splitlines())


def matches(expected, actual):
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line.rstrip()) + "\n" for line in expected.splitlines()
    )
    return re.fullmatch(pattern, actual + "\n" if actual else "") is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page(page):
    text = page.read_text()

    def rerun(match):
        out = []
        for command, expected in steps(match.group(1)):
            actual = run(command, ROOT)
            if not os.environ.get("UPDATE_DOCS"):
                assert matches(expected, actual), f"{page.name}: $ {command}\n{actual}\n--- the page says\n{expected}"
            keep = "..." in expected.splitlines()
            out.append(f"$ {command}\n" + "".join(f"{line}\n" for line in (expected if keep else actual).splitlines()))
        return "```console\n" + "".join(out) + "```"

    updated = BLOCK.sub(rerun, text)
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(updated)


def test_a_wrong_output_is_noticed():
    assert matches("a\n...\nd", "a\nb\nc\nd")
    assert matches("", "")
    assert not matches("a\nd", "a\nb\nd")
    assert not matches("a", "")
