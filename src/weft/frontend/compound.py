"""Values made of several tiles and scalars, such as block pointers.

Where paths meet (`weft.frontend.joining`) only the parts are joined; what else a value has is known at compile time and
must be equal on all paths.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar


class Compound(ABC):
    """A run-time value made of ``parts``, and of what is known at compile time."""

    attributes: ClassVar[dict[str, Callable[[Any], Any]]] = {}
    """Name -> the attribute that kernels read."""
    methods: ClassVar[dict[str, Any]] = {}
    """Name -> the function of the language that it is, with the value as first argument."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """The values it is made of, in order."""

    @abstractmethod
    def with_parts(self, parts: Sequence[Any]) -> Any:
        """The same value with other parts."""

    @abstractmethod
    def same_kind(self, other: object) -> bool:
        """Whether ``other`` differs at most in its parts' values."""
