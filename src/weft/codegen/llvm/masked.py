"""Masked loads and stores, and gathers and scatters under a mask, on machines with and without instructions for them.

LLVM gives each lane a branch where the machine has no instruction for the size of the elements. A mask without a pattern then
costs a misprediction every other lane. Here such lanes are *diverted*, without branches: where the mask is false, the lane stores
to a place on the stack, or loads its fill from there. To blend and write back whole vectors would be faster, and wrong: another
thread may write the elements that are masked off.

LLVM's backend for AVX2 takes a mask that it knows to be false for one that is true (LLVM 22.1): it reads what is masked off, or
stops at an assertion. So there each register is a load of its own, whose mask goes through an empty piece of assembly. LLVM knows
nothing of what comes out, and it costs no instruction. Loads for AVX-512 are right. Its backend for AVX-512 makes a store of one
lane, which it knows, a scalar store of the element before it was truncated (LLVM 22.1): it writes beside the element. So there
masks of stores of what may have been truncated go through assembly, in the register of masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from llvmlite import ir

from weft.codegen.llvm.branches import where
from weft.codegen.llvm.prefixes import element_bytes, load_prefix, store_prefix
from weft.codegen.llvm.types import (
    I1,
    I8,
    I32,
    I64,
    POINTER,
    Module,
    any_lane,
    has,
    inlined,
    intrinsic,
    lanes_of,
    scalar_type,
    shuffle,
    splat,
    unknown,
)

_AVX2_BITS: Final = 256
"""A SIMD register of AVX and AVX2, which no other machine has."""

_LEAST_BITS: Final = 128
"""A SIMD register of SSE. A narrower vector cannot go through assembly; LLVM widens it, and its mask, rightly."""


_WHOLE_ELEMENT: Final = 8
"""The bytes of an element that is not truncated from a wider one."""

_MASK_REGISTERS: Final = (8, 16, 32, 64)
"""The lanes that a register of masks may have."""


def has_masked(builder: ir.IRBuilder, size: int) -> bool:
    """Whether the target loads and stores elements of ``size`` bytes under a mask in one instruction."""
    return isinstance(builder.module, Module) and size in builder.module.masked_sizes


def masked_load(
    builder: ir.IRBuilder,
    address: ir.Value,
    mask: ir.Value,
    fill: ir.Value,
    size: int,
    register_bits: int,
    *,
    prefix: bool = False,
    mapped: ir.Value | None = None,
) -> ir.Value:
    """The elements from ``address`` on where ``mask`` is true, those of ``fill`` elsewhere.

    ``size`` is that of an element in bytes, and the alignment; ``register_bits`` that of a SIMD register. ``prefix``: the first
    lanes of the mask are true, the others false, and there is one that is false. ``mapped``: the address of memory of that size
    that may be read. An instruction whose lanes are all masked off reads it: one that reaches a page that is not mapped takes
    hundreds of cycles to find that it needs nothing of it.
    """
    if not has_masked(builder, size):
        name, body = ("load.prefix", _prefix_load) if prefix else ("load.masked", _diverted_load)
        return inlined(builder, name, [address, mask, fill], fill.type, body)
    lanes = lanes_of(mask) or 1
    step = min(lanes, register_bits // (8 * size))
    if register_bits != _AVX2_BITS or 8 * size * step < _LEAST_BITS:
        return _load(builder, address, mask, fill, size, mapped)
    parts: list[ir.Value] = []
    # As wide as the elements before it is cut: LLVM keeps a mask of two registers in one, and takes five instructions to part it.
    wide = builder.sext(mask, ir.VectorType(ir.IntType(8 * size), lanes))
    for start in range(0, lanes, step):
        at = range(start, start + step)
        active = _unknown(builder, shuffle(builder, wide, at))
        place = builder.gep(address, [ir.Constant(I64, start * size)], source_etype=I8) if start else address
        parts.append(_load(builder, place, active, shuffle(builder, fill, at), size, mapped))
    return concatenated(builder, parts)


def masked_store(
    builder: ir.IRBuilder, value: ir.Value, address: ir.Value, mask: ir.Value, size: int, *, prefix: bool = False
) -> None:
    """Stores the elements of ``value`` where ``mask`` is true from ``address`` on; ``size``, ``prefix`` as for `masked_load`."""
    if not has_masked(builder, size):
        name, body = ("store.prefix", _prefix_store) if prefix else ("store.masked", _diverted_store)
        inlined(builder, name, [value, address, mask], ir.VoidType(), body)
        return
    if has(builder, "mask_registers") and size < _WHOLE_ELEMENT:
        mask = _unknown_register(builder, mask)
    operands = [value, address, ir.Constant(I32, size), mask]
    intrinsic(builder, "masked.store", operands, ir.VoidType(), [value.type, POINTER])


def masked_gather(builder: ir.IRBuilder, pointers: ir.Value, mask: ir.Value, fill: ir.Value, size: int) -> ir.Value:
    """What each lane's pointer points at where ``mask`` is true, the element of ``fill`` elsewhere."""
    if _scattered(builder, mask, size):
        return inlined(builder, "gather.masked", [pointers, mask, fill], fill.type, _diverted_gather)
    operands = [pointers, ir.Constant(I32, size), mask, fill]
    return intrinsic(builder, "masked.gather", operands, fill.type, [fill.type, pointers.type])


