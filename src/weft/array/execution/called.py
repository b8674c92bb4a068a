"""What each element of a `Call` is: the definitions, element by element in Python, against which `calls` is tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.array.execution.calls import Sizes, Widths, out_of_bounds
from weft.array.expression.nodes import Call, Fill
from weft.semantics.evaluate import evaluate

Array = NDArray[Any]
_COMBINED: Final[Mapping[str, str]] = {"add": "add", "mul": "mul", "min": "minimum_nan", "max": "maximum_nan"}
"""The meaning by which a scatter combines what is there with what comes."""


def called(node: Call, operands: Sequence[Array]) -> Array:
    """The value of a call."""
    kind, _, update = node.meaning.partition("_")
    out = np.empty(node.shape, node.dtype.numpy)
    parameters: dict[str, Any] = dict(node.parameters)
    if kind == "scatter":
        _scatter(out, *operands, update=update, **parameters)
    else:
        FUNCTIONS[node.meaning](out, *operands, **parameters)
    return out


def _concatenate(out: Array, *parts: Array, axis: int) -> None:
    begin = 0
    for part in parts:
        for i in np.ndindex(part.shape):
            out[(*i[:axis], i[axis] + begin, *i[axis + 1 :])] = part[i]
        begin += part.shape[axis]


def _pad(out: Array, source: Array, *, widths: Widths, fill: Fill) -> None:
    for i in np.ndindex(out.shape):
        at = tuple(k - before for k, (before, _) in zip(i, widths, strict=True))
        out[i] = source[at] if all(0 <= k < n for k, n in zip(at, source.shape, strict=True)) else fill.number


def _place(indices: Sequence[int], shape: Sizes, mode: str) -> tuple[int, ...] | None:
    """Where indices point; None where that is out of bounds and not an error."""
    places: list[int] = []
    outside = False
    for axis, (index, size) in enumerate(zip(indices, shape, strict=False)):
        place = (
            index % size
            if mode == "wrap"
            else index + size
            if index < 0 and mode not in ("positive", "clamp")
            else index
        )
        if not 0 <= place < size:
            if mode in ("raise", "positive"):
                raise out_of_bounds(index, axis, size)
            outside = True
        places.append(min(max(place, 0), size - 1))
    return None if outside and mode == "fill" else tuple(places)


def _gather(out: Array, source: Array, *indices: Array, mode: str, fill: Fill | None = None) -> None:
    for i in np.ndindex(indices[0].shape):
        place = _place([int(index[i]) for index in indices], source.shape, mode)
        out[i] = source[place] if place is not None else None if fill is None else fill.number


def _scatter(
    out: Array,
    target: Array,
    value: Array,
    *indices: Array,
    update: str,
    sizes: Sizes,
    offset: int,
    strides: Sizes,
    mode: str,
) -> None:
    out[...] = target
    flat = out.reshape(-1)
    lead = len(indices)
    for i in np.ndindex(indices[0].shape if indices else ()):
        place = _place([int(index[i]) for index in indices], sizes, mode)
        if place is None:
            continue
        for rest in np.ndindex(sizes[lead:]):
            at = offset + sum(k * stride for k, stride in zip((*place, *rest), strides, strict=True))
            new = value[(*i, *rest)]
            meaning = _COMBINED.get(update)
            flat[at] = new if meaning is None else evaluate(meaning, flat[at : at + 1], new.reshape(1))[0]


def _compare(x: Any, y: Any, total: bool) -> int:
    """-1, 0 or 1 for elements in order, equal, and out of order."""
    if np.isnan(x) or np.isnan(y):
        return int(np.isnan(x)) - int(np.isnan(y))
    if total and x == y == 0:
        return int(np.signbit(y)) - int(np.signbit(x))
    return int(x > y) - int(x < y)


def _argsort(out: Array, *keys: Array, axis: int, descending: bool, total: bool) -> None:
    parts: list[Array] = []
    for key in keys:
        parts += [np.real(key), np.imag(key)] if key.dtype.kind == "c" else [key]
    lines = [np.moveaxis(part, axis, -1) for part in parts]
    result = np.moveaxis(out, axis, -1)
    for i in np.ndindex(result.shape[:-1]):

        def ordered(a: int, b: int, i: tuple[int, ...] = i) -> int:
            return next((c for line in lines if (c := _compare(line[i][a], line[i][b], total))), 0)

        result[i] = sorted(range(result.shape[-1]), key=cmp_to_key(ordered), reverse=descending)


def _sort(out: Array, source: Array, *, axis: int, descending: bool) -> None:
    order = np.empty(source.shape, np.int64)
    _argsort(order, source, axis=axis, descending=descending, total=False)
    for i in np.ndindex(out.shape):
        out[i] = source[(*i[:axis], order[i], *i[axis + 1 :])]


def _nonzero(out: Array, mask: Array, *, axis: int) -> None:
    out[...] = [i[axis] for i in np.ndindex(mask.shape) if mask[i] != 0]


FUNCTIONS: Final[dict[str, Callable[..., None]]] = {
    "concatenate": _concatenate,
    "pad": _pad,
    "gather": _gather,
    "sort": _sort,
    "argsort": _argsort,
    "nonzero": _nonzero,
}
"""The definitions, but for those of scatters."""
