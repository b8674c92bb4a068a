"""The search: tables of estimates, elimination, true prices of what was chosen, and again until no price changes.

    choices for the quotas 4, 3, 2, 1, until the widest table is predicted to fit
    best = the preference order
    at most 6 times:
        eliminate the tables, in which a conversion costs what its plan does if it is known, else its estimate
        plan all conversions and reductions that the solution uses; best = the cheaper by true prices and spills (`lifetimes`)
        if no price changed: stop, or where it spills bar the choices that hold more registers than the preference order's

An estimate is below the plan's price. So where the solution's prices were all known, no other solution of these choices is
cheaper, as far as tables are exact (`tables`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts, SolverRules
from weft.transforms.layouts.solve.candidates import Candidates
from weft.transforms.layouts.solve.eliminate import Table, eliminate, elimination_order
from weft.transforms.layouts.solve.forms import Forms, packed
from weft.transforms.layouts.solve.lifetimes import Lifetimes
from weft.transforms.layouts.solve.problem import Problem, Variable, state
from weft.transforms.layouts.solve.tables import Columns, Wants, wants_of

QUOTAS: Final = (4, 3, 2, 1)
WIDEST: Final = 300_000
"""Entries of the largest table."""
ASKED: Final = 3_000
"""Conversions whose estimates are asked for."""
ROUNDS: Final = 6
MARGIN: Final = 1.01
"""Times a solution's price, that the preference order costs at least where it is given up: prices are no more exact."""
_INFINITE: Final = float("inf")


Conversion = tuple[int, int, int]
"""The forms of source and destination, and the bits of an element."""


@dataclass
class Prices:
    """Prices of choices and conversions: true ones, and those that are estimates until they are asked for."""

    rules: SolverRules
    facts: LayoutFacts
    forms: Forms
    conversions: dict[Conversion, float] = field(default_factory=dict[Conversion, float])
    estimates: dict[Conversion, float] = field(default_factory=dict[Conversion, float])
    own: dict[tuple[int, OperandLayouts], float] = field(default_factory=dict[tuple[int, OperandLayouts], float])
    least: dict[tuple[int, OperandLayouts], float] = field(default_factory=dict[tuple[int, OperandLayouts], float])
    bits: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    changed: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    """Conversions whose plan costs something else than their estimate, as forms."""

    def _key(self, value: SSAValue, held: int, wanted: int) -> Conversion:
        bits = self.bits.get(value)
        if bits is None:
            bits = self.bits[value] = self.rules.bits(value)
        return held, wanted, bits

    def conversion(self, value: SSAValue, held: int, wanted: int) -> float:
        """The price of a conversion's plan; infinite where no plan has enough scratch."""
        key = self._key(value, held, wanted)
        found = self.conversions.get(key)
        if found is None:
            source, destination = self.forms.spelled[held], self.forms.spelled[wanted]
            try:
                found = self.rules.conversion_cost(source, destination, key[2])
            except ValueError:
                found = _INFINITE
            self.conversions[key] = found
            if self.estimates.get(key, found) != found:
                self.changed.add(key[:2])
        return found

    def estimate(self, value: SSAValue, held: int, wanted: int) -> float:
        """The price of a conversion if it is known, else a lower bound."""
        key = self._key(value, held, wanted)
        if (found := self.conversions.get(key)) is not None:
            return found
        if (found := self.estimates.get(key)) is None:
            spelled = self.forms.spelled
            found = self.estimates[key] = self.rules.least_conversion(spelled[held], spelled[wanted], key[2])
        return found

    def of(self, variable: Variable, choice: OperandLayouts, *, exact: bool) -> float:
        """The own price of a choice, times its trips."""
        if variable.op is None:
            return 0.0
        key = variable.number, choice
        if (found := self.own.get(key)) is not None:
            return found
        if exact:
            found = self.own[key] = variable.trips * self.rules.op_cost(variable.op, choice, self.facts)
        elif (found := self.least.get(key)) is None:
            found = self.least[key] = variable.trips * self.rules.least_cost(variable.op, choice, self.facts)
        return found


