"""Runs programs one after the other and writes each one's result as it is done: run_programs.py FOLDER [NAME...].

FOLDER/NAME.json holds ok, error, the structure and what describes each leaf; FOLDER/NAME.npz the values. The program
that a crash took down is the one with a .start file and no .json.
"""

import json
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import jax
import numpy as np
import programs


def describe(leaf):
    """A leaf's kind beside its values: dtype and, for a jax.Array, which part of it lies on which device."""
    if isinstance(leaf, jax.Array):
        indices = leaf.sharding.devices_indices_map(leaf.shape)
        where = {str(d.id): [s.indices(n)[:2] for s, n in zip(i, leaf.shape)] for d, i in indices.items()}
        return {"dtype": str(leaf.dtype), "shape": leaf.shape, "weak": bool(leaf.weak_type), "where": where}
    leaf = np.asarray(leaf)
    return {"dtype": str(leaf.dtype), "shape": leaf.shape}


def values(leaf):
    """The leaf as a NumPy array that a file can hold; numbers NumPy does not know become float32."""
    value = np.asarray(leaf)
    return value.astype(np.float32) if value.dtype.kind == "V" else value


def run(function):
    leaves, tree = jax.tree.flatten(function())
    described = [describe(leaf) for leaf in leaves]
    return {"ok": True, "tree": str(tree), "leaves": described}, [values(leaf) for leaf in leaves]


def main(folder, names):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = programs.load()
    for name in names or known:
        (folder / f"{name}.start").touch()
        start = time.perf_counter()
        try:
            result, arrays = run(known[name])
            np.savez(folder / f"{name}.npz", *arrays)
        except Exception as error:
            result = {"ok": False, "error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        result["seconds"] = time.perf_counter() - start
        (folder / f"{name}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
