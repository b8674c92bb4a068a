"""What forms of expressions draw from, and the shapes that they write."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from fuzz.typed import Shape, Typed
from weft.dtypes import DType


class Scope(Protocol):
    """What forms draw from."""

    @property
    def random(self) -> random.Random: ...

    def pick(self, accept: Callable[[Typed], bool] = ...) -> Typed | None:
        """A random exact value that ``accept`` takes."""
        ...

    def constant(self, value: int) -> str:
        """A spelling of a compile-time integer."""
        ...

    def combine(self, dtype: DType) -> str | None:
        """The name of a commutative, associative helper on two scalars of ``dtype``."""
        ...

    def maps(self) -> str:
        """The name of a helper that composes affine maps of integers of one dtype. It does not commute."""
        ...

    def write_function(self, prefix: str, text: str) -> str:
        """The name of a new helper; ``text`` is its definition from the parameters on."""
        ...


def text_of(scope: Scope, shape: Shape) -> str:
    """A shape as a tuple of constants."""
    return f"({', '.join(map(scope.constant, shape))}{',' if len(shape) == 1 else ''})"
