"""Text tests: a program, a command over it, and what its output must hold (lit and FileCheck).

Run all with `lit tests`, one with `lit tests/passes/cse.hlo -v`. GANGWAY_BUILD names another build folder.
"""

import os
import shutil

import lit.formats

config.name = "gangway"  # noqa: F821 (lit provides config)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".hlo"]  # noqa: F821
config.excludes = ["jax", "proto", "docs", "equivalence"]  # noqa: F821 (other runners)

source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
build = os.environ.get("GANGWAY_BUILD", os.path.join(source, "build"))
config.test_source_root = os.path.join(source, "tests")  # noqa: F821
config.test_exec_root = os.path.join(build, "lit")  # noqa: F821

filecheck = shutil.which("FileCheck") or shutil.which("FileCheck-14") or "/usr/lib/llvm-14/bin/FileCheck"
config.substitutions += [  # noqa: F821
    ("%gangway", os.path.join(build, "gangway")),
    ("%check", f"{filecheck} %s"),
    (r"(?<![\w/-])FileCheck(?![\w-])", filecheck),
]
