"""The arguments of the language that change nothing, with the reason why that is right on every machine.

All but those of `CHECKED` are truth values, and most permit a result that the strict one is an example of. Every other
argument reaches the IR or is refused; a test walks all signatures.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft import language as tl
from weft.frontend.library.arguments import boolean
from weft.frontend.registry import Stub
from weft.frontend.values import Value

_ORDER: Final = "permits any order of the elements; row-major order is one of them"
_TIES: Final = "False permits the index of any of several equal elements; the leftmost is one of them"
_APPROXIMATE: Final = "permits an approximate quotient; the correctly rounded one is allowed"
_SHAPE: Final = "speaks of the maximum and the sum inside; the result has the shape of the operand with either value"
_FASTEST: Final = "says which dimension is fastest in memory; the strides say it too"

_RELAXED: Final = "asks for a weaker order; a stronger one is allowed"
_SCOPE: Final = "names the threads that see the order; more may see it"

CHECKED: Final = frozenset(
    {
        (tl.make_block_ptr, "order"),
        *((stub, word) for stub in (tl.atomic_load, tl.atomic_store) for word in ("sem", "scope")),
    }
)
"""Parameters of `IGNORED` that are no truth values; their op checks them."""

_LICM: Final = "asks for loads that stay in the loop; where they stand does not change what they read"
_FLUSH: Final = "writes the text at once; the text is the same"

IGNORED: Final[Mapping[Stub, Mapping[str, str]]] = {
    tl.condition: {"disable_licm": _LICM},
    tl.static_print: {"flush": _FLUSH},
    tl.fdiv: {"approx": _APPROXIMATE},
    tl.reshape: {"can_reorder": _ORDER},
    tl.ravel: {"can_reorder": _ORDER},
    tl.max: {"return_indices_tie_break_left": _TIES},
    tl.min: {"return_indices_tie_break_left": _TIES},
    tl.argmax: {"tie_break_left": _TIES},
    tl.argmin: {"tie_break_left": _TIES},
    tl.atomic_load: {"sem": _RELAXED, "scope": _SCOPE},
    tl.atomic_store: {"sem": _RELAXED, "scope": _SCOPE},
    tl.make_block_ptr: {"order": _FASTEST},
    tl.softmax: {"keep_dims": _SHAPE},
}
"""Op -> parameter -> why its value changes nothing."""


def check_ignored(stub: Stub, values: Mapping[str, Value]) -> None:
    """Refuse a value that is no compile-time truth value (or the default, None) for a parameter of `IGNORED`."""
    for argument in IGNORED.get(stub, ()):
        if values[argument] is not None and (stub, argument) not in CHECKED:
            boolean(values[argument], argument)
