"""The kernel's arguments out of their slots; `weft.codegen.kernel` describes the slots."""

from __future__ import annotations

from llvmlite import ir
from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from weft.codegen.emit.element import element_of_value
from weft.codegen.llvm.types import I8, I64
from weft.ir.types import is_pointer


def name_arguments(kernel: func.FuncOp) -> None:
    """Gives the arguments the parameters' names, for reports."""
    for i, argument in enumerate(kernel.body.block.args):
        if (name := _parameter_name(kernel, i)) is not None:
            argument.name_hint = name


def load_arguments(kernel: func.FuncOp, builder: ir.IRBuilder, slots: ir.Value) -> list[ir.Value]:
    """The arguments as values in registers (pointers as i64)."""
    values: list[ir.Value] = []
    for i, argument in enumerate(kernel.body.block.args):
        element = element_of_value(argument)
        values.append(element.from_storage(builder, _slot(builder, slots, i, element.storage_type(None))))
    return values


def load_bounds(
    kernel: func.FuncOp, builder: ir.IRBuilder, slots: ir.Value
) -> dict[SSAValue, tuple[ir.Value, ir.Value]]:
    """For each pointer argument of a checked kernel the first byte of its array and the one past its last."""
    arguments = kernel.body.block.args
    pointers = [argument for argument in arguments if is_pointer(argument)]
    bounds: dict[SSAValue, tuple[ir.Value, ir.Value]] = {}
    for j, argument in enumerate(pointers):
        at = len(arguments) + 2 * j
        bounds[argument] = (_slot(builder, slots, at, I64), _slot(builder, slots, at + 1, I64))
    return bounds


def _slot(builder: ir.IRBuilder, slots: ir.Value, i: int, type_: ir.Type) -> ir.Value:
    address = builder.gep(slots, [ir.Constant(I64, 8 * i)], source_etype=I8)
    return builder.load(address, typ=type_, align=8)


def _parameter_name(kernel: func.FuncOp, i: int) -> str | None:
    if kernel.arg_attrs is None:
        return None
    name = kernel.arg_attrs.data[i].data.get("tile.name")
    return name.data if isinstance(name, StringAttr) else None
