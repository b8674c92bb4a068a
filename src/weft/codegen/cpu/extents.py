"""How far along their rows the registers of a tile have something to store.

A mask such as ``columns < n`` cuts off the end of each row of a tile. A loop over all registers would test those behind the end
one by one. Here it ends with the row:

    for row: for register of 1024 columns: if some of its columns < n: ..         before
    for row: for register of n - first columns: ..                                now

So a tile may be much longer than what there is of it, as those of programs that run together are (`weft.transforms.join_rows`).

The rows are those along the last dimension. A loop ends with them if it does nothing but store, and each of its masks has a
conjunct that compares consecutive numbers along the rows, the same for all rows, with one bound (`weft.codegen.cpu.masks`).

If nothing else is in the masks of its loads and stores, but for conditions that hold for whole rows, the end of the rows decides
all of them. Rows that may end within a register are then two parts:

    for row: for each two registers: if last column < n: .. else: for each of both: if last column < n: .. else: ..   before
    for row: if row is wanted: for whole registers: ..; for the last register, if it is cut off: ..                   now

A row of four registers took some 90 instructions, of which half tested masks. What is known of the last register is the same for
all rows, and computed once.

A loop over one row may sum, too, and add to what a loop carries, what is zeros where such masks are false
(`weft.codegen.cpu.zeros`). The carried row begins with a constant that is no negative zero, so that zeros added to it change
nothing. A sum that ends before its tile begins with 0 instead of -0.0, as if zeros had been added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import reduce
from math import copysign

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.counted import loop_to
from weft.codegen.cpu.loops import axis_bits
from weft.codegen.cpu.masks import bound_of, depends_on
from weft.codegen.cpu.reduce import begins_with_zero
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.schedule import RegisterLoop, Root, WriteBack
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.zeros import masks_of_zeros
from weft.codegen.llvm.types import I64, intrinsic
from weft.ir import tile
from weft.ir.direct import defining_op
from weft.ir.types import dtype_of, is_pointer, is_tile, shape_of
from weft.layout import LinearLayout

_MOST = (1 << 63) - 1
"""The greatest int64."""


@dataclass(frozen=True)
class Extent:
    """The elements of each row that are wanted, at most, as a number of the program (i64, not negative)."""

    registers: Registers
    stored: ir.Value
    masks: frozenset[SSAValue] = frozenset()
    """Those of the loop's accesses, if all are true before the extent, but for rows that are not wanted."""
    rows: Sequence[SSAValue] = ()
    """Conjuncts of all of them, which are the same along each row."""

    @property
    def decides(self) -> bool:
        """See `weft.codegen.cpu.loops.Ends`."""
        return bool(self.masks)

    def ends_before(self, size: int) -> ir.Value:
        """Whether a row of so many elements has some behind the extent."""
        return self.registers.builder.icmp_unsigned("<", self.stored, ir.Constant(I64, size))

    def parts(self, row: RegisterIndex, step: int, most: int, part: Callable[[ir.Value], None]) -> None:
        """See `weft.codegen.cpu.loops.Ends`."""
        registers, builder = self.registers, self.registers.builder
        wanted = [registers.lane(mask, row, 0) for mask in self.rows]
        with builder.if_then(reduce(builder.and_, wanted), likely=True) if wanted else nullcontext():
            known = frozenset(self.rows)
            before = builder.lshr(self.stored, ir.Constant(I64, step.bit_length() - 1))
            whole = intrinsic(builder, "umin", [before, ir.Constant(I64, most)])
            any_whole = builder.icmp_unsigned("!=", whole, ir.Constant(I64, 0))
            with (
                builder.if_then(any_whole, likely=True),
                loop_to(registers, whole) as counter,
                registers.knowing(true=self.masks | known),
            ):
                part(counter)
            within = builder.and_(self.stored, ir.Constant(I64, step - 1))
            cut = builder.and_(
                builder.icmp_unsigned("!=", within, ir.Constant(I64, 0)),
                builder.icmp_unsigned("<", before, ir.Constant(I64, most)),
            )
            with builder.if_then(cut), registers.knowing(true=known, ragged=self.masks, begun=self.masks):
                part(whole)

    @contextmanager
    def loop(self, step: int, most: int) -> Generator[ir.Value]:
        """A loop over the parts of ``step`` elements, a power of two, that begin within the extent, at most so many."""
        builder = self.registers.builder
        up = builder.add(self.stored, ir.Constant(I64, step - 1))
        parts = builder.lshr(up, ir.Constant(I64, step.bit_length() - 1))
        trips = intrinsic(builder, "umin", [parts, ir.Constant(I64, most)])
        any_left = builder.icmp_unsigned("!=", trips, ir.Constant(I64, 0))
        with builder.if_then(any_left, likely=True), loop_to(self.registers, trips) as counter:
            yield counter