def masked_scatter(builder: ir.IRBuilder, value: ir.Value, pointers: ir.Value, mask: ir.Value, size: int) -> None:
    """Stores each element of ``value`` through its lane's pointer where ``mask`` is true, in the order of the lanes."""
    if _scattered(builder, mask, size):
        inlined(builder, "scatter.masked", [value, pointers, mask], ir.VoidType(), _diverted_scatter)
        return
    operands = [value, pointers, ir.Constant(I32, size), mask]
    intrinsic(builder, "masked.scatter", operands, ir.VoidType(), [value.type, pointers.type])


def gathers(builder: ir.IRBuilder, size: int) -> bool:
    """Whether the target gathers and scatters elements of ``size`` bytes in one instruction."""
    return isinstance(builder.module, Module) and size in builder.module.gathered_sizes


def stores_some(builder: ir.IRBuilder, size: int) -> bool:
    """Whether `store_some` takes an instruction that is as fast as a plain store: those of AVX-512. AVX's take several times as
    long on some machines."""
    return has(builder, "mask_registers") and has_masked(builder, size)


def store_some(builder: ir.IRBuilder, value: ir.Value, address: ir.Value, active: Sequence[bool], size: int) -> None:
    """Stores those elements of ``value`` that are ``active``, from ``address`` on."""
    if sum(active) == 1:  # not by a mask, which LLVM would know (see the module)
        lane = active.index(True)
        place = builder.gep(address, [ir.Constant(I64, lane * size)], source_etype=I8)
        builder.store(builder.extract_element(value, ir.Constant(I32, lane)), place, align=size)
        return
    mask = ir.Constant(ir.VectorType(I1, len(active)), [ir.Constant(I1, int(each)) for each in active])
    intrinsic(
        builder, "masked.store", [value, address, ir.Constant(I32, size), mask], ir.VoidType(), [value.type, POINTER]
    )


def _scattered(builder: ir.IRBuilder, mask: ir.Value, size: int) -> bool:
    """Whether lanes that the mask decides upon when the kernel runs are accessed one by one. LLVM needs no branches for a
    constant mask."""
    return not gathers(builder, size) and not isinstance(mask, ir.Constant)


# Lanes one by one. A vector whose lanes are all masked off, as they often are behind the end of an array, is skipped.


