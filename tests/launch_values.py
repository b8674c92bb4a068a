"""Values of launches, as hypothesis draws them: what decides how a launch is classified, and what nearly does."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from weft.runtime.arguments import Parameter

MEMORY = np.zeros(256, np.uint8)
START = -MEMORY.ctypes.data % 64
DTYPES = (np.float32, np.int8, np.int64, np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)


def window(dtype: Any, offset: int, count: int) -> Any:
    """An array of the common memory, at a multiple of its itemsize."""
    itemsize = np.dtype(dtype).itemsize
    first = START + offset * itemsize
    return MEMORY[first : first + count * itemsize].view(dtype)


def changed(array: Any, how: str) -> Any:
    """The array in a form that routes do not take, or itself."""
    if how == "read-only":
        array = array.view()
        array.flags.writeable = False
    return array[::2] if how == "strided" else array.reshape(1, -1) if how == "reshaped" else array


ARRAYS = st.builds(
    changed,
    st.builds(window, st.sampled_from(DTYPES), st.integers(0, 8), st.integers(0, 8)),
    st.sampled_from(["plain", "plain", "plain", "reshaped", "strided", "read-only"]),
)
INTS = st.sampled_from([0, 1, 2, 16, -16, 17, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63, 2**64 - 1])
FLOATS = st.sampled_from([0.0, -0.0, 1.0, 1.5, 1e300, -math.inf, math.nan])
VALUES = (ARRAYS, ARRAYS, INTS, FLOATS, st.booleans(), st.none())
TUPLES = st.sampled_from([(1, 2.0), (1, 2), (True, 2), (0.0,), (-0.0,), ()])
CONSTANTS = (INTS, FLOATS, st.booleans(), st.none(), st.sampled_from(["", "a"]), TUPLES)
PARAMETERS = (
    Parameter("a"),
    Parameter("b", align=False),
    Parameter("c", specialise=False, align=False),
    Parameter("d", wide=True),
    Parameter("e", constexpr=True),
)
LAUNCHES = st.tuples(*map(st.sampled_from, (*[VALUES] * 4, CONSTANTS))).flatmap(
    lambda chosen: st.lists(st.tuples(*chosen), min_size=2, max_size=8)
)
"""Launches of one kind, or few: the same strategies draw the values of all."""
