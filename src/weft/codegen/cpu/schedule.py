"""The vocabulary of schedules: what a block's register loops are, and which values are recipes.

A *root* is an op that must happen at its place: an access to memory, a reduction, a write to a loop-carried tile. A
*recomputable* value is a pure function of its operands, register by register, and is emitted wherever it is needed.
`weft.codegen.cpu.fusion` forms register loops around the roots, `weft.codegen.cpu.placement` decides which values also live in
buffers, and `weft.codegen.cpu.emitter` obeys.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Final, TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from weft.codegen.cpu.views import used_registers
from weft.codegen.emit.rearranging import crossed, halves, joined
from weft.codegen.emit.views import columns_of_view, view_columns
from weft.ir import cpu, tile
from weft.ir.direct import defining_op, operands_of
from weft.ir.types import is_tile, layout_of
from weft.layout import LinearLayout
from weft.layout.algebra import f2
from weft.transforms.invariant_loads import is_invariant


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
"""Which register of a value is needed at a register of the loop: the image of each bit of that, and last what is added."""
WHOLE: Final[Columns] = (-1,)
"""Stands for all registers at once: the value must be complete before the loop begins."""


def axis_of(root: Root) -> int | None:
    """The axis along which a root goes; None for one that takes registers in any order."""
    if isinstance(root, tile.ReduceOp | tile.ScanOp):
        return root.axis.value.data
    return 0 if isinstance(root, tile.HistogramOp) else None


def ends_with_loop(op: Operation) -> bool:
    """Whether the op's results exist only after its register loop."""
    return type(op) in (tile.ReduceOp, tile.HistogramOp)


@dataclass(eq=False)
class RegisterLoop:
    """A loop over the registers of ``layout``: its roots in program order (the accesses among them again as
    ``accesses``), the values it also keeps in buffers, and what it needs at which registers."""

    layout: LinearLayout
    roots: list[Root] = field(default_factory=list[Root])
    accesses: list[tile.Access] = field(default_factory=list[tile.Access])
    kept: list[SSAValue] = field(default_factory=list[SSAValue])
    needs: dict[SSAValue, set[Columns]] = field(default_factory=dict[SSAValue, set[Columns]])

    def settle(self, buffered: Container[SSAValue]) -> None:
        """Leaves out what is needed only for values that are read from buffers."""
        self.needs = {}
        for root in self.roots:
            trace_root(root, self.layout, self.needs, buffered)
        for value in self.kept:
            trace([value], self.layout, self.needs, buffered)

    @property
    def axis(self) -> int | None:
        """The axis of the loop's reductions, scans and histograms; None without any."""
        return next((axis for axis in map(axis_of, self.roots) if axis is not None), None)

    @property
    def reverse(self) -> bool | None:
        """Whether the loop's scans go from the axis's end; None without any."""
        return next((r.reverse is not None for r in self.roots if isinstance(r, tile.ScanOp)), None)

    @property
    def crossed_bits(self) -> int:
        """The highest bit by which each flip finds its register. Where they are unrolled, which half of the flip a register is in
        is known, and both halves are read once."""
        added = {columns[-1] for at in self.needs.values() for columns in at if columns and columns is not WHOLE}
        bits = self.grouped_bits
        for each in added:
            bits |= 1 << each.bit_length() >> 1
        return bits & used_registers(self.layout)

    @property
    def grouped_bits(self) -> int:
        """The bits by which registers differ that are packed together. They must be unrolled in every version of the body."""
        found = {bit for pack in self.packs for bit in grouped_registers(pack)}
        return sum(found)

    @property
    def packs(self) -> list[cpu.PackOp]:
        """The packs among the roots."""
        return [root for root in self.roots if isinstance(root, cpu.PackOp)]


def grouped_registers(op: cpu.PackOp) -> list[int]:
    """The register bits of a tile that move within a group of the panel, lowest first."""
    layout, panel = layout_of(op.value), op.geometry
    below = sum(bits for _, bits in layout.outputs[panel.axis + 1 :])
    places = {column: 1 << j for j, column in enumerate(layout.columns("register"))}
    return [places[bit << below] for bit in (1 << j for j in range(panel.group.bit_length() - 1))]


Item: TypeAlias = RegisterLoop | Operation


@dataclass(eq=False)
class Schedule:
    """A block's items in order, the values that live in buffers, and which of them share one (key takes over the value's)."""

    items: list[Item]
    buffered: set[SSAValue]
    shared: dict[SSAValue, SSAValue]


def space_of(root: Root) -> LinearLayout:
    """The layout whose registers a root visits."""
    match root:
        case WriteBack():
            return layout_of(root.value)
        case tile.LoadOp() | tile.StoreOp() | tile.AtomicRmwOp() | tile.AtomicCasOp():
            return layout_of(root.pointer)
        case tile.GatherOp():
            return layout_of(root.result)
        case cpu.PackOp():
            return layout_of(root.value)
        case _:
            if isinstance(root, tile.HistogramOp):
                return layout_of(root.source)
            assert isinstance(root, tile.ReduceOp | tile.ScanOp), f"{root.name} is no root of a register loop"
            return layout_of(root.sources[0])


def is_root(op: Operation) -> bool:
    """Whether an op on tiles must happen at its place in a register loop."""
    if tile.is_access(op):
        return is_tile(op.pointer) and not is_invariant(op)
    return type(op) in (tile.ReduceOp, tile.ScanOp, tile.GatherOp, tile.HistogramOp, cpu.PackOp)


