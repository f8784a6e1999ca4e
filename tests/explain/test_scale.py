"""How long explain takes for a program of ten thousand instructions, and that nobody pays who does not ask."""

import pathlib
import resource
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GANGWAY = ROOT / "build" / "gangway"
INSTRUCTIONS = 10_000

pytestmark = pytest.mark.skipif(not GANGWAY.exists(), reason="build/gangway is not built")


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
    """Processor time of a command: what it takes on a machine that does nothing else."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([GANGWAY, *command], capture_output=True, text=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def test_ten_thousand_instructions(tmp_path):
    path = tmp_path / "large.hlo"
    path.write_text(program())
    took, shown = seconds("explain", path)
    alone, _ = seconds("explain", "--remedy-seconds=0", path)
    partitioned, _ = seconds("partition", path, "-o", "/dev/null")
    print(f"explain {took:.2f} s, without remedies {alone:.2f} s, partition {partitioned:.2f} s")
    assert "large on 8 devices" in shown and " along " in shown
    assert took <= 2
