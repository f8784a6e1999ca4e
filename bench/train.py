"""Steps/s and peak memory of examples/train_transformer.py through Gangway, beside native JAX in the same run.

The two systems take turns; a line of JSON for each run, then the medians and their ratios (gangway / native), and the
largest relative difference between their losses at the same step.
"""

import argparse
import json
import pathlib
import statistics
import tempfile

from side_by_side import ROOT, emit, measure

EXAMPLE = ROOT / "examples" / "train_transformer.py"


def train(system, args, folder):
    figures = folder / "figures.json"
    arguments = [EXAMPLE, "--steps", args.steps, "--out", folder, "--json", figures, *args.example_arguments]
    _, peak = measure(system, args.devices, arguments, args.timeout)
    found = json.loads(figures.read_text())
    return {
        "steps_per_s": found["steps_per_s"],
        "first_step_s": found["first_step_s"],
        "peak_mib": peak / 2**20,
        "losses": found["losses"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each system (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=20, help="steps a run (default: %(default)s)")
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--timeout", type=float, default=600, help="seconds a run (default: %(default)s)")
    parser.add_argument("example_arguments", nargs="*", help="for the example, after --")
    args = parser.parse_args()

    runs = {"native": [], "gangway": []}
    with tempfile.TemporaryDirectory() as folder:
        for round_number in range(args.rounds):
            for system, found in runs.items():
                found.append(train(system, args, pathlib.Path(folder)))
                figures = {figure: value for figure, value in found[-1].items() if figure != "losses"}
                emit(bench="train", system=system, round=round_number, **figures, last_loss=found[-1]["losses"][-1])

    def median(system, figure):
        return statistics.median(run[figure] for run in runs[system])

    for figure in "steps_per_s", "peak_mib", "first_step_s":
        native, gangway = median("native", figure), median("gangway", figure)
        emit(bench="train", figure=figure, native=native, gangway=gangway, ratio=gangway / native)
    pairs = list(zip(runs["native"][0]["losses"], runs["gangway"][0]["losses"], strict=True))
    difference = max(abs(gangway - native) / abs(native) for native, gangway in pairs)
    emit(bench="train", figure="loss_difference", steps=len(pairs), largest_relative=difference)


if __name__ == "__main__":
    main()
