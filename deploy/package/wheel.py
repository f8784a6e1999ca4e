"""Makes a wheel of an installed Gangway: the executable with the shared libraries that no manylinux system has to have.

    cmake --install build --component gangway --prefix STAGE --strip
    python deploy/package/wheel.py STAGE OUT          # `make wheel` does both

What pip puts into site-packages, side by side:

    gangway/, jax_plugins/gangway/    the Python packages; stock JAX finds the second by itself
    gangway.scripts/gangway           the executable, which looks for the packages in the folder above its own
    gangway.libs/                     its libraries, found by rpath $ORIGIN, and UCX's modules below them

and `gangway` in bin/, which starts the executable. The libraries keep their names: nobody else loads them into a
process of ours. Needs `patchelf`, and `auditwheel`, which says what systems the wheel is for.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ">=3.11"
REQUIRES = ["jax>=0.10.2", "jaxlib>=0.10.2", "xla_cpu_pjrt==0.0.1", "numpy", "grpcio", "protobuf"]
# Of the C and C++ runtimes, which manylinux allows to be the system's.
SYSTEM = re.compile(r"(ld-linux|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))\b.*")
# Debian packages that are compiled into the executable.
COMPILED_IN = ["libabsl-dev", "libcli11-dev", "libcpp-httplib-dev", "libjemalloc-dev", "nlohmann-json3-dev"]
# Modules that libucs opens from the folder ucx/ beside it: copies between processes of a host, and RDMA.
UCX_MODULES = "ucx/libuct_*.so.0"
# Starts the executable beside the package `gangway`, wherever pip put it; it is not imported, which would import JAX.
LAUNCHER = """#!python
import importlib.util
import os
import sys

packages = os.path.dirname(os.path.dirname(importlib.util.find_spec("gangway").origin))
executable = os.path.join(packages, "gangway.scripts", "gangway")
os.execv(executable, [executable, *sys.argv[1:]])
"""


def run(*command):
    # The tools of the environment whose interpreter this is, named in PATH or not.
    tools = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": tools}
    command = [shutil.which(command[0], path=tools) or command[0], *map(str, command[1:])]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def version():
    return re.search(r"project\(gangway VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def libraries(executable):
    """Paths of the shared libraries that `executable` loads, but for those of the system."""
    found = re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", executable), re.MULTILINE)
    return sorted(pathlib.Path(path) for name, path in found if not SYSTEM.fullmatch(name))


def copy_libraries(executable, target):
    """Fills `target`; returns the files as they were found."""
    (target / "ucx").mkdir(parents=True)
    origins = libraries(executable)
    ucx = next(path for path in origins if path.name.startswith("libucs.so"))
    modules = sorted(ucx.resolve().parent.glob(UCX_MODULES))
    for module in modules:
        origins += [path for path in libraries(module) if path not in origins]
    for path in origins:
        shutil.copy(path, target / path.name)
        run("patchelf", "--set-rpath", "$ORIGIN", target / path.name)
    for module in modules:
        shutil.copy(module, target / "ucx" / module.name)
        run("patchelf", "--set-rpath", "$ORIGIN/..", target / "ucx" / module.name)
    return [*origins, *modules]


def copy_licenses(files, target):
    """Ours, and of every Debian package that something in the wheel is of."""
    target.mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", target / "LICENSE")
    # By its name: /lib is /usr/lib, and packages name either.
    found = [run("dpkg-query", "--search", f"*/{path.resolve().name}") for path in files]
    for owner in {*COMPILED_IN, *(re.match(r"([^:\s]+)", line)[1] for line in found)}:
        shutil.copy(f"/usr/share/doc/{owner}/copyright", target / f"{owner}.copyright")


def write_metadata(target, tag):
    target.mkdir(parents=True, exist_ok=True)
    lines = ["Metadata-Version: 2.1", "Name: gangway", f"Version: {version()}", f"Requires-Python: {PYTHON}"]
    lines += ["Summary: Partitions JAX programs for a mesh of devices and runs them from one controller"]
    lines += ["License: Apache-2.0", "Description-Content-Type: text/markdown"]
    lines += [f"Requires-Dist: {requirement}" for requirement in REQUIRES]
    lines += ['Requires-Dist: ray; extra == "ray"', "Provides-Extra: ray"]
    (target / "METADATA").write_text("\n".join(lines) + "\n\n" + (ROOT / "docs" / "install.md").read_text())
    (target / "WHEEL").write_text(
        f"Wheel-Version: 1.0\nGenerator: deploy/package/wheel.py\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"
    )


def fill(tree, stage):
    """What the wheel holds, but for its metadata."""
    for package in ("gangway", "jax_plugins"):
        shutil.copytree(stage / "share/gangway/python" / package, tree / package)
    executable = tree / "gangway.scripts" / "gangway"
    executable.parent.mkdir()
    shutil.copy(stage / "bin" / "gangway", executable)
    files = copy_libraries(executable, tree / "gangway.libs")
    run("patchelf", "--set-rpath", "$ORIGIN/../gangway.libs", executable)
    copy_licenses(files, tree / f"gangway-{version()}.dist-info" / "licenses")
    launcher = tree / f"gangway-{version()}.data" / "scripts" / "gangway"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(LAUNCHER)
    launcher.chmod(0o755)


def pack(tree, tag, out):
    write_metadata(tree / f"gangway-{version()}.dist-info", tag)
    run(sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", out)
    return out / f"gangway-{version()}-py3-none-{tag}.whl"


def make(stage, out):
    """Returns the wheel's path. Its tag is the oldest system that has all it needs, as auditwheel finds."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        fill(folder / "tree", stage)
        draft = pack(folder / "tree", "linux_x86_64", folder)
        found = re.search(r'"(manylinux_\w+)"', run(sys.executable, "-m", "auditwheel", "show", draft))
        if not found:
            raise SystemExit("no manylinux system has all that the wheel needs: auditwheel show")
        out.mkdir(parents=True, exist_ok=True)
        return pack(folder / "tree", found[1], out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stage", type=pathlib.Path, help="where `cmake --install` put it")
    parser.add_argument("out", type=pathlib.Path, help="folder of the wheel")
    args = parser.parse_args()
    wheel = make(args.stage, args.out)
    print(json.dumps({"wheel": str(wheel), "bytes": wheel.stat().st_size}))


if __name__ == "__main__":
    main()
