"""Register indices as affine functions over F2 of loop counters.

Inside a register loop the index of the current register is known only at run time, but every value the loop touches wants *its*
register, which is a linear function of it: a broadcast drops bits, a permutation moves them. A `RegisterIndex` is that
function, kept symbolic: a constant and, for each enclosing register loop, the image of each bit of its counter.
Mapping it through a layout costs a few Python XORs; equal registers have equal indices, so a value is
computed once per iteration however many ways lead to it; and an index that does not depend on a loop says so.

    counter bits (b1 b0), columns (4, 1), const 2   ->   register 2 ^ (4 if b1) ^ (1 if b0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir

from weft.codegen.llvm.types import I64
from weft.layout.algebra import f2


class Counter:
    """The counter of one emitted loop: an i64 with ``bits`` significant bits, starting at 0."""

    def __init__(self, value: ir.Value, bits: int):
        self.value = value
        self.bits = bits


class RegisterIndex(NamedTuple):
    """``const ^ sum of columns[j] over the set bits j of each counter``."""

    const: int = 0
    terms: tuple[tuple[Counter, tuple[int, ...]], ...] = ()

    def through(self, columns: Sequence[int]) -> RegisterIndex:
        """The index after a linear map given by its columns (missing ones are zero)."""
        terms: list[tuple[Counter, tuple[int, ...]]] = []
        for counter, images in self.terms:
            mapped = tuple(f2.apply(columns, image) for image in images)
            if any(mapped):
                terms.append((counter, mapped))
        return RegisterIndex(f2.apply(columns, self.const), tuple(terms))

    def within(self, used: int) -> RegisterIndex:
        """The index with the bits of ``used`` alone."""
        terms = [(counter, tuple([image & used for image in images])) for counter, images in self.terms]
        return RegisterIndex(self.const & used, tuple([term for term in terms if any(term[1])]))

    def emit(self, builder: ir.IRBuilder) -> tuple[ir.Value | None, int]:
        """The index as (run-time part or None, constant part), to be added: their set bits do not meet."""
        used = 0
        dynamic: ir.Value | None = None
        for counter, images in self.terms:
            for start, length, place in runs(images):
                part = counter.value
                shift = place - start
                if (start, length) != (0, counter.bits):
                    part = builder.and_(part, ir.Constant(I64, ((1 << length) - 1) << start))
                if shift > 0:
                    part = builder.shl(part, ir.Constant(I64, shift))
                elif shift < 0:
                    part = builder.lshr(part, ir.Constant(I64, -shift))
                mask = ((1 << length) - 1) << place
                assert not used & mask, f"register index with overlapping bits: {self}"
                used |= mask
                dynamic = part if dynamic is None else builder.add(dynamic, part)
        if dynamic is None or not used & self.const:
            return dynamic, self.const
        return builder.xor(dynamic, ir.Constant(I64, used & self.const)), self.const & ~used

    def value(self, builder: ir.IRBuilder) -> ir.Value:
        """The index as one i64."""
        dynamic, const = self.emit(builder)
        if dynamic is None:
            return ir.Constant(I64, const)
        return builder.add(dynamic, ir.Constant(I64, const)) if const else dynamic


def runs(images: Sequence[int]) -> list[tuple[int, int, int]]:
    """Maximal runs (first bit, length, first bit of the image) of bits whose images are consecutive powers of two; zero images
    are skipped."""
    found: list[tuple[int, int, int]] = []
    j = 0
    while j < len(images):
        image = images[j]
        if image == 0:
            j += 1
            continue
        assert not image & (image - 1), f"register index column {image:#b} has several bits"
        length = 1
        while j + length < len(images) and images[j + length] == image << length:
            length += 1
        found.append((j, length, image.bit_length() - 1))
        j += length
    return found
