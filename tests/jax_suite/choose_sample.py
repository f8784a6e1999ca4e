"""Chooses the sample: of each file the fastest tests that pass, in proportion to how many it has.

    choose_sample.py NATIVE.jsonl[.gz] OURS.jsonl[.gz]... > sample.txt

Of every file at least LEAST tests, as far as that many pass; together at least TOTAL, as far as so many were run.
"""

import collections
import math
import pathlib
import sys

from standing import load

LEAST = 8
TOTAL = 1600


def main(native, *ours):
    wanted = {row["id"] for row in load(native) if row["status"] == "passed"}
    found = {row["id"]: row for path in ours for row in load(path) if row["status"] not in ("notrun", "skipped")}
    passed = [row for name, row in found.items() if row["status"] == "passed" and name in wanted]
    by_file = collections.defaultdict(list)
    for row in sorted(passed, key=lambda row: (row["secs"], row["id"])):
        by_file[row["file"]].append(row["id"])
    share = min(1, TOTAL / max(1, len(passed)))
    names = [name for tests in by_file.values() for name in tests[: max(LEAST, math.ceil(len(tests) * share))]]
    print("\n".join(sorted(names)))


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
