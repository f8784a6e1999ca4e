"""Questions about a function that the `gangway` executable answers without a server and without running it."""

import os
import pathlib
import shutil
import subprocess

import jax
from jax import export


def export_program(f, args, kwargs):
    """f(*args, **kwargs), jitted already or not, as a portable artifact; or what jax.export made already."""
    if isinstance(f, export.Exported):
        if args or kwargs:
            raise TypeError(f"{f.fun_name} was exported for its arguments: give none")
        return f
    jitted = f if hasattr(f, "lower") else jax.jit(f)
    # Nothing is run, so the platform only decides how the few operations that differ are lowered.
    return export.export(jitted, platforms=["cpu"])(*args, **kwargs)


def ask(command, exported, flags):
    """What `gangway COMMAND` prints about an exported program; RuntimeError with its own line when it fails."""
    line = [_executable(), command, f"--devices={exported.nr_devices}", *flags, "-"]
    done = subprocess.run(line, input=exported.mlir_module_serialized, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode().strip())
    return done.stdout.decode()


def _executable():
    built = pathlib.Path(__file__).resolve().parents[2] / "build" / "gangway"
    found = os.environ.get("GANGWAY_BINARY") or (str(built) if built.exists() else shutil.which("gangway"))
    if not found:
        raise RuntimeError("no gangway executable: build it, put it on PATH or name it in GANGWAY_BINARY")
    return found
