"""``triton.set_allocator``: who gives memory to kernels that need some. Kernels of weft need none."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

Allocator: TypeAlias = Callable[[int, int, int | None], Any]
"""From the bytes, their alignment and a stream to an object with ``data_ptr()``."""


class NullAllocator:
    """The allocator of programs that set none."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Any:
        raise RuntimeError(
            "Kernel requires a runtime memory allocation, but no allocator was set. Use triton.set_allocator to specify an "
            "allocator."
        )


allocator: Final[ContextVar[Allocator]] = ContextVar("weft_allocator", default=NullAllocator())  # noqa: B039  # it has no state


def set_allocator(given: Allocator) -> None:
    """Keeps the allocator. Weft does not call it: kernels make descriptors and scratch memory without it."""
    allocator.set(given)
