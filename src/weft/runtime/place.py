"""Where a launch runs: in the emulator, on the card that has the arrays, or on this machine's CPU.

Each launch asks this. What launches in the emulator (`weft.runtime.emulated`) and on cards (`weft.runtime.cuda`) is imported by
the first such launch, so that a process that computes on the CPU starts without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Final, TypeAlias

from weft.runtime.arguments import Bound, Parameter
from weft.runtime.memory import ANY_CARD
from weft.target import GpuTarget

Place: TypeAlias = GpuTarget | int | None
"""Where a launch runs: in the emulator on a GPU, on the card of a number, or on this machine's CPU."""

CURRENT: Final[ContextVar[GpuTarget | None]] = ContextVar("weft_emulated", default=None)
"""The GPU that launches of this context are emulated on; None: they run on the CPU."""


def card_of(kernel: str, parameters: Sequence[Parameter], bound: Bound) -> int | None:
    """The card that a launch's arrays are on; None for the CPU's memory. Raises: `TypeError` for arrays in several places,
    `CudaError`."""
    first, card, count = "", ANY_CARD, 0
    for name, memory in bound.views:
        found = memory.device
        if found is None:
            continue
        count += 1
        if found == ANY_CARD and memory.address:  # there are no elements to ask the driver about at address 0
            from weft.runtime.cuda_device import device_of_address

            found = device_of_address(memory.address)
        if card == ANY_CARD:
            first, card = name, found
        elif found not in (card, ANY_CARD):
            raise TypeError(
                f"kernel '{kernel}': parameter '{name}': found an array on card {found}, but '{first}' is on card {card}; "
                "a launch takes arrays of one card"
            )
    if not count:
        return None
    if len(bound.extents) > count:
        host = _on_host(parameters, bound)
        raise TypeError(
            f"kernel '{kernel}': parameter '{host}': found an array in the CPU's memory, but '{first}' is on card "
            f"{max(card, 0)}; copy all arrays to the card, or all to the CPU"
        )
    return max(card, 0)


def _on_host(parameters: Sequence[Parameter], bound: Bound) -> str:
    """The first array parameter in the CPU's memory."""
    cards = {name for name, memory in bound.views if memory.device is not None}
    arrays = (p.name for p, token in zip(parameters, bound.key, strict=True) if str(token).startswith("*"))
    return next(name for name in arrays if name not in cards)
