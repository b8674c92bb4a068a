"""Running through the registers of a layout: which are unrolled, which loop, in which order.

The registers along the axis of the loop's reductions are innermost, so that a result is complete each time they have run through.
The lowest of them are unrolled; tiles of a few registers are unrolled completely. A body of many values is unrolled less, or not
at all: LLVM's time grows faster than the length of a basic block, and a long body hides its latencies without copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from llvmlite import ir

from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.views import used_registers
from weft.codegen.emit.context import Emit
from weft.codegen.llvm.types import I64
from weft.layout import LinearLayout
from weft.layout.algebra import f2

UNROLL_BITS = 2
"""Register loops are unrolled this many times, as a power of two."""

FULL_UNROLL_BITS = 3
"""Tiles of up to this many registers, as a power of two, get no loop at all."""

UNROLL_BUDGET = 1024
"""The most values, over all unrolled copies of a body together, that unrolling may bring into one basic block."""


class Along(Protocol):
    """What goes along an axis while the registers are visited: a reduction."""

    def start(self, copies: int, *, looped: bool) -> None:
        """Before the first register of the axis; ``copies`` of the body are unrolled, in a loop if ``looped``."""
        ...

    def finish(self, index: RegisterIndex) -> None:
        """After the last, with the index of the other registers."""
        ...


Body = Callable[[RegisterIndex, int, ir.Value | None], None]
"""What to emit for one register: its index, which unrolled copy it is, and in a loop whether it is the first iteration."""


def is_small(layout: LinearLayout) -> bool:
    """Whether the layout's registers are unrolled completely."""
    return used_registers(layout).bit_count() <= FULL_UNROLL_BITS


def axis_registers(layout: LinearLayout, axis: int | None) -> int:
    """The mask of register bits that move along ``axis``; of all different ones for None."""
    if axis is None:
        return used_registers(layout)
    low = 1
    for size in layout.shape[axis + 1 :]:
        low *= size
    along = (layout.shape[axis] - 1) * low
    return sum(1 << j for j, column in enumerate(layout.columns("register")) if column & along)


def last_register(layout: LinearLayout) -> RegisterIndex:
    """The register that holds the tile's last element (in its last lane)."""
    return RegisterIndex(used_registers(layout))


def over_registers(
    emit: Emit, layout: LinearLayout, axis: int | None, reductions: Sequence[Along], values: int, body: Body
) -> None:
    """Runs ``body``, which computes up to ``values`` registers, for every different register; starts and finishes
    ``reductions`` along ``axis``."""
    used, inner = used_registers(layout), axis_registers(layout, axis)
    inner_bits = [1 << j for j in range(used.bit_length()) if inner >> j & 1]
    outer_bits = [1 << j for j in range(used.bit_length()) if (used & ~inner) >> j & 1]
    allowed = max(UNROLL_BUDGET // max(values, 1), 1).bit_length() - 1
    small = is_small(layout) and used.bit_count() <= allowed
    unroll = min(len(inner_bits) if small else UNROLL_BITS, len(inner_bits), allowed)
    low, high = inner_bits[:unroll], inner_bits[unroll:]

    def copies(index: RegisterIndex, first: ir.Value | None) -> None:
        for copy in range(1 << unroll):
            body(RegisterIndex(index.const ^ f2.apply(low, copy), index.terms), copy, first)

    def run_inner(outer: RegisterIndex) -> None:
        for reduction in reductions:
            reduction.start(1 << unroll, looped=bool(high))
        with emit.scope():
            if not high:
                copies(outer, None)
            else:
                with emit.loop(1 << len(high)) as position:
                    first = emit.builder.icmp_unsigned("==", position, ir.Constant(I64, 0)) if reductions else None
                    counter = Counter(position, len(high))
                    copies(RegisterIndex(outer.const, (*outer.terms, (counter, tuple(high)))), first)
        for reduction in reductions:
            reduction.finish(outer)

    if not outer_bits:
        run_inner(RegisterIndex())
    elif small:
        for at in range(1 << len(outer_bits)):
            run_inner(RegisterIndex(f2.apply(outer_bits, at)))
    else:
        with emit.loop(1 << len(outer_bits)) as position:
            run_inner(RegisterIndex(0, ((Counter(position, len(outer_bits)), tuple(outer_bits)),)))
