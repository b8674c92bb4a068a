"""Loads that feed dots are copied into shared memory ahead of their use.

    before                              after, with ``ahead`` = 2 and 3 slots
    for k:                              buffer = alloc
        x = load p(k)                   async_copy p(0) -> slot 0; commit
        ... dot(x) ...                  async_copy p(1) -> slot 1; commit          (each if the loop has that iteration)
                                        for k:
                                            wait until all but the latest group are there
                                            async_copy p(k + 2) -> slot (k + 2) % 3; commit
                                            x = local_load slot k % 3
                                            ... dot(x) ...

``num_stages`` (of the loop, else of the launch) counts the iterations under way: ``ahead`` is one less. A copy never reads what
the loop would not: it is enabled only if its iteration runs.

Which loads: those directly in a loop whose result reaches an operand of a matrix instruction in it, through any elementwise and
shape ops, if a thread can copy 4 bytes at once, and if nothing in the loop orders or writes what they read. All loads of a loop
go together: `Slice` has what computes their addresses, carried values included, which runs ahead as a copy of its own.

Slots. With one slot more than copies under way, an iteration waits once: behind its wait no thread reads the slot of the
iteration before, which is the one that is written next. Where shared memory has no room for it, the copy comes after the last
use of the slot it goes into, and a second barrier between them.

A copy keeps the load's advice for the first cache (``.ca``); the other advice, which no result depends on, is ignored.

Limit: loads of a loop whose ``num_stages`` is 0 or 1, and loads in an ``if`` inside the loop, stay as they are. Whether there is
room for a further slot is decided by the loop's own buffers; operands kept in shared memory (`invariants`) and scratch are extra.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft.ir import gpu, tile
from weft.ir.types import dtype_of, shape_of
from weft.target import GpuTarget
from weft.target import gpu as target_of
from weft.transforms.axis import analyse
from weft.transforms.constants import constant_trips
from weft.transforms.nvidia.ahead import Ahead, slice_of
from weft.transforms.nvidia.inserting import Inserting
from weft.transforms.nvidia.prefetched import feeding_dots

NUM_STAGES: Final = "tile.num_stages"


@dataclass(frozen=True)
class PipelineLoads(ModulePass):
    """Copies loads that feed dots into shared memory ``stages - 1`` iterations ahead; see the module. ``disjoint`` promises that
    the kernel's arrays do not overlap."""

    name = "pipeline-loads"

    target: str = "sm_90"
    stages: int = 3
    disjoint: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = target_of(self.target)
        for kernel in op.body.block.ops:
            if not isinstance(kernel, func.FuncOp):
                continue
            loops = [inner for inner in kernel.walk(reverse=True) if isinstance(inner, scf.ForOp)]
            if not loops:
                continue
            facts = analyse(kernel)
            for loop in loops:
                trips = constant_trips(loop)
                ahead = stages_of(loop, self.stages) - 1
                ahead = ahead if trips is None else min(ahead, trips)
                if ahead < 1:
                    continue
                loads = feeding_dots(loop, machine, facts, self.disjoint)
                if loads:
                    _Pipeline(loop, loads, ahead, machine).run()


def stages_of(loop: scf.ForOp, default: int) -> int:
    """The iterations of a loop that are to be under way."""
    own = loop.attributes.get(NUM_STAGES)
    return own.value.data if isinstance(own, IntegerAttr) else default


