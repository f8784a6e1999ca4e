"""What Gangway's partitioner makes of the programs of a quality suite, beside XLA's own figures for them.

The suite is a folder with `programs/programs.py` (PROGRAMS), `hlo_count.py` (Count), `anchors.json` (what XLA's
partitioner does), `isolates.py` and `reshard_matrix.py`. Everything is compiled by stock JAX on our backend
(`gangway run`) and counted by the suite's own scripts. A line of JSON for every figure, then one table.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from side_by_side import command_and_environment, emit

MIB = 2**20
DEVICES = 8
SUITE = pathlib.Path(__file__).resolve().parents[2] / "shared" / "quality"


# --- inside the client: stock JAX, either backend -------------------------------------------------------------------


def compiled_figures(program, devices, size):
    from hlo_count import Count

    compiled = program(devices, size).lower().compile()
    count = Count(compiled.as_text()).total()
    memory = compiled.memory_analysis()
    peak = (
        memory.temp_size_in_bytes
        + memory.output_size_in_bytes
        + memory.argument_size_in_bytes
        - memory.alias_size_in_bytes
    )
    return {
        "bytes": count["total_bytes"],
        "dotconv_flops": count["dotconv_flops"],
        "peak_bytes": peak,
        "collectives": count["static"],
        "top": count["top"][:6],
    }


def step_seconds(program, devices, size, steps):
    import jax

    built = program(devices, size)
    step = built.jit()
    seconds = []
    for _ in range(steps + 1):
        arguments = jax.block_until_ready(built.values())  # fresh ones: some programs donate theirs
        begin = time.perf_counter()
        jax.block_until_ready(step(*arguments))
        seconds.append(time.perf_counter() - begin)
    return {"step_s": statistics.median(seconds[1:])}


def client(args):
    """Prints one line of JSON for each program."""
    sys.path.insert(0, args.suite)
    import jax
    from programs.programs import PROGRAMS

    for name in args.names or PROGRAMS:
        try:
            if args.client == "steps":
                figures = step_seconds(PROGRAMS[name], jax.devices(), args.size, args.steps)
            else:
                figures = compiled_figures(PROGRAMS[name], jax.devices(), "full")
        except Exception as error:  # one program's failure is a figure too
            figures = {"error": f"{type(error).__name__}: {error}"[:400]}
        print("FIGURES " + json.dumps({"program": name} | figures), flush=True)


# --- outside ----------------------------------------------------------------------------------------------------------


def run(system, arguments, timeout_s):
    command, env = command_and_environment(system, DEVICES, arguments)
    # The suite's scripts choose native CPU when nothing is said.
    env.setdefault("JAX_PLATFORMS", "gangway")
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout_s, check=False)


def figures_of(system, mode, args):
    arguments = [__file__, "--client", mode, "--suite", args.suite, "--steps", args.steps, "--size", args.size]
    done = run(system, [*arguments, *args.names], args.timeout)
    lines = [line[len("FIGURES ") :] for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    found = {figures.pop("program"): figures for figures in map(json.loads, lines)}
    if not found:
        raise RuntimeError(f"{system} measured nothing: {done.stderr[-600:]}")
    return found


def suite_script(script, result, args):
    """Runs one of the suite's scripts on a copy of the suite (they write beside themselves); what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "suite"
        shutil.copytree(args.suite, copy, ignore=shutil.ignore_patterns("artifacts", "hlo", "__pycache__"))
        os.chmod(copy, 0o755)
        (copy / result).unlink(missing_ok=True)
        done = run("gangway", [copy / script], args.timeout)
        if not (copy / result).exists():
            raise RuntimeError(f"{script}: {done.stderr[-600:]}")
        return json.loads((copy / result).read_text())


def anchor_bytes(name, anchor):
    """XLA's bytes that a plan must not exceed: right after partitioning, for programs whose collectives the CPU backend
    widens; for the others less what later passes of other backends remove."""
    partitioned = anchor["after_spmd"]
    if "bf16" in name:
        return partitioned["total_bytes"]
    return (
        partitioned["total_bytes"]
        - partitioned["all_reduce_only_sliced_excess"]
        - partitioned["all_reduces_added_excess"]
    )


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else float("nan")


def program_rows(args):
    anchors = json.loads((pathlib.Path(args.suite) / "anchors.json").read_text())
    ours = figures_of("gangway", "compile", args)
    steps = {}
    if args.steps:
        steps = {system: figures_of(system, "steps", args) for system in ("native", "gangway")}
    rows = []
    for name, figures in ours.items():
        anchor = anchors[name]
        row = {"program": name, **figures}
        if "error" not in figures:
            row["xla_bytes"] = anchor_bytes(name, anchor)
            row["bytes_ratio"] = figures["bytes"] / row["xla_bytes"] if row["xla_bytes"] else None
            row["xla_dotconv_flops"] = anchor["optimized"]["dotconv_flops"]
            row["xla_peak_bytes"] = anchor["memory"]["total"]
        for system, found in steps.items():
            row[f"{system}_step_s"] = found.get(name, {}).get("step_s")
        rows.append(row)
        emit(bench="quality", kind="program", **row)
    return rows


