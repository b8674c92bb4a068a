"""Blocks of an array in memory: pointers to a block that know the array's shape and strides.

In Triton 3.9 block pointers are gone; its 3.2 and older programs have them, and their meaning here is that of 3.2.
"""

from __future__ import annotations

from typing import Any

from weft.language.core import must_use_result, stub, tensor


@stub
def make_block_ptr(base: tensor, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> Any:
    """A block pointer: the block of ``block_shape`` at ``offsets`` in the array at ``base`` of ``shape`` and ``strides``.

    All but ``base`` are tuples with one number for each dimension, the strides in elements. ``shape`` and ``strides`` are
    integers of any width; ``offsets`` are int32. ``order`` lists the dimensions, fastest first; it is advice, and results do
    not depend on it. `load` and `store` take a block pointer, with ``boundary_check``; `advance` moves it.
    """
    ...


@must_use_result("tl.advance has no effect of its own: assign its result to a variable.")
@stub
def advance(base: Any, offsets: Any) -> Any:
    """A block pointer moved by ``offsets``: one int32 for each dimension, in elements, of either sign."""
    ...
