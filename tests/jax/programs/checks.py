"""Checks inside programs: checkify, NaN debugging, assertions by callbacks, tests of ranges."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify
from meshes import mesh, normal, on, put, text, why


def _why(f):
    return why(f, lambda error: f"{type(error).__name__}: {str(error).splitlines()[0]}")


def errors_as_values():
    m = mesh(x=8)
    x = put(normal(16, 8), m, "x")

    def f(x, i):
        checkify.check(x.sum() < 1e6, "sum {s}", s=x.sum())
        y = jnp.log(x) / (x - x[0, 0])
        return y[i] + jax.lax.fori_loop(0, 3, lambda j, c: c + x[j], x[0])

    found = []
    for errors in (
        checkify.user_checks,
        checkify.nan_checks,
        checkify.div_checks,
        checkify.index_checks,
        checkify.all_checks,
    ):
        error, value = jax.jit(checkify.checkify(f, errors=errors))(x, 20)
        found.append((text((error.get() or "none").splitlines()[0].split(" at ")[0]), value))
    return found


def checks_in_loops_and_branches():
    m = mesh(x=8)
    x = put(normal(16), m, "x")

    def f(x):
        def step(c, v):
            checkify.check(v < 1.5, "value {v} too large", v=v)
            return c + v, c

        total, all = jax.lax.scan(step, 0.0, x)
        return jax.lax.cond(total > 0, lambda: checkify.check(False, "positive") or total, lambda: -total), all

    error, value = jax.jit(checkify.checkify(f))(x)
    return text(error.get()), value, _why(error.throw)


def checks_of_a_map():
    error, value = jax.jit(jax.vmap(checkify.checkify(lambda x: (checkify.check(x > 0, "not {x}", x=x), x * 2)[1])))(
        jnp.array([1.0, -1.0, 2.0])
    )
    return text(error.get()), value


def nan_debugging():
    m = mesh(x=8)
    x = put(-np.abs(normal(8)), m, "x")
    with jax.debug_nans(True):
        bad = _why(lambda: jax.jit(jnp.log)(x))
        good = jax.jit(jnp.exp)(x)
    with jax.debug_infs(True):
        worse = _why(lambda: jax.jit(lambda x: 1 / (x * 0))(x))
    return bad, good, worse


def leaks_and_transfers():
    m = mesh(x=8)
    x = put(normal(8), m, "x")
    with jax.transfer_guard("disallow"):
        refused = _why(lambda: jax.jit(jnp.add)(x, np.ones(8, np.float32)))
        allowed = jax.jit(lambda x: x + 1)(x)
    with jax.checking_leaks():
        clean = jax.jit(lambda x: x * 2)(x)
    return refused, allowed, clean


def guarded_reads_and_moves():
    """On CPU devices to read is no transfer; a move to other devices is an explicit one."""
    m = mesh(x=8)
    devices = jax.devices()
    found = []

    def results():
        return jax.jit(lambda x: (x + 1, x.sum()))(put(normal(8), m, "x"))

    for guard in (jax.transfer_guard, jax.transfer_guard_device_to_host):
        for level in ("log", "disallow", "disallow_explicit"):
            for read in (np.asarray, jax.device_get, repr, lambda x: x.tolist(), lambda x: x.copy_to_host_async()):
                for x in results():
                    with guard(level):
                        found.append(_why(functools.partial(read, x)))
    split, total = results()
    one = jnp.float32(3) + 1
    for guard in (jax.transfer_guard_host_to_device, jax.transfer_guard_device_to_device):
        for level in ("disallow", "disallow_explicit"):
            for x in (split, total, one):
                for place in (on(m), devices[1], on(m).with_memory_kind("pinned_host")):
                    with guard(level):
                        found.append(_why(functools.partial(jax.device_put, x, place)))
    return found


def without_jit():
    m = mesh(x=8)
    x = put(normal(8, 4), m, "x")
    with jax.disable_jit():
        return jax.jit(lambda x: jnp.where(x > 0, x, 0).sum(1))(x), jax.lax.scan(lambda c, v: (c + v, c), x[0], x)


def precision_of_products():
    m = mesh(x=8)
    x = put(normal(16, 16), m, "x")
    found = []
    for precision in ("default", "high", "highest", "BF16_BF16_F32", "float32", "tensorfloat32"):
        with jax.default_matmul_precision(precision):
            found.append(jax.jit(lambda x: x @ x.T, out_shardings=on(m, "x"))(x))
    found.append(jax.jit(lambda x: jax.lax.dot(x, x, precision="F32_F32_F32"))(x))
    return found


def wide_numbers():
    with jax.enable_x64(True):
        m = mesh(x=8)
        x = put(normal(16, 4, dtype=np.float64), m, "x")
        return jax.jit(
            lambda x: (x @ x.T, jnp.arange(3), jnp.sum(x > 0), jnp.linalg.inv(x.T @ x), x.astype(np.int64) << 40)
        )(x)


def promotion():
    def words(error):  # in any order
        return sorted(re.findall(r"\w+", str(error).splitlines()[0]))

    with jax.numpy_dtype_promotion("strict"):
        refused = why(lambda: jnp.int32(1) + jnp.float32(1.0), words)
    with jax.numpy_rank_promotion("raise"):
        rank = _why(lambda: jnp.ones((2, 3)) + jnp.ones(3))
    return refused, rank, jnp.int8(3) + jnp.uint8(4), jnp.bfloat16(1) + jnp.float16(2), jnp.int32(3) * 2.5
