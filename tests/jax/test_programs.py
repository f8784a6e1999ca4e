"""Each small program of stock JAX gives through Gangway what it gives natively."""

import numpy as np
import programs
import pytest

PROGRAMS = programs.load()

# Relative and absolute tolerance; only the order of sums and the last bits of transcendental functions may differ.
TOLERANCES = {
    "float64": 1e-11,
    "complex128": 1e-11,
    "float32": 2e-5,
    "complex64": 2e-5,
    "bfloat16": 2e-2,
    "float16": 2e-3,
}


def assert_same_values(name, got, wanted, dtype):
    tolerance = TOLERANCES.get(dtype)
    if tolerance is None:
        np.testing.assert_array_equal(got, wanted, err_msg=name)
    else:
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, equal_nan=True, err_msg=name)


def assert_same(name, got, wanted):
    assert wanted.description["ok"], f"native JAX: {wanted.description['error']}"
    assert got.description["ok"], got.description.get("trace") or got.description["error"]
    assert got.description["tree"] == wanted.description["tree"]
    loose = getattr(PROGRAMS[name], "compiler_chooses", False)
    leaves = zip(got.description["leaves"], wanted.description["leaves"])
    for i, (got_leaf, wanted_leaf) in enumerate(leaves):
        for key in wanted_leaf.keys() - ({"where"} if loose else {}):
            assert got_leaf.get(key) == wanted_leaf[key], f"{key} of output {i}"
        assert_same_values(f"output {i}", got.arrays[i], wanted.arrays[i], wanted_leaf["dtype"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, native_outcomes, gangway_outcomes):
    assert_same(name, gangway_outcomes[name], native_outcomes[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_on_two_workers(name, native_outcomes, two_worker_outcomes):
    assert_same(name, two_worker_outcomes[name], native_outcomes[name])
