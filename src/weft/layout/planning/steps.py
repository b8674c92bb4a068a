"""What a conversion plan for a GPU is made of: steps that can be counted, and executed on labels.

One would emit instructions and count them afterwards. Here a plan is data before it is code: each `Step` says what it costs
and what it does to the elements, so a plan is checked by running it on labels (`ExchangePlan.simulate`), compared with
others by cost, and drawn, all without a compiler.

The state of a conversion is an array of labels of shape (warps, lanes, registers): element ``[w, l, r]`` is what lane l of
warp w holds in register r. A register holds one element, whatever its width; packing several into 32 bits is a step's own
business and shows in its cost only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["noop", "registers", "lanes", "mixed", "memory"]
"""Nothing moves; registers are renamed; data crosses lanes of a warp; part of it crosses warps; all of it goes through memory."""


@dataclass(frozen=True)
class Cost:
    """What a step or plan costs each thread (``shuffles``, ``permutes``: byte permutes, selects and packing, ``stores`` and
    ``loads``: shared memory instructions), the whole block (``wavefronts``: shared memory transactions of all warps;
    ``barriers``), and in space (``scratch`` bytes, the most in use at once)."""

    shuffles: int = 0
    permutes: int = 0
    stores: int = 0
    loads: int = 0
    wavefronts: int = 0
    barriers: int = 0
    scratch: int = 0

    def __add__(self, other: Cost) -> Cost:
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Cost(**{**sums, "scratch": max(self.scratch, other.scratch)})

    @property
    def instructions(self) -> int:
        """Instructions of each thread."""
        return self.shuffles + self.permutes + self.stores + self.loads


class Step(ABC):
    """One thing all threads do."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What it costs."""

    @abstractmethod
    def apply(self, state: NDArray[Any]) -> NDArray[Any]:
        """The state afterwards; see the module."""

    @abstractmethod
    def __str__(self) -> str:
        """What it is, in a line: ``16 shfl.idx``, ``store 4 x 128 bits``."""


@dataclass(frozen=True)
class ExchangePlan:
    """How a tensor gets from one distributed layout to another: ``steps`` in order.

    ``lower_bound`` is what no plan can do better in each count it names (the others are 0), and ``reason`` says in words why the
    plan is what it is.
    """

    kind: Kind
    steps: tuple[Step, ...]
    lower_bound: Cost
    reason: str

    @property
    def cost(self) -> Cost:
        """What all steps cost."""
        return total([step.cost for step in self.steps])

    def simulate(self, labels: NDArray[Any]) -> NDArray[Any]:
        """What each thread holds afterwards, for labels of shape (warps, lanes, registers)."""
        for step in self.steps:
            labels = step.apply(labels)
        return labels

    def __str__(self) -> str:
        return "; ".join(map(str, self.steps)) or "nothing"


def total(costs: Sequence[Cost]) -> Cost:
    """Costs one after the other."""
    return sum(costs, Cost())
