"""A configuration that a sweep measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

_OPTIONS: Final = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")

OPTIONS: Final = frozenset(_OPTIONS)
"""Keywords of a launch. A kernel may have parameters of these names."""


@dataclass(eq=False, repr=False)
class Config:
    """Values for compile-time parameters (``kwargs``) and options of the launch. ``pre_hook`` is called with all arguments before
    each launch."""

    kwargs: dict[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    pre_hook: Callable[..., Any] | None = None
    ir_override: str | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.kwargs = {}  # the class has the defaults of the rest
        self.__dict__.update(state)

    def all_kwargs(self) -> dict[str, Any]:
        """The keywords of a launch with this configuration."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        return self.kwargs | {name: value for name, value in options.items() if value is not None}

    def code(self) -> tuple[Any, ...]:
        """What a CPU's code depends on: it has no warps, stages or registers to limit."""
        return (*self.kwargs.items(), self.ir_override, self.pre_hook)

    def _key(self) -> tuple[Any, ...]:
        return (*self.all_kwargs().items(), self.pre_hook)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        options = {name: getattr(self, name) for name in _OPTIONS}
        return ", ".join(f"{name}: {value}" for name, value in (self.kwargs | options).items())

    def __repr__(self) -> str:
        return f"Config({self})"