class _Pipeline:
    """The rewriting of one loop."""

    def __init__(self, loop: scf.ForOp, loads: Sequence[tile.LoadOp], ahead: int, target: GpuTarget):
        self._loop = loop
        self._loads = loads
        self._ahead = ahead
        bytes_ = sum(gpu.BufferType.of(1, shape_of(load.result), dtype_of(load.result)).bytes for load in loads)
        self._slots = ahead + 1 if bytes_ * (ahead + 1) <= target.model.scratch else ahead
        self._types = [gpu.BufferType.of(self._slots, shape_of(x.result), dtype_of(x.result)) for x in loads]
        part = slice_of(loop, [value for load in loads for value in (load.pointer, load.mask) if value is not None])
        assert part is not None, "each load's slice has been looked at"
        self._slice = part

    def run(self) -> None:
        """Rewrites the loop."""
        before = Inserting(self._loop, self._loop)
        buffers: list[SSAValue] = []
        for load, type_ in zip(self._loads, self._types, strict=True):
            alloc = before.add(gpu.AllocOp(type_))
            alloc.location = load.location
            buffers.append(alloc.results[0])
        ahead = Ahead.first(self._slice, before.add)
        for number in range(self._ahead):
            ahead = self._copy(ahead, before, buffers, before.number(number))
        self._rebuild(buffers, ahead, before)

    def _copy(self, ahead: Ahead, inserting: Inserting, buffers: Sequence[SSAValue], slot: SSAValue) -> Ahead:
        """The copies of the iteration that ``ahead`` is at, as a group; returns the iteration after it."""
        found = ahead.compute(inserting.add)
        for load, buffer in zip(self._loads, buffers, strict=True):
            mask = None if load.mask is None else found.get(load.mask, load.mask)
            pointer = found.get(load.pointer, load.pointer)
            copy = gpu.AsyncCopyOp(pointer, mask, buffer, slot, ahead.enabled, load.cache.data)
            inserting.add(copy).location = load.location
        inserting.add(gpu.CommitOp())
        return ahead.following(found, inserting.add)

    def _rebuild(self, buffers: Sequence[SSAValue], ahead: Ahead, before: Inserting) -> None:
        """The loop with the copies of the iteration ``ahead``, and its loads from slots."""
        loop, block = self._loop, self._loop.body.block
        end = block.last_op
        assert isinstance(end, scf.YieldOp), "the verifier asks scf.for for it"
        wraps = self._slots > self._ahead
        slots = [before.number(0), before.number(self._ahead)] if wraps else [before.number(0)]
        initial = [*slots, *ahead.values]
        arguments = [block.insert_arg(value.type, len(block.args)) for value in initial]
        slot, target = arguments[0], arguments[len(slots) - 1]
        inside = ahead.at(arguments[len(slots) :])

        first = block.first_op
        assert first is not None, "a block has a terminator"
        start = Inserting(first, loop)
        start.add(gpu.WaitOp(self._ahead - 1, buffers))
        last = max(self._loads, key=lambda load: block.get_operation_index(load))
        behind = last.next_op
        assert behind is not None, "a block has a terminator"
        copying = start if wraps else Inserting(behind, loop)
        inside = self._copy(inside, copying, buffers, target)
        for load, buffer in zip(self._loads, buffers, strict=True):
            self._read(load, buffer, slot)
        following = self._following(slot, Inserting(end, loop))
        end.operands = [*end.operands, following, *([slot] if wraps else []), *inside.values]

        new = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *initial], loop.detach_region(loop.body))
        new.attributes.update(loop.attributes)
        new.location = loop.location
        for old, result in zip(loop.results, new.results, strict=False):
            old.replace_all_uses_with(result)
            result.name_hint = old.name_hint
        Rewriter.insert_op(new, InsertPoint.before(loop))
        loop.detach()
        loop.erase()

    def _read(self, load: tile.LoadOp, buffer: SSAValue, slot: SSAValue) -> None:
        """Replaces a load by one from a slot; ``other`` is chosen where the mask is false, unless it is zero as the slot is."""
        inserting = Inserting(load, load)
        read = inserting.add(gpu.LocalLoadOp(buffer, slot))
        if load.other is not None and load.mask is not None and not _is_zero(load.other):
            read = inserting.add(tile.SelectOp(load.mask, read.results[0], load.other))
        read.results[0].name_hint = load.result.name_hint
        load.result.replace_all_uses_with(read.results[0])
        load.detach()
        load.erase()

    def _following(self, slot: SSAValue, inserting: Inserting) -> SSAValue:
        """The slot of the next iteration."""
        after = inserting.add(tile.BinaryOp("add", slot, inserting.number(1))).results[0]
        last = inserting.add(tile.CompareOp("eq", after, inserting.number(self._slots))).results[0]
        return inserting.add(tile.SelectOp(last, inserting.number(0), after)).results[0]


def _is_zero(value: SSAValue) -> bool:
    """Whether every element is a zero whose bits are zeros."""
    owner = value.owner
    return isinstance(owner, tile.ConstantOp) and str(float(owner.number)) == "0.0"
