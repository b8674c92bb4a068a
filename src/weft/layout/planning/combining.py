"""What plans of reductions and scans share: steps that combine elements, and their price.

Such a step moves data as a conversion does and also combines elements, so it is executed with a combine function. The exchange
across warps is a conversion like any other (`Convert`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from weft.layout.planning.machine import MachineModel
from weft.layout.planning.permutes import WORD_BITS
from weft.layout.planning.plan import ConversionPlan
from weft.layout.planning.price import clocks, exposure, latency
from weft.layout.planning.steps import Cost, total

if TYPE_CHECKING:
    from numpy.typing import NDArray

Combine: TypeAlias = "Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]"


def words(elements: int, bits: int) -> int:
    """Words that hold this many elements of a thread, packed."""
    return -(-elements * bits // WORD_BITS)


class CombineStep(ABC):
    """One thing all threads do; the state is an array of (warps, lanes, registers)."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What it costs besides combining."""

    @property
    @abstractmethod
    def combines(self) -> int:
        """How often a thread combines two elements."""

    @abstractmethod
    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        """The state afterwards."""

    @abstractmethod
    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Convert(CombineStep):
    """Partial results change places, by a conversion plan."""

    plan: ConversionPlan

    @property
    def cost(self) -> Cost:
        return self.plan.cost

    @property
    def combines(self) -> int:
        return 0

    def apply(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        return self.plan.simulate(state)

    def __str__(self) -> str:
        return str(self.plan)


@dataclass(frozen=True)
class CombinePlan:
    """``steps`` in order."""

    steps: tuple[CombineStep, ...]

    @property
    def cost(self) -> Cost:
        """What all steps cost, besides combining."""
        return total([step.cost for step in self.steps])

    @property
    def combines(self) -> int:
        """How often a thread combines two elements."""
        return sum(step.combines for step in self.steps)

    def simulate(self, state: NDArray[Any], combine: Combine) -> NDArray[Any]:
        """What the threads of a block hold afterwards: arrays of (warps, lanes, registers). A scan calls
        ``combine(earlier, later)``."""
        for step in self.steps:
            state = step.apply(state, combine)
        return state

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps)) or "nothing"


def combining_latency(step: CombineStep, cost: Cost, machine: MachineModel, warps: int) -> float:
    """The clocks that a step of this cost waits in series: a conversion as `price.price` says, others for the shuffles (or
    ``redux.sync``) of all registers together, then for what combines."""
    if isinstance(step, Convert):
        waited = latency(step.plan.steps, machine)
        return waited * exposure(cost.scratch, 0, machine, warps) if cost.scratch else waited
    shuffled = machine.latency.shuffle if cost.shuffles or cost.reduces else 0
    return shuffled + (machine.latency.permute if step.combines else 0)


def combining_price(steps: Sequence[CombineStep], bits: int, machine: MachineModel, warps: int) -> float:
    """Clocks of steps: of the busiest pipe, where combining passes through the pipe of permutes, and of what is waited for."""
    costs = [step.cost for step in steps]
    combines = sum(step.combines for step in steps) * max(1, bits // WORD_BITS)
    waited = sum(combining_latency(step, cost, machine, warps) for step, cost in zip(steps, costs, strict=True))
    return clocks(total([*costs, Cost(permutes=combines)]), machine, warps) + waited
