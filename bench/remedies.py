"""Do the remedies hold that `gangway explain` proposes?

A sample of all collectives of the suite's programs: each is explained; the annotation that is to remove it is applied
and the program explained again. A collective holds when it is then gone and the program receives what was told, or when
explain had said that no annotation of its ends removes it. One JSON line a program, then the share that held; exit code
1 when that is below --at-least.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys

from side_by_side import emit

ROOT = pathlib.Path(__file__).resolve().parents[1]
GANGWAY = pathlib.Path(os.environ.get("GANGWAY_BINARY", ROOT / "build" / "gangway"))
SUITE = ROOT.parent / "shared" / "quality"


def explain(artifact, *options):
    command = [GANGWAY, "explain", "--format=json", "--max-tensors=0", *options, artifact]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def identity(collective):
    """Who wanted which array moved: the same collective in two compilations."""
    return {
        (cause["wanted_by"]["instruction"], cause.get("value", {}).get("instruction", ""))
        for cause in collective["causes"]
    }


def is_gone(collective, explanation):
    same_kind = (other for other in explanation["collectives"] if other["kind"] == collective["kind"])
    return not any(identity(collective) & identity(other) for other in same_kind)


def verdict(artifact, collective):
    remedy = collective["remedy"]
    if remedy is None:
        return "nothing_would" if collective["remedies_tried"] else "not_tried"
    annotation = f"{remedy['place']['instruction']}={remedy['spec']}"
    after = explain(artifact, "--remedy-seconds=0", f"--annotate={annotation}")
    as_told = after["bytes_received_per_device"] == remedy["bytes_after"]
    if not as_told or not is_gone(collective, after):
        return "wrong"
    return "removed" if remedy["pays"] else "removed_at_a_price"


def examine(artifact, names, seconds):
    """{verdict: names of collectives} for some collectives of one program."""
    options = [f"--remedies-for={name}" for name in names]
    explanation = explain(artifact, f"--remedy-seconds={seconds * len(names)}", *options)
    verdicts = collections.defaultdict(list)
    for collective in explanation["collectives"]:
        if collective["name"] in names:
            verdicts[verdict(artifact, collective)].append(collective["name"])
    return verdicts


def draw(artifacts, count, seed):
    """{artifact: names of its collectives in the sample}"""
    everything = [
        (artifact, collective["name"])
        for artifact in artifacts
        for collective in explain(artifact, "--remedy-seconds=0")["collectives"]
    ]
    sample = collections.defaultdict(set)
    for artifact, name in random.Random(seed).sample(everything, min(count, len(everything))):
        sample[artifact].add(name)
    return sample


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", type=pathlib.Path, default=SUITE, help="the suite's folder (default: %(default)s)")
    parser.add_argument("--sample", type=int, default=200, help="collectives (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="for the remedies of each (default: %(default)s)")
    parser.add_argument("--at-least", type=float, default=0.95, help="share that must hold (default: %(default)s)")
    args = parser.parse_args()
    artifacts = sorted(args.suite.glob("artifacts/*.mlirbc"))
    if not artifacts:
        sys.exit(f"no suite at {args.suite}")
    counts = collections.Counter()
    for artifact, names in sorted(draw(artifacts, args.sample, args.seed).items()):
        verdicts = examine(artifact, names, args.seconds)
        emit(program=artifact.stem, **verdicts)
        counts.update({kind: len(found) for kind, found in verdicts.items()})
    held = (counts["removed"] + counts["removed_at_a_price"] + counts["nothing_would"]) / counts.total()
    emit(figure="remedies", sample=counts.total(), seed=args.seed, **counts, held=held)
    return int(held < args.at_least)


if __name__ == "__main__":
    sys.exit(main())
