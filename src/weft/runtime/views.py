"""Strided views in checked kernels: whether a kernel can know the strides, and which addresses of a view hold elements.

A kernel gets the address of a view and no strides. A kernel that assumes others reads elements between those of the view, and
the bounds of the view include these. So a checked launch refuses a view whose strides the kernel cannot know.

Dimensions of size 1 or stride 0 are left out, and neighbouring dimensions with one common step are merged. What remains are
runs. The stride of a run must be 1, an integer that the kernel is given, or a product of such integers:

| view of a row-major array of 8 x 16   | runs (size, stride) | the kernel must be given |
|---|---|---|
| the array, ``a[2:5]``, ``a[None]``    | (128, 1)            | nothing                  |
| ``a[:, :5]``                          | (8, 16), (5, 1)     | 16                       |
| ``a[:, ::2]``, ``a.ravel()[::2]``     | (64, 2)             | 2                        |
| ``a.T``                               | (16, 1), (8, 16)    | 16                       |
| ``a.ravel()[::-1]``                   | (128, -1)           | -1                       |

Integers are the launch's arguments and constexprs, tuples of them included, and the literals in the kernel's text with either
sign. The rule has two limits. An equal integer with another meaning, such as a block size of 16, hides a missing stride. A stride
that only a global or a helper holds is not seen.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, cast

from weft.frontend.source import KernelFunction
from weft.language.core import constexpr
from weft.runtime.memory import Memory, is_numpy_scalar


def refuse_unknown_strides(
    kernel: KernelFunction, views: Iterable[tuple[str, Memory]], values: Sequence[object]
) -> None:
    """Raises `ValueError` for the first view (with the name of its parameter) that has a stride the kernel cannot know."""
    for name, memory in views:
        wanted = [stride for stride in _strides_of_runs(memory) if stride != 1]
        if not wanted:
            continue
        known = set(_integers(values))
        for stride in wanted:  # the text is read only where the values do not suffice: in few launches
            if not _is_product(stride, known) and not _is_product(stride, known.union(_literals(kernel))):
                raise _refusal(kernel.name, name, memory, stride)


def _strides(memory: Memory) -> tuple[Fraction, ...]:
    """The strides in elements; no integers where fields of a record are viewed."""
    return tuple(Fraction(stride, memory.dtype.itemsize) for stride in memory.strides or ())


def _strides_of_runs(memory: Memory) -> list[Fraction]:
    result: list[Fraction] = []
    shape = memory.shape or ()
    if 0 in shape:
        return result
    step = Fraction(0)  # from one element of the dimension outside a run to the next
    for size, stride in zip(reversed(shape), reversed(_strides(memory)), strict=True):
        if size == 1 or stride == 0:
            continue
        if stride != step:
            result.append(stride)
        step = size * stride
    return result


def _integers(values: Iterable[object]) -> Iterator[int]:
    for value in values:
        if isinstance(value, constexpr):
            yield from _integers([cast("object", value.value)])
        elif isinstance(value, tuple):
            yield from _integers(cast("tuple[object, ...]", value))
        elif isinstance(value, int) or is_numpy_scalar(value):
            try:
                yield operator.index(cast("Any", value))
            except TypeError:
                continue


def _literals(kernel: KernelFunction) -> Iterator[int]:
    for node in ast.walk(kernel.tree):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            yield from (node.value, -node.value)


def _is_product(stride: Fraction, integers: Iterable[int]) -> bool:
    """Whether some of the integers, each taken once, multiply to the stride."""
    if stride.denominator != 1:
        return False
    found = {1}
    for integer in integers:
        if integer not in (0, 1):
            found |= {product * integer for product in found if stride % (product * integer) == 0}
    return stride in found


def _refusal(kernel: str, name: str, memory: Memory, stride: Fraction) -> ValueError:
    strides = ", ".join(map(str, _strides(memory)))
    comma = "," if len(memory.strides or ()) == 1 else ""
    return ValueError(
        f"kernel '{kernel}': parameter '{name}': found a view of shape {memory.shape} with strides ({strides}{comma}) in "
        f"elements, but the stride {stride} is neither an argument nor a number in the kernel, which is checked; pass the "
        "strides as arguments, or a contiguous copy, as numpy.ascontiguousarray makes it"
    )
