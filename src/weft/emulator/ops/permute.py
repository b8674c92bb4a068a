"""prmt: bytes picked from two words (PTX ISA, data movement instructions)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from weft.emulator.arith.permute import MODES, gather, runs, selectors
from weft.emulator.ops.elementwise import Array, assign
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding


@instruction("prmt")
def prmt(b: Binding) -> Step:
    """A constant control without signs is a few shifts and masks, anything else a gather of bytes."""
    f = form(b, type="b32", mode="? " + " ".join(MODES))
    kind = TYPES["b32"]
    x, y, control, d = b.read(1, kind), b.read(2, kind), b.read(3, kind), b.write(0, kind)
    if control.ndim:
        return assign(d, lambda: gather(x, y, selectors(control, f["mode"])))
    chosen = selectors(control, f["mode"])
    if (chosen & 8).any():
        return assign(d, lambda: gather(x, y, chosen))
    parts = [_part((x, y)[word], by, mask) for word, by, mask in runs(tuple(int(s) for s in chosen[0]))]

    def compute() -> Array:
        total = parts[0]()
        for part in parts[1:]:
            total = total | part()
        return total

    return assign(d, compute)


def _part(x: Array, by: int, mask: int) -> Callable[[], Array]:
    """The word shifted left by some bits, right if negative, and masked where the shift does not already do that."""
    amount, bits = np.uint32(abs(by)), np.uint32(mask)
    full = 0xFFFFFFFF << by & 0xFFFFFFFF if by >= 0 else 0xFFFFFFFF >> -by
    if by >= 0:
        return (lambda: x << amount) if mask == full else (lambda: (x << amount) & bits)
    return (lambda: x >> amount) if mask == full else (lambda: (x >> amount) & bits)
