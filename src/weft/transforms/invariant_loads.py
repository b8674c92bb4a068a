"""Loads that may happen at any time, any number of times: those from arrays the kernel never writes.

Every load is an access to memory and so keeps its place among the others (`weft.ir.memory`). But if every store and atomic of
the kernel goes to a known argument, another one than the load's, and the launch has promised that the arguments' arrays do not
overlap, then nothing that any program of the grid does changes what the load reads: no order can be seen. Such a load is marked
``invariant``; it is then as pure as arithmetic, and the scheduler may repeat it rather than keep its tile in a buffer. A
volatile load is never marked.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from weft.ir import tile
from weft.ir.direct import ops_in
from weft.transforms.axis import base_arguments

INVARIANT = "invariant"


@dataclass(frozen=True)
class MarkInvariantLoads(ModulePass):
    """Puts ``invariant`` on the loads it proves of; for launches whose arrays are disjoint."""

    name = "mark-invariant-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        accesses = [access for access in ops_in(op) if tile.is_access(access)]
        bases = base_arguments(access.pointer for access in accesses)
        written = {bases[access.pointer] for access in accesses if _writes(access)}
        if None in written:
            return
        for load in accesses:
            if isinstance(load, tile.LoadOp) and load.volatile is None:
                base = bases[load.pointer]
                if base is not None and base not in written:
                    load.attributes[INVARIANT] = UnitAttr()


def _writes(op: tile.Access) -> bool:
    ordering = tile.ordering_of(op)
    return ordering is not None and ordering.writes


def is_invariant(op: Operation) -> bool:
    """Whether the op is a load marked by `MarkInvariantLoads`."""
    return type(op) is tile.LoadOp and INVARIANT in op.attributes
