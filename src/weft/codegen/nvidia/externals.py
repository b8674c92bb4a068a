"""Functions that CUDA's driver has on the device, and the strings that they take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from weft.codegen.llvm.types import I8
from weft.codegen.nvidia.instructions import GLOBAL

ADDRESS: Final = ir.PointerType()
"""A generic address."""


def external(module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
    """The function's declaration, made once."""
    found = module.globals.get(name)
    return found if isinstance(found, ir.Function) else ir.Function(module, ir.FunctionType(result, arguments), name)


def constant_string(builder: ir.IRBuilder, text: str) -> ir.Value:
    """The generic address of a constant string that ends with a zero."""
    module, data = builder.module, bytearray(text.encode() + b"\0")
    type_ = ir.ArrayType(I8, len(data))
    constant = ir.GlobalVariable(module, type_, module.get_unique_name("text"), addrspace=GLOBAL)
    constant.global_constant, constant.linkage = True, "internal"
    constant.initializer = ir.Constant(type_, data)
    return builder.addrspacecast(constant, ADDRESS)