@dataclass(frozen=True)
class Solution:
    """A choice for each variable, by number; the price with all plans known, that of the preference order, and how it was found:
    a lower bound of all solutions of these choices (None where tables are not exact), rounds, choices a variable at most."""

    problem: Problem
    forms: Forms
    choices: tuple[OperandLayouts, ...]
    price: float
    preferred: float
    bound: float | None
    rounds: int
    quota: int
    planned: int


def solve(
    function: func.FuncOp, rules: SolverRules, facts: LayoutFacts, chosen: dict[Operation, OperandLayouts]
) -> Solution:
    """The cheapest choices that the search finds for a function, given those of the preference order; never dearer than it."""
    problem = state(function, facts, chosen)
    forms = Forms(packed(rules.bits(value) for value in problem.owner))
    candidates = Candidates(problem, rules, facts, forms)
    candidates.generate(QUOTAS[0])
    choices, wants, quota = candidates.choices, list[Wants](), QUOTAS[0]
    for quota in QUOTAS:
        choices = candidates.within(quota)
        wants = wants_of(problem, choices, forms)
        sizes = {number: len(each) for number, each in enumerate(choices)}
        asked = sum(len(each.conversions) for each in wants)
        if asked <= ASKED and elimination_order([s for each in wants for s in each.scopes], sizes)[1] <= WIDEST:
            break
    return _search(problem, choices, wants, Prices(rules, facts, forms), Lifetimes(function, problem, rules), quota)


def _search(
    problem: Problem,
    choices: Sequence[Sequence[OperandLayouts]],
    wants: Sequence[Wants],
    prices: Prices,
    lifetimes: Lifetimes,
    quota: int,
) -> Solution:
    sizes = {number: len(each) for number, each in enumerate(choices)}
    best = dict.fromkeys(sizes, 0)
    first = _picked(choices, best)
    preferred = least = _true(problem, choices, wants, prices, best) + lifetimes.price(first)
    barred = False
    bound: float | None = None
    exact = all(len(each.scopes) == 1 for each in wants)
    rounds = 0
    columns = [Columns(each, prices.estimate) for each in wants]
    own = [np.array([prices.of(v, choice, exact=False) for choice in choices[v.number]]) for v in problem.variables]
    while rounds < ROUNDS:
        rounds += 1
        tables = [Table((number,), each) for number, each in enumerate(own)]
        tables += [table for each in columns for table in each.tables(prices.changed)]
        prices.changed.clear()
        found, assignment = eliminate(tables, sizes)
        if not barred:
            bound = found if exact else None
        picked = _picked(choices, assignment)
        price, spills = _true(problem, choices, wants, prices, assignment), lifetimes.price(picked)
        for v in problem.variables:
            at = assignment[v.number]
            own[v.number][at] = prices.of(v, choices[v.number][at], exact=True)
        if price + spills < least and (price + spills) * MARGIN <= preferred:
            least, best = price + spills, assignment
        if found >= least or found * MARGIN > preferred:
            break
        if price <= found * (1 + 1e-9):
            dear = (
                {number for number in lifetimes.too_many(picked, first) if assignment[number]} if spills else set[int]()
            )
            if not dear:
                break
            barred = True
            for number in dear:
                own[number][assignment[number]] = _INFINITE
    picked = _picked(choices, best)
    return Solution(problem, prices.forms, picked, least, preferred, bound, rounds, quota, len(prices.conversions))


def _picked(choices: Sequence[Sequence[OperandLayouts]], assignment: dict[int, int]) -> tuple[OperandLayouts, ...]:
    return tuple(choices[number][assignment[number]] for number in range(len(choices)))


def _true(
    problem: Problem,
    choices: Sequence[Sequence[OperandLayouts]],
    wants: Sequence[Wants],
    prices: Prices,
    assignment: dict[int, int],
) -> float:
    """The price of an assignment with all its plans."""
    total = sum(prices.of(v, choices[v.number][assignment[v.number]], exact=True) for v in problem.variables)
    for each in wants:
        held = each.held[assignment[each.owner]]
        asked = dict.fromkeys(
            form
            for reader, wanted in zip(each.readers, each.wanted, strict=True)
            for form in wanted[assignment[reader]]
        )
        total += each.trips * sum(prices.conversion(each.value, held, form) for form in asked if form != held)
    return total
