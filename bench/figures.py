"""The paper's figures in simulated time: runs build/simulated, passes its JSON lines on and draws them as PNG."""

import argparse
import json
import pathlib
import subprocess

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from side_by_side import ROOT

SIMULATED = ROOT / "build" / "simulated"


def measure(what):
    """The lines of one measurement, printed as they come."""
    lines = []
    with subprocess.Popen([str(SIMULATED), what], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(json.loads(line))
    if process.returncode != 0:
        raise RuntimeError(f"simulated {what} ended with {process.returncode}")
    return lines


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


def smallest(axes):
    """Figure 6: device utilization by the length of a computation."""
    lines = [line for line in measure("smallest") if line["bench"] == "simulated_utilization"]
    curves(axes, lines, "hosts", "ms", "used", "{} hosts")
    axes.set(xscale="log", xlabel="device time of a computation, ms", ylabel="devices used", ylim=(0, 1.05))


def pipeline(axes):
    """Figure 7: stages on different hosts."""
    curves(axes, measure("pipeline"), "dispatch", "stages", "computations_per_s", "{}")
    axes.set(xlabel="pipeline stages, each on a host of its own", ylabel="computations a second", ylim=(0, None))


def clients(axes):
    """Figure 8: several clients."""
    curves(axes, measure("clients"), "ms", "clients", "used", "{} ms")
    axes.set(xscale="log", xlabel="clients", ylabel="devices used", ylim=(0, 1.05))


def shares(axes):
    """Figure 9: the schedulers' order with shares 1:2:4:8."""
    lines = measure("shares")
    order = lines[-1]["order"]
    tenants = sorted({tenant for _, tenant in order})
    for tenant in tenants:
        starts = [(when, 0.9) for when, by in order if by == tenant]
        axes.broken_barh(starts, (tenants.index(tenant) - 0.4, 0.8), color=f"C{tenants.index(tenant)}")
    weights = lines[-1]["weights"]
    axes.set_yticks(range(len(tenants)), [f"weight {weights[i]}" for i in range(len(tenants))])
    axes.set(xlabel="admitted, ms")


def scale(axes):
    """Real time of controller and scheduler for one program."""
    lines = measure("scale")
    hosts = [line["hosts"] for line in lines]
    for field, label in (("controller_us", "controller"), ("scheduler_us", "scheduler alone")):
        axes.plot(hosts, [line[field] for line in lines], marker="o", label=label)
    axes.legend()
    axes.grid(alpha=0.3)
    axes.set(xscale="log", yscale="log", xlabel="hosts of 4 devices", ylabel="µs for a program")


def islands(axes):
    """Table 2 and Figure 10: pipelined training over four islands against one."""
    (line,) = measure("islands")
    axes.bar(["one island", "four islands"], [line["one_island"], line["four_islands"]])
    axes.set(ylabel="microbatches a second")


FIGURES = {f.__name__: f for f in (scale, smallest, pipeline, clients, shares, islands)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", nargs="+", choices=FIGURES, default=list(FIGURES), help="default: all")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out", help="folder for the PNGs")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.figures:
        figure, axes = plt.subplots(figsize=(6, 4))
        FIGURES[name](axes)
        axes.set_title(FIGURES[name].__doc__.strip("."), fontsize=10)
        figure.savefig(args.out / f"{name}.png", dpi=120, bbox_inches="tight")
        plt.close(figure)


if __name__ == "__main__":
    main()
