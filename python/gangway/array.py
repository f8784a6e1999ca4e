"""Values on the cluster."""

import jax
import ml_dtypes
import numpy as np

# xla.PrimitiveType -> numpy
DTYPES = {
    1: np.bool_,
    2: np.int8,
    3: np.int16,
    4: np.int32,
    5: np.int64,
    6: np.uint8,
    7: np.uint16,
    8: np.uint32,
    9: np.uint64,
    10: np.float16,
    11: np.float32,
    12: np.float64,
    15: np.complex64,
    16: ml_dtypes.bfloat16,
    18: np.complex128,
    19: ml_dtypes.float8_e5m2,
    20: ml_dtypes.float8_e4m3fn,
    21: ml_dtypes.int4,
    22: ml_dtypes.uint4,
    23: ml_dtypes.float8_e4m3b11fnuz,
    24: ml_dtypes.float8_e5m2fnuz,
    25: ml_dtypes.float8_e4m3fnuz,
}


KINDS = (np.bool_, np.integer, np.floating, np.complexfloating)  # of numbers, each of which holds those before


def kind_of(dtype):
    """Its place in KINDS."""
    return next(i for i, kind in enumerate(KINDS) if jax.dtypes.issubdtype(dtype, kind))


class Array:
    """A value on the cluster, perhaps still to come. Freed when nobody holds it any more."""

    def __init__(self, client, shape, dtype):
        self._deleted = False
        self.client = client
        self.number = client.new_number()
        self.aval = jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype))
        self.sent = None  # the request that makes it

    @property
    def shape(self):
        return self.aval.shape

    @property
    def dtype(self):
        return self.aval.dtype

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return self.aval.size

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    def block_until_ready(self):
        self.client.send(wait={"arrays": [self.alive().number]}).result()
        return self

    def delete(self):
        """Frees it now, rather than when nobody holds it any more."""
        if not self._deleted:
            self._deleted = True
            self.client.throw_away(self.number)

    def is_deleted(self):
        return self._deleted

    def alive(self):
        """Itself; RuntimeError once it was deleted."""
        if self._deleted:
            raise RuntimeError(f"{self!r} has been deleted")
        return self

    def numpy(self):
        """The whole value."""
        fetched = self.client.send(fetch={"array": self.alive().number}).result().fetch
        return np.frombuffer(fetched.value, DTYPES[fetched.dtype]).reshape(fetched.dims)

    def __array__(self, dtype=None, copy=None):
        return self.numpy().astype(dtype or self.dtype)

    def item(self):
        return self.numpy().item()

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __bool__(self):
        return bool(self.item())

    def __repr__(self):
        return f"gangway.Array({self.number}, {self.dtype}{list(self.shape)})"

    def __del__(self):
        self.delete()
