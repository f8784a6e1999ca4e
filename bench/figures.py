"""The paper's figures: runs dispatch.py for Figure 5 and build/simulated for the others, passes their JSON lines on and
draws them as PNG."""

import argparse
import json
import pathlib
import subprocess
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from side_by_side import ROOT

DISPATCH = pathlib.Path(__file__).with_name("dispatch.py")


def lines_of(*command):
    """The lines a command writes, printed as they come."""
    lines = []
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(json.loads(line))
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}")
    return lines


def measure(what):
    return lines_of(ROOT / "build" / "simulated", what)


def groups(lines, key):
    """The lines by the value of a field, in the order of its first mention."""
    found = {}
    for line in lines:
        found.setdefault(line[key], []).append(line)
    return found


def curves(axes, lines, by, x, y, label):
    for value, some in groups(lines, by).items():
        axes.plot([line[x] for line in some], [line[y] for line in some], marker="o", label=label.format(value))
    axes.legend()
    axes.grid(alpha=0.3)


def dispatch(figure):
    """Figure 5: computations dispatched a second, by how they are submitted."""
    lines = lines_of(sys.executable, DISPATCH, "--rounds", 1, "--seconds", 2, "--workers", 1)
    axes = figure.subplots()
    for row, (variant, some) in enumerate(groups(lines, "variant").items()):
        devices = [line["devices"] for line in some]
        axes.plot(devices, [line["gangway"] for line in some], marker="o", color=f"C{row}", label=variant)
    for row, variant in ((0, "OpByOp"), (2, "Fused")):
        some = groups(lines, "variant")[variant]
        rates = [line["native"] for line in some]
        axes.plot(devices, rates, marker="x", ls="--", color=f"C{row}", label=f"native JAX, {variant}")
    axes.plot(devices, [line["ray"] for line in some], marker="x", ls=":", color="C3", label="Ray")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    axes.set(xscale="log", yscale="log", xlabel="devices", ylabel="computations a second")
    axes.set_xticks(devices, devices)


def scale(figure):
    """Processor time of controller and scheduler for one program."""
    lines = measure("scale")
    hosts = [line["hosts"] for line in lines]
    axes = figure.subplots()
    for field, label in (("controller_us", "controller"), ("scheduler_us", "scheduler alone")):
        axes.plot(hosts, [line[field] for line in lines], marker="o", label=label)
    axes.legend()
    axes.grid(alpha=0.3)
    axes.set(xscale="log", yscale="log", xlabel="hosts of 4 devices", ylabel="µs for a program")


def smallest(figure):
    """Figure 6: devices used by the length of a computation."""
    lines = [line for line in measure("smallest") if line["bench"] == "simulated_utilization"]
    axes = figure.subplots()
    curves(axes, lines, "hosts", "ms", "used", "{} hosts")
    axes.set(xscale="log", xlabel="device time of a computation, ms", ylabel="devices used", ylim=(0, 1.05))


def pipeline(figure):
    """Figure 7: pipeline stages, each on a host of its own."""
    axes = figure.subplots()
    curves(axes, measure("pipeline"), "dispatch", "stages", "computations_per_s", "{} dispatch")
    axes.set(xlabel="stages", ylabel="computations a second", ylim=(0, None))


def clients(figure):
    """Figure 8: devices used by several clients together."""
    axes = figure.subplots()
    curves(axes, measure("clients"), "ms", "clients", "used", "programs of {} ms")
    axes.set(xscale="log", xlabel="clients", ylabel="devices used", ylim=(0, 1.05))


def shares(figure):
    """Figure 9: device time by shares, and the scheduler's order."""
    lines = measure("shares")
    *above, below = figure.subplot_mosaic([list(range(len(lines))), ["order"] * len(lines)]).values()
    for axes, line in zip(above, lines, strict=True):
        names = [f"weight {weight}" for weight in line["weights"]]
        parts = [programs / sum(line["programs"]) for programs in line["programs"]]
        axes.bar(range(len(names)), parts, color=[f"C{i}" for i in range(len(names))])
        axes.set_xticks(range(len(names)), names, fontsize=6)
        axes.set_ylabel("part of device time", fontsize=7)
    order, weights = lines[-1]["order"], lines[-1]["weights"]
    tenants = sorted({tenant for _, tenant in order})
    for row, tenant in enumerate(tenants):
        turns = [(when, 0.9) for when, by in order if by == tenant]
        below.broken_barh(turns, (row - 0.4, 0.8), color=f"C{row}")
    below.set_yticks(range(len(tenants)), [f"weight {weights[i]}" for i in range(len(tenants))], fontsize=7)
    below.set_xlabel("admitted, ms")


def islands(figure):
    """Table 2 and Figure 10: pipelined training over four islands against one."""
    (line,) = measure("islands")
    axes = figure.subplots()
    axes.bar(["one island", "four islands"], [line["one_island"], line["four_islands"]])
    axes.set(ylabel="microbatches a second")


FIGURES = {f.__name__: f for f in (dispatch, scale, smallest, pipeline, clients, shares, islands)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", nargs="+", choices=FIGURES, default=list(FIGURES), help="default: all")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out", help="folder for the PNGs")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.figures:
        figure = plt.figure(figsize=(6, 4), layout="constrained")
        FIGURES[name](figure)
        figure.suptitle(FIGURES[name].__doc__.strip("."), fontsize=10)
        figure.savefig(args.out / f"{name}.png", dpi=120)
        plt.close(figure)


if __name__ == "__main__":
    main()
