"""Functions that a program calls and no module defines: what CUDA's runtime has on the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Active

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution

External: TypeAlias = Callable[["Execution", Active, list[NDArray[np.uint8]], list[NDArray[np.uint8]]], None]
"""Called with the active threads, the (T, bytes) arrays of the arguments, and those of the results to fill."""

EXTERNALS: Final[dict[str, External]] = {}
"""By name."""
