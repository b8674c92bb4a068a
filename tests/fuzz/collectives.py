"""Scans, gathers and histograms of exact values: forms as those of `expressions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzz.typed import LARGEST_TILE, Shape, Typed, cast, fits, spelling, whole
from weft import dtypes
from weft.dtypes import DType
from weft.semantics import triton as semantics

if TYPE_CHECKING:
    from fuzz.scope import Scope


def _direction(scope: Scope) -> str:
    return scope.random.choice(("", "", ", reverse=True", ", reverse=False"))


def scan(scope: Scope) -> Typed | None:
    """Prefixes with one right answer: integers, which wrap, and floats that are whole."""
    a = scope.pick(lambda v: bool(v.shape))
    if a is None:
        return None
    r = scope.random
    axis = r.randrange(-len(a.shape), len(a.shape))
    name = r.choice(("cumsum", "cumsum", "cumprod", "associative_scan", "maps"))
    if a.dtype.is_float:
        a = whole(a, r.choice((dtypes.float32, dtypes.float64)))
        return Typed(f"(tl.cumsum({a.text}, {axis}{_direction(scope)}) + 0.0)", a.dtype, a.shape)
    if name == "maps" and a.dtype.is_integer:
        b = scope.pick(lambda v: v.dtype.is_integer and v.shape == a.shape) or a
        pair = f"({a.text}, {b.text})"
        text = f"tl.associative_scan({pair}, {axis}, {scope.maps()}{_direction(scope)})[{r.randint(0, 1)}]"
        return Typed(text, a.dtype, a.shape) if a.dtype == b.dtype else None
    if name == "associative_scan" and (combine := scope.combine(a.dtype)):
        return Typed(f"tl.associative_scan({a.text}, {axis}, {combine}{_direction(scope)})", a.dtype, a.shape)
    wide: DType | None = r.choice((None, None, dtypes.int8, dtypes.uint32, dtypes.int64))
    dtype = wide or semantics.reduction("cumsum", a.dtype).operands
    chosen = f", dtype=tl.{spelling(wide)}" if wide else ""
    name = "cumprod" if name == "cumprod" else "cumsum"
    return Typed(f"tl.{name}({a.text}, {axis}{_direction(scope)}{chosen})", dtype, a.shape)


def gather(scope: Scope) -> Typed | None:
    """Elements by an index inside the axis, of any integer type that holds it."""
    source = scope.pick(lambda v: bool(v.shape))
    if source is None:
        return None
    r = scope.random
    axis = r.randrange(len(source.shape))
    size = source.shape[axis]
    index = scope.pick(lambda v: not v.dtype.is_float and v.shape == source.shape)
    shape = source.shape
    if index is None or r.random() < 0.4:
        length = r.choice((1, 4, 32, size))
        shape = (*shape[:axis], length, *shape[axis + 1 :])
        if source.size // size * length > LARGEST_TILE:
            return None
        index = _along(shape, axis, r.choice((1, 3, 5)))
    at = f"({cast(index, dtypes.int32).text} & {size - 1})"
    types = [d for d in dtypes.ALL if d.is_integer and size - 1 <= d.max and d != dtypes.int32]
    if r.random() < 0.4:
        at = f"{at}.to(tl.{spelling(r.choice(types))})"
    shown = axis if r.random() < 0.7 else axis - len(shape)
    return Typed(f"tl.gather({source.text}, {at}, {shown})", source.dtype, shape)


def _along(shape: Shape, axis: int, step: int) -> Typed:
    """Multiples of ``step`` along the axis, the same everywhere else."""
    row = tuple(n if d == axis else 1 for d, n in enumerate(shape))
    numbers = f"(tl.arange(0, {shape[axis]}) * {step})"
    return Typed(f"tl.broadcast_to(tl.reshape({numbers}, {row}), {shape})", dtypes.int32, shape)


def histogram(scope: Scope) -> Typed | None:
    """Counts of any integers, most of which are outside of the bins; or of bits of them, which are inside."""
    a = scope.pick(lambda v: v.dtype.is_integer and bool(v.shape))
    if a is None:
        return None
    r = scope.random
    bins = r.choice((1, 2, 16, 64, 256))
    text = f"{a.text}.to(tl.{r.choice(('int32', 'uint32'))})"
    if r.random() < 0.6:
        text = f"({text} & {r.choice((7, 31, 255))})"
    mask = scope.pick(lambda v: v.dtype.is_bool and fits(v.shape, a.shape)) if r.random() < 0.5 else None
    if len(a.shape) > 1:
        text = f"tl.ravel({text})"
        mask = None if mask is None or mask.shape != a.shape else mask.called(f"tl.ravel({mask.text})")
    masked = "" if mask is None else f", mask={mask.text}"
    return Typed(f"tl.histogram({text}, {bins}{masked})", dtypes.int32, (bins,))
