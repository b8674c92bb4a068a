"""Accesses that other programs watch, one element at a time: LLVM's atomics, volatile loads and fences.

The words of the memory model (`weft.ir.memory`) become LLVM's orderings. Scopes are dropped: all threads of a CPU share one
memory, so every access has the widest. Values have the type of memory (`weft.codegen.llvm.types.storage_type`).
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from weft.codegen.llvm import arith, volatile
from weft.dtypes import DType

ORDERING: Final = {"relaxed": "monotonic", "acquire": "acquire", "release": "release", "acq_rel": "acq_rel"}
"""LLVM's names of the orders."""

_ORDERING_OF_FAILURE: Final = {**ORDERING, "release": "monotonic", "acq_rel": "acquire"}
"""A compare-and-swap that finds another value has only read, so it has nothing to release."""

BLOCK: Final = 16
"""The most bytes that are compared and swapped at once."""

_SIGNED: Final = {"min": "min", "max": "max"}
_UNSIGNED: Final = {"min": "umin", "max": "umax"}


class _VolatileLoad(ir.LoadAtomicInstr):
    """An atomic load that prints as ``load atomic volatile``."""

    def descr(self, buf: list[str]) -> None:
        """Append the instruction's text to ``buf``."""
        text: list[str] = []
        super().descr(text)
        buf.append("".join(text).replace("load atomic ", "load atomic volatile ", 1))


class _ReleaseStore(ir.StoreInstr):
    """A store that prints as an atomic one with release order; llvmlite's own takes no opaque pointers."""

    def descr(self, buf: list[str]) -> None:
        """Append the instruction's text to ``buf``."""
        text: list[str] = []
        super().descr(text)
        buf.append("".join(text).replace("store ", "store atomic ", 1).replace(", align ", " release, align ", 1))


def volatile_load(builder: ir.IRBuilder, address: ir.Value, type_: ir.Type, size: int) -> ir.Value:
    """Load an element each time this is executed; what follows in the program stays behind it.

    `weft.codegen.llvm.volatile` has the load that orders nothing.
    """
    load = builder.load_atomic(address, "acquire", size, typ=type_)
    load.__class__ = _VolatileLoad  # the builder takes no class of its own
    return load


def release_store(builder: ir.IRBuilder, value: ir.Value, address: ir.Value, size: int) -> None:
    """Store an element after all that the program did before."""
    store = builder.store(value, address, align=size)
    store.__class__ = _ReleaseStore


def barrier(builder: ir.IRBuilder) -> None:
    """Keeps what stands before from what stands behind. x86 needs no instruction for it."""
    builder.fence("acq_rel")


def swap_if_equal(builder: ir.IRBuilder, sem: str, address: ir.Value, expected: ir.Value, value: ir.Value) -> ir.Value:
    """Compare-and-swap of an element's bits; gives what was there before."""
    bits = _bits(value)
    old, new = (builder.bitcast(v, bits) for v in (expected, value))
    pair = builder.cmpxchg(address, old, new, ORDERING[sem], _ORDERING_OF_FAILURE[sem])
    return builder.bitcast(builder.extract_value(pair, 0), value.type)


def read_modify_write(
    builder: ir.IRBuilder, kind: str, dtype: DType, sem: str, address: ir.Value, value: ir.Value
) -> ir.Value:
    """``kind`` at one address: an instruction, or a compare-and-swap loop for arithmetic on floats; gives the old value."""
    if kind == "xchg":
        old = builder.atomic_rmw(kind, address, builder.bitcast(value, _bits(value)), ORDERING[sem])
        return builder.bitcast(old, value.type)
    if not dtype.is_float:
        names = _SIGNED if dtype.signed else _UNSIGNED
        return builder.atomic_rmw(names.get(kind, kind), address, value, ORDERING[sem])
    initial = builder.load_atomic(address, "monotonic", dtype.itemsize, typ=_bits(value))
    return _swap(builder, kind, dtype, sem, address, value, initial)


def modify_block(builder: ir.IRBuilder, kind: str, dtype: DType, sem: str, address: ir.Value, value: ir.Value) -> None:
    """``kind`` of a vector of `BLOCK` bytes at an address that these divide: all elements at once, by a compare-and-swap loop."""
    initial = builder.bitcast(volatile.volatile_load(builder, address, value.type, BLOCK), ir.IntType(8 * BLOCK))
    _swap(builder, kind, dtype, sem, address, value, initial)


def _swap(
    builder: ir.IRBuilder, kind: str, dtype: DType, sem: str, address: ir.Value, value: ir.Value, initial: ir.Value
) -> ir.Value:
    """Compares and swaps until memory had what was combined, at first the bits ``initial``; gives the old value."""
    bits = initial.type
    before = builder.block
    again, done = builder.append_basic_block("again"), builder.append_basic_block("updated")
    builder.branch(again)
    builder.position_at_end(again)
    expected = builder.phi(bits)
    expected.add_incoming(initial, before)
    old = builder.bitcast(expected, value.type)
    new = builder.bitcast(arith.binary(builder, kind, dtype, old, value), bits)
    pair = builder.cmpxchg(address, expected, new, ORDERING[sem], "monotonic")
    expected.add_incoming(builder.extract_value(pair, 0), builder.block)
    builder.cbranch(builder.extract_value(pair, 1), done, again)
    builder.position_at_end(done)
    return old


def _bits(value: ir.Value) -> ir.IntType:
    """The integer type of a value's width."""
    if isinstance(value.type, ir.IntType):
        return value.type
    return ir.IntType(64 if isinstance(value.type, ir.DoubleType) else 32)
