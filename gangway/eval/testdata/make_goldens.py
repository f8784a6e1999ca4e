"""Writes <name>.hlo and <name>.values for each program below: what XLA's CPU compiler computes.

The programs are kept as HLO text before any optimization; values are `argument|result TYPE HEX` lines, bytes in
row-major order. Run by hand when a program is added; tests only read the files.
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(3)
PROGRAMS = {}


def program(*arguments):
    def add(function):
        PROGRAMS[function.__name__] = (function, arguments)
        return function

    return add


def f32(*shape):
    return rng.normal(size=shape).astype(np.float32)


def f64(*shape):
    return rng.normal(size=shape)


def c64(*shape):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


def s32(low, high, *shape):
    return rng.integers(low, high, size=shape).astype(np.int32)


ODD = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-3, 1e30, -1e30, np.inf, -np.inf, np.nan, 3.7], np.float32)
EDGES32 = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31), 12345, -54321], np.int32)
EDGES8 = np.array([0, 1, -1, 7, -7, 127, -128, 64], np.int8)


@program(ODD)
def unary_float(x):
    return [
        f(x)
        for f in (
            lax.abs,
            lax.ceil,
            lax.floor,
            lax.sign,
            lax.round,
            lax.exp,
            lax.log,
            lax.log1p,
            lax.expm1,
            lax.tanh,
            lax.logistic,
            lax.sqrt,
            lax.rsqrt,
            lax.cbrt,
            lax.erf,
            lax.neg,
            lax.is_finite,
        )
    ] + [lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)]


@program(f32(9), f64(9))
def trigonometry(x, y):
    return lax.sin(x), lax.cos(x), lax.tan(x), lax.atan2(x, x * 2 - 1), lax.sin(y), lax.exp(y), lax.log(y), lax.erf(y)


@program(ODD, ODD[::-1].copy())
def binary_float(x, y):
    return [
        f(x, y)
        for f in (
            lax.add,
            lax.sub,
            lax.mul,
            lax.div,
            lax.max,
            lax.min,
            lax.rem,
            lax.eq,
            lax.ne,
            lax.lt,
            lax.le,
            lax.gt,
            lax.ge,
        )
    ]


@program(np.abs(f32(8)), f32(8))
def power(x, y):
    return lax.pow(x, y), lax.integer_pow(x, 3), lax.pow(x, np.int32(2))


@program(EDGES32, EDGES32[::-1].copy())
def binary_s32(x, y):
    return [
        f(x, y)
        for f in (
            lax.add,
            lax.sub,
            lax.mul,
            lax.div,
            lax.rem,
            lax.max,
            lax.min,
            lax.bitwise_and,
            lax.bitwise_or,
            lax.bitwise_xor,
            lax.lt,
            lax.ge,
        )
    ] + [lax.abs(x), lax.sign(x), ~x, -x, lax.population_count(x), lax.clz(x)]


@program(EDGES8, np.array([0, 1, 2, 7, 8, 9, 3, 4], np.int8), EDGES8.view(np.uint8), np.arange(8, dtype=np.uint8))
def shifts(x, n, u, m):
    return (
        [f(x, n) for f in (lax.shift_left, lax.shift_right_arithmetic, lax.shift_right_logical)]
        + [
            f(u, m)
            for f in (
                lax.shift_left,
                lax.shift_right_arithmetic,
                lax.shift_right_logical,
                lax.add,
                lax.mul,
                lax.div,
                lax.rem,
            )
        ]
        + [lax.population_count(u), lax.clz(u), ~u, lax.div(x, n), lax.rem(x, n)]
    )


@program(np.array([True, False, True, False]), np.array([True, True, False, False]))
def predicates(a, b):
    return a & b, a | b, a ^ b, ~a, a.astype(jnp.float32), lax.lt(a, b), lax.max(a, b)


@program(c64(7), c64(7))
def complex_numbers(x, y):
    return (
        [f(x, y) for f in (lax.add, lax.sub, lax.mul, lax.div, lax.pow, lax.eq)]
        + [
            f(x)
            for f in (
                lax.abs,
                lax.exp,
                lax.log,
                lax.sqrt,
                lax.rsqrt,
                lax.tanh,
                lax.sin,
                lax.cos,
                lax.sign,
                lax.conj,
                lax.real,
                lax.imag,
                lax.expm1,
                lax.log1p,
                lax.neg,
            )
        ]
        + [lax.complex(lax.real(x), lax.imag(y))]
    )


CONVERTED = np.array(
    [0, 1, -1, 0.3, 250.7, -3.9, 70000, 1e10, -1e10, np.inf, -np.inf, np.nan, 464.0, 0.002], np.float32
)


@program(CONVERTED)
def convert_float(x):
    return [
        x.astype(t)
        for t in (
            np.int8,
            np.uint8,
            np.int32,
            np.uint32,
            np.int64,
            np.float16,
            jnp.bfloat16,
            np.float64,
            np.bool_,
            jnp.float8_e4m3fn,
            jnp.float8_e5m2,
            jnp.float8_e4m3fnuz,
            jnp.float8_e5m2fnuz,
            jnp.float8_e4m3b11fnuz,
            np.complex64,
        )
    ]


@program(EDGES32, np.array([0, 1, 2**63, 2**64 - 1, 2**53 + 1], np.uint64))
def convert_integer(x, u):
    return [x.astype(t) for t in (np.int8, np.uint8, np.uint64, np.float32, jnp.bfloat16, np.bool_)] + [
        u.astype(t) for t in (np.float32, np.float64, np.int32)
    ]


@program(f32(6, 3).astype(np.float16), f32(3, 5).astype(np.float16), f32(6, 3).astype(jnp.bfloat16))
def half_precision(x, y, z):
    return x @ y, x * 3 + 1, lax.exp(z), z * z + z, z.sum(), lax.max(x, -x), (z @ y.astype(jnp.bfloat16))


@program(f32(12))
def reduce_precision(x):
    return lax.reduce_precision(x * 1000, 5, 10), lax.reduce_precision(x, 8, 7), lax.reduce_precision(x * 1e-3, 4, 3)


@program(f32(2, 4), s32(0, 2**31 - 1, 4), s32(0, 255, 2, 4).astype(np.uint8))
def bitcasts(x, y, z):
    return (
        lax.bitcast_convert_type(x, jnp.int32),
        lax.bitcast_convert_type(y, jnp.uint8),
        lax.bitcast_convert_type(z, jnp.uint32),
        lax.bitcast_convert_type(y, jnp.float16),
    )


@program(f32(3, 4, 5), f32(3, 5, 2), f32(4, 5))
def dots(x, y, z):
    return (
        jnp.einsum("bik,bkj->bij", x, y),
        jnp.einsum("bik,jk->bij", x, z),
        jnp.einsum("bik,ik->b", x, z),
        jnp.einsum("ik,ik->", z, z),
        jnp.einsum("i,j->ij", z[0], z[1]),
    )


@program(s32(-100, 100, 3, 4).astype(np.int8), s32(-100, 100, 4, 2).astype(np.int8), c64(2, 3), c64(3, 2))
def dots_integer_and_complex(x, y, a, b):
    return lax.dot(x, y, preferred_element_type=jnp.int32), lax.dot(x, y), a @ b


@program(f32(2, 7, 6, 3), f32(3, 2, 3, 4))
def convolutions(x, k):
    dn = ("NHWC", "HWIO", "NHWC")

    def conv(**options):
        return lax.conv_general_dilated(x, k, dimension_numbers=dn, **options)

    return (
        conv(window_strides=(1, 1), padding="SAME"),
        conv(window_strides=(2, 1), padding="VALID"),
        conv(window_strides=(1, 2), padding=((2, 1), (-1, 3))),
        conv(window_strides=(1, 1), padding=((2, 2), (1, 1)), lhs_dilation=(2, 1), rhs_dilation=(1, 2)),
        lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=dn),
    )


@program(f32(2, 6, 8), f32(3, 2, 12), f32(4, 5, 3), f32(3, 3, 6))
def convolutions_grouped(x, k, y, m):
    return (
        lax.conv_general_dilated(x, k, (1,), "SAME", dimension_numbers=("NHC", "HIO", "NHC"), feature_group_count=4),
        lax.conv_general_dilated(y, m, (1,), "SAME", dimension_numbers=("NHC", "HIO", "NHC"), batch_group_count=2),
    )


@program(f32(2, 5, 4), s32(-5, 5, 3, 4))
def reductions(x, y):
    return (
        x.sum(),
        x.sum(1),
        x.max((0, 2)),
        x.min(),
        x.prod(2),
        y.sum(0),
        y.max(1),
        (y > 0).any(0),
        (y > 0).all(),
        jnp.argmax(x, 1),
        jnp.argmin(y, 0),
        x.mean(0),
        x.var(),
        jnp.bitwise_xor.reduce(y, axis=0),
    )


@program(f32(4, 6), f32(3))
def reductions_general(x, s):
    pair = lax.reduce(
        (x, x * 2),
        (jnp.float32(0), jnp.float32(1)),
        lambda a, b: (a[0] + b[0], jnp.where(a[1] > b[1], a[1], b[1])),
        (1,),
    )
    return pair, lax.reduce(x, jnp.float32(0), lambda a, b: jnp.sqrt(a * a + b * b), (0, 1)), (s > 0).all()


@program(f32(1, 6, 7, 2), f32(9), f32(4, 5))
def windows(x, y, z):
    return (
        lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 3, 1), (1, 2, 2, 1), "SAME"),
        lax.reduce_window(x, 0.0, lax.add, (1, 3, 2, 1), (1, 1, 2, 1), ((0, 0), (1, 2), (2, 0), (0, 0))),
        lax.reduce_window(y, 0.0, lax.add, (3,), (1,), ((2, 2),), (2,), (2,)),
        jnp.cumsum(y),
        jnp.cumprod(y),
        lax.cummax(z, 1),
        lax.cumlogsumexp(z, 0, reverse=True),
    )


@program(f32(1, 6, 6, 2))
def pooling_gradient(x):
    def pool(v):
        return lax.reduce_window(v, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")

    return jax.grad(lambda v: (pool(v) ** 2).sum())(x)


@program(f32(2, 3, 4))
def movement(x):
    return (
        x.reshape(4, 6),
        x.transpose(2, 0, 1),
        lax.rev(x, (0, 2)),
        lax.broadcast_in_dim(x, (2, 5, 3, 4), (0, 2, 3)),
        lax.iota(jnp.float32, 5),
        lax.broadcasted_iota(jnp.int8, (3, 4), 1),
        lax.concatenate([x, x * 2, x[:, :1]], 1),
    )


@program(f32(5, 6), f32(2, 2), s32(-4, 9, 4))
def slices(x, u, i):
    return (
        lax.slice(x, (1, 0), (5, 6), (2, 3)),
        lax.dynamic_slice(x, (i[0], i[1]), (3, 2)),
        lax.dynamic_slice(x, (np.int32(4), np.int32(-3)), (3, 2)),
        lax.dynamic_update_slice(x, u, (i[2], i[3])),
        lax.dynamic_update_slice(x, u, (np.int32(7), np.int32(1))),
    )


@program(f32(4, 5))
def pads(x):
    return (
        lax.pad(x, np.float32(7), ((1, 2, 0), (0, 1, 2))),
        lax.pad(x, np.float32(7), ((-1, 3, 1), (2, -2, 0))),
        lax.pad(x, np.float32(7), ((-3, -1, 2), (-1, -1, 1))),
        lax.pad(x, np.float32(7), ((-4, 1, 0), (0, 0, 0))),
    )


@program(f32(6, 5), np.array([[0], [5], [9], [-3]], np.int32), np.array([[1, 2], [4, 4]], np.int32))
def gathers(x, i, j):
    return (
        x[i[:, 0]],
        jnp.take(x, i[:, 0], axis=0, mode="clip"),
        jnp.take(x, i[:, 0], axis=1, mode="fill"),
        x[j[:, 0], j[:, 1]],
        jnp.take_along_axis(x, jnp.argsort(x, 1), axis=1),
        lax.gather(x, j, lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (3, 2), mode="clip"),
    )


@program(
    f32(6, 5),
    np.array([0, 5, 9, -3, 0], np.int32),
    f32(5, 5),
    np.array([[1, 2], [4, 4], [5, 1]], np.int32),
    f32(3, 2, 2),
)
def scatters(x, i, u, j, w):
    dn = lax.ScatterDimensionNumbers((1, 2), (), (0, 1))
    return (
        x.at[i].set(u),
        x.at[i].add(u),
        x.at[i].max(u),
        x.at[i].multiply(u, mode="drop"),
        x.at[:, 2].set(1.0),
        lax.scatter_add(x, j, w, dn),
        lax.scatter(x, j, w, dn, mode="clip"),
        lax.scatter_apply(x, j, jnp.sin, dn, update_shape=(3, 2, 2)),
    )


@program(f32(3, 9), s32(-3, 3, 3, 9), f32(9, 2))
def sorts(x, k, z):
    return (
        jnp.sort(x, 1),
        jnp.argsort(k, 1, stable=True),
        lax.sort((k, x), dimension=1, num_keys=2),
        lax.sort((k, x), dimension=0, is_stable=True),
        jnp.sort(z, 0),
        jnp.sort(x.reshape(-1), descending=True),
        lax.top_k(x, 4),
    )


@program(ODD, np.array([3, 1, 2], np.uint8))
def sort_odd(x, y):
    return jnp.sort(x), jnp.argsort(x), jnp.sort(y), jnp.sort(x[:1]), jnp.median(y)


def bits(algorithm, words):
    key = np.arange(words, dtype=np.uint64) * 0x9E3779B97F4A7C15 + 1
    key[1] = 2**64 - 2

    def generate(k):
        outputs = []
        for shape, dtype in (
            ((7,), np.uint32),
            ((4, 3), np.uint32),
            ((3, 5), np.uint32),
            ((), np.uint32),
            ((5,), np.uint64),
            ((2, 3), np.uint16),
            ((9,), np.uint8),
        ):
            outputs += lax.rng_bit_generator(k, shape, dtype, algorithm=algorithm)
        return outputs

    generate.__name__ = {1: "rng_threefry", 2: "rng_philox", 0: "rng_default"}[int(algorithm)] + str(words)
    program(key)(generate)


bits(lax.RandomAlgorithm.RNG_THREE_FRY, 2)
bits(lax.RandomAlgorithm.RNG_PHILOX, 2)
bits(lax.RandomAlgorithm.RNG_DEFAULT, 2)


@program(np.array([7, 9], np.uint32))
def random_numbers(key):
    k = jax.random.wrap_key_data(key)
    a, b = jax.random.split(k)
    return (
        jax.random.uniform(a, (3, 5)),
        jax.random.normal(b, (4,)),
        jax.random.randint(a, (6,), -5, 50),
        jax.random.bernoulli(b, 0.3, (7,)),
        jax.random.permutation(a, 9),
        jax.random.gumbel(b, (3,)),
    )


M = f64(4, 4)


@program((M @ M.T + 4 * np.eye(4)).astype(np.float32)[None].repeat(2, 0), f32(2, 4, 3))
def linear_algebra(a, b):
    low = lax.linalg.triangular_solve
    l = jnp.tril(a)
    return (
        lax.linalg.cholesky(a, symmetrize_input=False),
        low(l, b, left_side=True, lower=True),
        low(l, b, left_side=True, lower=True, transpose_a=True),
        low(jnp.triu(a), b, left_side=True, lower=False),
        low(l, b.transpose(0, 2, 1), lower=True),
        low(jnp.triu(a), b.transpose(0, 2, 1), lower=False, transpose_a=True, unit_diagonal=True),
    )


@program(c64(3, 6), f32(2, 4, 10), c64(5))
def ffts(x, y, z):
    return (
        jnp.fft.fft(x),
        jnp.fft.ifft(z),
        jnp.fft.fftn(x),
        jnp.fft.rfft(y),
        jnp.fft.rfftn(y),
        jnp.fft.irfft(x, 10),
        jnp.fft.irfft(x, 9),
        jnp.fft.irfftn(x, (3, 10)),
        jnp.fft.fft(y[0]),
    )


@program(f32(5), np.int32(3))
def control(x, n):
    loop = lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2 + s[0]), (0, x))
    scan = lax.scan(lambda c, v: (c + v, c * v), jnp.float32(1), x)
    return (
        loop,
        scan,
        lax.cond(n > 2, lambda v: v + 1, lambda v: v - 1, x),
        lax.switch(n, [lambda v: v, lambda v: v * 2, lambda v: v * 3], x),
        lax.fori_loop(0, 4, lambda i, v: v + i, x),
        lax.map(lambda v: v * v, x),
    )


@program(f32(4, 3), f32(3, 8), f32(8, 2), s32(0, 2, 4))
def training_step(x, w, v, y):
    def loss(p):
        h = jax.nn.gelu(x @ p[0])
        logits = jax.nn.log_softmax(h @ p[1])
        return -jnp.take_along_axis(logits, y[:, None], 1).mean()

    return jax.value_and_grad(loss)((w, v))


@program(f32(7), f32(7))
def selects(x, y):
    return (
        jnp.where(x > 0, x, y),
        lax.clamp(np.float32(-0.5), x, np.float32(0.5)),
        lax.clamp(x, y, x + 1),
        lax.select_n(np.int32(1), x, y),
        lax.nextafter(x, y),
        jax.scipy.special.erfinv(x / 10),
        jax.lax.lgamma(x),
        jax.lax.digamma(x),
        jnp.sinh(x),
        jnp.arcsin(x / 5),
        jax.lax.igamma(abs(x), abs(y)),
    )


NAMES = {"bool": "pred", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128"}


def type_name(a):
    n = a.dtype.name
    if n in NAMES:
        return NAMES[n]
    if n.startswith("float8_"):
        return "f8" + n[len("float8_") :]
    return n.replace("uint", "u").replace("float", "f").replace("int", "s")


def line(kind, a):
    a = np.asarray(a)
    return f"{kind} {type_name(a)}[{','.join(map(str, a.shape))}] {np.ascontiguousarray(a).tobytes().hex()}\n"


out = pathlib.Path(__file__).parent
for name in sys.argv[1:] or PROGRAMS:
    function, arguments = PROGRAMS[name]
    arguments = [np.asarray(a) for a in arguments]
    lowered = jax.jit(function, keep_unused=True).lower(*arguments)
    results = jax.tree.leaves(lowered.compile()(*arguments))
    if name == "linear_algebra":  # on CPU JAX calls LAPACK instead of these operations
        lowered = jax.jit(function, keep_unused=True).trace(*arguments).lower(lowering_platforms=("tpu",))
    (out / f"{name}.hlo").write_text(lowered.compiler_ir("hlo").as_hlo_text())
    (out / f"{name}.values").write_text(
        "".join([line("argument", a) for a in arguments] + [line("result", r) for r in results])
    )
    print(name, len(results))
