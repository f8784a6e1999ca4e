"""Where we stand with libraries from PyPI, as a page.

    standing.py ROWS.jsonl [SUITE.jsonl] [--suite ../shared/clients] [--page docs/libraries.md] > docs/libraries.md

ROWS are what run.py --save wrote. SUITE are the lines of the suite of real clients (run_all.py --save there), compared
with the values of native JAX that lie beside it. Of several rows for one client the last one counts.
"""

import argparse
import json
import math
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = """# Libraries

Made by `tests/clients/standing.py`; do not edit.

Each client below is a short script that trains or computes something with a library as it comes from PyPI, on eight
devices with split parameters or data, through a Gangway server and on native JAX. The plugin that runs our programs
on the CPU is another build of XLA than jaxlib's, so last bits differ; what is chaotic (Monte Carlo chains) is compared
loosely.
"""


def load(path):
    return {row["name"]: row for row in map(json.loads, path.read_text().splitlines())}


def page_rows(path):
    lines = (line.strip("| ").split(" | ") for line in path.read_text().splitlines() if line.startswith("| "))
    return [row for row in lines if len(row) == 4 and row[0] != "client"]


def own_rows(path):
    for name, row in sorted(load(path).items()):
        if "error" in row:
            state = row["error"]
        elif row["wrong"]:
            state = "differs: " + ", ".join(row["wrong"])
        else:
            state = f"agrees to {max(row['differences'].values(), default=0):.0e}"
        yield f"tests/clients/{name}.py", f"{row['library']} {row['version']}", row.get("jax", ""), state


def suite_rows(path, suite):
    reference = json.loads((suite / "native_reference.json").read_text())["clients"]
    for name, row in sorted(load(path).items()):
        libraries = ", ".join(f"{library} {version}" for library, version in row.get("lib", {}).items())
        yield f"{name} (suite)", libraries, row.get("jax", ""), verdict(row, reference.get(name, {"values": {}}))


def verdict(row, reference):
    if row["status"] != 0 or not row.get("ok"):
        return f"fails: {row['status']}"
    for which, words in (("tolerance", "agrees"), ("loose", "agrees loosely")):
        if not apart(row["values"], reference["values"], which):
            return words
    return "differs: " + ", ".join(apart(row["values"], reference["values"], "loose"))


def apart(values, wanted, which):
    """The names of values that are further from the wanted ones than the reference's tolerance of that kind."""
    found = {key: values.get(key, math.nan) for key in wanted}
    return [key for key, entry in wanted.items() if not abs(found[key] - entry["value"]) <= entry[which]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", type=pathlib.Path)
    parser.add_argument("suite_rows", type=pathlib.Path, nargs="?")
    parser.add_argument("--page", type=pathlib.Path, help="the page of before, whose other rows stay")
    parser.add_argument("--suite", type=pathlib.Path, default=ROOT.parent / "shared" / "clients")
    args = parser.parse_args()
    print(HEAD)
    print("| client | library | jax | through Gangway |\n|---|---|---|---|")
    rows = list(page_rows(args.page)) if args.page else []
    rows += own_rows(args.rows)
    if args.suite_rows:
        rows += suite_rows(args.suite_rows, args.suite)
    last = {client: row for client, *row in rows}
    for client in sorted(last, key=lambda client: (not client.startswith("tests/"), client)):
        print(f"| {' | '.join([client, *last[client]])} |")


if __name__ == "__main__":
    main()
