"""What the checks of `gangway run` cost: steps/s of examples/train_transformer.py with each of them and with none.

The runs take turns; a line of JSON for each, then each check's median beside that of the runs without.
"""

import argparse
import json
import pathlib
import statistics
import tempfile

from side_by_side import ROOT, emit, measure

EXAMPLE = ROOT / "examples" / "train_transformer.py"
CHECKS = {
    "none": (),
    "replicas": ("--check-replicas",),  # at every tenth run of a program
    "nans": ("--check-nans",),
    "deterministic": ("--deterministic",),
}


def steps_per_second(check, args, folder):
    figures = folder / "figures.json"
    arguments = [EXAMPLE, "--steps", args.steps, "--out", folder, "--json", figures, *args.example_arguments]
    measure("gangway", args.devices, arguments, args.timeout, cluster=CHECKS[check])
    return json.loads(figures.read_text())["steps_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs with each check (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=33, help="steps a run (default: %(default)s)")
    parser.add_argument("--checks", nargs="+", choices=CHECKS, default=list(CHECKS), help="default: all")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--timeout", type=float, default=600, help="seconds a run (default: %(default)s)")
    parser.add_argument("example_arguments", nargs="*", help="for the example, after --")
    args = parser.parse_args()

    found = {check: [] for check in dict.fromkeys(["none", *args.checks])}
    with tempfile.TemporaryDirectory() as folder:
        for round_number in range(args.rounds):
            for check, speeds in found.items():
                speeds.append(steps_per_second(check, args, pathlib.Path(folder)))
                emit(bench="checks", check=check, round=round_number, steps_per_s=speeds[-1])
    unchecked = statistics.median(found.pop("none"))
    for check, speeds in found.items():
        speed = statistics.median(speeds)
        emit(bench="checks", check=check, unchecked=unchecked, checked=speed, ratio=speed / unchecked)


if __name__ == "__main__":
    main()