def isolate_rows(args):
    rows = []
    for case in suite_script("isolates.py", "isolates.json", args):
        row = {"case": case["case"], "error": case.get("error")}
        if not row["error"]:
            row |= {"bytes": case["xla"], "plan": case["plan"], "flops_ratio": case["flops_ratio"]}
        rows.append(row)
        emit(bench="quality", kind="operator", **row)
    return rows


def reshard_row(args):
    pairs = suite_script("reshard_matrix.py", "reshard_matrix.json", args)
    row = {
        "pairs": len(pairs),
        "bytes": sum(pair["xla"] for pair in pairs),
        "bounds": sum(pair["bound"] for pair in pairs),
        "above": [
            f"{p['src']} to {p['dst']}: {p['xla']} of {p['bound']}" for p in pairs if p["xla"] > 1.01 * p["bound"]
        ],
    }
    emit(bench="quality", kind="reshard", **row)
    return row


def mark(holds):
    return " " if holds else "!"


def ratio(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def print_programs(rows):
    heads = f"\n{'program':20} {'MiB':>9} {'XLA':>9} {'ratio':>6}   {'flops':>6}   {'peak':>7} {'XLA':>7}"
    print(heads + "   step s, ours/native")
    for row in rows:
        if "error" in row:
            print(f"{row['program']:20} {row['error']}")
            continue
        flops = row["dotconv_flops"] / row["xla_dotconv_flops"] if row["xla_dotconv_flops"] else None
        peak, xla_peak = row["peak_bytes"] / MIB, row["xla_peak_bytes"] / MIB
        native, gangway = row.get("native_step_s"), row.get("gangway_step_s")
        times = f"{gangway:.4f}/{native:.4f}" if native and gangway else ""
        moved = f"{row['bytes'] / MIB:9.3f} {row['xla_bytes'] / MIB:9.3f} {ratio(row['bytes_ratio'], 3):>6}"
        moved += f" {mark(row['bytes'] <= row['xla_bytes'])}"
        work = f"{ratio(flops):>6} {mark(flops is None or flops <= 1)}"
        memory = f"{peak:7.1f} {xla_peak:7.1f} {mark(peak <= xla_peak)}"
        print(f"{row['program']:20} {moved} {work} {memory} {times}")
    good = [row for row in rows if "error" not in row]
    ratios = [row["bytes_ratio"] for row in good if row["bytes_ratio"]]
    print(f"geometric mean of ours / XLA's bytes over {len(ratios)} programs: {geometric_mean(ratios):.3f}")
    times = [(row.get("gangway_step_s"), row.get("native_step_s")) for row in good]
    times = [ours / native for ours, native in times if ours and native]
    if times:
        print(f"geometric mean of ours / native step time over {len(times)} programs: {geometric_mean(times):.3f}")


def print_isolates(rows):
    print(f"\n{'operator':72} {'KiB':>9} {'plan':>9} {'flops x':>8}")
    for row in rows:
        if row["error"]:
            print(f"{row['case']:72} {row['error']}")
            continue
        in_bytes = row["bytes"] <= 1.02 * row["plan"] + 64
        in_flops = row["flops_ratio"] is None or row["flops_ratio"] <= 1.1
        print(
            f"{row['case'][:72]:72} {row['bytes'] / 1024:9.1f} {row['plan'] / 1024:9.1f} {mark(in_bytes)}"
            f" {ratio(row['flops_ratio']):>6} {mark(in_flops)}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", default=str(SUITE), help="the suite's folder (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=0, help="also time so many steps, here and on native JAX")
    parser.add_argument("--size", choices=("full", "small"), default="full", help="of the timed steps' arrays")
    parser.add_argument("--only", choices=("programs", "operators", "reshards"), help="one part of the table")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for each client (default: %(default)s)")
    parser.add_argument("--client", choices=("compile", "steps"), help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help="programs (default: all)")
    args = parser.parse_args()
    if args.client:
        client(args)
        return
    if not pathlib.Path(args.suite).is_dir():
        sys.exit(f"no suite at {args.suite}")
    rows = program_rows(args) if args.only in (None, "programs") else []
    isolates = isolate_rows(args) if args.only in (None, "operators") else []
    reshards = reshard_row(args) if args.only in (None, "reshards") else None
    if rows:
        print_programs(rows)
    if isolates:
        print_isolates(isolates)
    if reshards:
        over = reshards["bytes"] / reshards["bounds"]
        print(f"\n{reshards['pairs']} reshards: {over:.3f} of the bounds; above: {len(reshards['above'])}")


if __name__ == "__main__":
    main()
