"""Volatile loads and stores, which llvmlite's builder does not offer.

LLVM neither merges, moves nor removes a volatile access, and it still moves ordinary accesses across it. An atomic load would
order the accesses around it, so that loads of invariant memory stay inside loops. An ordinary store LLVM may replace by a masked
one.
"""

from __future__ import annotations

from llvmlite import ir


class VolatileLoad(ir.LoadInstr):
    """A load instruction that prints as ``load volatile``."""

    def descr(self, buf: list[str]) -> None:
        """Append the instruction's text to ``buf``."""
        plain: list[str] = []
        super().descr(plain)
        buf.append("".join(plain).replace("load ", "load volatile ", 1))


def volatile_load(builder: ir.IRBuilder, pointer: ir.Value, type_: ir.Type, align: int) -> ir.Value:
    """Load a value of ``type_`` that another thread may change at any time."""
    load = builder.load(pointer, typ=type_, align=align)
    load.__class__ = VolatileLoad  # the builder takes no class of its own
    return load


class VolatileStore(ir.StoreInstr):
    """A store instruction that prints as ``store volatile``."""

    def descr(self, buf: list[str]) -> None:
        """Append the instruction's text to ``buf``."""
        plain: list[str] = []
        super().descr(plain)
        buf.append("".join(plain).replace("store ", "store volatile ", 1))


def make_volatile(store: ir.StoreInstr) -> None:
    """Makes LLVM keep a store as it is."""
    store.__class__ = VolatileStore
