"""The choices among which a solution is searched: few, and such that some agree along each chain of ops.

Ops that care (accesses, reductions, dots) propose layouts for themselves (`SolverRules.proposals`). Each proposal that costs
little more than the op's cheapest spreads to neighbours, breadth first: a reader may take what it is given, a held value may
be made as it is wanted. Where the layout of one access reaches another, layouts that suit both are proposed too. A variable
takes at most ``quota`` choices from each op that proposes, and 8 times ``quota`` in all. The preference order's choice is always
the first.

A plain limit on the choices of a variable would fill with variants of one op's proposal.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.ir import tile
from weft.layout import LinearLayout
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts, SolverRules
from weft.transforms.layouts.solve.forms import Forms
from weft.transforms.layouts.solve.problem import Problem, Variable, carried

DEARER: Final = 1.2
"""Times the price of an op's cheapest proposal, above which a proposal is dropped."""
IN_ALL: Final = 8
"""Times the quota: the most choices of a variable."""

Key = tuple[int, ...]


@dataclass(frozen=True)
class _Seed:
    """A choice that spreads: of which variable it is, and whose proposal it was; a negative number for those that suit two."""

    variable: Variable
    choice: OperandLayouts
    origin: int


@dataclass
class Candidates:
    """The choices of each variable by its number, each with the least quota under which it is one."""

    problem: Problem
    rules: SolverRules
    facts: LayoutFacts
    forms: Forms
    choices: list[list[OperandLayouts]] = field(default_factory=list[list[OperandLayouts]])
    _quotas: list[dict[Key, int]] = field(default_factory=list[dict[Key, int]])
    _taken: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _given: dict[tuple[tuple[tile.ShapeOp, ...], LinearLayout], Sequence[LinearLayout]] = field(
        default_factory=dict[tuple[tuple[tile.ShapeOp, ...], LinearLayout], Sequence[LinearLayout]]
    )

    def generate(self, quota: int) -> None:
        """Fills ``choices``."""
        variables = self.problem.variables
        self.choices = [[] for _ in variables]
        self._quotas = [{} for _ in variables]
        self._taken = {}
        queue: deque[_Seed] = deque()
        proposed = [self._proposed(variable) for variable in variables]
        self._spell(proposed)
        for variable in variables:
            self._add(variable, variable.preferred, 1)
        for variable in variables:
            for place, choice in enumerate(self._seeds(variable, proposed[variable.number])[: quota + 1]):
                self._add(variable, choice, max(1, place))
                queue.append(_Seed(variable, choice, variable.number))
        while queue:
            seed = queue.popleft()
            for variable, choice in self._neighbours(seed, quota):
                if self._take(variable, choice, seed.origin, quota):
                    queue.append(_Seed(variable, choice, seed.origin))
                    for joint in self._joint(variable, choice):
                        if self._take(variable, joint, -variable.number - 1, quota):
                            queue.append(_Seed(variable, joint, -variable.number - 1))
        for variable in variables:
            for choice in self._combined(variable):
                self._take(variable, choice, variable.number, quota, combined=True)

    def within(self, quota: int) -> list[list[OperandLayouts]]:
        """The choices that a smaller quota leaves."""
        return [
            [choice for choice, least in zip(choices, quotas.values(), strict=True) if least <= quota]
            for choices, quotas in zip(self.choices, self._quotas, strict=True)
        ]

    def _spelled(self, layout: LinearLayout | None) -> LinearLayout | None:
        return None if layout is None else self.forms.spelling(layout)

    def _key(self, choice: OperandLayouts) -> Key:
        number = self.forms.number
        return tuple([-1 if each is None else number(each) for each in (*choice.operands, *choice.results)])

    def _add(self, variable: Variable, choice: OperandLayouts, quota: int) -> bool:
        key = self._key(choice)
        quotas = self._quotas[variable.number]
        results = tuple(map(self._spelled, choice.results))
        if key in quotas or (quotas and self.rules.spells(variable.op) == 0 and results != choice.results):
            return False
        quotas[key] = max(quota, -(-len(quotas) // IN_ALL))
        self.choices[variable.number].append(OperandLayouts(tuple(map(self._spelled, choice.operands)), results))
        return True

    def _full(self, variable: Variable, origin: int, quota: int) -> bool:
        """Whether a variable takes no more choices from an op."""
        taken = self._taken.get((origin, variable.number), 0)
        return taken >= quota or len(self.choices[variable.number]) >= IN_ALL * quota

    def _take(
        self, variable: Variable, choice: OperandLayouts, origin: int, quota: int, *, combined: bool = False
    ) -> bool:
        """Enters a choice if there is room for it."""
        if len(self.choices[variable.number]) >= IN_ALL * quota if combined else self._full(variable, origin, quota):
            return False
        count = self._taken.get((origin, variable.number), 0)
        if not self._add(variable, choice, 1 if combined else count + 1):
            return False
        self._taken[origin, variable.number] = count + 1
        return True

    def _proposed(self, variable: Variable) -> list[OperandLayouts]:
        """The preferred choice, and what the op proposes by itself."""
        if variable.op is None:
            return [variable.preferred]
        return [variable.preferred, *self.rules.proposals(variable.op, variable.preferred, self.facts)]

    def _spell(self, proposed: Sequence[Sequence[OperandLayouts]]) -> None:
        """Enters layouts in the order in which they decide the spelling: first the results of ops that ask for an order of
        registers, then the preferred layouts."""
        ranked = sorted(self.problem.variables, key=lambda variable: self.rules.spells(variable.op))
        asked = [choice.results for v in ranked if self.rules.spells(v.op) == 0 for choice in proposed[v.number]]
        preferred = [(*v.preferred.operands, *v.preferred.results) for v in ranked]
        for layout in itertools.chain.from_iterable([*asked, *preferred]):
            if layout is not None:
                self.forms.number(layout)

    def _seeds(self, variable: Variable, proposed: Sequence[OperandLayouts]) -> list[OperandLayouts]:
        """The preferred choice of an op, then its own proposals, the cheapest first, without the dear ones."""
        op = variable.op
        if op is None:
            return []
        if len(proposed) == 1:
            return [variable.preferred]
        different: dict[Key, OperandLayouts] = {}
        for choice in proposed:
            different.setdefault(self._key(choice), choice)
        priced = [(self.rules.least_cost(op, choice, self.facts), choice) for choice in different.values()]
        least = min(price for price, _ in priced)
        kept = [each for each in priced[1:] if each[0] <= DEARER * least]
        return [variable.preferred, *(choice for _, choice in sorted(kept, key=lambda each: each[0]))]

    def _combined(self, variable: Variable) -> list[OperandLayouts]:
        """Choices made of parts of an op's others."""
        return [] if variable.op is None else list(self.rules.combined(variable.op, self.choices[variable.number]))

    def _joint(self, variable: Variable, choice: OperandLayouts) -> Iterator[OperandLayouts]:
        """Choices of an access that suit also the one from which ``choice`` came."""
        if variable.op is not None:
            yield from self.rules.joint(variable.op, variable.preferred, choice)

    def _neighbours(self, seed: _Seed, quota: int) -> Iterator[tuple[Variable, OperandLayouts]]:
        variable, choice, origin = seed.variable, seed.choice, seed.origin
        held = next((layout for layout in choice.results if layout is not None), None)
        if held is not None:
            for value in variable.results:
                for reader, read in self.problem.readers.get(value, ()):
                    if not self._full(reader, origin, quota):
                        for layout in self._arriving(read.path, held):
                            for found in self._with_operand(reader, read.index, layout):
                                yield reader, found
        for read in variable.inputs:
            wanted, owner = choice.operands[read.index], self.problem.owner[read.value]
            if wanted is not None and not self._full(owner, origin, quota):
                for found in self._with_result(owner, read.wanted(wanted)):
                    yield owner, found

    def _arriving(self, path: tuple[tile.ShapeOp, ...], held: LinearLayout) -> Sequence[LinearLayout]:
        """The layouts in which a held value may arrive at the end of a path; answers are kept."""
        found = self._given.get((path, held))
        if found is None:
            found = self._given[path, held] = self.rules.given(path, held)
        return found

    def _with_operand(self, variable: Variable, index: int, layout: LinearLayout) -> Sequence[OperandLayouts]:
        if variable.op is None:
            return [carried(layout, len(variable.preferred.operands))]
        return self.rules.with_operand(variable.op, index, layout)

    def _with_result(self, variable: Variable, layout: LinearLayout) -> Sequence[OperandLayouts]:
        if variable.op is None:
            return [carried(layout, len(variable.preferred.operands))]
        return self.rules.with_result(variable.op, variable.preferred, layout)
