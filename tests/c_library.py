"""C's formatting, as an oracle."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import pytest


def snprintf(text: str, *values: Any) -> str:
    """What the C library makes of a format and ctypes' values; skips the test where it has no such function."""
    if os.name != "posix":
        pytest.skip("Windows' C library has snprintf in headers only")
    buffer = ctypes.create_string_buffer(4096)
    function = ctypes.CDLL(None).snprintf
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]  # macOS passes what follows in another way
    function(buffer, len(buffer), text.encode(), *values)
    return buffer.value.decode()
