"""Running through the registers of a layout: which are unrolled, which loop, in which order.

The registers along the axis of the loop's reductions are innermost, so that a result is complete each time they have run through.
The lowest of them are unrolled; tiles of a few registers are unrolled completely. A body of many values is unrolled less, or not
at all: LLVM's time grows faster than the length of a basic block, and a long body hides its latencies without copies.

A scan whose axis lies across long rows of memory goes by rows: column by column it would touch a new cache line, and a new
page, for each register. Its totals are then in local memory.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, TypeAlias

from llvmlite import ir

from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.views import used_registers
from weft.codegen.emit.context import Emit
from weft.codegen.llvm.types import I64
from weft.layout import LinearLayout
from weft.layout.algebra import f2

UNROLL_BITS = 2
"""Register loops in which something goes along an axis are unrolled this many times, as a power of two: each copy has an
accumulator of its own."""

PLAIN_BITS = 1
"""As `UNROLL_BITS`, for all other register loops. Four copies were no faster than two."""

FULL_UNROLL_BITS = 3
"""Tiles of up to this many registers, as a power of two, get no loop at all."""

UNROLL_BUDGET = 1024
"""The most work (`weft.codegen.cpu.cost.work`), over all unrolled copies of a body together, that unrolling may bring into one
basic block."""

SHORT_BUDGET = 192
"""As `UNROLL_BUDGET`, for all registers along an axis inside the loop over the others. Without a loop of their own their
accumulators are registers, and the processor mispredicts no end of it."""

LOOP_BUDGET = 96
"""As `UNROLL_BUDGET`, for a loop that is left in the end. More copies were no faster, and took LLVM up to twice the time."""


class Along(Protocol):
    """What goes along an axis while the registers are visited: a reduction or scan."""

    def start(self, copies: int, *, looped: bool) -> None:
        """Before the first register of the axis; ``copies`` of the body are unrolled, in a loop if ``looped``."""
        ...

    def finish(self, index: RegisterIndex) -> None:
        """After the last, with the index of the other registers."""
        ...


Body = Callable[[RegisterIndex, int, ir.Value | None], None]
"""What to emit for one register: its index, which unrolled copy it is, and in a loop whether it is the first iteration."""


Versions: TypeAlias = Callable[[RegisterIndex, Callable[[], None], Callable[[], None]], None]
"""Emits code for a group of registers, of which the last is given, in two versions: one where all elements of the group are
there, and one where some may not be."""


Guard: TypeAlias = Callable[[RegisterIndex], AbstractContextManager[object]]
"""A condition around the code for a group of registers, of which the first is given."""


class Ends(Protocol):
    """Where the rows of a tile, along its last dimension, end before its registers do. Those of a row are in its order."""

    @property
    def decides(self) -> bool:
        """Whether what a row has before its end is wanted of it, and nothing else, but for rows that are not wanted at all."""
        ...

    def loop(self, step: int, most: int) -> AbstractContextManager[ir.Value]:
        """A loop over parts of ``step`` elements, at most so many, up to the end; gives its counter."""
        ...

    def parts(self, row: RegisterIndex, step: int, most: int, part: Callable[[ir.Value], None]) -> None:
        """Emits the parts of the row that begins in a register, where the end decides: in a loop those that are whole, and the
        one behind them if the row ends within it. Each is given by its number."""
        ...


Terms: TypeAlias = tuple[tuple[Counter, tuple[int, ...]], ...]
"""What loops contribute to an index; see `RegisterIndex`."""


def axis_registers(layout: LinearLayout, axis: int | None) -> int:
    """The mask of register bits that move along ``axis``; of all different ones for None."""
    return used_registers(layout) if axis is None else sum(axis_bits(layout, "register", axis))


def axis_bits(layout: LinearLayout, dim: str, axis: int) -> list[int]:
    """The bits of ``dim`` ('register' or 'lane') that move along ``axis``, in the order of the axis."""
    below = sum(bits for _, bits in layout.outputs[axis + 1 :])
    along = (layout.shape[axis] - 1) << below
    moves = sorted((column, 1 << j) for j, column in enumerate(layout.columns(dim)) if column & along)
    return [bit for _, bit in moves]


def last_register(layout: LinearLayout) -> RegisterIndex:
    """The register that holds the tile's last element (in its last lane)."""
    return RegisterIndex(used_registers(layout))


