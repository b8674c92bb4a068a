"""How many registers of a thread the tiles of a function take at once, by a walk over lifetimes.

A held value lives from its definition to its last reader, in the form in which it is held and in each form that readers want of
it. What comes into a loop from outside and is read there lives until the loop's end. Free values are computed where they are
read. They are not counted, and neither are loads from buffers and addresses, for which a machine keeps some registers (`spills`).

    op                      live after it, in words of a thread (128 x 64 scores, 128 x 128 sums, 4 warps)
    loop                    sums 128, largest and total 8
    score = dot             200
    weight = exp2(score)    200 and a few of rows: the score ends where the weight begins
    cast                    168: halves
    sums = dot              its left operand is read while it comes about

An elementwise op's operand and result share registers, element by element. Both operands of a dot are there beside the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue

from weft.ir import tile
from weft.layout import LinearLayout
from weft.transforms.layouts.rules import OperandLayouts, SolverRules
from weft.transforms.layouts.solve.forms import Forms
from weft.transforms.layouts.solve.problem import Input, Problem, Variable

_WORD: Final = 32


@dataclass(frozen=True)
class Life:
    """Words of a thread, from ``start`` until before ``end``; the variables by whose choices they are so many."""

    start: int
    end: int
    words: int
    variables: tuple[int, ...]


@dataclass(frozen=True)
class Peak:
    """Where a block holds most: the words, and the variables that hold them, each with its words."""

    block: Block
    words: int
    lives: tuple[Life, ...]


class Lifetimes:
    """The lifetimes of a problem's held values under any choices."""

    def __init__(self, function: func.FuncOp, problem: Problem, rules: SolverRules):
        self._problem = problem
        self._rules = rules
        self._forms = Forms()
        self._places: dict[Operation, int] = {}
        self._blocks: list[Block] = []
        self._number(function.body.block)
        self._reads = [
            (
                value,
                self._start(value),
                [(variable, read, self._end(value, variable, read)) for variable, read in reads],
            )
            for value, reads in problem.readers.items()
        ]

    def price(self, choices: Sequence[OperandLayouts]) -> float:
        """The price of spills, times the trips of the blocks they are in."""
        trips = self._problem.trips
        return sum(self._rules.spills(peak.words) * trips.of_block(peak.block) for peak in self.peaks(choices))

    def peaks(self, choices: Sequence[OperandLayouts]) -> list[Peak]:
        """Where each block holds most."""
        lives = list(self._lives(choices))
        steps = [0] * (2 * len(self._blocks) + 2)
        for life in lives:
            steps[life.start] += life.words
            steps[life.end] -= life.words
        held, most = 0, dict[Block, tuple[int, int]]()
        for at, step in enumerate(steps[: 2 * len(self._blocks)]):
            held += step
            block = self._blocks[at // 2]
            if at % 2 == 0 and held > most.get(block, (0, 0))[0]:
                most[block] = held, at
        return [
            Peak(block, words, tuple(life for life in lives if life.start <= at < life.end))
            for block, (words, at) in most.items()
        ]

    def too_many(self, choices: Sequence[OperandLayouts], others: Sequence[OperandLayouts]) -> set[int]:
        """Of the variables that hold something where a block spills those that hold more of it than under other choices."""
        now, then = self._by_variable(choices), self._by_variable(others)
        found: set[int] = set()
        for peak in self.peaks(choices):
            if self._rules.spills(peak.words):
                found.update(each for life in peak.lives for each in life.variables if now[each] > then.get(each, 0))
        return found

    def _by_variable(self, choices: Sequence[OperandLayouts]) -> dict[int, int]:
        """The most words of one form for which each variable is the cause."""
        found: dict[int, int] = {}
        for life in self._lives(choices):
            for each in life.variables:
                found[each] = max(found.get(each, 0), life.words)
        return found

    def _lives(self, choices: Sequence[OperandLayouts]) -> Iterator[Life]:
        forms, owner = self._forms, self._problem.owner
        for value, start, reads in self._reads:
            held = next(layout for layout in choices[owner[value].number].results if layout is not None)
            ends: dict[int, int] = {}
            wanted: dict[int, list[int]] = {}
            for variable, read, end in reads:
                layout = choices[variable.number].operands[read.index]
                if layout is not None:
                    form = forms.number(read.wanted(layout))
                    ends[form] = max(ends.get(form, start), end)
                    wanted.setdefault(form, []).append(variable.number)
            own = forms.number(held)
            for form, end in ends.items():
                who = (owner[value].number,) if form == own else tuple(wanted[form])
                yield Life(start, end, self._words(value, forms.spelled[form]), who)

    def _words(self, value: SSAValue, layout: LinearLayout) -> int:
        held = sum(map(bool, layout.columns("register")))
        return max(1, (self._rules.bits(value) << held) // _WORD)

    def _number(self, block: Block) -> None:
        """Numbers the ops in their order, twice each: a dot's operands live half a step longer."""
        for op in block.ops:
            self._places[op] = 2 * len(self._blocks)
            self._blocks.append(block)
            if not isinstance(op, tile.CombiningOp):
                for region in op.regions:
                    for inner in region.blocks:
                        self._number(inner)

    def _start(self, value: SSAValue) -> int:
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            assert parent is not None, "held values are no arguments of the function"
            return self._places[parent]
        return self._last(owner) if owner.regions and not isinstance(owner, tile.CombiningOp) else self._places[owner]

    def _last(self, op: Operation) -> int:
        """The end of an op with regions."""
        blocks = [block for region in op.regions for block in region.blocks]
        end = blocks[-1].last_op
        assert end is not None, "the verifier asks structured control flow for terminators"
        return self._places[end]

    def _end(self, value: SSAValue, variable: Variable, read: Input) -> int:
        """Where a value is read; the end of a loop that it comes into from outside."""
        op = read.reader
        end = self._places[op]
        if isinstance(op, tile.DotOp) and read.index < 2:
            end += 1
        home = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
        while op.parent_block() is not home:
            parent = op.parent_op()
            assert parent is not None, "readers are where the value is defined, or inside"
            op = parent
            if isinstance(op, scf.ForOp | scf.WhileOp):
                end = max(end, self._last(op))
        return end
