"""``triton.runtime._allocation``: the path under which programs find the allocators."""

from __future__ import annotations

from weft.triton.runtime.allocation import Allocator, NullAllocator, allocator, set_allocator

_allocator = allocator

__all__ = ["Allocator", "NullAllocator", "set_allocator"]
