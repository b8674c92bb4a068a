"""``tile.assert``: a call of CUDA's ``__assertfail``, which ends the launch (CUDA C++ Programming Guide, "Assertion").

Every thread of a block asks. The card's driver prints the message with the user's file and line, and the launch fails.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.llvm.types import I8, I32, I64
from weft.codegen.nvidia.instructions import GLOBAL
from weft.codegen.nvidia.threads import Threads
from weft.ir import tile
from weft.ir.location import positions

_ADDRESS = ir.PointerType()


def emit_assert(threads: Threads, op: tile.AssertOp) -> None:
    """The lowering of ``tile.assert``."""
    builder = threads.builder
    place = next(iter(positions(op)), None)
    texts = [op.message.data or "assertion failed", place.file if place else "", place.function if place else ""]
    with builder.if_then(builder.not_(threads.scalar(op.condition)), likely=False):
        message, file, function = (_string(builder, text) for text in texts)
        line = ir.Constant(I32, place.line if place else 0)
        builder.call(_function(builder.module), [message, file, line, function, ir.Constant(I64, 1)])


def _function(module: ir.Module) -> ir.Function:
    found = module.globals.get("__assertfail")
    if isinstance(found, ir.Function):
        return found
    arguments = [_ADDRESS, _ADDRESS, I32, _ADDRESS, I64]
    return ir.Function(module, ir.FunctionType(ir.VoidType(), arguments), "__assertfail")


def _string(builder: ir.IRBuilder, text: str) -> ir.Value:
    """The generic address of a constant string that ends with a zero."""
    module, data = builder.module, bytearray(text.encode() + b"\0")
    type_ = ir.ArrayType(I8, len(data))
    constant = ir.GlobalVariable(module, type_, module.get_unique_name("text"), addrspace=GLOBAL)
    constant.global_constant, constant.linkage = True, "internal"
    constant.initializer = ir.Constant(type_, data)
    return builder.addrspacecast(constant, _ADDRESS)
