"""Loads and stores of the first elements of a vector, on machines without masked ones for their size.

``offsets < n`` is true for the first lanes of a vector and false for the others. Their number k is a sum of powers of two, so
they are accessed by halves: with k's highest bit the first half is accessed as a whole, and the rest is the second half; without
it the rest is the first half. No element behind the first k is touched.

For 16 lanes these are four branches. The rows of an array end at one place, so that processors predict them; to choose addresses
without branches took longer (`weft.codegen.llvm.masked` does so for other masks, which nothing predicts).

A part of a vector is a vector of words of 64 bits, or one integer where it is no longer than that: shifts take its halves apart.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.llvm.types import F64, I1, I8, I64, POINTER, lanes_of, shuffle

_WORD = 8
"""Bytes of the longest part that is one integer."""


def element_bytes(type_: ir.Type) -> int:
    """The size of an element of a vector, an integer or a float."""
    element = type_.element if isinstance(type_, ir.VectorType) else type_
    if isinstance(element, ir.IntType):
        return element.width // 8
    return 8 if element == F64 else 4


def load_prefix(builder: ir.IRBuilder, address: ir.Value, mask: ir.Value, type_: ir.Type) -> ir.Value:
    """A vector of ``type_`` with the first elements of memory, as many as the mask has true ones; numbers of no meaning in the
    other lanes. At least one lane is masked off."""
    lanes, size = lanes_of(mask) or 1, element_bytes(type_)
    return builder.bitcast(_load(builder, address, _count(builder, mask), lanes, size), type_)


def _load(builder: ir.IRBuilder, address: ir.Value, left: ir.Value, lanes: int, size: int) -> ir.Value:
    """The part of ``lanes`` elements of ``size`` bytes, of which fewer are ``left``."""
    half = lanes // 2
    part = _part(half * size)
    before = builder.block
    with builder.if_then(_bit(builder, left, half)):
        loaded = builder.load(address, typ=part, align=size)
        behind = builder.gep(address, [ir.Constant(I64, half * size)], source_etype=I8)
        inside = builder.block
    first, start = builder.phi(part), builder.phi(POINTER)
    for phi, there, elsewhere in ((first, loaded, ir.Constant(part, None)), (start, behind, address)):
        phi.add_incoming(there, inside)
        phi.add_incoming(elsewhere, before)
    if half == 1:
        return _joined(builder, first, first, size)
    rest = _load(builder, start, left, half, size)
    full = _bit(builder, left, half)
    return _joined(builder, builder.select(full, first, rest), rest, half * size)


def store_prefix(builder: ir.IRBuilder, value: ir.Value, address: ir.Value, mask: ir.Value) -> None:
    """Stores the first elements of a vector; the mask as in `load_prefix`."""
    half, size = lanes_of(mask) or 1, element_bytes(value.type)
    left, rest = _count(builder, mask), builder.bitcast(value, _part(half * size))
    while half > 1:
        half //= 2
        first, second = _halves(builder, rest, half * size)
        before = builder.block
        with builder.if_then(_bit(builder, left, half)):
            builder.store(first, address, align=size)
            behind = builder.gep(address, [ir.Constant(I64, half * size)], source_etype=I8)
            inside = builder.block
        rest, start = builder.phi(first.type), builder.phi(POINTER)
        for phi, there, elsewhere in ((rest, second, first), (start, behind, address)):
            phi.add_incoming(there, inside)
            phi.add_incoming(elsewhere, before)
        address = start


def _count(builder: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    """How many lanes are true before the first that is false; there is one."""
    word = ir.IntType(lanes_of(mask) or 1)
    zeros = builder.not_(builder.bitcast(mask, word))
    return builder.cttz(builder.zext(zeros, I64), ir.Constant(I1, 1))


def _bit(builder: ir.IRBuilder, left: ir.Value, lanes: int) -> ir.Value:
    """Whether so many lanes, a power of two, are a term of the sum that is left."""
    return builder.icmp_unsigned("!=", builder.and_(left, ir.Constant(left.type, lanes)), ir.Constant(left.type, 0))


# Parts.


def _part(size: int) -> ir.Type:
    """The type of a part of so many bytes."""
    return ir.IntType(8 * size) if size <= _WORD else ir.VectorType(I64, size // _WORD)


def _halves(builder: ir.IRBuilder, part: ir.Value, size: int) -> tuple[ir.Value, ir.Value]:
    """Both halves of a part, of so many bytes each."""
    if size < _WORD:
        second = builder.lshr(part, ir.Constant(part.type, 8 * size))
        return builder.trunc(part, _part(size)), builder.trunc(second, _part(size))
    if size == _WORD:
        return builder.extract_element(part, ir.Constant(I64, 0)), builder.extract_element(part, ir.Constant(I64, 1))
    words = size // _WORD
    return shuffle(builder, part, range(words)), shuffle(builder, part, range(words, 2 * words))


def _joined(builder: ir.IRBuilder, first: ir.Value, second: ir.Value, size: int) -> ir.Value:
    """A part of two halves, of so many bytes each."""
    whole = _part(2 * size)
    if size < _WORD:
        low, high = builder.zext(first, whole), builder.zext(second, whole)
        return builder.or_(low, builder.shl(high, ir.Constant(whole, 8 * size)))
    if size == _WORD:
        low = builder.insert_element(ir.Constant(whole, ir.Undefined), first, ir.Constant(I64, 0))
        return builder.insert_element(low, second, ir.Constant(I64, 1))
    return shuffle(builder, first, range(2 * size // _WORD), second)
