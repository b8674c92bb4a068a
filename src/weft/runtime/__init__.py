"""Kernels at run time: `jit`, specialisation, caches, threads, launch. Importing it loads no compiler."""

from weft.runtime.errors import OutOfBoundsError
from weft.runtime.jit import JITFunction, jit

__all__ = ["JITFunction", "OutOfBoundsError", "jit"]