def extent_of(registers: Registers, loop: RegisterLoop) -> Extent | None:
    """The extent of a loop's rows; None where it has to go through all of its registers."""
    if loop.kept or loop.crossed_bits or not _is_in_order(loop.layout):
        return None
    masks: dict[SSAValue, None] = {}
    for root in loop.roots:
        found = _masks(root, len(loop.layout.shape) == 1)
        if found is None:
            return None
        masks |= dict.fromkeys(found)
    each: list[ir.Value] = []
    for mask in masks:
        if depends_on(mask, loop.roots):
            return None
        ends = [_end(registers, compare) for compare in _along_rows(registers, mask)]
        if not ends:
            return None
        each.append(reduce(lambda a, b: intrinsic(registers.builder, "smin", [a, b]), ends))
    none = ir.Constant(I64, 0)
    stored = reduce(lambda a, b: intrinsic(registers.builder, "smax", [a, b]), each, none)
    return Extent(registers, stored, *_decided(registers, loop))


def _decided(registers: Registers, loop: RegisterLoop) -> tuple[frozenset[SSAValue], Sequence[SSAValue]]:
    """The masks of a loop's accesses and their conjuncts that are the same along rows, if all have these and the same others,
    which compare along rows. None of both else, or where a register has several rows or no row ends within one, or if the loop
    does not only store."""
    layout = loop.layout
    if len(layout.shape) == 1 or len(axis_bits(layout, "lane", len(layout.shape) - 1)) < layout.in_bits("lane"):
        return frozenset(), ()
    if not all(isinstance(root, tile.StoreOp) for root in loop.roots):
        return frozenset(), ()
    loads = [value.owner for value in loop.needs if is_tile(value) and value not in registers.buffers]
    accesses = [op for op in (*loads, *loop.roots) if isinstance(op, tile.LoadOp | tile.StoreOp)]
    masks = dict.fromkeys(op.mask for op in accesses if op.mask is not None)
    rows: list[frozenset[SSAValue]] = []
    compared: set[frozenset[tile.CompareOp]] = set()
    for mask in masks:
        conjuncts, along = list(_conjuncts(mask)), list(_along_rows(registers, mask))
        same = [each for each in conjuncts if _is_same_along_rows(registers, each)]
        if len(same) + len(along) < len(conjuncts):
            return frozenset(), ()
        rows.append(frozenset(same))
        compared.add(frozenset(along))
    if len(set(rows)) > 1 or len(compared) > 1:
        return frozenset(), ()
    register = layout.shape[-1] >> len(axis_bits(layout, "register", len(layout.shape) - 1))
    if not any(_may_end_within(registers, compare, register) for compare in next(iter(compared), ())):
        return frozenset(), ()
    return frozenset(masks), [each for each in _conjuncts(next(iter(masks))) if each in rows[0]]


def _may_end_within(registers: Registers, compare: tile.CompareOp, size: int) -> bool:
    """Whether rows that a comparison ends may end within a register of so many columns. Where they end with one, pairs of whole
    registers are as many instructions, and copies of rows of 512 bytes from memory took up to 1.27 of the time one by one."""
    bound = bound_of(compare, registers.facts.axis)
    return bound is None or registers.facts.axis[bound].divisibility[-1] % size != 0


