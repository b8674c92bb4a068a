"""Which register loops a block becomes.

A tile of many registers is not unrolled: each op that must happen at its place (an access to memory, a reduction, a write to
a loop-carried tile) is the *root* of a register loop, and everything else is emitted inside the loops that need
it, on demand. One would usually give every op its own loop, or fuse pairs by pattern; here fusion is the default and the
exceptions have names:

1. *Same registers.* A root joins the open loop only if both range over the same layout, and if what it needs of that
   loop is needed at the same register (not through a broadcast or permutation of it).
2. *No result of an unfinished fold.* A reduction's result exists only after its loop.
3. *Memory order.* An access joins a loop that holds a conflicting one only if both use the very same pointers, no two of
   which meet. Accesses conflict unless both read, or they go through different arguments that the launch has promised are
   disjoint.
4. *Computed once.* A value needed by several loops, or by an inner region, or by more registers than it has, is kept in memory
   (a buffer) if it costs more to compute than to read; the first loop that computes it at its own registers writes it.

`schedule` decides; `weft.codegen.emitter` obeys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.codegen.access import access_shape
from weft.codegen.index import apply_columns
from weft.codegen.views import VIEWS, used_registers, view_columns
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.layout import LinearLayout
from weft.transforms.axis import AxisInfo
from weft.transforms.invariant_loads import is_invariant

COST_OF_READING = 8
"""What reading a value back from its buffer is worth, in units of one cheap vector instruction."""

COST_OF_CONTIGUOUS_LOAD = 3
"""A vector load with its scalar address arithmetic."""

_HEAVY: Mapping[str, int] = {
    **dict.fromkeys(("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf"), 20),
    **dict.fromkeys(("sqrt", "rsqrt", "div"), 10),
    "rem": 40,
}


@dataclass(eq=False)
class WriteBack:
    """The end of a loop body: the yielded tile becomes the carried one. ``staged`` goes through a copy, because the old value is
    still needed when the new one is written."""

    op: Operation
    position: int
    value: SSAValue
    carried: SSAValue
    staged: bool = False


Root: TypeAlias = Operation | WriteBack
Columns: TypeAlias = tuple[int, ...]


@dataclass(eq=False)
class RegisterLoop:
    """A loop over the registers of ``layout``: its roots in program order, and the values it also keeps in buffers."""

    layout: LinearLayout
    roots: list[Root] = field(default_factory=list[Root])
    kept: list[SSAValue] = field(default_factory=list[SSAValue])
    needs: dict[SSAValue, set[Columns]] = field(default_factory=dict[SSAValue, set[Columns]])

    @property
    def folds(self) -> int | None:
        """The axis along which the loop's reductions fold; None without any."""
        return next((r.axis.value.data for r in self.roots if isinstance(r, tile.ReduceOp)), None)


Item: TypeAlias = RegisterLoop | Operation


@dataclass(eq=False)
class Schedule:
    """A block's items in order, the values that live in buffers, and which of them share one (key takes over the value's)."""

    items: list[Item]
    buffered: set[SSAValue]
    shared: dict[SSAValue, SSAValue]


def is_tile(value: SSAValue) -> bool:
    """Whether the value is a tensor (rank 0 is a scalar)."""
    return bool(shape_of(value))


def space_of(root: Root) -> LinearLayout:
    """The layout whose registers a root visits."""
    match root:
        case WriteBack():
            return layout_of(root.value)
        case tile.LoadOp() | tile.StoreOp() | tile.AtomicRmwOp():
            return layout_of(root.pointer)
        case tile.ReduceOp():
            return layout_of(root.sources[0])
        case _:
            raise NotImplementedError(f"{root.name} has no register loop")


def is_root(op: Operation) -> bool:
    """Whether an op on tiles must happen at its place in a register loop."""
    match op:
        case tile.LoadOp() | tile.StoreOp() | tile.AtomicRmwOp():
            return is_tile(op.pointer) and not is_invariant(op)
        case _:
            return isinstance(op, tile.ReduceOp)


def moves_data(op: Operation) -> bool:
    """Whether the op reads whole tiles from buffers and writes a whole tile."""
    return isinstance(op, tile.DotOp) or (isinstance(op, tile.ConvertLayoutOp) and view_columns(op) is None)


def is_recomputable(value: SSAValue) -> bool:
    """Whether the value is a pure function of its operands, register by register."""
    op = value.owner
    return (
        isinstance(op, tile.TileOp)
        and not is_root(op)
        and not moves_data(op)
        and (not isinstance(op, tile.LoadOp | tile.AtomicRmwOp) or is_invariant(op))
    )


