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


def _asked(choice: OperandLayouts, inputs: Sequence[Input], forms: Forms) -> tuple[int, ...]:
    """The forms that a choice wants of a value that it reads as ``inputs``."""
    layouts = [(read, choice.operands[read.index]) for read in inputs]
    return tuple(dict.fromkeys(forms.number(read.wanted(layout)) for read, layout in layouts if layout is not None))


def wants_of(problem: Problem, choices: Sequence[Sequence[OperandLayouts]], forms: Forms) -> list[Wants]:
    """What is wanted of every held value that is read."""
    found: list[Wants] = []
    for value, reads in problem.readers.items():
        owner = problem.owner[value].number
        held = tuple([form_held(choice, forms) for choice in choices[owner]])
        by_reader: dict[int, list[Input]] = {}
        for variable, read in reads:
            by_reader.setdefault(variable.number, []).append(read)
        wanted = tuple(
            tuple([_asked(choice, inputs, forms) for choice in choices[reader]]) for reader, inputs in by_reader.items()
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
        # Of each reader: which of its choices (rows) want which forms (columns).
        self._asked = {
            reader: np.array([[form in each for form in self.forms] for each in choices], bool)
            for reader, choices in zip(wants.readers, wants.wanted, strict=True)
        }
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
        return [Table(scope, self._prices(scope)) for scope in self.wants.scopes]

    def _prices(self, scope: tuple[int, ...]) -> Array:
        """The price of all conversions of the value that readers in the scope cause."""
        wants = self.wants
        # In a table of a pair the definition's own reading is left to its own table.
        alone = len(scope) > 1 and wants.owner in self._asked and len(wants.scopes) > 1
        readers = [v for v in scope if v in self._asked and not (alone and v == wants.owner)]
        total = np.zeros([len(wants.held) if v == wants.owner else len(self._asked[v]) for v in scope])
        axes = {variable: axis for axis, variable in enumerate(scope)}
        for number, column in enumerate(self._columns.values()):
            asked = np.zeros([1] * len(scope), bool)
            for reader in readers:
                asked = asked | _along(self._asked[reader][:, number], axes[reader], len(scope))
            if asked.any():
                # Not a product: a conversion without a plan has an infinite price, where it is not asked for too.
                total += np.where(asked, _along(column, 0, len(scope)), 0.0)
        return total


def _along(values: Array, axis: int, rank: int) -> Array:
    """Values along one axis of a table."""
    return values.reshape([-1 if each == axis else 1 for each in range(rank)])
