"""Libraries as they come from PyPI, on Gangway and on native JAX in the same process.

    python tests/clients/run.py [NAME...] [--python VENV/bin/python] [--save rows.jsonl]

Every NAME.py beside this file holds LIBRARY, the distribution whose version is told, and run(mesh) -> {name: array}:
what it trained or computed on the mesh {x: 8}. It runs on eight devices of Gangway, then on eight local CPU devices,
and the values must agree: to a relative 2e-3 of the largest, or to TOLERANCE[name]. A library that is not installed is
skipped with a line that says so.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
GANGWAY = pathlib.Path(os.environ.get("GANGWAY_BINARY", ROOT / "build" / "gangway"))
DEVICES = 8
NAMES = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("run", "standing"))
TOLERANCE = 2e-3


def difference(got, wanted):
    """The largest difference, relative to the largest value; infinite for other shapes and for NaNs."""
    import numpy as np

    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    if got.shape != wanted.shape or not np.isfinite(got).all():
        return float("inf")
    return float(np.max(np.abs(got - wanted), initial=0) / max(np.max(np.abs(wanted), initial=0), 1e-30))


def run_client(name):
    """One library on both, in this process, whose default backend is Gangway. Returns its row."""
    import jax
    import numpy as np
    from jax.sharding import Mesh

    sys.path.insert(0, str(HERE))
    client = importlib.import_module(name)

    def on(devices):
        with jax.default_device(devices[0]):
            return jax.tree.map(np.asarray, client.run(Mesh(np.array(devices[:DEVICES]), ("x",))))

    found = on(jax.devices())
    jax.clear_caches()  # keys may hold arrays, which cannot be compared with those of another backend
    wanted = on(jax.devices("cpu"))
    tolerance = getattr(client, "TOLERANCE", {})
    apart = {key: difference(found[key], value) for key, value in wanted.items()}
    return {
        "jax": jax.__version__,
        "backend": jax.devices()[0].client.runtime_type,
        "differences": apart,
        "wrong": [key for key, value in apart.items() if value > tolerance.get(key, TOLERANCE)],
    }


def child(name):
    """Prints the row of one library as the last line of standard output."""
    # Of the local CPU only: the cluster's own processes are there already.
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    try:
        with contextlib.redirect_stdout(sys.stderr):
            row = run_client(name)
    except BaseException as error:
        traceback.print_exc()
        row = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
    print(json.dumps(row), flush=True)


def installed(python, names):
    """{name: version} of those whose library this Python has."""
    ask = (
        "import importlib.metadata as m, json, sys\n"
        "have = {d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}\n"
        "print(json.dumps({n: have.get(n) for n in sys.argv[1:]}))"
    )
    libraries = {name: library_of(name) for name in names}
    done = subprocess.run([python, "-c", ask, *libraries.values()], capture_output=True, text=True, check=True)
    versions = json.loads(done.stdout)
    return {name: versions[library] for name, library in libraries.items()}


def library_of(name):
    """Read from the text: importing it would need the library."""
    for line in (HERE / f"{name}.py").read_text().splitlines():
        if line.startswith("LIBRARY = "):
            return line.split('"')[1]
    raise ValueError(f"{name}.py names no LIBRARY")


def run(python, name, timeout):
    command = [str(GANGWAY), "run", "--devices", str(DEVICES), "--", python, __file__, "--child", name]
    chooses = ("JAX_", "XLA_", "GANGWAY_", "IFRT_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(chooses)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"error": f"no result after {timeout:.0f} s"}
    try:
        row = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        row = {"error": f"ended with {done.returncode}"}
    if "error" in row:
        row["log"] = done.stderr[-3000:]
    return row


def show(name, row):
    if "error" in row:
        print(f"FAIL {name}: {row['error']}\n{row.get('log', '')}", flush=True)
    else:
        worst = max(row["differences"].values(), default=0)
        state = "ok  " if not row["wrong"] else "FAIL"
        print(f"{state} {name}: largest difference {worst:.1e} {' '.join(row['wrong'])}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has the libraries")
    parser.add_argument("--timeout", type=float, default=540, help="seconds for each (default: %(default)s)")
    parser.add_argument("--save", type=pathlib.Path, help="add the rows to this file, one JSON object a line")
    parser.add_argument("--child", choices=NAMES, help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NAMES)} (default: all)")
    args = parser.parse_args()
    if args.child:
        return child(args.child)
    failed = False
    for name, version in installed(args.python, args.names or NAMES).items():
        if version is None:
            print(f"skip {name}: {library_of(name)} is not installed")
            continue
        row = {"name": name, "library": library_of(name), "version": version} | run(args.python, name, args.timeout)
        show(name, row)
        failed |= "error" in row or bool(row["wrong"])
        if args.save:
            with args.save.open("a") as file:
                file.write(json.dumps(row) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
