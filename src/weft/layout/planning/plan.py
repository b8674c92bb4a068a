"""A conversion plan: steps in order, what they cost, and why they are what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.layout.planning.accesses import ALIGNMENT, Access
from weft.layout.planning.check import run
from weft.layout.planning.steps import Cost, Step, steps_text, total, walk
from weft.layout.planning.ways.candidate import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class ScratchUse:
    """The shared memory that a plan uses, from its first store to its last load.

    The plan has barriers between its own accesses only. If other accesses use the same bytes, the block has to wait before the
    first store, and after the last load: a barrier of the block there is the user's to place.
    """

    bytes: int
    alignment: int
    first_store: int
    """Among the steps, those of halves counted one after the other."""
    last_load: int


@dataclass(frozen=True)
class ConversionPlan:
    """How a tensor gets from one distributed layout to another: ``steps`` in order.

    ``lower_bound`` is what no plan can do better in each count it names (the others are 0), ``price`` the clocks by
    `price.price`, and ``reason`` says in words why the plan is what it is.
    """

    kind: Kind
    steps: tuple[Step, ...]
    lower_bound: Cost
    reason: str
    price: float = 0
    shape: tuple[int, int, int] | None = None
    """Warps, lanes and registers of the source, which `simulate` asks for."""

    @property
    def cost(self) -> Cost:
        """What all steps cost."""
        return total([step.cost for step in self.steps])

    @property
    def scratch(self) -> ScratchUse | None:
        """The shared memory in use; None for a plan without."""
        accesses = [(number, step) for number, step in enumerate(walk(self.steps)) if isinstance(step, Access)]
        if not accesses:
            return None
        first = min(number for number, step in accesses if step.stores)
        last = max(number for number, step in accesses if not step.stores)
        return ScratchUse(self.cost.scratch, ALIGNMENT, first, last)

    def simulate(self, labels: NDArray[Any]) -> NDArray[Any]:
        """What each thread holds afterwards, for labels of shape (warps, lanes, registers)."""
        if self.shape is not None and labels.shape != self.shape:
            raise ValueError(
                f"simulate: labels have shape {labels.shape}, expected {self.shape} (warps, lanes, registers)"
            )
        return run(self.steps, labels)

    def __str__(self) -> str:
        return steps_text(self.steps)
