"""What each element of a `Call` is: the definitions, element by element in Python, against which `calls` is tested."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
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


def _each(function: Callable[[Any, Any, np.dtype[Any]], Any]) -> Callable[..., None]:
    """A function of two elements and their type."""

    def run(out: Array, x: Array, y: Array) -> None:
        with np.errstate(all="ignore"):
            for i in np.ndindex(out.shape):
                out[i] = function(x[i], y[i], out.dtype)

    return run


def _wrapped(number: int, dtype: np.dtype[Any]) -> Any:
    return np.asarray([number % (1 << 8 * dtype.itemsize)], np.uint64).astype(dtype)[0]


def _next(x: Any, y: Any, dtype: np.dtype[Any]) -> Any:
    """The bits of a float count its places from zero."""
    if np.isnan(x) or np.isnan(y):
        return np.nan
    if x == y:
        return y
    unsigned = np.dtype(f"u{dtype.itemsize}")
    bits = int(np.asarray([x], dtype).view(unsigned)[0])
    top = 1 << (8 * dtype.itemsize - 1)
    if x == 0:
        bits = 1 | (top if y < 0 else 0)
    else:
        bits += 1 if (y > x) == (x > 0) else -1
    return np.asarray([bits], unsigned).view(dtype)[0]


def _scaled(x: Any, exponent: Any, dtype: np.dtype[Any]) -> Any:
    """In exact arithmetic, rounded once."""
    if not np.isfinite(x) or x == 0:
        return x
    numerator, denominator = float(x).as_integer_ratio()
    shift = max(min(int(exponent), 1 << 13), -(1 << 13))
    exact = Fraction(numerator, denominator) * Fraction(2) ** shift
    least = int(np.log2(float(np.finfo(dtype).smallest_subnormal))) if dtype.itemsize < 8 else -1074
    _, top = np.frexp(float(x))
    unit = Fraction(2) ** max(int(top) + shift - np.finfo(dtype).nmant - 1, least)
    rounded = round(exact / unit) * unit
    try:
        return float(rounded)
    except OverflowError:
        return np.copysign(np.inf, x)


def _searchsorted(out: Array, ordered: Array, values: Array, *, side: str, nan: str) -> None:
    """The C++ of ``torch.searchsorted`` where NaN stops nothing, else how many elements come before."""
    for i in np.ndindex(values.shape):
        value = values[i]
        if nan == "last":
            order = [_compare(x, value, False) for x in ordered]
            out[i] = sum(c < 0 or side == "right" and c == 0 for c in order)
            continue
        low, high = 0, ordered.size
        while low < high:
            middle = low + (high - low) // 2
            stays = ordered[middle] >= value if side == "left" else ordered[middle] > value
            low, high = (low, middle) if stays else (middle + 1, high)
        out[i] = low


FUNCTIONS: Final[dict[str, Callable[..., None]]] = {
    "concatenate": _concatenate,
    "pad": _pad,
    "gather": _gather,
    "sort": _sort,
    "argsort": _argsort,
    "nonzero": _nonzero,
    "searchsorted": _searchsorted,
    "gcd": _each(lambda x, y, dtype: _wrapped(math.gcd(int(x), int(y)), dtype)),
    "lcm": _each(lambda x, y, dtype: _wrapped(math.lcm(int(x), int(y)), dtype)),
    "nextafter": _each(_next),
    "ldexp": _each(_scaled),
}
"""The definitions, but for those of scatters."""
