"""What requirements.lock names can be installed where the README promises it: with the Python 3.11 of Debian 12."""

import importlib.metadata

from packaging.specifiers import SpecifierSet

DEBIAN_12 = "3.11.2"


def test_locked_packages_take_debians_python():
    refused = {
        package.name: package.metadata["Requires-Python"]
        for package in importlib.metadata.distributions()
        if DEBIAN_12 not in SpecifierSet(package.metadata["Requires-Python"] or "")
    }
    assert not refused
