"""The functions of whole arrays (`nodes.Call`) as the native backend runs them: NumPy's copies and sorts.

Each takes the array to write, the operands, and the call's parameters. `called` says what each element of the
result is; tests compare the two.

Indices count from the end where they are negative. What happens to one that is out of bounds is ``mode``:

===========  ====================================================================
raise        `IndexError` (NumPy, PyTorch)
positive     the same, and negative indices are out of bounds too (PyTorch)
clip         the nearest element (JAX's ``x[i]``)
clamp        the same, but negative indices are those below 0 (``mode="clip"`` of ``take``)
fill         ``fill`` (JAX's ``take``); a scatter leaves it out
wrap         the index modulo the size
===========  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from weft.array.expression.nodes import Fill
from weft.dtypes import DType
from weft.semantics.conversions import dtype_of

Array: TypeAlias = NDArray[Any]
Sizes: TypeAlias = tuple[int, ...]
Widths: TypeAlias = tuple[tuple[int, int], ...]


def out_of_bounds(index: int, axis: int, size: int) -> IndexError:
    """NumPy's error."""
    return IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")


def concatenate(out: Array, *parts: Array, axis: int) -> None:
    """The parts one after the other along ``axis``."""
    np.concatenate(parts, axis, out=out)


def pad(out: Array, source: Array, *, widths: Widths, fill: Fill) -> None:
    """``source`` with ``widths`` elements ``fill`` before and after it along each axis."""
    out[...] = fill.number
    out[tuple(slice(before, before + n) for (before, _), n in zip(widths, source.shape, strict=True))] = source


def gather(out: Array, source: Array, *indices: Array, mode: str, fill: Fill | None = None) -> None:
    """``source[indices]``: the arrays of indices have one shape, and name places of the first axes of ``source``."""
    inside, places = _places(source.shape, indices, mode)
    other = None if fill is None else fill.number
    if inside is not None and 0 in source.shape[: len(places)]:
        out[...] = other
        return
    if len(places) == 1:
        np.take(source, places[0], axis=0, out=out, mode="clip")
    else:
        out[...] = source[places]
    if inside is not None:
        out[~inside] = other


def _scatter(update: np.ufunc | None) -> Callable[..., None]:
    def run(
        out: Array, target: Array, value: Array, *indices: Array, sizes: Sizes, offset: int, strides: Sizes, mode: str
    ) -> None:
        """A copy of ``target`` whose elements at ``indices`` of a window are replaced by, or combined with, ``value``."""
        out[...] = target
        place = window(out, sizes, offset, strides)
        if not indices:
            place[...] = value if update is None else update(place, value)
            return
        inside, places = _places(place.shape, indices, mode)
        if inside is not None:
            places, value = tuple(p[inside] for p in places), value[inside]
        if update is None:
            place[places] = value
        else:
            with np.errstate(all="ignore"):
                update.at(place, places, value)

    return run


def argsort(out: Array, *keys: Array, axis: int, descending: bool, total: bool) -> None:
    """The indices that sort along ``axis``; equal elements keep their order. NaN is greater than any number; ``total``: floats
    are in IEEE 754's total order, -0 below 0. Two keys are real and imaginary parts, compared in that order."""
    ranks = [~rank(key, total) if descending else rank(key, total) for key in keys]
    if len(ranks) == 1:
        out[...] = np.argsort(ranks[0], axis, stable=True)
    else:
        out[...] = np.lexsort(ranks[::-1], axis)


def sort(out: Array, source: Array, *, axis: int, descending: bool) -> None:
    """The elements in the order of `argsort`. NumPy's fastest sort does where equal elements are the same bits: with AVX-512 it
    writes NaNs of its own in place of the array's."""
    if source.dtype.isbuiltin != 1 or (source.dtype.kind == "f" and _unequal_bits(source)):
        order = np.empty(source.shape, np.int64)
        argsort(order, source, axis=axis, descending=descending, total=False)
        out[...] = np.take_along_axis(source, order, axis)
    else:
        ordered = np.sort(source, axis)
        out[...] = np.flip(ordered, axis) if descending else ordered


def _unequal_bits(floats: Array) -> bool:
    """Whether elements that a sort takes for equal may differ in their bits."""
    return bool(np.isnan(floats).any() or np.signbit(floats[floats == 0]).any())


def product(out: Array, real: Array, imaginary: Array, *, axes: tuple[int, ...], scan: bool, part: str) -> None:
    """One part of the product of complex numbers over axes, or of the products up to each along the only one."""
    numbers = np.empty(real.shape, f"c{2 * real.itemsize}")
    numbers.real, numbers.imag = real, imaginary
    with np.errstate(all="ignore"):
        found = np.cumprod(numbers, axes[0]) if scan else np.prod(numbers, axes)
    out[...] = getattr(found, part)