def moves_data(op: Operation) -> bool:
    """Whether the op reads whole tiles from buffers and writes a whole tile, or prints one."""
    return type(op) in (tile.DotOp, cpu.MultiplyOp, tile.PrintOp) or (
        type(op) is tile.ConvertLayoutOp and view_columns(op) is None
    )


def reads_whole(op: Operation, value: SSAValue) -> bool:
    """Whether the op reads all of the value from a buffer. A product that starts at a constant has it written to its result's."""
    if isinstance(op, tile.DotOp | cpu.MultiplyOp) and value is op.acc and isinstance(value.owner, tile.ConstantOp):
        return False
    return moves_data(op) or (type(op) is tile.GatherOp and op.source is value)


def is_recomputable(value: SSAValue) -> bool:
    """Whether the value is a pure function of its operands, register by register."""
    op = defining_op(value)
    known = _is_recomputed(type(op))
    if known is not None or op is None:
        return bool(known)
    return is_invariant(op) or (isinstance(op, tile.ConvertLayoutOp) and not moves_data(op))


@cache
def _is_recomputed(kind: type) -> bool | None:
    """Whether the results of all ops of a class are recomputable; None where it depends on the op."""
    if kind in (tile.LoadOp, tile.ConvertLayoutOp):
        return None
    return issubclass(kind, tile.TileOp) and kind not in (
        tile.StoreOp,
        tile.AtomicRmwOp,
        tile.AtomicCasOp,
        tile.ReduceOp,
        tile.ScanOp,
        tile.GatherOp,
        tile.HistogramOp,
        tile.DotOp,
        cpu.MultiplyOp,
    )


def _operand_columns(value: SSAValue, columns: Columns) -> Iterator[tuple[SSAValue, Columns]]:
    """What a recomputable value needs, and at which registers."""
    op = defining_op(value)
    if op is None:
        return
    if tile.is_a(op, tile.View) and columns is not WHOLE:
        view = columns_of_view(op)
        yield operands_of(op)[0], tuple(f2.apply(view, c) for c in columns)
        return
    if tile.is_a(op, tile.Rearranging) and columns is not WHOLE:
        yield from _rearranged(op, value, columns)
        return
    for operand in operands_of(op):
        yield operand, columns


def _rearranged(op: Operation, value: SSAValue, columns: Columns) -> Iterator[tuple[SSAValue, Columns]]:
    *linear, added = columns
    match op:
        case tile.JoinOp():
            for operand in (op.lhs, op.rhs):
                yield operand, tuple(f2.apply(joined(op).columns, c) for c in columns)
        case tile.SplitOp():
            half = halves(op)
            *linear, added = [f2.apply(half.columns, c) for c in columns]
            yield op.source, (*linear, added ^ (half.bit if value is op.second else 0))
        case tile.FlipOp():
            yield op.source, (*linear, added ^ crossed(op).register)
        case _:
            raise AssertionError(f"{op.name} rearranges nothing")


def identity(layout: LinearLayout) -> Columns:
    """At its own register."""
    used = used_registers(layout)
    return (*(used & (1 << j) for j in range(layout.in_bits("register"))), 0)


def trace_root(
    root: Root, layout: LinearLayout, needs: dict[SSAValue, set[Columns]], buffered: Container[SSAValue] | None = None
) -> None:
    """Adds what a root needs; see `trace`."""
    if isinstance(root, WriteBack):
        trace([root.value], layout, needs, buffered)
    elif isinstance(root, tile.GatherOp):
        trace([root.index], layout, needs, buffered)
        _trace([(root.source, WHOLE)], needs, buffered)
    else:
        trace(operands_of(root), layout, needs, buffered)


def is_crossed(value: SSAValue) -> bool:
    """Whether a flip takes the value from other registers. Such a value is always in a buffer: computed again, a chain of n flips
    would be computed 2**n times."""
    for use in value.uses:
        flip = use.operation
        if type(flip) is tile.FlipOp and crossed(flip).register:
            return is_recomputable(value)
    return False


def trace(
    values: Iterable[SSAValue],
    layout: LinearLayout,
    needs: dict[SSAValue, set[Columns]],
    buffered: Container[SSAValue] | None = None,
) -> None:
    """Adds the values and all they need, at which registers, down to what is not recomputed. Where it is known which values are
    ``buffered``, it ends at them too."""
    _trace([(value, identity(layout)) for value in values], needs, buffered)


def _trace(
    stack: list[tuple[SSAValue, Columns]], needs: dict[SSAValue, set[Columns]], buffered: Container[SSAValue] | None
) -> None:
    begun = {value for value, _ in stack}
    while stack:
        value, columns = stack.pop()
        if is_tile(value) and columns is WHOLE:
            pass
        elif is_tile(value):
            used = used_registers(layout_of(value))
            columns = tuple(c & used for c in columns)
        else:
            columns = ()
        seen = needs.setdefault(value, set())
        if columns in seen:
            continue
        seen.add(columns)
        if is_tile(value) and is_recomputable(value):
            if value not in begun:
                if buffered is not None and value in buffered:
                    continue
                if is_crossed(value):
                    columns = WHOLE
                    if buffered is not None:
                        continue
            stack.extend(_operand_columns(value, columns))


def ancestor(op: Operation, block: Block) -> Operation:
    """The op of ``block`` that is or contains ``op``."""
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None, f"{op.name} is not inside the block"
        op = parent
    return op


def is_inside(op: Operation, outer: Operation) -> bool:
    """Whether ``op`` is ``outer`` or nested in it."""
    current: Operation | None = op
    while current is not None:
        if current is outer:
            return True
        current = current.parent_op()
    return False
