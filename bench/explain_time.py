"""Processor time of `gangway explain` for a program of ten thousand instructions, beside partitioning it.

One JSON line: medians of --rounds runs of explain, of explain without trying remedies, and of `gangway partition`,
which does what explain does but for the answer.
"""

import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
GANGWAY = ROOT / "build" / "gangway"
INSTRUCTIONS = 10_000


def program():
    """Layers of a network, each with a product that communicates, until there are enough instructions."""
    sharded, rows = "sharding={mesh['data'=4,'model'=2], [{%s}, {%s}]}", "'data'"
    lines = [f"  x0 = f32[64,64] parameter(0), {sharded % (rows, '')}"]
    weights = 20
    lines += [
        f"  w{i} = f32[64,64] parameter({i + 1}), {sharded % ('', chr(39) + 'model' + chr(39))}" for i in range(weights)
    ]
    count, layer = len(lines), 0
    while count < INSTRUCTIONS - 4:
        x, w = f"x{layer}", f"w{layer % weights}"
        lines += [
            f"  d{layer} = f32[64,64] dot({x}, {w}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            f"  t{layer} = f32[64,64] tanh(d{layer})",
            f"  a{layer} = f32[64,64] add(t{layer}, {x})",
            f"  x{layer + 1} = f32[64,64] multiply(a{layer}, t{layer})",
        ]
        count, layer = count + 4, layer + 1
    lines.append(f"  ROOT r = f32[64,64] negate(x{layer}), {sharded % (rows, '')}")
    return "HloModule large, num_partitions=8\n\nENTRY e {\n" + "\n".join(lines) + "\n}\n"


def seconds(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([GANGWAY, *command], capture_output=True, timeout=300, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "large.hlo"
        path.write_text(program())
        commands = {
            "explain": ["explain", path],
            "without_remedies": ["explain", "--remedy-seconds=0", path],
            "partition": ["partition", path, "-o", "/dev/null"],
        }
        runs = [{name: seconds(*command) for name, command in commands.items()} for _ in range(rounds)]
    medians = {name: round(statistics.median(run[name] for run in runs), 3) for name in commands}
    print(json.dumps({"bench": "explain_time", "instructions": INSTRUCTIONS, "seconds": medians, "rounds": rounds}))


if __name__ == "__main__":
    main()
