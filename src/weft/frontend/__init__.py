"""From a kernel's Python source to tile IR.

The compiler half loads xDSL, so importing this package does not load it: `build_module` brings it in on its first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.frontend.errors import CompilationError, Note, Span
from weft.frontend.signature import Argument, ConstantArgument, PointerArgument, ScalarArgument, Signature
from weft.frontend.source import MISSING, KernelFunction, Parameter
from weft.options import Options

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from weft.semantics.core import Semantics

__all__ = [
    "MISSING", "Argument", "CompilationError", "ConstantArgument", "KernelFunction", "Note", "Parameter", "PointerArgument",
    "ScalarArgument", "Signature", "Span", "build_module",
]  # fmt: skip


_DEFAULT = Options()


def build_module(
    kernel: KernelFunction,
    signature: Signature,
    semantics: Semantics | None = None,
    options: Options = _DEFAULT,
) -> ModuleOp:
    """The tile IR of ``kernel`` for ``signature``: a module with one function of the kernel's name, everything it calls
    inlined.

    The function's arguments are the pointers and scalars of the signature in order; their attributes are ``tile.name``
    and, where the signature promises it, ``tile.divisibility`` (of a pointer in bytes). ``semantics`` defaults to
    the kernel's own, and that to Triton's. Of the ``options`` those count that say what is asserted, and the number of warps.
    `CompilationError` where the kernel breaks a rule.
    """
    from weft.frontend.build import build

    return build(kernel, signature, semantics, options)
