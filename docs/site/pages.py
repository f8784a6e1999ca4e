"""mkdocs hook: pages that are made from the code, and links that lead out of docs/.

    reference/cli.md      what `gangway COMMAND --help` prints
    reference/python.md   signatures and docstrings of python/gangway
    reference/cpp.md      the header of the C++ client
    reference/metrics.md  the metrics a controller serves, as status/metrics.cc names them
    code/...              the READMEs of the folders, which pages link to

A link to another file of the repository stays as text: the site has no copy of it.
"""

import ast
import os
import pathlib
import posixpath
import re
import subprocess

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
GANGWAY = os.environ.get("GANGWAY_BINARY", ROOT / "build" / "gangway")
LINK = re.compile(r"\[([^\]\n]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files, config):
    made = {
        "reference/cli.md": command_line(),
        "reference/python.md": python_reference(),
        "reference/cpp.md": cpp_reference(),
        "reference/metrics.md": metrics_reference(),
    }
    for path in code_pages():
        made[f"code/{path}"] = (ROOT / path).read_text()
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    # Where the page stands in the repository.
    uri = page.file.src_uri
    folder = posixpath.dirname(uri.removeprefix("code/") if uri.startswith("code/") else f"docs/{uri}")

    def relink(match):
        text, target, anchor = match[1], match[2], match[3] or ""
        if "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        inside = f"{path}/README.md" if (ROOT / path).is_dir() else path
        site = inside.removeprefix("docs/") if inside.startswith("docs/") else f"code/{inside}"
        if files.get_file_from_path(site) is None:
            if not (ROOT / path).exists():
                return match[0]  # which the strict build then refuses
            return text if text.startswith("`") else f"`{text}`"
        return f"[{text}]({posixpath.relpath(site, posixpath.dirname(uri) or '.')}{anchor})"

    return LINK.sub(relink, markdown)


def code_pages():
    listed = subprocess.run(
        ["git", "ls-files", "*/README.md", "*/HOSTED.md", "tests/*/README.md"], cwd=ROOT, capture_output=True, text=True
    )
    return sorted(path for path in set(listed.stdout.split()) if not path.startswith("docs/"))


def command_line():
    def shown(*arguments):
        return subprocess.run(
            [GANGWAY, *arguments, "--help"], capture_output=True, text=True, check=True
        ).stdout.strip()

    top = shown()
    parts = ["# Command line", f"```text\n{top}\n```"]
    for name in re.findall(r"^  ([a-z]+)  +\S", top.rpartition("ubcommands:")[2], re.MULTILINE):
        parts.append(f"## gangway {name}\n\n```text\n{shown(name)}\n```")
    parts.append("Options can come from a file and from the environment too: [settings](../operate.md#settings).")
    return "\n\n".join(parts) + "\n"


def python_reference():
    parts = ["# Python", "`import gangway`; the names below are those of `gangway` and of its modules."]
    for path in sorted((ROOT / "python/gangway").glob("*.py")):
        module = ast.parse(path.read_text())
        parts.append(f"## {'gangway' if path.stem == '__init__' else f'gangway.{path.stem}'}")
        parts.append(ast.get_docstring(module) or "")
        for node in module.body:
            parts += members(node, "###")
    return "\n\n".join(filter(None, parts)) + "\n"


def members(node, heading):
    """Of a function or class and, for a class, of its methods; nothing for what is not public or not described."""
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    if not (is_function or isinstance(node, ast.ClassDef)) or node.name.startswith("_"):
        return []
    described = ast.get_docstring(node)
    if is_function and described is None:
        return []
    signature = f"({ast.unparse(node.args)})" if is_function else ""
    parts = [f"{heading} {node.name}{signature}".replace("*", "\\*").replace("_", "\\_"), described or ""]
    if isinstance(node, ast.ClassDef):
        for member in node.body:
            parts += members(member, heading + "#")
    return parts


def cpp_reference():
    header = (ROOT / "gangway/client/client.h").read_text()
    return f"# C++\n\nThe client of the program API: link `gangway_client`.\n\n```cpp\n{header}```\n"


def metrics_reference():
    source = (ROOT / "gangway/status/metrics.cc").read_text()
    found = re.findall(r'\.(Counter|Gauge)\(\s*"(\w+)",\s*"([^"]+)"', source)
    rows = "\n".join(f"| `{name}` | {kind.lower()} | {help_text} |" for kind, name, help_text in found)
    return (
        "# Metrics\n\nServed at `/metrics` of the [status page](../operate.md#seeing-what-runs), for Prometheus.\n\n"
        f"| name | kind | what it is |\n|---|---|---|\n{rows}\n"
    )
