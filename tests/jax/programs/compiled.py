"""What a lowered and a compiled program tell; options of jit; exported programs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.experimental import scheduling_groups
from meshes import mesh, normal, on, put, text, why


def answers_of_a_compiled_program():
    m = mesh(x=4, y=2)
    x, w = put(normal(16, 8), m, "x"), put(normal(8, 8, seed=1), m, None, "y")
    lowered = jax.jit(lambda x, w: {"y": jnp.tanh(x @ w), "n": x.sum()}, out_shardings=on(m)).lower(x, w)
    done = lowered.compile()
    return (
        text(done.in_tree),
        text(done.out_tree),
        text(lowered.in_avals),
        text(lowered.out_info),
        text(lowered.args_info),
        text(done.input_shardings),
        text(done.output_shardings),
        text(done.input_formats),
        text(done.output_formats),
        text(done.args_info),
        done(x, w),
        text(sorted(k for k in done.cost_analysis() if k in ("flops", "bytes accessed"))),
        [
            ("HloModule" in done.as_text()),
            "stablehlo" in lowered.as_text(),
            "func" in lowered.as_text("stablehlo"),
            "HloModule" in lowered.as_text("hlo"),
        ],
    )


def memory_of_a_compiled_program():
    m = mesh(x=8)
    x, w = put(normal(64, 32), m, "x"), put(normal(32, 32, seed=1), m)
    done = jax.jit(lambda w, x: w + jnp.tanh(x @ w).sum(0), donate_argnums=0).lower(w, x).compile()
    told = done.memory_analysis()
    return (
        told.argument_size_in_bytes,
        told.output_size_in_bytes,
        told.host_temp_size_in_bytes,
        [told.generated_code_size_in_bytes >= 0, told.peak_memory_in_bytes > 0, told.temp_size_in_bytes > 0],
    )


def wrong_arguments_of_a_compiled_program():
    m = mesh(x=8)
    x = put(normal(16, 8), m, "x")
    done = jax.jit(lambda x: x + 1).lower(x).compile()
    return (
        why(lambda: done(x, x)),
        why(lambda: done(x[:8])),
        why(lambda: done(x.astype(jnp.bfloat16))),
        why(lambda: done(put(normal(16, 8), m, None, "x"))),
        done(x),
    )


def options_of_jit():
    m = mesh(x=8)
    x = put(normal(16, 8), m, "x")
    keep = jax.jit(lambda x, y: x * 2, keep_unused=True)
    inline = jax.jit(lambda x: x * 3, inline=True)
    static = jax.jit(lambda x, n, how="add": x + n if how == "add" else x * n, static_argnames=("n", "how"))
    named = jax.jit(lambda x, y: (x + 1, y * 2), donate_argnames="y")
    y = put(normal(16, 8), m, "x")
    return (
        keep(x, normal(3)),
        jax.jit(lambda x: inline(inline(x)))(x),
        static(x, 2),
        static(x, n=3, how="mul"),
        named(x, y),
        y.is_deleted(),
        jax.jit(functools.partial(jnp.clip, max=0.5))(x),
        jax.jit(lambda x: x, in_shardings=on(m, None, "x"))(normal(8, 8)),
    )


def refused_by_jit():
    m, small = mesh(x=8), mesh(x=4)
    x, y = put(normal(16, 8), m, "x"), put(normal(16, 8), small, "x")
    other = jax.device_put(normal(16, 8), jax.devices()[5])
    return (
        why(lambda: jax.jit(lambda x, y: x + y)(x, y)),
        why(lambda: jax.jit(lambda x, y: x + y)(x, other)),
        why(lambda: put(normal(9), m, "x")),
        why(lambda: put(normal(8), m, None, "x")),
        why(lambda: jax.jit(lambda x: x, out_shardings=on(m, None, None, "x"))(x)),
        why(lambda: jax.jit(lambda x: x[:3], out_shardings=on(m, "x"))(x)),
        why(lambda: jax.jit(lambda x: x, in_shardings=on(m, None, "x"))(x)),
        why(lambda: jax.jit(lambda x: x + np.zeros(3))(x)),
        why(lambda: jax.jit(lambda x: x if x.sum() > 0 else -x)(x)),
        why(lambda: jax.jit(lambda x: x, compiler_options={"xla_no_such": 1})(x)),
        why(lambda: jax.jit(lambda x: x, compiler_options={"xla_dump_to": 3})(x)),
    )


def exported_programs():
    m = mesh(x=4, y=2)
    x, w = put(normal(16, 8), m, "x"), put(normal(8, 8, seed=1), m, None, "y")
    f = jax.jit(lambda x, w: jnp.tanh(x @ w), out_shardings=on(m, "x", "y"))
    again = export.export(f)(x, w)
    loss = lambda x, w: (again.call(x, w) ** 2).sum()  # noqa: E731
    return jax.jit(again.call)(x, w), jax.jit(jax.grad(loss))(x, w), [again.nr_devices], text(again.in_avals)


def exported_with_unknown_sizes():
    b, n = export.symbolic_shape("b, n", constraints=["b >= 2", "n >= 4"])
    spec = jax.ShapeDtypeStruct((b, n), np.float32)

    def f(x):
        rows = x.reshape(-1)[: x.shape[0]]
        return jnp.cumsum(x, 1), x.sum(0) + jnp.arange(x.shape[1]), rows, jnp.concatenate([x, x], 0).mean(), x @ x.T

    again = export.export(jax.jit(f))(spec)
    x = np.arange(24, dtype=np.float32)
    return again.call(x.reshape(4, 6)), jax.jit(again.call)(x.reshape(3, 8)), why(lambda: again.call(x.reshape(8, 3)))


def exported_for_several_platforms():
    def f(x):
        return jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos, default=jnp.tan)

    again = export.export(jax.jit(f), platforms=("cpu", "tpu", "cuda"))(normal(8))
    return again.call(normal(8)), jax.jit(f)(put(normal(8), mesh(x=8), "x"))


def programs_with_large_constants():
    m = mesh(x=8)
    table = normal(64, 64)
    return jax.jit(lambda x: x @ table + table[0], out_shardings=on(m, "x"))(put(normal(16, 64), m, "x"))


def names_in_the_text():
    @jax.jit
    def named(x):
        with jax.named_scope("outer"), jax.named_scope("inner"):
            return jnp.sin(x) + 1

    compiled = named.lower(normal(8)).compile()
    return ["outer/inner" in compiled.as_text(), "HloModule jit_named" in compiled.as_text()]


def functions_that_stay_functions():
    m = mesh(x=4, y=2)
    w, x = put(normal(8, 8), m, "x", "y"), put(normal(16, 8, seed=1), m, "x")

    @functools.partial(scheduling_groups.xla_metadata_call, inlineable="false")
    def layer(w, x):
        return jnp.tanh(x @ w) + x.mean(0)

    def loss(w, x):
        x, _ = jax.lax.scan(lambda x, _: (layer(w, x), None), layer(w.T, x), None, length=2)
        return jnp.sum(layer(w, x) ** 2)

    compiled = jax.jit(jax.value_and_grad(loss), out_shardings=on(m)).lower(w, x).compile()
    return compiled(w, x), np.array('inlineable="false"' in compiled.as_text())
