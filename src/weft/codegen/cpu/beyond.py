"""Updates of an array that the thread may have a copy of (`weft.codegen.cpu.copies`), by addresses that may be beyond the copy.

A program's addresses are those of the copy, as if all that is around the array were copied, too. A comparison says whether an
address is in the copy, and what is not is updated where it belongs. So a kernel that updates what is not its array's does the
same as without copies.
"""

from __future__ import annotations

from typing import NamedTuple

from llvmlite import ir

from weft.codegen.emit.faults import word
from weft.codegen.llvm.types import I8, I64, all_lanes, broadcast, lanes_of


class Beyond(NamedTuple):
    """Whether the thread has ``copied`` the array of an argument. If so, the copy is ``size`` bytes from ``low`` on. ``own`` and
    ``launched`` are the addresses of the slots that hold what the argument is to the program, and to the launch."""

    copied: ir.Value
    low: ir.Value
    size: ir.Value
    own: ir.Value
    launched: ir.Value

    def holds(self, builder: ir.IRBuilder, addresses: ir.Value, size: int, mask: ir.Value | None = None) -> ir.Value:
        """Whether elements of ``size`` bytes are all in the copy that the thread has, except those whose mask is false."""
        lanes, low, last = lanes_of(addresses), self.low, builder.sub(self.size, ir.Constant(I64, size))
        low, last = (each if lanes is None else broadcast(builder, each, lanes) for each in (low, last))
        inside = builder.icmp_unsigned("<=", builder.sub(addresses, low), last)
        if mask is not None:
            inside = builder.or_(inside, builder.not_(mask))
        return inside if lanes is None else all_lanes(builder, inside)

    def in_array(self, builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
        """Where the array has what the program knows by an address, a pointer; the address itself where nothing is copied."""
        array, own = (builder.load(at, typ=I64, align=8) for at in (self.launched, self.own))
        return builder.gep(address, [builder.sub(array, own)], source_etype=I8)


def beyond(
    builder: ir.IRBuilder, copied: ir.Value, slots: ir.Value, launched: ir.Value, slot: int, bounds: tuple[int, int]
) -> Beyond:
    """What a program knows of argument ``slot``, whose bounds are in the slots ``bounds``: of ``slots``, which are the program's;
    ``launched`` are those of the launch."""
    low, high = (builder.load(word(builder, slots, i), typ=I64, align=8) for i in bounds)
    return Beyond(copied, low, builder.sub(high, low), word(builder, slots, slot), word(builder, launched, slot))