def _masks(root: Root, one_row: bool) -> Collection[SSAValue] | None:
    """Masks of which one is true where a root wants an element; None where it may want any."""
    match root:
        case tile.StoreOp():
            return None if root.mask is None else [root.mask]
        case tile.ReduceOp() if one_row and begins_with_zero(root):
            return masks_of_zeros(root.sources[0])
        case WriteBack() if one_row and not root.staged:
            added, loop = defining_op(root.value), root.op.parent_op()
            if not isinstance(added, tile.BinaryOp) or added.kind.data != "add" or not isinstance(loop, scf.ForOp):
                return None
            initial = defining_op(loop.iter_args[root.position])
            if root.carried not in added.operands or not isinstance(initial, tile.ConstantOp):
                return None
            other = added.rhs if added.lhs is root.carried else added.lhs
            return masks_of_zeros(other) if copysign(1, initial.number) > 0 or initial.number else None
        case _:
            return None


def _is_in_order(layout: LinearLayout) -> bool:
    """Whether the registers along a row are in its order, each behind the lanes of those before it."""
    bits = axis_bits(layout, "register", len(layout.shape) - 1)
    moves = [layout.columns("register")[bit.bit_length() - 1] for bit in bits]
    return bits == sorted(bits) and moves == [layout.shape[-1] >> len(bits) - at for at in range(len(bits))]


def _conjuncts(mask: SSAValue) -> Iterator[SSAValue]:
    """What a mask is the conjunction of."""
    op = mask.owner
    if isinstance(op, tile.BinaryOp) and op.kind.data == "and":
        for each in op.operands:
            yield from _conjuncts(each)
    else:
        yield mask


def _along_rows(registers: Registers, mask: SSAValue) -> Iterator[tile.CompareOp]:
    """The comparisons in a mask's conjuncts that are the same for all rows."""
    axis = registers.facts.axis
    for each in _conjuncts(mask):
        *above, _ = axis[each].constancy
        *rows, _ = shape_of(each)
        if above != rows or _is_same_along_rows(registers, each):
            continue
        op = each.owner
        while isinstance(op, Operation) and isinstance(op, tile.ExpandDimsOp | tile.BroadcastOp):
            op = op.source.owner
        if isinstance(op, tile.CompareOp) and bound_of(op, axis) is not None and _is_counted(op.lhs):
            yield op


def _is_same_along_rows(registers: Registers, mask: SSAValue) -> bool:
    """Whether each row of a mask of more than one column has one value."""
    last, row = registers.facts.axis[mask].constancy[-1], shape_of(mask)[-1]
    return last == row and row > 1


def _is_counted(value: SSAValue) -> bool:
    """Whether differences of the elements of a value can be computed as int64."""
    return not is_pointer(value) and dtype_of(value).is_integer and dtype_of(value).max <= _MOST


def _end(registers: Registers, compare: tile.CompareOp) -> ir.Value:
    """How many of the numbers along a row are below the bound; negative numbers stand for none."""
    builder = registers.builder
    bound = bound_of(compare, registers.facts.axis)
    offsets = compare.rhs if bound is compare.lhs else compare.lhs
    assert bound is not None, "what is compared has a bound"
    first, limit = (_number(registers, value) for value in (offsets, bound))
    inclusive = compare.kind.data in ("le", "ge")
    below = intrinsic(builder, "ssub.sat", [limit, first])
    return intrinsic(builder, "sadd.sat", [below, ir.Constant(I64, int(inclusive))])


def _number(registers: Registers, value: SSAValue) -> ir.Value:
    """The first element of a tile of integers."""
    number = registers.lane(value, RegisterIndex(), 0)
    if number.type == I64:
        return number
    return registers.builder.sext(number, I64) if dtype_of(value).signed else registers.builder.zext(number, I64)
