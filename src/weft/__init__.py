"""weft: kernels in the Triton language, compiled to native code for the CPU you have.

The compiler itself (xDSL, LLVM) is loaded when the first kernel is compiled, not here.
"""

from weft import language
from weft.frontend import CompilationError
from weft.runtime.errors import OutOfBoundsError
from weft.runtime.jit import JITFunction, jit
from weft.runtime.sizes import cdiv, next_power_of_2

__version__ = "0.1.0"

__all__ = ["CompilationError", "JITFunction", "OutOfBoundsError", "cdiv", "jit", "language", "next_power_of_2"]