def _diverted_load(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> ir.Value:
    address, mask, fill = operands
    return _unless_none(builder, mask, fill, lambda: _loaded(builder, _consecutive(builder, address, fill), mask, fill))


def _prefix_load(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> ir.Value:
    address, mask, fill = operands

    def loaded() -> ir.Value:
        first = load_prefix(builder, address, mask, fill.type)
        return builder.select(mask, first, fill)

    return _unless_none(builder, mask, fill, loaded)


def _diverted_gather(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> ir.Value:
    pointers, mask, fill = operands
    return _unless_none(builder, mask, fill, lambda: _loaded(builder, _each(builder, pointers), mask, fill))


def _diverted_store(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> None:
    value, address, mask = operands
    with builder.if_then(any_lane(builder, mask)):
        _stored(builder, value, _consecutive(builder, address, value), mask)


def _prefix_store(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> None:
    value, address, mask = operands
    with builder.if_then(any_lane(builder, mask)):
        store_prefix(builder, value, address, mask)


def _diverted_scatter(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> None:
    value, pointers, mask = operands
    with builder.if_then(any_lane(builder, mask)):
        _stored(builder, value, _each(builder, pointers), mask)


def _unless_none(builder: ir.IRBuilder, mask: ir.Value, otherwise: ir.Value, then: Callable[[], ir.Value]) -> ir.Value:
    """What ``then`` gives where any lane of the mask is true."""
    return where(builder, any_lane(builder, mask), then, otherwise)


def _loaded(builder: ir.IRBuilder, places: Sequence[ir.Value], mask: ir.Value, fill: ir.Value) -> ir.Value:
    """The element at each lane's place; where the mask is false that of ``fill``, which is copied to the stack."""
    element = scalar_type(fill)
    spilled = _on_stack(builder, fill.type)
    builder.store(fill, spilled)
    result = fill
    for lane, (place, other, active) in enumerate(
        zip(places, _consecutive(builder, spilled, fill), lane_bits(builder, mask), strict=True)
    ):
        loaded = builder.load(either(builder, active, place, other), typ=element, align=element_bytes(element))
        result = builder.insert_element(result, loaded, ir.Constant(I32, lane))
    return result


def _stored(builder: ir.IRBuilder, value: ir.Value, places: Sequence[ir.Value], mask: ir.Value) -> None:
    """Each element to its lane's place, or where the mask is false to a place of no use."""
    element = scalar_type(value)
    unused = _on_stack(builder, element)
    for lane, (place, active) in enumerate(zip(places, lane_bits(builder, mask), strict=True)):
        one = builder.extract_element(value, ir.Constant(I32, lane))
        builder.store(one, either(builder, active, place, unused), align=element_bytes(element))


def _on_stack(builder: ir.IRBuilder, type_: ir.Type) -> ir.Value:
    """The address of a place on the stack."""
    with builder.goto_entry_block():
        place = builder.alloca(type_)
    return unknown_place(builder, place)


def unknown_place(builder: ir.IRBuilder, place: ir.Value) -> ir.Value:
    """An address on the stack, which goes through an empty piece of assembly: LLVM makes branches of a choice between addresses
    where it knows that one is on the stack."""
    return builder.asm(ir.FunctionType(POINTER, [POINTER]), "", "=r,0", [place], False)


def either(builder: ir.IRBuilder, condition: ir.Value, place: ir.Value, other: ir.Value) -> ir.Value:
    """The address ``condition ? place : other``, marked so that it does not become a branch (LLVM Language Reference,
    "unpredictable"). For AArch64 LLVM's optimiser of choices in loops ignores the mark. There it is ``other`` and the difference
    where 64 equal bits are set, which go through an empty piece of assembly, so that LLVM does not see the choice."""
    if has(builder, "arm"):
        bits = builder.neg(builder.zext(condition, I64))
        every = unknown(builder, bits, "r")
        here, there = (builder.ptrtoint(address, I64) for address in (place, other))
        return builder.inttoptr(builder.add(there, builder.and_(builder.sub(here, there), every)), POINTER)
    chosen = builder.select(condition, place, other)
    chosen.set_metadata("unpredictable", builder.module.add_metadata([]))
    return chosen


def lane_bits(builder: ir.IRBuilder, mask: ir.Value) -> list[ir.Value]:
    """Each lane of a mask, from an integer: that takes fewer instructions than to extract them from a vector."""
    lanes = lanes_of(mask) or 1
    bits = ir.IntType(lanes)
    word = builder.bitcast(mask, bits)
    each = (builder.and_(word, ir.Constant(bits, 1 << lane)) for lane in range(lanes))
    return [builder.icmp_unsigned("!=", bit, ir.Constant(bits, 0)) for bit in each]


def _consecutive(builder: ir.IRBuilder, address: ir.Value, vector: ir.Value) -> list[ir.Value]:
    """The addresses of a vector's elements in memory."""
    at = (ir.Constant(I64, lane) for lane in range(lanes_of(vector) or 1))
    return [builder.gep(address, [lane], source_etype=scalar_type(vector)) for lane in at]


def _each(builder: ir.IRBuilder, pointers: ir.Value) -> list[ir.Value]:
    """The pointer of each lane."""
    return [builder.extract_element(pointers, ir.Constant(I32, lane)) for lane in range(lanes_of(pointers) or 1)]


# Whole vectors.


def _load(
    builder: ir.IRBuilder, address: ir.Value, mask: ir.Value, fill: ir.Value, size: int, mapped: ir.Value | None
) -> ir.Value:
    if mapped is not None:
        address = builder.select(any_lane(builder, mask), address, mapped)
    operands = [address, ir.Constant(I32, size), mask, fill]
    return intrinsic(builder, "masked.load", operands, fill.type, [fill.type, POINTER])


def _unknown(builder: ir.IRBuilder, wide: ir.Value) -> ir.Value:
    """The mask, as LLVM knows nothing of it; ``wide`` has all bits of each lane that is true."""
    return builder.icmp_signed("<", unknown(builder, wide, "x"), splat(0, wide.type))


def _unknown_register(builder: ir.IRBuilder, mask: ir.Value) -> ir.Value:
    """The mask, which is in a register of AVX-512's masks, as LLVM knows nothing of it."""
    lanes = lanes_of(mask) or 1
    wide = next((size for size in _MASK_REGISTERS if size >= lanes), lanes)
    most = min(wide, _MASK_REGISTERS[-1])
    parts: list[ir.Value] = []
    for start in range(0, wide, most):
        at = [min(start + lane, lanes) for lane in range(most)]  # those from ``lanes`` on are false
        part = mask if wide == lanes == most else shuffle(builder, mask, at, ir.Constant(mask.type, None))
        same = unknown(builder, builder.bitcast(part, ir.IntType(most)), "k")
        parts.append(builder.bitcast(same, part.type))
    return shuffle(builder, concatenated(builder, parts), range(lanes))


def concatenated(builder: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """The lanes of all parts, a power of two of them, in one vector."""
    while len(parts) > 1:
        lanes = range(2 * (lanes_of(parts[0]) or 1))
        parts = [shuffle(builder, low, lanes, high) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
