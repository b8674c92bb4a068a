"""``tile.assert``: a call of CUDA's ``__assertfail``, which ends the launch (CUDA C++ Programming Guide, "Assertion").

Every thread of a block asks. The card's driver prints the message with the user's file and line, and the launch fails.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.llvm.types import I32, I64
from weft.codegen.nvidia.externals import ADDRESS, constant_string, external
from weft.codegen.nvidia.threads import Threads
from weft.ir import tile
from weft.ir.location import positions


def emit_assert(threads: Threads, op: tile.AssertOp) -> None:
    """The lowering of ``tile.assert``."""
    builder = threads.builder
    place = next(iter(positions(op)), None)
    texts = [op.message.data or "assertion failed", place.file if place else "", place.function if place else ""]
    with builder.if_then(builder.not_(threads.scalar(op.condition)), likely=False):
        message, file, function = (constant_string(builder, text) for text in texts)
        line = ir.Constant(I32, place.line if place else 0)
        called = external(builder.module, "__assertfail", ir.VoidType(), [ADDRESS, ADDRESS, I32, ADDRESS, I64])
        builder.call(called, [message, file, line, function, ir.Constant(I64, 1)])
