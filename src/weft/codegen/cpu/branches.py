"""Values that come from one of two branches."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import I32


def either(
    registers: Registers,
    condition: ir.Value,
    then: Callable[[], ir.Value],
    otherwise: Callable[[], ir.Value],
    type_: ir.Type | None,
) -> ir.Value:
    """What one of two ways to emit gives, of a type; of no use where that is None."""
    builder = registers.builder
    ways: list[tuple[ir.Value, ir.Block]] = []
    with builder.if_else(condition, likely=True) as branches:
        for branch, emit in zip(branches, (then, otherwise), strict=True):
            with branch, registers.scope():
                ways.append((emit(), builder.block))
    if type_ is None:
        return ir.Constant(I32, 0)
    result = builder.phi(type_)
    for value, block in ways:
        result.add_incoming(value, block)
    return result
