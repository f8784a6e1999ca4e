"""s2fft: spherical harmonic transforms of 8 signals, one a device, and their gradient."""

import jax
import jax.numpy as jnp
import s2fft
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARY = "s2fft"
BAND = 8


def run(mesh):
    signals = jax.random.normal(jax.random.PRNGKey(0), (8, BAND, 2 * BAND - 1))
    signals = jax.device_put(signals, NamedSharding(mesh, P("x")))

    def there(signal):
        return s2fft.forward_jax(signal, BAND, sampling="mw", reality=False)

    def back(signal):
        return s2fft.inverse_jax(there(signal), BAND, sampling="mw").real

    spectra = jax.jit(jax.vmap(there))(signals)
    gradients = jax.jit(jax.grad(lambda s: jnp.sum(jax.vmap(back)(s) ** 2)))(signals)
    return {
        "real": spectra.real,
        "imaginary": spectra.imag,
        "back": jax.jit(jax.vmap(back))(signals),
        "slopes": gradients,
    }