def rounded(out: Array, source: Array, *, to: DType) -> None:
    """Floats rounded to the numbers of a narrow type, as ml_dtypes converts."""
    with np.errstate(all="ignore"):
        out[...] = source.astype(to.numpy)


def nonzero(out: Array, mask: Array, *, axis: int) -> None:
    """The indices along ``axis`` of the elements that are not zero, in row-major order."""
    out[...] = np.nonzero(mask)[axis]


def rank(key: Array, total: bool) -> Array:
    """Unsigned integers in the order of the elements."""
    dtype = dtype_of(key)
    unsigned = np.dtype(f"u{key.itemsize}")
    if dtype.is_bool or dtype.is_integer and not dtype.signed:
        return key.view(unsigned)
    sign = unsigned.type(1 << (8 * key.itemsize - 1))
    if dtype.is_integer:
        return key.view(unsigned) ^ sign
    bits = np.where((key != 0) | total, key, np.zeros((), key.dtype)).view(unsigned)
    ranks = np.where(bits & sign, ~bits, bits | sign)
    return ranks if total else np.where(np.isnan(key), unsigned.type(~sign | sign), ranks)


def _places(shape: Sizes, indices: tuple[Array, ...], mode: str) -> tuple[NDArray[np.bool_] | None, Any]:
    """The indices as places that exist, and where they were in bounds; None where that does not matter."""
    inside: NDArray[np.bool_] | None = None
    places: list[Array] = []
    for axis, index in enumerate(indices):
        size = shape[axis]
        if mode == "wrap":
            places.append(index % max(size, 1))
            continue
        place = index if mode in ("positive", "clamp") else np.where(index < 0, index + size, index)
        good = (place >= 0) & (place < size)
        if mode in ("raise", "positive") and not good.all():
            raise out_of_bounds(int(index[~good].flat[0]), axis, size)
        if mode == "fill":
            inside = good if inside is None else inside & good
        places.append(np.clip(place, 0, max(size - 1, 0)))
    return inside, tuple(places)


class _Window:
    """Memory from an address on, in NumPy's own protocol; ``base`` stays alive with the array made of it."""

    def __init__(self, base: Array, address: int, shape: Sizes, strides: Sizes) -> None:
        self.base = base
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": shape,
            "strides": strides,
            "data": (address, not base.flags.writeable),
            "typestr": f"|V{base.itemsize}",
        }


def window(base: Array, shape: Sizes, offset: int, strides: Sizes) -> Array:
    """The elements at ``offset + sum(i * stride)`` from the first of ``base``, for all i in ``shape``; not copied."""
    if 0 in shape:
        return np.empty(shape, base.dtype)
    size = base.itemsize
    address = base.__array_interface__["data"][0] + offset * size
    return np.asarray(_Window(base, address, shape, tuple(s * size for s in strides))).view(base.dtype)


def _elementwise(function: np.ufunc) -> Callable[..., None]:
    """NumPy's function of two arrays."""

    def run(out: Array, x: Array, y: Array) -> None:
        with np.errstate(all="ignore"):
            out[...] = function(x, y)

    return run


def searchsorted(out: Array, ordered: Array, values: Array, *, side: str, nan: str) -> None:
    """Where values go into an array that is in order. NaN is ``last`` in the order, or (``path``) every comparison with one sends
    the search on to the right."""
    if nan == "path" and ordered.dtype.kind not in "iub":
        low, high = np.zeros(values.shape, np.int64), np.full(values.shape, ordered.size, np.int64)
        while (open_ := low < high).any():
            middle = np.minimum((low + high) // 2, ordered.size - 1)
            found = ordered[middle]
            on = ~(found >= values if side == "left" else found > values)
            low, high = np.where(open_ & on, middle + 1, low), np.where(open_ & ~on, middle, high)
        out[...] = low
    else:
        out[...] = np.searchsorted(rank(ordered, False), rank(values, False), cast(Any, side))


FUNCTIONS: Final[dict[str, Callable[..., None]]] = {
    "concatenate": concatenate,
    "pad": pad,
    "gather": gather,
    "scatter_set": _scatter(None),
    "scatter_add": _scatter(np.add),
    "scatter_mul": _scatter(np.multiply),
    "scatter_min": _scatter(np.minimum),
    "scatter_max": _scatter(np.maximum),
    "sort": sort,
    "argsort": argsort,
    "nonzero": nonzero,
    "product": product,
    "rounded": rounded,
    "searchsorted": searchsorted,
    **{name: _elementwise(getattr(np, name)) for name in ("gcd", "lcm", "nextafter", "ldexp")},
}
"""Every meaning of a `Call`."""
