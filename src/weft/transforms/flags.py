"""Stores that raise a flag get release order.

Kernels tell a waiting program that data is ready by a plain store through one pointer:

    tl.store(data + offsets, values)                  tile.store %data, %values
    tl.store(flag, 1)                            ->   tile.store %flag, %one release

The waiting program reads the flag with an access that acquires (a volatile load, an atomic). All programs of a grid run
the same kernel, so the pass marks every store of one element in a kernel that has such an access and uses what it reads, and
none in others, where no program can see in which order memory was written. A store of several elements raises no flag by
itself: use an atomic, or put `tl.debug_barrier` before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from weft.ir import tile
from weft.ir.direct import ops_in
from weft.ir.types import shape_of


@dataclass(frozen=True)
class RaiseFlags(ModulePass):
    """Puts ``release`` on the stores of one element in kernels that wait for other programs."""

    name = "raise-flags"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if waits(op):
            for store in ops_in(op):
                if isinstance(store, tile.StoreOp) and prod(shape_of(store.pointer)) == 1:
                    store.properties["release"] = UnitAttr()


def waits(root: Operation) -> bool:
    """Whether a kernel may learn that another program has reached some point: it has an access that reads and acquires. An atomic
    whose old value nothing uses teaches nothing."""
    return any(_learns(op) for op in ops_in(root))


def _learns(op: Operation) -> bool:
    ordering = tile.ordering_of(op)
    if ordering is None or not (ordering.reads and ordering.acquires):
        return False
    return not (isinstance(op, tile.AtomicRmwOp | tile.AtomicCasOp) and op.result.first_use is None)
