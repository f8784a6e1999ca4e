"""Values on the cluster."""

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


class Array:
    """A value on the cluster, perhaps still to come. Freed when nobody holds it any more."""

    def __init__(self, client, shape, dtype):
        self.client = client
        self.number = client.new_number()
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.sent = None  # the request that makes it

    def block_until_ready(self):
        self.client.send(wait={"arrays": [self.number]}).result()
        return self

    def numpy(self):
        """The whole value."""
        fetched = self.client.send(fetch={"array": self.number}).result().fetch
        return np.frombuffer(fetched.value, DTYPES[fetched.dtype]).reshape(fetched.dims)

    def __array__(self, dtype=None, copy=None):
        return self.numpy().astype(dtype or self.dtype)

    def __float__(self):
        return float(self.numpy())

    def __int__(self):
        return int(self.numpy())

    def __repr__(self):
        return f"gangway.Array({self.number}, {self.dtype}{list(self.shape)})"

    def __del__(self):
        self.client.throw_away(self.number)