def over_registers(
    emit: Emit,
    layout: LinearLayout,
    axis: int | None,
    along: Sequence[Along],
    work: int,
    body: Body,
    *,
    reverse: bool = False,
    by_rows: bool = False,
    unrolled: int = 0,
    also: int = 0,
    versions: Versions | None = None,
    together: int = 0,
    among: int = -1,
    within: Terms = (),
    accumulators: int = 0,
    ends: Ends | None = None,
    guard: Guard | None = None,
) -> None:
    """Runs ``body``, which does so much ``work``, for every different register; starts and finishes what goes ``along`` the axis.
    Registers along the axis are visited in its order, from the end in ``reverse``. With ``by_rows`` those that are between two
    along the axis are visited before the next along the axis. ``unrolled`` are the bits to unroll, if any, and ``also`` those
    where the budget allows all; else the lowest are. With ``versions`` each group of unrolled registers is emitted in both. The
    ragged one is a loop over its registers, each of them in both versions again, unless something goes along an axis, which has
    accumulators for the copies, or registers that differ by so many of the ``unrolled`` bits are wanted ``together``. Without an
    axis the registers may be those that differ by the bits ``among`` alone, beside those that loops around them give
    (``within``). A loop along an axis has exactly so many ``accumulators``, if any: so many copies, however much work that is.
    The innermost loop over registers of a row stops where the row ``ends``, which no loop with ``unrolled`` bits has. Where the
    end decides, it is one of whole registers, and the last one follows it. A ``guard`` decides for each group of unrolled
    registers whether it is visited."""
    used, inner = used_registers(layout) & among, axis_registers(layout, axis) & among
    allowed, in_loops = (_unrolled_bits(budget, work) for budget in (UNROLL_BUDGET, LOOP_BUDGET))
    unrolled |= also if (unrolled | also).bit_count() <= allowed else 0
    inner_bits = [1 << j for j in range(used.bit_length()) if inner >> j & 1]
    inner_bits.sort(key=lambda bit: not bit & unrolled)
    if axis is not None:
        inner_bits = axis_bits(layout, "register", axis)
    outer_bits = [1 << j for j in range(used.bit_length()) if (used & ~inner) >> j & 1]
    allowed = max(allowed, together)
    if by_rows and axis is not None:
        beside = bits_below(layout, axis)
        rows, others = ([b for b in outer_bits if bool(b & beside) == inside] for inside in (True, False))
        unroll = min(UNROLL_BITS, len(rows), in_loops)
        _by_rows(emit, inner_bits, rows, others, along, body, unroll=unroll, reverse=reverse, versions=versions)
        return
    small = used.bit_count() <= FULL_UNROLL_BITS and used.bit_count() <= allowed
    wanted = (unrolled & inner).bit_count() or min(UNROLL_BITS if along else PLAIN_BITS, in_loops)
    short = bool(along) and len(inner_bits) <= _unrolled_bits(SHORT_BUDGET, work)
    unroll = min(len(inner_bits) if small or short else wanted, len(inner_bits), allowed)
    if accumulators and unroll < len(inner_bits):
        unroll = min(len(inner_bits), accumulators.bit_length() - 1)
    by_parts = ends is not None and ends.decides and not (along or together or small or guard is not None)
    if by_parts and axis_bits(layout, "register", len(layout.shape) - 1):
        unroll = 0
    low, high = inner_bits[:unroll], inner_bits[unroll:]
    rows = [] if ends is None else [bit for bit in axis_bits(layout, "register", len(layout.shape) - 1) if bit in high]

    def copies(index: RegisterIndex, first: ir.Value | None) -> None:
        with nullcontext() if guard is None else guard(index):
            for copy in range(1 << unroll):
                at = (1 << unroll) - 1 - copy if reverse else copy
                body(RegisterIndex(index.const ^ f2.apply(low, at), index.terms), copy, first)

    def in_versions(index: RegisterIndex, whole: Callable[[], None]) -> None:
        if versions is None:
            whole()
            return

        def one_by_one(versions: Versions = versions) -> None:
            with _looped(emit, low) as terms:
                at = RegisterIndex(index.const, (*index.terms, *terms))
                versions(at, lambda: one(at), lambda: one(at))

        def one(at: RegisterIndex) -> None:
            with nullcontext() if guard is None else guard(at):
                body(at, 0, None)

        last = RegisterIndex(index.const ^ f2.apply(low, (1 << unroll) - 1), index.terms)
        versions(last, whole, whole if along or together or not unroll else one_by_one)

    def run_inner(outer: RegisterIndex) -> None:
        if not high:
            in_versions(outer, lambda: complete(outer))
        else:
            complete(outer)

    def complete(outer: RegisterIndex) -> None:
        for each in along:
            each.start(1 << unroll, looped=bool(high))
        with emit.scope():
            if not high:
                copies(outer, None)
            elif ends is not None and by_parts and rows:
                with _looped(emit, [bit for bit in high if bit not in rows]) as terms:
                    row = RegisterIndex(outer.const, (*outer.terms, *terms))

                    def part(position: ir.Value) -> None:
                        counter = Counter(position, len(rows))
                        body(RegisterIndex(row.const, (*row.terms, (counter, tuple(rows)))), 0, None)

                    ends.parts(row, layout.shape[-1] >> len(rows), 1 << len(rows), part)
            elif ends is not None and rows:
                with (
                    _looped(emit, [bit for bit in high if bit not in rows]) as terms,
                    ends.loop(layout.shape[-1] >> len(rows), 1 << len(rows)) as position,
                ):
                    first = emit.builder.icmp_unsigned("==", position, ir.Constant(I64, 0)) if along else None
                    group = RegisterIndex(
                        outer.const, (*outer.terms, *terms, (Counter(position, len(rows)), tuple(rows)))
                    )
                    in_versions(group, lambda: copies(group, first))
            else:
                with emit.loop(1 << len(high)) as position:
                    first = emit.builder.icmp_unsigned("==", position, ir.Constant(I64, 0)) if along else None
                    at = emit.builder.xor(position, ir.Constant(I64, (1 << len(high)) - 1)) if reverse else position
                    counter = Counter(at, len(high))
                    group = RegisterIndex(outer.const, (*outer.terms, (counter, tuple(high))))
                    in_versions(group, lambda: copies(group, first))
        for each in along:
            each.finish(outer)

    if not outer_bits:
        run_inner(RegisterIndex(0, within))
    elif small:
        for at in range(1 << len(outer_bits)):
            run_inner(RegisterIndex(f2.apply(outer_bits, at)))
    else:
        with emit.loop(1 << len(outer_bits)) as position:
            run_inner(RegisterIndex(0, ((Counter(position, len(outer_bits)), tuple(outer_bits)),)))


