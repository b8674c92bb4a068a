"""How a thread claims programs of a launch (`weft.codegen.kernel`): by an atomic add in place, or where a grid is shared out by
the function that the launch names."""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.emit.faults import word
from weft.codegen.kernel import CLAIMS, NEXT
from weft.codegen.llvm.types import I64, POINTER, intrinsic

_FUNCTION = ir.FunctionType(ir.LiteralStructType([I64, I64]), [POINTER, POINTER, I64, I64])


def claim(
    builder: ir.IRBuilder, launch: ir.Value, thread: ir.Value, total: ir.Value, chunk: ir.Value, *, in_order: bool
) -> tuple[ir.Value, ir.Value]:
    """Claim up to ``chunk`` of the ``total`` programs or groups. Give the first and the one past the last; the first is not less
    where there are none. ``in_order``: the launch has one share."""
    if in_order:
        return _in_place(builder, launch, total, chunk)
    alone, shared, both = map(builder.function.append_basic_block, ("alone", "shared", "claimed"))
    address = builder.load(word(builder, launch, CLAIMS), typ=I64, align=8)
    builder.cbranch(builder.icmp_unsigned("==", address, ir.Constant(I64, 0)), alone, shared).set_weights([99, 1])
    builder.position_at_end(alone)
    ranges = [(_in_place(builder, launch, total, chunk), alone)]
    builder.branch(both)
    builder.position_at_end(shared)
    found = builder.call(builder.inttoptr(address, _FUNCTION.as_pointer()), [launch, thread, total, chunk])
    ranges.append(((builder.extract_value(found, 0), builder.extract_value(found, 1)), shared))
    builder.branch(both)
    builder.position_at_end(both)
    first, end = builder.phi(I64), builder.phi(I64)
    for (begin, last), block in ranges:
        first.add_incoming(begin, block)
        end.add_incoming(last, block)
    return first, end


def _in_place(builder: ir.IRBuilder, launch: ir.Value, total: ir.Value, chunk: ir.Value) -> tuple[ir.Value, ir.Value]:
    first = builder.atomic_rmw("add", word(builder, launch, NEXT), chunk, "monotonic")
    return first, intrinsic(builder, "smin", [builder.add(first, chunk), total])