def _operand_columns(value: SSAValue, columns: Columns) -> Iterator[tuple[SSAValue, Columns]]:
    """What a recomputable value needs, and at which registers."""
    op = value.owner
    if not isinstance(op, Operation):
        return
    if isinstance(op, VIEWS):
        view = view_columns(op)
        if view is None:
            raise NotImplementedError(f"{op.name} is not a view")
        yield op.operands[0], tuple(apply_columns(view, c) for c in columns)
        return
    for operand in op.operands:
        yield operand, columns


def _identity(layout: LinearLayout) -> Columns:
    used = used_registers(layout)
    return tuple(used & (1 << j) for j in range(layout.in_bits("register")))


class Scheduler:
    """Forms the register loops of one block; see the module."""

    def __init__(
        self, base_of: Mapping[SSAValue, BlockArgument | None], disjoint: bool, axis: Mapping[SSAValue, AxisInfo]
    ):
        self._base_of = base_of
        self._disjoint = disjoint
        self._axis = axis
        self._costs: dict[SSAValue, int] = {}

    # -- forming loops ---------------------------------------------------------------------------------------------------

    def schedule(self, block: Block) -> Schedule:
        """The register loops of a block, in order with its other ops."""
        items: list[Item] = []
        current: RegisterLoop | None = None
        written_by: dict[Operation, RegisterLoop] = {}

        def close() -> None:
            nonlocal current
            if current is not None:
                items.append(current)
                current = None

        for root in self._roots(block):
            if isinstance(root, Operation) and not is_root(root):
                if isinstance(root, tile.TileOp) and not moves_data(root) and all(is_tile(r) for r in root.results):
                    if root.results:
                        continue  # emitted where it is needed
                if current is not None and self._must_follow(root, current, written_by):
                    close()
                items.append(root)
                continue
            if current is None or not self._joins(root, current, written_by):
                close()
                current = RegisterLoop(space_of(root))
            self._add(root, current)
            if isinstance(root, Operation):
                written_by[root] = current
        close()
        terminator = block.last_op
        if isinstance(terminator, scf.YieldOp):  # a terminator comes after the write-backs it causes
            items.remove(terminator)
            items.append(terminator)
        return self._place(block, items, written_by)

    def _roots(self, block: Block) -> Iterator[Root]:
        terminator = block.last_op
        parent = block.parent_op()
        for op in block.ops:
            if op is terminator and isinstance(op, scf.YieldOp) and isinstance(parent, scf.ForOp):
                carried = block.args[1:]
                for i, (value, argument) in enumerate(zip(op.operands, carried, strict=True)):
                    if is_tile(value) and value is not argument:
                        yield WriteBack(op, i, value, argument)
            yield op

    def _add(self, root: Root, loop: RegisterLoop) -> None:
        loop.roots.append(root)
        self._trace(_inputs(root), loop.layout, loop.needs)

    def _trace(self, values: Iterable[SSAValue], layout: LinearLayout, needs: dict[SSAValue, set[Columns]]) -> None:
        """Adds the values and all they need, at which registers, down to what is not recomputed."""
        stack = [(value, _identity(layout)) for value in values]
        while stack:
            value, columns = stack.pop()
            if is_tile(value):
                used = used_registers(layout_of(value))
                columns = tuple(c & used for c in columns)
            else:
                columns = ()
            seen = needs.setdefault(value, set())
            if columns in seen:
                continue
            seen.add(columns)
            if is_tile(value) and is_recomputable(value):
                stack.extend(_operand_columns(value, columns))

    def _joins(self, root: Root, loop: RegisterLoop, written_by: dict[Operation, RegisterLoop]) -> bool:
        if space_of(root) != loop.layout:
            return False
        if isinstance(root, tile.ReduceOp) and loop.folds not in (None, root.axis.value.data):
            return False
        if isinstance(root, Operation) and any(
            self._conflict(root, other) for other in loop.roots if isinstance(other, Operation)
        ):
            return False
        needs: dict[SSAValue, set[Columns]] = {}
        self._trace(_inputs(root), loop.layout, needs)
        for value, at in needs.items():
            owner = value.owner
            if not isinstance(owner, Operation) or written_by.get(owner) is not loop:
                continue
            if isinstance(owner, tile.ReduceOp) or at != {_identity(loop.layout)}:
                return False
        if isinstance(root, WriteBack):
            return not self._clobbers(root, loop, needs)
        return True

    def _clobbers(self, root: WriteBack, loop: RegisterLoop, needs: dict[SSAValue, set[Columns]]) -> bool:
        """Whether writing the carried tile register by register destroys what the loop still reads of it."""
        at = loop.needs.get(root.carried, set()) | needs.get(root.carried, set())
        return bool(at - {_identity(loop.layout)})

    def _must_follow(self, op: Operation, loop: RegisterLoop, written_by: dict[Operation, RegisterLoop]) -> bool:
        """Whether an op outside register loops must come after the open one rather than before it."""
        if op.regions or moves_data(op) or not isinstance(op, tile.TileOp):
            return True
        for operand in op.operands:
            owner = operand.owner
            if isinstance(owner, Operation) and written_by.get(owner) is loop:
                return True
        return any(self._conflict(op, other) for other in loop.roots if isinstance(other, Operation))

    def _conflict(self, a: Operation, b: Operation) -> bool:
        pointers: list[SSAValue] = []
        for op in (a, b):
            if not isinstance(op, tile.LoadOp | tile.StoreOp | tile.AtomicRmwOp):
                return False
            pointers.append(op.pointer)
        if isinstance(a, tile.LoadOp) and isinstance(b, tile.LoadOp):
            return False
        same = (
            pointers[0] is pointers[1] and not isinstance(a, tile.AtomicRmwOp) and not isinstance(b, tile.AtomicRmwOp)
        )
        if same and self._distinct(pointers[0]):
            return False
        bases = [self._base_of.get(p) for p in pointers]
        return not (self._disjoint and None not in bases and bases[0] is not bases[1])

    def _distinct(self, pointer: SSAValue) -> bool:
        """Whether no two elements of the tile are known to point at one address: there is one, or they are one run."""
        info = self._axis.get(pointer)
        long = [d for d, size in enumerate(shape_of(pointer)) if size > 1]
        return not long or (
            len(long) == 1 and info is not None and info.contiguity[long[0]] == shape_of(pointer)[long[0]]
        )

    # -- placing buffers -------------------------------------------------------------------------------------------------

    def _place(self, block: Block, items: list[Item], written_by: dict[Operation, RegisterLoop]) -> Schedule:
        """Rule 4, consumers first: which values live in buffers and which loop writes them."""
        place: dict[Root, Item] = {}
        for item in items:
            for root in item.roots if isinstance(item, RegisterLoop) else [item]:
                place[root] = item
        evaluated: dict[SSAValue, set[Item]] = {}
        schedule = Schedule(items, set(), {})
        for op in reversed(list(block.ops)):
            for value in op.results:
                if is_tile(value):
                    wanted, forced, grown = self._wanted(value, block, place, evaluated)
                    evaluated[value] = self._keep(value, wanted, forced, grown, schedule, written_by.get(op))
        self._share(block, schedule)
        _stage(schedule)
        return schedule

    def _wanted(
        self, value: SSAValue, block: Block, place: Mapping[Root, Item], evaluated: Mapping[SSAValue, set[Item]]
    ) -> tuple[set[Item], bool, bool]:
        """Which items need the value; whether one needs it in a buffer; whether one needs it more than once a register."""
        wanted = {item for root, item in place.items() if isinstance(root, WriteBack) and root.value is value}
        forced = grown = False
        for use in value.uses:
            user = _ancestor(use.operation, block)
            if user is not use.operation:
                wanted.add(user)
                grown = True
                forced |= moves_data(use.operation)
            elif user in place:
                if not (isinstance(user, scf.YieldOp) and isinstance(block.parent_op(), scf.ForOp)):
                    wanted.add(place[user])
                forced |= moves_data(user)
            elif user.results:
                wanted |= evaluated[user.results[0]]
                grown |= isinstance(user, tile.BroadcastOp) and _grows(user)
        return wanted, forced, grown

    def _keep(
        self,
        value: SSAValue,
        wanted: set[Item],
        forced: bool,
        grown: bool,
        schedule: Schedule,
        home: RegisterLoop | None,
    ) -> set[Item]:
        """Decides on a buffer for the value; returns the items in which it is computed."""
        if not is_recomputable(value):
            folded = isinstance(value.owner, tile.ReduceOp)
            if home is None or folded or forced or wanted - {home}:
                schedule.buffered.add(value)
                if home is not None and not folded:
                    home.kept.append(value)
            return set()
        worth = self.cost(value) > COST_OF_READING and (len(wanted) > 1 or grown)
        if not wanted or not (forced or worth):
            return wanted
        schedule.buffered.add(value)
        first = min(wanted, key=schedule.items.index)
        if isinstance(first, RegisterLoop) and first.needs.get(value) == {_identity(first.layout)}:
            first.kept.append(value)
            return {first}
        loop = RegisterLoop(layout_of(value), kept=[value])
        self._trace([value], loop.layout, loop.needs)
        schedule.items.insert(schedule.items.index(first), loop)
        return {loop}

    def _share(self, block: Block, schedule: Schedule) -> None:
        """Lets a dot accumulate in place: its accumulator's buffer becomes the result's, where nobody else reads the old value;
        and where the result is what the loop carries, the carried tile itself is that buffer."""
        for op in block.ops:
            if not isinstance(op, tile.DotOp):
                continue
            acc = op.acc
            if acc.has_one_use() and isinstance(acc.owner, Operation) and acc.owner.parent is block:
                if acc in schedule.buffered:
                    schedule.shared[acc] = op.result
        for item in list(schedule.items):
            for root in list(item.roots) if isinstance(item, RegisterLoop) else []:
                if isinstance(root, WriteBack) and isinstance(item, RegisterLoop):
                    self._carry_in_place(root, item, schedule)

    def _carry_in_place(self, root: WriteBack, item: RegisterLoop, schedule: Schedule) -> None:
        dot = root.value.owner
        if (
            not isinstance(dot, tile.DotOp)
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
                if i >= writer and _reads(other, root.carried):
                    return
                continue
            needed = other.needs.get(root.carried, set())
            if needed and (i > writer or (i == writer and needed != {_identity(other.layout)})):
                return
        schedule.shared[root.value] = root.carried
        _drop(root, item, items)

    def cost(self, value: SSAValue) -> int:
        """Vector instructions to compute one register of the value from what is in registers or buffers."""
        if value in self._costs:
            return self._costs[value]
        op = value.owner
        if not isinstance(op, Operation) or not is_tile(value) or not is_recomputable(value):
            cost = 1
        elif isinstance(op, tile.LoadOp):
            cost = self._cost_of_load(op)
        else:
            cost = _weight(op) + sum(self.cost(operand) for operand in op.operands if is_tile(operand))
        self._costs[value] = cost
        return cost

    def _cost_of_load(self, op: tile.LoadOp) -> int:
        """A run's address is scalar arithmetic; a gather takes the vector of all addresses, and an instruction a lane."""
        info = self._axis.get(op.pointer)
        layout = layout_of(op.pointer)
        shape = access_shape(layout, (1,) * len(layout.shape) if info is None else info.contiguity)
        if len(shape.starts) == 1:
            return COST_OF_CONTIGUOUS_LOAD
        return COST_OF_CONTIGUOUS_LOAD * len(shape.starts) + self.cost(op.pointer)


def _weight(op: Operation) -> int:
    match op:
        case tile.UnaryOp() | tile.BinaryOp():
            weight = _HEAVY.get(op.kind.data, 1)
            integer_division = op.kind.data == "div" and not dtype_of(op.results[0]).is_float
            return 40 if integer_division else weight
        case tile.CastOp():
            return 4 if dtype_of(op.source).bits < 32 or dtype_of(op.result).bits < 32 else 1
        case tile.SplatOp() | tile.ConstantOp():
            return 0
        case _ if isinstance(op, VIEWS):
            return 0
        case _:
            return 1


def _grows(op: tile.BroadcastOp) -> bool:
    return used_registers(layout_of(op.result)).bit_count() > used_registers(layout_of(op.source)).bit_count()


def _ancestor(op: Operation, block: Block) -> Operation:
    """The op of ``block`` that is or contains ``op``."""
    while op.parent is not block:
        parent = op.parent_op()
        if parent is None:
            raise ValueError(f"{op.name} is not inside the block")
        op = parent
    return op


def _inside(op: Operation, outer: Operation) -> bool:
    current: Operation | None = op
    while current is not None:
        if current is outer:
            return True
        current = current.parent_op()
    return False


def _drop(root: WriteBack, item: RegisterLoop, items: list[Item]) -> None:
    item.roots.remove(root)
    if not item.roots and not item.kept:
        items.remove(item)


def _inputs(root: Root) -> Iterable[SSAValue]:
    return (root.value,) if isinstance(root, WriteBack) else root.operands


def _stage(schedule: Schedule) -> None:
    """Marks the write-backs that must wait for the end of the body, since the carried tile is still read after them."""
    for position, item in enumerate(schedule.items):
        for root in item.roots if isinstance(item, RegisterLoop) else ():
            if isinstance(root, WriteBack):
                root.staged = item.needs.get(root.carried, set()) - {_identity(item.layout)} != set() or any(
                    _reads(later, root.carried) for later in schedule.items[position + 1 :]
                )


def _reads(item: Item, value: SSAValue) -> bool:
    if isinstance(item, RegisterLoop):
        return value in item.needs
    if isinstance(item, scf.YieldOp):
        return False
    return any(_inside(use.operation, item) for use in value.uses) or _reads_through(item, value)


def _reads_through(item: Operation, value: SSAValue) -> bool:
    """Whether an op outside register loops reads a recomputable function of the value."""
    pending = [use.operation for use in value.uses]
    seen: set[Operation] = set()
    while pending:
        op = pending.pop()
        if op in seen:
            continue
        seen.add(op)
        if _inside(op, item):
            return True
        if op.results and is_tile(op.results[0]) and is_recomputable(op.results[0]):
            pending.extend(use.operation for use in op.results[0].uses)
    return False