def _unrolled_bits(budget: int, work: int) -> int:
    return max(budget // max(work, 1), 1).bit_length() - 1


def bits_below(layout: LinearLayout, axis: int) -> int:
    """The mask of different register bits below those that move along ``axis``; none if none do."""
    along = sum(axis_bits(layout, "register", axis))
    return used_registers(layout) & (along & -along) - 1 if along else 0


def _by_rows(
    emit: Emit,
    axis_bits: Sequence[int],
    row: Sequence[int],
    others: Sequence[int],
    along: Sequence[Along],
    body: Body,
    *,
    unroll: int,
    reverse: bool,
    versions: Versions | None,
) -> None:
    """`over_registers` with the bits of a ``row`` in the innermost loop, of which ``unroll`` are unrolled, and ``others`` in the
    outermost."""
    last = (1 << len(axis_bits)) - 1

    def copies(terms: Terms, first: ir.Value) -> None:
        for copy in range(1 << unroll):
            body(RegisterIndex(f2.apply(row[:unroll], copy), terms), copy, first)

    for each in along:
        each.start(1, looped=True)
    with _looped(emit, others) as outer, emit.loop(last + 1) as step:
        first = emit.builder.icmp_unsigned("==", step, ir.Constant(I64, 0))
        at = emit.builder.xor(step, ir.Constant(I64, last)) if reverse else step
        with _looped(emit, row[unroll:]) as inner:
            terms = (*outer, (Counter(at, len(axis_bits)), tuple(axis_bits)), *inner)
            if versions is None:
                copies(terms, first)
            else:
                last_of_group = RegisterIndex(f2.apply(row[:unroll], (1 << unroll) - 1), terms)
                versions(last_of_group, lambda: copies(terms, first), lambda: copies(terms, first))
    for each in along:
        each.finish(RegisterIndex())


@contextmanager
def _looped(emit: Emit, bits: Sequence[int]) -> Generator[Terms]:
    """A loop over register bits, as the term of an index; nothing of either where there are none."""
    if not bits:
        yield ()
        return
    with emit.loop(1 << len(bits)) as position:
        yield ((Counter(position, len(bits)), tuple(bits)),)
