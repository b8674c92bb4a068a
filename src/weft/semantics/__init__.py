"""What ``a op b`` means in the systems weft knows.

`get` finds a system by name; ``triton`` is its documentation, ``triton@3.9`` the package of that version. Each is also an
attribute (`weft.semantics.jax`, `weft.semantics.jax_0_10`). Everything is loaded when it is first asked for: a launch of a
cached kernel asks for names alone.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from weft.extensions import extension
from weft.nearest import did_you_mean

if TYPE_CHECKING:
    from weft.semantics.context import current, use
    from weft.semantics.core import Constant, Number, Operand, Promotion, PromotionError, Semantics, Step, Type
    from weft.semantics.difference import diff
    from weft.semantics.explanation import explain
    from weft.semantics.systems.triton import triton, triton_3_9

_HOMES: Final[dict[str, tuple[str, str]]] = {
    "triton": ("triton", "triton"),
    "triton@3.9": ("triton", "triton_3_9"),
    "jax": ("jax", "jax"),
    "jax@0.10": ("jax", "jax_0_10"),
    "jax-x32": ("jax", "jax_x32"),
    "jax-x32@0.10": ("jax", "jax_x32_0_10"),
    "jax-strict": ("jax", "jax_strict"),
    "max": ("max", "max"),
    "max@26": ("max", "max_26"),
    "dali": ("dali", "dali"),
    "dali@2": ("dali", "dali_2"),
    "numpy": ("numpy", "numpy"),
    "torch": ("torch", "torch"),
}
"""Every system: its name, the module under ``systems``, and the object there."""

SYSTEMS: Final[tuple[str, ...]] = tuple(_HOMES)
"""The name of every system and version."""


_REST: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("Constant", "Number", "Operand", "Promotion", "PromotionError", "Semantics", "Step", "Type"), "core"
    ),
    "current": "context",
    "diff": "difference",
    "explain": "explanation",
    "use": "context",
}
"""What the package offers beside the systems, and the module it is loaded from when it is first asked for."""


def get(name: str | Semantics) -> Semantics:
    """The system of that name; `ValueError` with the nearest spelling for an unknown one."""
    if not isinstance(name, str):
        from weft.semantics.core import Semantics

        if isinstance(name, Semantics):  # pyright: ignore[reportUnnecessaryIsInstance]
            return name
        raise ValueError(f"a system is a name or an object of weft.semantics, found {name!r}")
    if (home := _HOMES.get(name)) is not None:
        module, attribute = home
        return getattr(importlib.import_module(f"weft.semantics.systems.{module}"), attribute)
    hint = did_you_mean(name.lower(), SYSTEMS, f"weft knows {', '.join(SYSTEMS)}")
    raise ValueError(f"unknown semantics '{name}'; {hint}")


def __getattr__(name: str) -> Any:
    for module, attribute in _HOMES.values():
        if attribute == name:
            value = getattr(importlib.import_module(f"weft.semantics.systems.{module}"), attribute)
            globals()[name] = value
            return value
    if (module := _REST.get(name)) is not None:
        value = getattr(importlib.import_module(f"weft.semantics.{module}"), name)
        globals()[name] = value
        return value
    if name == "compare":
        return extension("semantics.compare")
    hint = "" if name.startswith("_") else did_you_mean(name, __dir__(), cutoff=0.7)
    raise AttributeError(f"module 'weft.semantics' has no attribute {name!r}{hint and '; '}{hint}")


def __dir__() -> list[str]:
    """Everything there is, loaded or not."""
    return sorted({*globals(), *_REST, "compare", *(attribute for _, attribute in _HOMES.values())})


__all__ = [
    "SYSTEMS",
    "Constant",
    "Number",
    "Operand",
    "Promotion",
    "PromotionError",
    "Semantics",
    "Step",
    "Type",
    "current",
    "diff",
    "explain",
    "get",
    "triton",
    "triton_3_9",
    "use",
]
