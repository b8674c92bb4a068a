"""Tables of prices for elimination: own prices of choices, and conversions between a value's definition and its readers.

A held value pays each distinct layout that is wanted of it once. Where few choices meet, the table of a value is over its
definition and all its readers, and exact. Else each reader pays its own conversion, which is an upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from weft.ir import tile
from weft.layout import LinearLayout
from weft.transforms.layouts.rules import OperandLayouts
from weft.transforms.layouts.solve.eliminate import Table
from weft.transforms.layouts.solve.forms import Forms
from weft.transforms.layouts.solve.problem import Input, Problem

EXACT: Final = 40_000
"""Entries up to which a value's table is over all its readers."""

Array = NDArray[Any]
Price = Callable[[SSAValue, int, int], float]
"""The price of converting a held value from a form to another."""


@dataclass(frozen=True)
class Wants:
    """For a held value: its definition's variable, its readers, the form held by each choice of the definition, and the forms
    that each choice of a reader wants of it."""

    value: SSAValue
    owner: int
    readers: tuple[int, ...]
    held: tuple[int, ...]
    wanted: tuple[tuple[tuple[int, ...], ...], ...]
    trips: float

    @property
    def conversions(self) -> set[tuple[int, int]]:
        """The conversions that some choices need, as pairs of forms."""
        forms = {form for choices in self.wanted for each in choices for form in each}
        return {(held, form) for held in set(self.held) for form in forms if held != form}

    @property
    def scopes(self) -> list[tuple[int, ...]]:
        """The scopes of the value's tables."""
        others = tuple(reader for reader in self.readers if reader != self.owner)
        sizes = [len(self.held), *(len(w) for r, w in zip(self.readers, self.wanted, strict=True) if r != self.owner)]
        if prod(sizes) <= EXACT:
            return [(self.owner, *others)]
        return [(self.owner, other) for other in others] + ([(self.owner,)] if self.owner in self.readers else [])


class WantedForms:
    """The form of a held value that a reader's layout asks for; answers are kept."""

    def __init__(self, forms: Forms):
        self.forms = forms
        self._numbers: dict[tuple[tuple[tile.ShapeOp, ...], LinearLayout], int] = {}

    def number(self, read: Input, layout: LinearLayout) -> int:
        """The form asked for by an operand under a layout."""
        key = read.path, layout
        if key not in self._numbers:
            self._numbers[key] = self.forms.number(read.wanted(layout))
        return self._numbers[key]

    def asked(self, choice: OperandLayouts, inputs: Sequence[Input]) -> tuple[int, ...]:
        """The forms that a choice wants of a value that it reads as ``inputs``."""
        layouts = [(read, choice.operands[read.index]) for read in inputs]
        return tuple(dict.fromkeys(self.number(read, layout) for read, layout in layouts if layout is not None))


def wants_of(problem: Problem, choices: Sequence[Sequence[OperandLayouts]], numbers: WantedForms) -> list[Wants]:
    """What is wanted of every held value that is read."""
    found: list[Wants] = []
    for value, reads in problem.readers.items():
        owner = problem.owner[value].number
        held = tuple([form_held(choice, numbers.forms) for choice in choices[owner]])
        by_reader: dict[int, list[Input]] = {}
        for variable, read in reads:
            by_reader.setdefault(variable.number, []).append(read)
        wanted = tuple(
            tuple([numbers.asked(choice, inputs) for choice in choices[reader]]) for reader, inputs in by_reader.items()
        )
        found.append(Wants(value, owner, tuple(by_reader), held, wanted, problem.trips.of_value(value)))
    return found


def form_held(choice: OperandLayouts, forms: Forms) -> int:
    """The form of a choice's results."""
    return next(forms.number(layout) for layout in choice.results if layout is not None)


class Columns:
    """The prices of a value's conversions: for each form that is wanted, by the choice of the definition."""

    def __init__(self, wants: Wants, price: Price):
        self.wants = wants
        self.forms = sorted({form for choices in wants.wanted for each in choices for form in each})
        self._price = price
        self._held = sorted(set(wants.held))
        self._at = np.array([self._held.index(form) for form in wants.held])
        self._columns = {form: self._column(form) for form in self.forms}
        self._tables = self._made()

    def tables(self, changed: Collection[tuple[int, int]]) -> list[Table]:
        """The tables of the value. Prices are asked again for conversions that have ``changed``, pairs of forms."""
        stale = {wanted for held, wanted in changed if wanted in self._columns and held in self._held}
        if stale:
            self._columns |= {form: self._column(form) for form in stale}
            self._tables = self._made()
        return self._tables

    def _column(self, form: int) -> Array:
        price, value = self._price, self.wants.value
        prices = np.array([0.0 if held == form else price(value, held, form) for held in self._held])
        return prices[self._at] * self.wants.trips

    def _made(self) -> list[Table]:
        wanted = dict(zip(self.wants.readers, self.wants.wanted, strict=True))
        return [
            Table(scope, _prices(self.wants, scope, {r: wanted[r] for r in scope if r in wanted}, self._columns))
            for scope in self.wants.scopes
        ]


def _prices(
    wants: Wants,
    scope: tuple[int, ...],
    readers: dict[int, tuple[tuple[int, ...], ...]],
    columns: dict[int, Array],
) -> Array:
    """The price of all conversions of the value that readers in the scope cause; ``columns`` has the prices of each form by the
    choice of the definition."""
    sizes = [len(wants.held) if variable == wants.owner else len(readers[variable]) for variable in scope]
    # In a table of a pair the definition's own reading is left to its own table.
    alone = len(scope) > 1 and wants.owner in readers and len(wants.scopes) > 1
    total = np.zeros(sizes)
    for form, column in columns.items():
        asked = np.zeros([1] * len(scope), bool)
        for axis, variable in enumerate(scope):
            if variable in readers and not (alone and variable == wants.owner):
                shape = [1] * len(scope)
                shape[axis] = -1
                asked = asked | np.array([form in each for each in readers[variable]]).reshape(shape)
        if asked.any():
            total += asked * column.reshape([-1] + [1] * (len(scope) - 1))
    return total
