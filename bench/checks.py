"""What the checks of `gangway run` cost: steps/s of examples/train_transformer.py with each of them and with none.

The runs take turns; a line of JSON for each, then each check beside the runs without: the median of the ratios within a
round. What the comparison of replicas takes is also told from its own runs, where nothing else changes: by how much the
steps around a checked one are longer than the others, as a share of the ten steps that it serves.
"""

import argparse
import json
import pathlib
import statistics
import tempfile

from side_by_side import ROOT, emit, measure

EXAMPLE = ROOT / "examples" / "train_transformer.py"
REPLICAS_EVERY = 10
CHECKS = {
    "none": (),
    "replicas": (f"--check-replicas={REPLICAS_EVERY}",),
    "nans": ("--check-nans",),
    "deterministic": ("--deterministic",),
}


def share_of_comparing(known):
    """Of ten steps' time, what one comparison took; `known`: when each step's loss was known."""
    steps = [after - before for before, after in zip(known, known[1:])]
    around = [range(run - 1, run + 2) for run in range(REPLICAS_EVERY, len(steps) - 1, REPLICAS_EVERY)]
    touched = {step for of_run in around for step in of_run}
    usual = statistics.median(took for step, took in enumerate(steps) if step not in touched and step > 1)
    more = [sum(steps[step] - usual for step in of_run) for of_run in around]
    return statistics.median(more) / (REPLICAS_EVERY * usual)


def train(check, args, folder):
    figures = folder / "figures.json"
    arguments = [EXAMPLE, "--steps", args.steps, "--out", folder, "--json", figures, *args.example_arguments]
    measure("gangway", args.devices, arguments, args.timeout, cluster=CHECKS[check])
    return json.loads(figures.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs with each check (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=33, help="steps a run (default: %(default)s)")
    parser.add_argument("--checks", nargs="+", choices=CHECKS, default=list(CHECKS), help="default: all")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--timeout", type=float, default=600, help="seconds a run (default: %(default)s)")
    parser.add_argument("example_arguments", nargs="*", help="for the example, after --")
    args = parser.parse_args()

    speeds = {check: [] for check in dict.fromkeys(["none", *args.checks])}
    comparing = []
    with tempfile.TemporaryDirectory() as folder:
        for round_number in range(args.rounds):
            for check, found in speeds.items():
                figures = train(check, args, pathlib.Path(folder))
                found.append(figures["steps_per_s"])
                emit(bench="checks", check=check, round=round_number, steps_per_s=found[-1])
                if check == "replicas":
                    comparing.append(share_of_comparing(figures["losses_known_s"]))
    unchecked = speeds.pop("none")
    for check, found in speeds.items():
        ratios = [checked / of_round for checked, of_round in zip(found, unchecked)]
        emit(bench="checks", check=check, rounds=ratios, ratio=statistics.median(ratios))
    if comparing:
        emit(bench="checks", figure="share_of_ten_steps", rounds=comparing, share=statistics.median(comparing))


if __name__ == "__main__":
    main()
