"""Arrays for native code: where they are, and which an instruction loads into or stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.emulator.ptx.syntax import Immediate, Operand, Register

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.ptx.types import Type


def address_of(array: NDArray[Any]) -> int:
    """Where an array's memory begins."""
    start: int = array.__array_interface__["data"][0]
    return start


def values_of(b: Binding, part: Operand, kind: Type, writes: bool, *, widest: int) -> NDArray[Any] | None:
    """The array that is loaded into or stored, for an element of ``kind``: a register's, of up to ``widest`` bits, or a number in
    every thread. None where native code does not take it."""
    if isinstance(part, Register):
        declared = b.register_type(part)
        return b.read(part, declared) if declared is not None and 8 * kind.bytes <= declared.bits <= widest else None
    return np.full(b.execution.threads, b.read(part, kind)) if writes and isinstance(part, Immediate) else None
