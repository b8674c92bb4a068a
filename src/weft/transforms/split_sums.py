"""A long row is summed in parts, so that several threads may sum it.

A program runs on one thread. A grid of one program that sums a row of millions of elements leaves all others idle. The sum of
floats depends on the order of its additions, so parts must not depend on how many threads there are: the loop always sums in
parts, of sizes that follow from the number of iterations alone.

    before                                       after
    for k in range(low, high, step):             for p in range(parts):
        total += sum(x(k))                           part = -0.0
                                                     for k in part p of range(low, high, step):
                                                         part += sum(x(k))
                                                     total += part

Where the runtime finds that programs are long and fewer than threads (`weft.runtime.parted`), it compiles two more kernels from
the same function. Both have one parameter more, the address of memory for `MOST_PARTS` numbers of 8 bytes for each sum of each
program:

- `Phase.PARTS` runs part p of program x as program ``MOST_PARTS * x + p``, and stores its sums;
- `Phase.TOTALS` adds them up in order, in place of the loop, and does what the kernel does with the totals.

Such a kernel

1. has one loop, which is not in another or in a branch, over numbers with a known step, and no effects but loads, and stores
   behind the loop;
2. carries nothing through it but sums, of integers or of floats of 32 bits and more: numbers to which sums of tiles are added, or
   rows to which rows are added and of which only the sum is used, behind the loop. Its order is then free (docs/architecture.md,
   "Meaning"); other rows are added elementwise, in the order of the program;
3. is no kernel whose programs are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft import dtypes
from weft.ir import tile
from weft.ir.direct import defining_op, ops_in
from weft.ir.types import dtype_of, is_pointer, is_tile, pointer, scalar, shape_of
from weft.options import Phase
from weft.transforms.delay_sums import IN_ORDER
from weft.transforms.flags import waits
from weft.transforms.join_programs import WHOLE, joined_of

SUMS: Final = "tile.sums"
"""The attribute of a function that sums in parts: how many sums."""

MOST_PARTS: Final = 16
"""The most parts of a sum."""

SMALLEST: Final = 1 << 16
"""The elements of a part at least: reading them takes several times as long as waking a thread."""

_REFUSED: Final = WHOLE | {tile.AtomicRmwOp, scf.IfOp}


class _Sum(NamedTuple):
    """What a loop carries: a number, or a row of which ``reduce`` is the sum."""

    reduce: tile.ReduceOp | None


@dataclass(frozen=True)
class SplitSums(ModulePass):
    """Sums in parts. ``phase``: the kernel as a whole, or a half of it."""

    name = "split-sums"

    phase: str = Phase.WHOLE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [f for f in op.ops if isinstance(f, func.FuncOp) and f.body.blocks]:
            if joined_of(kernel) is not None or (loop := _only_loop(kernel)) is None:
                continue
            sums = [_sum(loop, i) for i in range(len(loop.iter_args))]
            found = [each for each in sums if each is not None]
            if not found or len(found) < len(sums):
                continue
            _Split(kernel, loop, found, self.phase).run()
            kernel.attributes[SUMS] = IntegerAttr(len(found), i64)


def sums_of(kernel: func.FuncOp) -> int:
    """How many sums a kernel adds up in parts; 0 for one that does not."""
    count = kernel.attributes.get(SUMS)
    return count.value.data if isinstance(count, IntegerAttr) else 0


def _only_loop(kernel: func.FuncOp) -> scf.ForOp | None:
    """The loop of a kernel that has one of the kind (rule 1)."""
    loops = [op for op in ops_in(kernel) if isinstance(op, scf.ForOp)]
    if waits(kernel) or len(loops) != 1 or any(type(op) in _REFUSED for op in ops_in(kernel)):
        return None
    (loop,) = loops
    step = defining_op(loop.step)
    known = isinstance(step, tile.ConstantOp) and step.number > 0
    counts = not is_tile(loop.lb) and dtype_of(loop.lb) in (dtypes.int32, dtypes.int64)
    if loop.parent is not kernel.body.block or not known or not counts or _elements(loop) < 1:
        return None
    before = True
    for op in ops_in(kernel):
        before = before and op is not loop
        if isinstance(op, tile.StoreOp) and (before or op.parent is loop.body.block):
            return None
    return loop


def _elements(loop: scf.ForOp) -> int:
    """The elements that an iteration loads."""
    return sum(prod(shape_of(op.result)) for op in ops_in(loop) if isinstance(op, tile.LoadOp))


def _sum(loop: scf.ForOp, i: int) -> _Sum | None:
    """The carried value ``i``, if it is a sum (rule 2)."""
    argument, end = loop.body.block.args[1 + i], loop.body.block.last_op
    yielded = None if end is None else defining_op(end.operands[i])
    if not isinstance(yielded, tile.BinaryOp) or yielded.kind.data != "add" or not yielded.result.has_one_use():
        return None
    if is_pointer(argument) or not argument.has_one_use() or argument not in yielded.operands:
        return None
    dtype = dtype_of(argument)
    if not dtype.holds_sums:
        return None
    if not is_tile(argument):
        added = defining_op(yielded.rhs if yielded.lhs is argument else yielded.lhs)
        summed = isinstance(added, tile.ReduceOp) and added.is_sum
        return _Sum(None) if summed or dtype.is_integer else None
    result = loop.res[i]
    if len(shape_of(argument)) != 1 or not result.has_one_use():
        return None
    (use,) = result.uses
    reduce = use.operation
    if not isinstance(reduce, tile.ReduceOp) or not reduce.is_sum or reduce.parent is not loop.parent:
        return None
    return _Sum(reduce) if dtype_of(reduce.results_[0]) is dtype else None


class _Split:
    """The rewriting of one loop."""

    def __init__(self, kernel: func.FuncOp, loop: scf.ForOp, sums: Sequence[_Sum], phase: str):
        self._kernel, self._loop, self._sums, self._phase = kernel, loop, sums, phase
        self._point = InsertPoint.before(loop)

    def run(self) -> None:
        """Rewrites the kernel."""
        loop, phase = self._loop, self._phase
        memory, part = (None, None) if phase == Phase.WHOLE else self._memory()
        low, high, step = (self._add(tile.CastOp(value, dtypes.int64)) for value in (loop.lb, loop.ub, loop.step))
        zero, one = self._number(0), self._number(1)
        iterations = self._divided(self._binary("max", self._binary("sub", high, low), zero), step)
        least = self._number(-(-SMALLEST // _elements(loop)))
        size = self._binary("max", self._divided(iterations, self._number(MOST_PARTS)), least)
        first, end = zero, self._divided(iterations, size)
        if part is not None and phase == Phase.PARTS:  # a loop, too, so that both add up in one order
            first, end = part, self._binary("min", self._binary("add", part, one), end)
        totals = [] if phase == Phase.PARTS else [self._initial(i) for i in range(len(self._sums))]
        block = Block(arg_types=[scalar(dtypes.int64), *(total.type for total in totals)])
        outer = scf.ForOp(first, end, one, totals, Region(block))
        outer.attributes[IN_ORDER] = UnitAttr()
        self._add(outer)
        self._point = InsertPoint.at_end(block)
        number = block.args[0]
        if phase == Phase.TOTALS:
            found = [self._add(tile.LoadOp(self._place(memory, i, number))) for i in range(len(totals))]
        else:
            span = self._binary("mul", size, step)
            begin = self._binary("add", low, self._binary("mul", number, span))
            found = self._parts(begin, self._binary("min", self._binary("add", begin, span), high))
        if phase == Phase.PARTS:
            for i, value in enumerate(found):
                self._add(tile.StoreOp(self._place(memory, i, number), value))
        added = [self._binary("add", *pair) for pair in zip(block.args[1:], found, strict=bool(totals))]
        self._add(scf.YieldOp(*added))
        self._finish(outer)

    def _parts(self, begin: SSAValue, end: SSAValue) -> list[SSAValue]:
        """Moves the loop's body into a loop here, from a number up to another, and gives its sums."""
        loop, dtype = self._loop, dtype_of(self._loop.lb)
        low, high = (self._add(tile.CastOp(value, dtype)) for value in (begin, end))
        starts = [self._add(_identity(argument)) for argument in loop.iter_args]
        inner = scf.ForOp(low, high, loop.step, starts, Region(loop.body.detach_block(0)))
        self._add(inner)
        found: list[SSAValue] = []
        for sum_, result in zip(self._sums, inner.res, strict=True):
            if sum_.reduce is None:
                found.append(result)
            else:
                found.append(self._add(tile.ReduceOp([result], 0, tile.ReduceOp.region(dtype_of(result), "add"))))
        return found

    def _finish(self, outer: scf.ForOp) -> None:
        """Puts the totals in the place of the loop, or ends the kernel behind it."""
        loop = self._loop
        if self._phase == Phase.PARTS:
            behind = [op for op in self._kernel.body.block.ops if op.parent is loop.parent]
            behind = behind[behind.index(outer) + 1 : -1]
            for op in reversed(behind):
                Rewriter.erase_op(op)
            return
        for i, sum_ in enumerate(self._sums):
            old = loop.res[i] if sum_.reduce is None else sum_.reduce.results_[0]
            old.replace_all_uses_with(outer.res[i])
        for op in [sum_.reduce for sum_ in self._sums if sum_.reduce is not None]:
            Rewriter.erase_op(op)
        Rewriter.erase_op(loop)

    def _initial(self, i: int) -> SSAValue:
        """What the loop begins to add to."""
        initial = self._loop.iter_args[i]
        if self._sums[i].reduce is None:
            return initial
        made = defining_op(initial)
        if isinstance(made, tile.ConstantOp) and made.number == 0:
            return self._add(tile.ConstantOp(made.number, scalar(dtype_of(initial))))
        return self._add(tile.ReduceOp([initial], 0, tile.ReduceOp.region(dtype_of(initial), "add")))

    def _memory(self) -> tuple[SSAValue, SSAValue]:
        """The address of the memory of the program's sums, and which part it is: the ids along the first axis count parts in one
        phase."""
        kernel = self._kernel
        block = kernel.body.block
        inputs = [argument.type for argument in block.args]
        memory = block.insert_arg(pointer(dtypes.int64), len(inputs))
        memory.name_hint = "sums"
        kernel.properties["function_type"] = FunctionType.from_lists([*inputs, memory.type], [])
        if kernel.arg_attrs is not None:
            kernel.properties["arg_attrs"] = ArrayAttr([*kernel.arg_attrs.data, DictionaryAttr({})])
        facts = [op for op in ops_in(kernel) if isinstance(op, tile.ProgramIdOp | tile.NumProgramsOp)]
        self._point = InsertPoint.at_start(block)
        x, y, z = (self._add(tile.ProgramIdOp(axis)) for axis in range(3))
        nx, ny = (self._add(tile.NumProgramsOp(axis)) for axis in range(2))
        part = self._add(tile.ConstantOp(0, scalar(dtypes.int32)))
        if self._phase == Phase.PARTS:
            most = self._add(tile.ConstantOp(MOST_PARTS, scalar(dtypes.int32)))
            part, x, nx = self._binary("rem", x, most), self._binary("div", x, most), self._binary("div", nx, most)
            for op in facts:
                if op.axis.value.data == 0:
                    op.result.replace_all_uses_with(x if isinstance(op, tile.ProgramIdOp) else nx)
        program = self._binary("add", x, self._binary("mul", nx, self._binary("add", y, self._binary("mul", ny, z))))
        offset = self._binary(
            "mul", self._add(tile.CastOp(program, dtypes.int64)), self._number(MOST_PARTS * len(self._sums))
        )
        place = self._add(tile.AddPtrOp(memory, offset))
        part = self._add(tile.CastOp(part, dtypes.int64))
        self._point = InsertPoint.before(self._loop)
        return place, part

    def _place(self, memory: SSAValue | None, i: int, number: SSAValue) -> SSAValue:
        """Where a part's sum ``i`` is."""
        assert memory is not None, "both halves of a kernel have memory"
        at = self._binary("add", self._binary("mul", number, self._number(len(self._sums))), self._number(i))
        address = self._add(tile.AddPtrOp(memory, at))
        return self._add(tile.BitcastOp(address, pointer(dtype_of(self._loop.iter_args[i]))))

    def _number(self, number: int) -> SSAValue:
        return self._add(tile.ConstantOp(number, scalar(dtypes.int64)))

    def _binary(self, kind: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self._add(tile.BinaryOp(kind, a, b))

    def _divided(self, number: SSAValue, by: SSAValue) -> SSAValue:
        """The quotient of numbers that are not negative, rounded up."""
        above = self._binary("sub", self._binary("add", number, by), self._number(1))
        return self._binary("div", above, by)

    def _add(self, op: Operation) -> SSAValue:
        """Inserts an op, and gives its result, if it has one."""
        op.location = self._loop.location
        Rewriter.insert_op(op, self._point)
        return op.results[0] if op.results else self._loop.lb


def _identity(value: SSAValue) -> tile.ConstantOp:
    """What changes no number that it is added to, a zero's sign included."""
    return tile.ConstantOp(-0.0 if dtype_of(value).is_float else 0, value.type)
