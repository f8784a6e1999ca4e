"""Where we stand with JAX's own tests, as a page.

    standing.py NATIVE.jsonl[.gz] [PAGE.md] OURS.jsonl[.gz]... > docs/compatibility.md

All are results of a runner of JAX's tests: one JSON object a test, {"file", "id", "status", "err"}. Only tests that
pass natively count. Of several results of ours for one test, the last one counts. PAGE.md is such a page of before: it
stands for the results of the files that it says were run whole, and what it says of files that NATIVE does not know
stays.
"""

import collections
import gzip
import json
import pathlib
import re
import sys

HEAD = """# Compatibility

Made by `tests/jax_suite/standing.py` from runs of JAX's own tests; do not edit.

A test counts when it passes on native JAX {version} with eight CPU devices. "here" is the same test through a Gangway
server with eight CPU devices.
"""

# What a program may notice that no test of JAX's is about.
ELSEWHERE = """
## What is otherwise

- `jax.transfer_guard`: to read an array of a CPU device is no transfer, as natively. What its `log` levels say are
  warnings of jaxlib's; `gangway run` sets `TF_CPP_MIN_LOG_LEVEL=2`, which hides them, unless that is set already.
- Passes of the client's own for the compiler (`jax.extend.xla`) are refused: programs are compiled in the server.
- Matrices that are not finite: what depends on NaN is NaN, singular values and eigenvalues of general matrices are NaN
  also where jaxlib's LAPACK does not end, and which row is a pivot is as open as it is there.
- Arrays of two-bit integers are sorted; jaxlib's CPU client leaves them unsorted and writes past their end.
"""

# Failures that are not ours to mend, by what they or their tests' names say.
CANNOT_PASS = {
    "Only local arrays are supported": "Python's buffer protocol shows memory of this process, and the arrays are in "
    "another; jaxlib's client refuses",
    "implemented for a PjRt-compatible backend only": "addresses of device memory, which jaxlib's client has none of",
    "test_fully_replicated_donated_array_is_deleted|test_device_put_donate_pytree": "jaxlib's client answers "
    "`is_deleted()` itself, and knows only of arrays that are donated by their own name; to use the array is an error",
    "test_reduced_reshard_unreduced_bwd": "asks which summand of a pending sum a device holds; any summands do",
    "PJitTest::testAutodiff_2x2": "numerical derivatives at the edge of their tolerance: the plugin's sine has other "
    "last bits than jaxlib's; the derivatives that are checked are as exact as natively",
    "ScipyLinalgTest::testSchur": "another Schur form of the same matrix: LAPACK is not the build of it that SciPy has "
    "and jaxlib borrows; that it is a Schur form is checked elsewhere, and passes",
    r"not found in 'HloModule": "looks for an operation of XLA's plan in the compiled program; ours moves the same in "
    "another way",
    r"jax\.extend\.xla": "passes of the client's own for the compiler, which is in the server; they are refused",
    "test_subprocess_toggling_logging_level": "counts lines of a log to which jaxlib's client adds its own",
    "test_custom_partitioner_invalid_sharding": "the server partitions the function itself and does not ask the "
    "client's `partition`, whose mistake the test is about",
}


def load(path):
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def load_page(path, wanted):
    """The results a page was made of: what it does not list as failed passed."""
    text, ids = path.read_text(), collections.defaultdict(list)
    for row in wanted:
        ids[row["file"].removeprefix("tests/")].append(row["id"])
    whole = {file for file, native, here, _ in table_of(text) if native == here}
    rows = {name: {"id": name, "status": "passed", "err": ""} for file in whole for name in ids[file]}
    for row in failures_of(text):
        if row["id"] in rows:
            rows[row["id"]] = row
    return list(rows.values())


def table_of(text):
    """(file, passed natively, run here, passed here)"""
    found = re.findall(r"^\| (\S+\.py) \| (\d+) \| (\d+) \| (\d+) ", text, re.MULTILINE)
    return [(file, *map(int, numbers)) for file, *numbers in found]


def failures_of(text):
    rows, why = [], ""
    for line in text.splitlines():
        if head := re.match(r"- \d+ × `?(.*?)`?$", line):
            why = head[1]
        elif failed := re.match(r"  - (\S+)(?: \((\w+)\))?$", line):
            rows.append({"id": failed[1], "status": failed[2] or "failed", "err": why})
    return rows


def rest_of_page(path, wanted):
    """Of the files that no native results are of: {file: counts}, and the tests that failed."""
    text, known = path.read_text(), {row["file"].removeprefix("tests/") for row in wanted}
    counts = {
        file: collections.Counter({"passed": passed, "failed": run - passed, "not run": native - run})
        for file, native, run, passed in table_of(text)
        if file not in known
    }
    return counts, [row for row in failures_of(text) if row["id"].partition("::")[0] in counts]


def reason(row):
    """The line of a failure that says most, without what differs from run to run."""
    lines = [line.strip() for line in row["err"].splitlines() if line.strip()]
    marked = [line[2:].strip() for line in lines if line.startswith("E ")]
    line = (marked or lines or [row["status"]])[0]
    line = re.sub(r"0x[0-9a-f]+|<path>", "…", line)
    line = re.sub(r"\bhandle=\d+", "handle=…", line)
    line = line.replace("`", "'")
    return line if len(line) <= 160 else line[:157] + "…"


def cannot_pass(row):
    """Why, or None."""
    if row["err"] in CANNOT_PASS.values():
        return row["err"]
    text = f"{row['id']} {row['err']}"
    return next((why for pattern, why in CANNOT_PASS.items() if re.search(pattern, text)), None)


def main(native, *ours):
    wanted = [row for row in load(native) if row["status"] == "passed"]
    results = (load_page(path, wanted) if path.suffix == ".md" else load(path) for path in ours)
    found = {row["id"]: row for rows in results for row in rows if row["status"] not in ("notrun", "skipped")}
    counts = collections.defaultdict(collections.Counter)
    failures, beyond_us, failed = collections.defaultdict(list), collections.defaultdict(list), []
    for row in wanted:
        status = found[row["id"]]["status"] if row["id"] in found else "not run"
        counts[row["file"].removeprefix("tests/")][status] += 1
        if status not in ("passed", "not run"):
            failed.append(found[row["id"]])
    for page in (path for path in ours if path.suffix == ".md"):
        rest, failed_before = rest_of_page(page, wanted)
        counts.update(rest)
        failed += failed_before
    for row in failed:
        why = cannot_pass(row)
        (beyond_us[why] if why else failures[f"`{reason(row)}`"]).append((row["status"], row["id"]))
    version = re.search(r"native-([0-9.]+)\.jsonl", str(native))
    print(HEAD.format(version=version[1] if version else ""))
    print("| file | native | run here | pass here | % |\n|---|--:|--:|--:|--:|")
    total = collections.Counter()
    for file, count in sorted(counts.items()):
        print_row(file, count)
        total.update(count)
    print_row("**all**", total)
    print_tests("What fails, by reason", failures)
    print_tests("What cannot pass, and why", beyond_us)
    print(ELSEWHERE, end="")


def print_tests(title, groups):
    if not groups:
        return
    print(f"\n## {title}\n")
    for why, tests in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"- {len(tests)} × {why}")
        for status, name in sorted(tests, key=lambda test: test[1]):
            print(f"  - {name}" + ("" if status == "failed" else f" ({status})"))


def print_row(name, count):
    run = sum(count.values()) - count["not run"]
    share = f"{100 * count['passed'] / run:.1f}" if run else ""
    print(f"| {name} | {sum(count.values())} | {run} | {count['passed']} | {share} |")


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
