"""XLA's option `xla_dump_to`, of a program's compiler options or of XLA_FLAGS: what programs become, as files.

XLA writes where it compiles. A Gangway server uses no file that a client names, so the client writes: each device's
program after our partitioner and passes, as `Compiled.as_text()` tells it.
"""

import itertools
import pathlib
import re

FOLDER = "xla_dump_to"
NOWHERE = {FOLDER: "", "xla_dump_hlo_module_re": "^$"}  # whatever else is asked for

_numbers = itertools.count()


def wanted(options):
    """What the compile options say of dumps: {option: value}; empty where nothing is to be written."""
    debug = options.executable_build_options.debug_options
    found = {name: getattr(debug, name) for name in dir(debug) if name.startswith("xla_dump_")}
    found |= {name: value for name, value in options.env_option_overrides if name.startswith("xla_dump_")}
    return found if found[FOLDER] else {}


def write(executable, wishes):
    """Writes `executable` as `wanted` says."""
    if not wishes:
        return
    text = executable.get_hlo_text()
    name = re.match(r"HloModule ([^\s,]+)", text)[1]
    if not re.search(wishes["xla_dump_hlo_module_re"], name):
        return
    folder = pathlib.Path(wishes[FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"module_{next(_numbers):04}.{name}.{executable.client.platform}_after_optimizations"
    as_proto = wishes["xla_dump_hlo_as_proto"]
    if as_proto:
        from jaxlib import _hlo

        path.with_name(path.name + ".hlo.pb").write_bytes(
            _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
        )
    if wishes["xla_dump_hlo_as_text"] or not as_proto:
        path.with_name(path.name + ".txt").write_text(text)
