"""Loads and stores of one element."""

from __future__ import annotations

from contextlib import nullcontext

from llvmlite import ir

from weft.codegen.cpu.bounds import check_scalar
from weft.codegen.cpu.values import Registers
from weft.codegen.emit.element import Element
from weft.codegen.llvm import atomics
from weft.codegen.llvm.branches import where
from weft.codegen.llvm.types import POINTER
from weft.ir import tile
from weft.ir.types import dtype_of


def load_scalar(registers: Registers, op: tile.LoadOp) -> ir.Value:
    """A load through one pointer."""
    element = Element(dtype_of(op.result))
    mask = None if op.mask is None else registers.scalar(op.mask)
    check_scalar(registers, op, mask)
    other = None if op.other is None else registers.scalar(op.other)
    return load_one(
        registers.builder, element, registers.scalar(op.pointer), mask, other, volatile=op.volatile is not None
    )


def load_one(
    builder: ir.IRBuilder,
    element: Element,
    address: ir.Value,
    mask: ir.Value | None,
    other: ir.Value | None,
    *,
    volatile: bool = False,
) -> ir.Value:
    """One element; also of a tile that has no other, since LLVM's passes fail on vectors of one lane."""

    def load() -> ir.Value:
        place, type_ = builder.inttoptr(address, POINTER), element.storage_type(None)
        if volatile:
            value = atomics.volatile_load(builder, place, type_, element.size)
        else:
            value = builder.load(place, typ=type_, align=element.size)
        return element.from_storage(builder, value)

    return where(builder, mask, load, ir.Constant(element.register_type(None), None) if other is None else other)


def store_scalar(registers: Registers, op: tile.StoreOp) -> None:
    """A store through one pointer."""
    element = Element(dtype_of(op.value))
    mask = None if op.mask is None else registers.scalar(op.mask)
    check_scalar(registers, op, mask)
    value = element.to_storage(registers.builder, registers.scalar(op.value))
    store_one(registers.builder, element, registers.scalar(op.pointer), value, mask, release=op.release is not None)


def store_one(
    builder: ir.IRBuilder,
    element: Element,
    address: ir.Value,
    value: ir.Value,
    mask: ir.Value | None,
    *,
    release: bool = False,
) -> None:
    with nullcontext() if mask is None else builder.if_then(mask):
        place = builder.inttoptr(address, POINTER)
        if release:
            atomics.release_store(builder, value, place, element.size)
        else:
            builder.store(value, place, align=element.size)
