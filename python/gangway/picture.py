"""Shardings drawn: which part of each array is on which devices, as one page that needs nothing else."""

import html
import itertools
import math

CELL, GAP, MOST_CELLS = 46, 2, 16

STYLE = """
body { font: 14px/1.5 system-ui, sans-serif; margin: 1.5rem; color-scheme: light dark; }
figure { display: inline-block; vertical-align: top; margin: 0 1.5rem 1.5rem 0; } figcaption code { font-weight: 600; }
rect { stroke: currentColor; stroke-width: .5; }
text { font-size: 11px; text-anchor: middle; dominant-baseline: middle; }
"""


def mesh_axes(text):
    """{'data': 4, 'model': 2} of "mesh['data'=4,'model'=2]"."""
    inside = text.partition("[")[2].rpartition("]")[0]
    pairs = (part.rpartition("=") for part in inside.split(",") if "=" in part)
    return {name.strip("'"): int(size) for name, _, size in pairs}


def blocks(spec, axes):
    """{index of a block: numbers of the devices that hold it}, devices in row-major order of the mesh's axes."""
    dims = [() if entry is None else (entry,) if isinstance(entry, str) else tuple(entry) for entry in spec]
    held = {}
    for device, place in enumerate(itertools.product(*(range(size) for size in axes.values()))):
        coordinate = dict(zip(axes, place))
        index = []
        for names in dims:
            position = 0
            for name in names:
                position = position * axes[name] + coordinate[name]
            index.append(position)
        held.setdefault(tuple(index), []).append(device)
    return held


def shorter(numbers):
    """ "0-3", "0 4", "0 2 4 …"."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return " ".join(map(str, numbers[:3])) + (" …" if len(numbers) > 3 else "")


def drawing(name, spec, axes):
    """A grid of the blocks along the first two dimensions that are split; the others' first blocks are shown."""
    held = blocks(spec, axes)
    split = [dim for dim, entry in enumerate(spec) if entry is not None][:2]
    counts = [1 + max(index[dim] for index in held) for dim in split] + [1, 1]
    rows, columns = (min(count, MOST_CELLS) for count in counts[:2])
    total = math.prod(axes.values())
    marks = []
    for row, column in itertools.product(range(rows), range(columns)):
        index = [0] * len(spec)
        for dim, position in zip(split, (row, column)):
            index[dim] = position
        devices = held[tuple(index)]
        x, y = GAP + column * CELL, GAP + row * CELL
        hue = 360 * devices[0] // total
        marks.append(f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" fill="hsl({hue} 70% 50% / .35)"/>')
        label = html.escape(shorter(devices))
        marks.append(f'<text x="{x + CELL / 2}" y="{y + CELL / 2}" fill="currentColor">{label}</text>')
    size = f'width="{columns * CELL + 2 * GAP}" height="{rows * CELL + 2 * GAP}"'
    label = html.escape(f"{name}: {spec}", quote=True)
    return f'<svg role="img" aria-label="{label}" {size}>{"".join(marks)}</svg>'


def page(rows, mesh, devices):
    """`rows`: (name, PartitionSpec, or what is there instead) of every array."""
    axes = mesh_axes(mesh)
    figures = []
    for name, spec in rows:
        known = not isinstance(spec, str) and math.prod(axes.values()) == devices
        picture = drawing(name, spec, axes) if known else ""
        caption = f"<figcaption><code>{html.escape(name)}</code><br>{html.escape(str(spec))}</figcaption>"
        figures.append(f"<figure>{picture}{caption}</figure>")
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Shardings</title><style>{STYLE}</style>'
        f"<h1>{devices} devices, {html.escape(mesh)}</h1>"
        f"<p>Each square is a part of the array, with the numbers of the devices that hold it.</p>"
        f"{''.join(figures)}</html>"
    )
