"""Marks the cases of a parametrised test that only ``make nightly`` runs; ``make test`` keeps the others as a sample."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import settings


def some(cases: Iterable[Any], *rare: Any) -> list[Any]:
    """The cases; those among ``rare`` are nightly."""
    given = list(cases)
    assert all(case in given for case in rare), "a nightly case that the test does not have"
    return [pytest.param(case, marks=pytest.mark.nightly) if case in rare else case for case in given]


def every(step: int, cases: Iterable[Any]) -> list[Any]:
    """The cases; all but each ``step``-th are nightly."""
    return [pytest.param(case, marks=pytest.mark.nightly) if place % step else case for place, case in enumerate(cases)]


def grid(step: int, *axes: Sequence[Any]) -> list[Any]:
    """All combinations of the axes' values; those whose places have a sum that ``step`` does not divide are nightly.

    An axis' value stays in ``make test`` where another axis has at least ``step`` values.
    """
    places = itertools.product(*(range(len(axis)) for axis in axes))
    return [
        pytest.param(*case, marks=pytest.mark.nightly if sum(at) % step else ())
        for at, case in zip(places, itertools.product(*axes), strict=True)
    ]


def at_night() -> bool:
    """Whether this is ``make nightly``, which has a Hypothesis profile of its own."""
    return settings.get_profile("nightly").max_examples == settings().max_examples


def sparse(step: int) -> int:
    """The step of a sample of values: ``step`` nightly, ``3 * step + 1`` in ``make test``."""
    return step if at_night() else 3 * step + 1


def examples(count: int) -> settings:
    """How many examples a Hypothesis test asks for: a third of ``count`` in ``make test``, five times ``count`` nightly."""
    return settings(max_examples=5 * count if at_night() else count // 3, deadline=None)
