"""Functions beyond the core language: distances on a sphere, with ``asin`` from libdevice.

``tl`` has the functions that kernels use most. The others are in ``libdevice``, under the names of CUDA's library: asin, expm1,
cbrt, hypot, rint, popc, ... The type of the argument chooses the function for float32 or float64; in weft each is the same on
a CPU and on a GPU.

The haversine formula gives the angle between two points of a sphere from their latitudes and longitudes:

    2 asin(sqrt(sin²((φ2 - φ1) / 2) + cos φ1 cos φ2 sin²((λ2 - λ1) / 2)))
"""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl
from weft.language.extra import libdevice


@weft.jit
def square(x):
    return x * x


@weft.jit
def distance_kernel(latitude_ptr, longitude_ptr, home, out_ptr, n, radius, BLOCK: tl.constexpr):
    """Distances of n points from the point with the number ``home``; angles in radians."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    latitude = tl.load(latitude_ptr + offsets, mask=mask)
    longitude = tl.load(longitude_ptr + offsets, mask=mask)
    # Loaded rather than passed as floats: an argument that is a Python float becomes a float32.
    home_latitude = tl.load(latitude_ptr + home)
    home_longitude = tl.load(longitude_ptr + home)
    h = square(tl.sin((latitude - home_latitude) / 2))
    h += tl.cos(latitude) * tl.cos(home_latitude) * square(tl.sin((longitude - home_longitude) / 2))
    # Rounding may bring opposite points above 1, where asin is NaN.
    angle = 2 * libdevice.asin(tl.minimum(tl.sqrt(h), 1.0))
    tl.store(out_ptr + offsets, radius * angle, mask=mask)


def distance(latitudes: Any, longitudes: Any, home: int, out: Any, radius: float = 6371.0) -> Any:
    """The distances of points, in radians, from that with the number ``home``; returns ``out``, in units of ``radius`` (the
    Earth's, in km)."""
    n = out.size
    distance_kernel[(weft.cdiv(n, 1024),)](latitudes, longitudes, home, out, n, radius, BLOCK=1024)
    return out


def main() -> None:
    """Compare with NumPy, in float32 and float64."""
    random = np.random.default_rng(0)
    for dtype, tolerance in ((np.float32, 1e-6), (np.float64, 1e-14)):
        latitudes = random.uniform(-np.pi / 2, np.pi / 2, 1500).astype(dtype)
        longitudes = random.uniform(-np.pi, np.pi, 1500).astype(dtype)
        x, y = latitudes.astype(np.float64), longitudes.astype(np.float64)
        h = np.sin((x - x[7]) / 2) ** 2 + np.cos(x) * np.cos(x[7]) * np.sin((y - y[7]) / 2) ** 2
        compare(
            f"distances on a sphere, {np.dtype(dtype)}",
            lambda a=latitudes, b=longitudes: distance(a, b, 7, np.empty_like(a)),
            2 * 6371 * np.arcsin(np.sqrt(h)),
            tolerance,
        )


if __name__ == "__main__":
    main()
