"""A candidate of the search: steps that are not made yet, and the least that they can cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.layout.planning.steps import Cost, Step, total

Kind: TypeAlias = Literal["nothing", "registers", "warp", "memory", "halves"]
"""Nothing moves; threads rearrange their registers; lanes of a warp exchange; all of it goes through memory; half of it does."""


@dataclass(frozen=True)
class Built:
    """The steps of a candidate, their price, and why they are what they are."""

    kind: Kind
    steps: tuple[Step, ...]
    price: float
    reason: str

    @property
    def cost(self) -> Cost:
        """What all steps cost."""
        return total([step.cost for step in self.steps])

    @property
    def rank(self) -> tuple[float, int, int, int, int]:
        """What is compared: the price; among equals memory is dearer than arithmetic, and scratch is not free."""
        cost = self.cost
        return self.price, cost.wavefronts, cost.stores + cost.loads, cost.permutes, cost.scratch


@dataclass(frozen=True)
class Candidate:
    """``build`` makes the steps, given the price to beat; None where it cannot or does not. No result is cheaper than
    ``bound``."""

    kind: Kind
    bound: float
    order: tuple[int, int, int]
    """What breaks ties among equal bounds: wavefronts, instructions, permutes."""
    build: Callable[[float], Built | None]
