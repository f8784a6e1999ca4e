import jax
import jax.numpy as jnp
from meshes import mesh, normal, on, put


def scan_over_layers():
    m = mesh(data=4, model=2)
    x, w = put(normal(8, 16), m, "data"), put(normal(3, 16, 16, seed=1) * 0.3, m, None, None, "model")
    f = jax.jit(
        lambda x, w: jax.lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum()), x, w), out_shardings=(on(m, "data"), on(m))
    )
    return f(x, w)


def while_with_a_sharded_carry():
    m = mesh(x=8)

    def f(x):
        return jax.lax.while_loop(
            lambda c: (c[0] < 7) & (jnp.abs(c[1]).max() < 50), lambda c: (c[0] + 1, c[1] * 1.9), (0, x)
        )

    return jax.jit(f, out_shardings=(on(m), on(m, "x")))(put(normal(16, 4), m, "x"))


def fori_with_a_matmul():
    m = mesh(x=4, y=2)
    a = put(normal(8, 8) * 0.3, m, "x", "y")
    return jax.jit(lambda a: jax.lax.fori_loop(0, 5, lambda i, c: c @ a + i, a), out_shardings=on(m, "x", "y"))(a)


def conditional_on_data():
    m = mesh(x=8)
    f = jax.jit(lambda x: jax.lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, x), out_shardings=on(m, "x"))
    x = normal(16)
    return f(put(x, m, "x")), f(put(-x, m, "x"))


def switch_over_branches():
    m = mesh(x=8)
    branches = [lambda x: x + 1, lambda x: x * x, lambda x: jnp.roll(x, 1)]
    f = jax.jit(lambda i, x: jax.lax.switch(i, branches, x), out_shardings=on(m, "x"))
    x = put(normal(16), m, "x")
    return [f(i, x) for i in range(4)]


def map_over_rows():
    m = mesh(x=8)
    f = jax.jit(lambda x: jax.lax.map(lambda r: r @ r + jnp.sort(r), x), out_shardings=on(m))
    return f(put(normal(8, 4), m, "x"))


def associative_scan():
    m = mesh(x=8)
    x = put(normal(16, 2), m, "x")
    return jax.jit(lambda x: jax.lax.associative_scan(jnp.maximum, x), out_shardings=on(m))(x)


def associative_scan_of_pairs():
    m = mesh(x=8)
    a, x = (put(normal(48, 3, seed=seed), m, "x") for seed in range(2))

    def linear(p, q):
        return p[0] * q[0], q[0] * p[1] + q[1]

    def by_segment(p, q):
        return p[0] | q[0], jnp.where(q[0], q[1], p[1] + q[1])

    def run(a, x):
        scan = jax.lax.associative_scan
        both = scan(linear, (a / 4, x))
        last = scan(linear, (a / 4, x), reverse=True)[1]
        return both, last, scan(by_segment, (a > 1, x))[1], scan(jnp.logaddexp, x), scan(jnp.multiply, a + 1j * x)

    s = on(m, "x")
    return jax.jit(run, out_shardings=((s, s), s, s, s, s))(a, x)


def nested_loops():
    m = mesh(x=8)

    def inner(c, _):
        return jax.lax.fori_loop(0, 3, lambda i, y: y + jnp.sin(y) * i, c), c.sum()

    return jax.jit(lambda x: jax.lax.scan(inner, x, None, length=4), out_shardings=(on(m, "x"), on(m)))(
        put(normal(16), m, "x")
    )


def a_sink_keeps_what_it_is_given():
    """On one device: XLA's partitioner refuses sinks."""

    def f(x):
        jax.lax.dce_sink(x * 2, prevent_mlir_dce=True)
        return x + 1

    compiled = jax.jit(f).lower(normal(4)).compile()
    return compiled(normal(4)), "dce_sink" in compiled.as_text(), "multiply" in compiled.as_text()


def compiler_options_are_checked():
    def told(options):
        try:
            return str(jax.jit(lambda x: x + 1, compiler_options=options)(jnp.ones(3)))
        except jax.errors.JaxRuntimeError as error:
            return str(error)

    unknown, wrong = told({"no_such_option": 1}), told({"xla_embed_ir_in_executable": "perhaps"})
    return (
        "no_such_option" in unknown,
        "not a valid bool" in wrong,
        told({"xla_embed_ir_in_executable": True}) == "[2. 2. 2.]",
    )
