"""The keywords of `weft.jit`: which values each takes, and what weft does with it.

Each keyword has an effect, or is ignored for a reason that holds for all its values, or has its other values refused by name.
`weft.runtime.binding` has the same for the keywords of a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple


class Keyword(NamedTuple):
    """A keyword of `weft.jit`: which values are ``allowed``, in ``words`` too, and its ``use``. ``ignored`` says that it changes
    nothing; the use is then the reason."""

    allowed: Callable[[Any], bool]
    words: str
    use: str
    ignored: bool = False


def _flag(value: Any) -> bool:
    return value is None or type(value) is bool


def _function(value: Any) -> bool:
    return value is None or callable(value)


def _names(value: Any) -> bool:
    return value is None or (isinstance(value, Iterable) and not isinstance(value, str))


def _anything(value: Any) -> bool:
    return True


_NAMES: Final = "an iterable of names and indices, or None"

JIT_KEYWORDS: Final[dict[str, Keyword]] = {
    "semantics": Keyword(_anything, "a semantics", "what the kernel's operators mean; `weft.semantics.get` checks it"),
    "checked": Keyword(_flag, "a bool or None", "tests every access against the arrays"),
    "do_not_specialize": Keyword(_names, _NAMES, "parameters whose values cause no compilation"),
    "do_not_specialize_on_alignment": Keyword(
        _names, _NAMES, "parameters whose divisibility by 16 causes no compilation"
    ),
    "version": Keyword(_anything, "anything", "it tells apart entries of Triton's cache; weft's hold the text", True),
    "repr": Keyword(
        _function, "a function or None", "it names kernels for Triton's profiler, which weft has not", True
    ),
    "launch_metadata": Keyword(
        _function, "a function or None", "it is for Triton's launch hooks, which weft has not", True
    ),
    "debug": Keyword(
        _flag,
        "a bool or None",
        "compiles assertions (default: where the environment variable TRITON_DEBUG is set)",
    ),
    "noinline": Keyword(_flag, "a bool or None", "calls and inlined code have the same results", True),
}
"""All keywords of `weft.jit`, as docs/runtime.md shows them."""


def check_keywords(given: Mapping[str, Any]) -> None:
    """Raises `TypeError` for the first value that its keyword does not take."""
    for name, value in given.items():
        if not JIT_KEYWORDS[name].allowed(value):
            raise TypeError(f"jit(): {name} must be {JIT_KEYWORDS[name].words}, found {value!r}")
