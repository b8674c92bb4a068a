"""Which values live in buffers, which loop writes them, and which share one.

*Computed once*: a value needed by several loops, or by an inner region, or by more registers than it has, is kept in a
buffer if it costs more to compute than to read; the first loop that computes it at its own registers writes it. What a dot or a
conversion reads is always kept: they read whole tiles.

*Addresses in parts*: what rows and columns add to the addresses of a tile is broadcast, and each such part has a buffer of its
own if it costs much. The sum is computed again: a tile of addresses takes 8 bytes an element, more than what it leads to.

*In place*: a dot accumulates in its accumulator's buffer where no other op reads the old value, and where a loop carries the
result, the carried tile itself is that buffer.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TypeGuard

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from weft.codegen.cpu.cost import COST_OF_READING, Costs, weight
from weft.codegen.cpu.schedule import (
    Item,
    RegisterLoop,
    Root,
    Schedule,
    WriteBack,
    ancestor,
    ends_with_loop,
    identity,
    is_inside,
    is_recomputable,
    reads_whole,
    trace,
)
from weft.codegen.cpu.views import used_registers
from weft.codegen.emit.rearranging import crossed
from weft.ir import cpu, tile
from weft.ir.direct import operands_of
from weft.ir.types import dtype_of, is_tile, layout_of


class BufferPlacement:
    """Places the buffers of blocks; see the module."""

    def __init__(self, costs: Costs):
        self._costs = costs

    def place(self, block: Block, items: list[Item]) -> Schedule:
        """Rule 4, consumers first: which values live in buffers and which loop writes them."""
        place: dict[Root, Item] = {}
        written_back: dict[SSAValue, set[Item]] = {}
        for item in items:
            for root in item.roots if isinstance(item, RegisterLoop) else [item]:
                place[root] = item
                if isinstance(root, WriteBack):
                    written_back.setdefault(root.value, set()).add(item)
        evaluated: dict[SSAValue, set[Item]] = {}
        schedule = Schedule(items, set(), {})
        for op in reversed(list(block.ops)):
            for value in op.results:
                if is_tile(value):
                    wanted, forced, grown = self._wanted(value, block, place, evaluated)
                    wanted |= written_back.get(value, set())
                    evaluated[value] = self._keep(value, wanted, forced, grown, schedule, place.get(op))
        self._share(block, schedule)
        _stage(schedule)
        return schedule

    def _wanted(
        self, value: SSAValue, block: Block, place: Mapping[Root, Item], evaluated: Mapping[SSAValue, set[Item]]
    ) -> tuple[set[Item], bool, bool]:
        """Which items need the value, write-backs aside; whether one needs it in a buffer; whether one needs it more than
        once a register."""
        wanted: set[Item] = set()
        forced = grown = False
        for use in value.uses:
            user = ancestor(use.operation, block)
            if user is not use.operation:
                wanted.add(user)
                grown = True
                forced |= reads_whole(use.operation, value)
            elif user in place:
                if not (isinstance(user, scf.YieldOp) and isinstance(block.parent_op(), scf.ForOp)):
                    wanted.add(place[user])
                forced |= reads_whole(user, value)
            elif user.results:
                for result in user.results:
                    wanted |= evaluated[result]
                grown |= isinstance(user, tile.BroadcastOp) and _grows(user)
                forced |= isinstance(user, tile.FlipOp) and bool(crossed(user).register)
        return wanted, forced, grown

    def _keep(
        self,
        value: SSAValue,
        wanted: set[Item],
        forced: bool,
        grown: bool,
        schedule: Schedule,
        home: Item | None,
    ) -> set[Item]:
        """Decides on a buffer for the value; returns the items in which it is computed."""
        if not is_recomputable(value):
            if not isinstance(home, RegisterLoop) or (isinstance(op := value.owner, Operation) and ends_with_loop(op)):
                schedule.buffered.add(value)
            elif wanted - {home}:
                schedule.buffered.add(value)
                home.kept.append(value)
            return set()
        worth = (len(wanted) > 1 or grown) and self._cost(value) > COST_OF_READING
        if not wanted or not (forced or worth):
            return wanted
        schedule.buffered.add(value)
        first = min(wanted, key=schedule.items.index)
        if isinstance(first, RegisterLoop) and _covers(first, value):
            first.kept.append(value)
            return {first}
        loop = RegisterLoop(layout_of(value), kept=[value])
        trace([value], loop.layout, loop.needs, schedule.buffered)
        schedule.items.insert(schedule.items.index(first), loop)
        return {loop}

    def _cost(self, value: SSAValue) -> int:
        """Vector instructions to compute a register of the value again; of a sum of addresses and offsets, beside its parts."""
        cost, pending, seen = 0, [value], {value}
        while pending:
            current = pending.pop()
            op = current.owner
            if isinstance(op, tile.BroadcastOp) and _grows(op):
                cost += 1
            elif _is_sum(op):
                parts = [operand for operand in operands_of(op) if is_tile(operand) and operand not in seen]
                seen.update(parts)
                pending += parts
                cost += weight(op)
            else:
                cost += self._costs.of(current)
        return cost

    def _share(self, block: Block, schedule: Schedule) -> None:
        """Lets a dot accumulate in place: its accumulator's buffer becomes the result's, where no other op reads the old value;
        and where the result is what the loop carries, the carried tile itself is that buffer."""
        for op in block.ops:
            if not isinstance(op, tile.DotOp | cpu.MultiplyOp):
                continue
            if op.acc.has_one_use() and op.acc in schedule.buffered:
                schedule.shared[op.acc] = op.result
        for item in list(schedule.items):
            for root in list(item.roots) if isinstance(item, RegisterLoop) else []:
                if isinstance(root, WriteBack) and isinstance(item, RegisterLoop):
                    self._carry_in_place(root, item, schedule)

    def _carry_in_place(self, root: WriteBack, item: RegisterLoop, schedule: Schedule) -> None:
        dot = root.value.owner
        if (
            not isinstance(dot, tile.DotOp | cpu.MultiplyOp)
            or not root.value.has_one_use()
            or layout_of(root.value) != layout_of(root.carried)
        ):
            return
        items = schedule.items
        at = items.index(dot)
        if dot.acc is root.carried:
            if root.carried.has_one_use():
                schedule.shared[root.value] = root.carried
                _drop(root, item, items)
            return
        if schedule.shared.get(dot.acc) is not root.value:
            return
        writer = next((i for i, it in enumerate(items) if isinstance(it, RegisterLoop) and dot.acc in it.kept), None)
        if writer is None or writer > at:
            return
        for i, other in enumerate(items):
            if not isinstance(other, RegisterLoop):
                if i >= writer and reads(other, root.carried, schedule.buffered):
                    return
                continue
            needed = other.needs.get(root.carried, set())
            if needed and (i > writer or (i == writer and needed != {identity(other.layout)})):
                return
        schedule.shared[root.value] = root.carried
        _drop(root, item, items)


def _covers(loop: RegisterLoop, value: SSAValue) -> bool:
    """Whether a loop computes each register of a value at its own: not the half of them that a split takes."""
    sizes = [used_registers(layout).bit_count() for layout in (loop.layout, layout_of(value))]
    return sizes[0] == sizes[1] and loop.needs.get(value) == {identity(loop.layout)}


def _is_sum(op: Operation | Block) -> TypeGuard[Operation]:
    """Whether an op adds offsets, to addresses or to each other."""
    if isinstance(op, tile.BinaryOp):
        return op.kind.data == "add" and dtype_of(op.result).is_integer
    return isinstance(op, tile.AddPtrOp)


def _grows(op: tile.BroadcastOp) -> bool:
    return used_registers(layout_of(op.result)).bit_count() > used_registers(layout_of(op.source)).bit_count()


def _drop(root: WriteBack, item: RegisterLoop, items: list[Item]) -> None:
    item.roots.remove(root)
    if not item.roots and not item.kept:
        items.remove(item)


def _stage(schedule: Schedule) -> None:
    """Marks the write-backs that must wait for the end of the body, since the carried tile is still read after them."""
    for position, item in enumerate(schedule.items):
        if not isinstance(item, RegisterLoop):
            continue
        for root in item.roots:
            if isinstance(root, WriteBack):
                root.staged = item.needs.get(root.carried, set()) - {identity(item.layout)} != set() or any(
                    reads(later, root.carried, schedule.buffered) for later in schedule.items[position + 1 :]
                )


def reads(item: Item, value: SSAValue, buffered: Container[SSAValue]) -> bool:
    """Whether an item reads a value, itself or through what it recomputes."""
    if isinstance(item, RegisterLoop):
        return value in item.needs
    return not isinstance(item, scf.YieldOp) and _reads_through(item, value, buffered)


def _reads_through(item: Operation, value: SSAValue, buffered: Container[SSAValue]) -> bool:
    """Whether an op outside register loops reads the value or a recomputable function of it that no loop has kept."""
    pending = [use.operation for use in value.uses]
    seen: set[Operation] = set()
    while pending:
        op = pending.pop()
        if op in seen:
            continue
        seen.add(op)
        if is_inside(op, item):
            return True
        for result in op.results:
            if is_tile(result) and is_recomputable(result) and result not in buffered:
                pending.extend(use.operation for use in result.uses)
    return False
