"""Convolutions and poolings over split space and channels, with their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from meshes import mesh, normal, on, put

LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


def _convolve(m, spec, image, kernel, padding="SAME", **options):
    """Forward, both gradients; the image is split as `spec` says."""
    rank = len(image) - 2
    strides = (options.pop("stride", 1),) * rank

    def f(x, w):
        return jax.lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=LAYOUTS[rank], **options)

    def both(x, w):
        y, pull = jax.vjp(f, x, w)
        return y, *pull(jnp.cos(y))

    out = (on(m), on(m, *spec), on(m))
    return jax.jit(both, out_shardings=out)(
        put(normal(*image), m, *spec), normal(*kernel, seed=1) / np.sqrt(kernel[-2])
    )


def causal_and_dilated():
    return _convolve(mesh(x=8), (None, "x"), (2, 128, 8), (4, 8, 8), [(12, 0)], rhs_dilation=(4,))


def causal_by_channel():
    return _convolve(mesh(x=8), (None, "x"), (2, 128, 8), (4, 1, 8), [(3, 0)], feature_group_count=8)


def strided_over_both_dimensions():
    return _convolve(mesh(x=4, y=2), (None, "x", "y"), (2, 32, 32, 4), (5, 5, 4, 4), stride=2)


def groups_of_split_channels():
    return _convolve(mesh(x=8), (None, None, None, "x"), (2, 8, 8, 32), (3, 3, 8, 32), feature_group_count=4)


def in_space():
    return _convolve(mesh(x=4, y=2), (None, "x", "y"), (2, 16, 16, 8, 4), (3, 3, 3, 4, 4), stride=2)


def transposed():
    return _convolve(mesh(x=8), (None, "x"), (2, 16, 16, 4), (4, 4, 4, 4), [(2, 2), (2, 2)], lhs_dilation=(2, 2))


def _pool(start, combine, stride):
    """Windows of three by three, forward and gradient."""
    m = mesh(x=8)

    def f(x):
        window, strides = (1, 3, 3, 1), (1, stride, stride, 1)
        y, pull = jax.vjp(lambda x: jax.lax.reduce_window(x, start, combine, window, strides, "SAME"), x)
        return y, *pull(jnp.cos(y))

    return jax.jit(f, out_shardings=on(m, None, "x"))(put(normal(2, 32, 32, 4), m, None, "x"))


# Sharded, native JAX computes the gradient with a stride of 1 wrongly.
def largest_of_overlapping_windows():
    return _pool(-jnp.inf, jax.lax.max, 2)


def sums_of_overlapping_windows():
    return _pool(0.0, jax.lax.add, 1), _pool(0.0, jax.lax.add, 2)


def windows_of_nothing():
    m = mesh(x=8)
    x = put(normal(8, 16), m, "x")

    def f(x, padding):
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (2, 1), (1, 1), (padding, (0, 0)))

    return [jax.jit(lambda x, p=p: f(x, p), out_shardings=on(m))(x) for p in ((-5, -5), (-20, 1), (3, -12), (-4, -3))]


def resized_images():
    m = mesh(x=8)
    x = put(normal(2, 16, 16, 4), m, None, "x")
    sizes = ((2, 32, 32, 4), "bilinear"), ((2, 32, 32, 4), "nearest"), ((2, 8, 8, 4), "bilinear")
    return jax.jit(lambda x: [jax.image.resize(x, *how) for how in sizes], out_shardings=on(m, None, "x"))(x)
