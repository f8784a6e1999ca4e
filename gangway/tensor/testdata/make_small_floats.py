"""Writes small_floats.txt: what ml_dtypes makes of doubles in every format below 32 bits.

Lines: dtype, the double's 64 bits in hex, the expected bits in hex.
"""

import ml_dtypes as m
import numpy as np

TYPES = {
    "f16": np.float16,
    "bf16": m.bfloat16,
    "f8e5m2": m.float8_e5m2,
    "f8e4m3": m.float8_e4m3,
    "f8e4m3fn": m.float8_e4m3fn,
    "f8e4m3b11fnuz": m.float8_e4m3b11fnuz,
    "f8e3m4": m.float8_e3m4,
    "f8e5m2fnuz": m.float8_e5m2fnuz,
    "f8e4m3fnuz": m.float8_e4m3fnuz,
    "f4e2m1fn": m.float4_e2m1fn,
    "f8e8m0fnu": m.float8_e8m0fnu,
    "f6e3m2fn": m.float6_e3m2fn,
    "f6e2m3fn": m.float6_e2m3fn,
}
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e60, -1e60, 464, 464.5, 57344, 61439, 61440, 65504, 65519, 65520, 0.125]

rng = np.random.default_rng(7)
for name, dtype in TYPES.items():
    wide = np.dtype(dtype).itemsize == 2
    codes = np.arange(65536, dtype=np.uint16)[::1021] if wide else np.arange(256, dtype=np.uint8)
    bits = {"f4e2m1fn": 4, "f6e3m2fn": 6, "f6e2m3fn": 6}.get(name, 16 if wide else 8)
    finite = np.sort(codes[codes < 2**bits].view(dtype).astype(np.float64))
    finite = finite[np.isfinite(finite)]
    ties = (finite[1:] + finite[:-1]) / 2
    values = np.concatenate([EDGES, finite, ties, rng.normal(size=24) * 3])
    if name == "f8e8m0fnu":
        values = values[values >= 2.0**-128]
    if name == "bf16":  # ml_dtypes rounds twice here: through float
        values = values.astype(np.float32).astype(np.float64)
    out = values.astype(dtype).view(np.uint16 if wide else np.uint8)
    for value, expected in zip(values.view(np.uint64), out):
        print(f"{name} {value:016x} {expected:x}")
