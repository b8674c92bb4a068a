"""What ``a op b`` means in the systems weft knows.

`get` finds a system by name; ``triton`` is its documentation, ``triton@3.9`` the package of that version.
"""

from __future__ import annotations

import difflib
from typing import Final

from weft.semantics.core import Number, Operand, Promotion, PromotionError, Semantics
from weft.semantics.triton import triton, triton_3_9

SYSTEMS: Final[dict[str, Semantics]] = {system.name: system for system in (triton, triton_3_9)}
"""Every system by name."""


def get(name: str) -> Semantics:
    """The system of that name; `ValueError` with the nearest spelling for an unknown one."""
    if (system := SYSTEMS.get(name)) is not None:
        return system
    near = difflib.get_close_matches(name, SYSTEMS, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"weft knows {', '.join(SYSTEMS)}"
    raise ValueError(f"unknown semantics '{name}'; {hint}")


__all__ = ["SYSTEMS", "Number", "Operand", "Promotion", "PromotionError", "Semantics", "get", "triton", "triton_3_9"]
