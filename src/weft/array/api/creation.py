"""New arrays: filled ones, ranges, the identity.

Each system chooses its own dtype where none is asked for (`weft.semantics.arrangement.default_type`) and converts what fills an
array in its own way. Filled arrays are numbers broadcast, so they fuse with what reads them; ranges are data, made by NumPy at
once in the type and the order of operations of the system.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.array.api.lazy import Array, asarray
from weft.array.building.whole import data, filling, noted, require_plain, spread
from weft.array.expression import views
from weft.array.expression.support import read_dtype, require
from weft.dtypes import DType
from weft.semantics import Number, Promotion, Semantics, Step, Type, get
from weft.semantics import arrangement as rules
from weft.semantics.context import current

Shape = SupportsIndex | Sequence[SupportsIndex]


def zeros(shape: Shape, dtype: object = None, semantics: str | Semantics | None = None) -> Array:
    """An array of zeros."""
    return _new("zeros", shape, 0.0, dtype, semantics)


def ones(shape: Shape, dtype: object = None, semantics: str | Semantics | None = None) -> Array:
    """An array of ones."""
    return _new("ones", shape, 1.0, dtype, semantics)


def full(shape: Shape, fill_value: Number, dtype: object = None, semantics: str | Semantics | None = None) -> Array:
    """An array of a number, by default of the type that the number has by itself."""
    return _new("full", shape, fill_value, dtype, semantics)


def zeros_like(x: Any, dtype: object = None) -> Array:
    """Zeros of the shape and dtype of ``x``."""
    return _like("zeros_like", x, 0, dtype)


def ones_like(x: Any, dtype: object = None) -> Array:
    """Ones of the shape and dtype of ``x``."""
    return _like("ones_like", x, 1, dtype)


def full_like(x: Any, fill_value: Number, dtype: object = None) -> Array:
    """A number in the shape and dtype of ``x``."""
    return _like("full_like", x, fill_value, dtype)


def eye(
    rows: SupportsIndex,
    columns: SupportsIndex | None = None,
    k: SupportsIndex = 0,
    dtype: object = None,
    semantics: str | Semantics | None = None,
) -> Array:
    """Ones where the column is the row plus ``k``, zeros elsewhere."""
    require_plain("eye", rows, columns, k)
    system = _system(semantics)
    if operator.index(k) and rules.family(system) == "torch":
        raise TypeError("torch.eye takes no k; use a slice of a greater one")

    def build(kind: DType) -> NDArray[Any]:
        shape = views.shape_of((rows, rows if columns is None else columns))
        return np.eye(*shape, k=operator.index(k)).astype(kind.numpy)

    return _made(system, "eye", dtype, 0.0, build)


def arange(
    start: Number,
    stop: Number | None = None,
    step: Number = 1,
    dtype: object = None,
    semantics: str | Semantics | None = None,
) -> Array:
    """``start``, ``start + step``, ... before ``stop``; from 0 where one number is given."""
    require_plain("arange", start, stop, step)
    system = _system(semantics)
    base = rules.family(system)
    if base == "triton" and stop is None:
        raise TypeError("tl.arange takes a start and an end")
    first, last = (0, start) if stop is None else (start, stop)
    given = (first, last, step)
    if any(isinstance(n, complex) for n in given):
        raise TypeError(f"'arange' takes real numbers, found {given}")
    kind = 0.0 if any(isinstance(n, float) for n in given) else 0
    if step == 0:
        raise ZeroDivisionError("'arange' takes a step that is not zero")
    steps = ((last - first) / step).real
    if base == "max" and steps % 1 and isinstance(kind, int):
        raise ValueError(f"ops.range takes an interval that its step divides, found {first} to {last} by {step}")
    if base == "torch" and steps < 0 or base == "triton" and steps <= 0:
        raise ValueError(f"{rules.NAMES['arange'][base]} goes from {first} to {last} in no steps of {step}")

    def build(dtype: DType) -> NDArray[Any]:
        if dtype.is_bool:
            raise TypeError(f"'arange' makes no bools in {system.name}")
        return RANGES.get(base, _range)(first, last, step, dtype)

    return _made(system, "arange", dtypes.int32 if base == "triton" and dtype is None else dtype, kind, build)


def linspace(
    start: Number,
    stop: Number,
    num: SupportsIndex = 50,
    endpoint: bool = True,
    dtype: object = None,
    semantics: str | Semantics | None = None,
) -> Array:
    """``num`` numbers from ``start`` to ``stop`` at equal distances, the last of them ``stop`` where ``endpoint`` holds."""
    require_plain("linspace", start, stop, num)
    system = _system(semantics)
    count = operator.index(num)
    base = rules.family(system)
    if count < 0:
        raise ValueError(f"'linspace' takes a number of elements that is not negative, found {count}")
    if base == "torch" and not endpoint:
        raise TypeError("torch.linspace takes no endpoint; use arange, or leave the last element out")
    kind = 0j if isinstance(start, complex) or isinstance(stop, complex) else 0.0

    def build(dtype: DType) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            wide = dtype
            if dtype.is_integer:
                wide = system.binary("/", dtype, dtype).result if base == "jax" else dtypes.float32
            return LINES[base](start, stop, count, endpoint, wide.compute, dtype)

    return _made(system, "linspace", dtype, kind, build)


def _range(first: Number, last: Number, step: Number, dtype: DType) -> NDArray[Any]:
    """NumPy's: the first two elements in the type, and what follows at their distance."""
    known: Any = dtype.numpy if dtype.numpy.isbuiltin == 1 else None
    made: Any = np.arange(first, last, step, known)  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
    return cast("NDArray[Any]", made).astype(dtype.numpy)


def _range_max(first: Number, last: Number, step: Number, dtype: DType) -> NDArray[Any]:
    """MAX's: a last element that is less than a step before the end is left out."""
    return _range(first, last, step, dtype)[: int((last.real - first.real) // step.real)]


def _range_torch(first: Number, last: Number, step: Number, dtype: DType) -> NDArray[Any]:
    """PyTorch's: ``start + i * step`` in int64, in float64, or (of narrow floats) in float32."""
    wide = dtypes.int64 if dtype.is_integer else dtypes.float32 if dtype.bits < 32 else dtypes.float64
    return _steps(first, last, step, wide).astype(dtype.numpy)


def _range_jax(first: Number, last: Number, step: Number, dtype: DType) -> NDArray[Any]:
    """JAX's: ``start + i * step`` in the type, of narrow floats in float32."""
    return _steps(first, last, step, dtype.compute).astype(dtype.numpy)


def _steps(first: Number, last: Number, step: Number, dtype: DType) -> NDArray[Any]:
    count = max(math.ceil((last.real - first.real) / step.real), 0)
    begin, distance = (np.asarray(n).astype(dtype.numpy) for n in (first, step))
    return begin + np.arange(count).astype(dtype.numpy) * distance


def _line_numpy(start: Number, stop: Number, count: int, endpoint: bool, wide: DType, dtype: DType) -> NDArray[Any]:
    line = np.linspace(start, stop, count, endpoint)
    return (np.floor(line) if dtype.is_integer else line).astype(dtype.numpy)


def _line_jax(start: Number, stop: Number, count: int, endpoint: bool, wide: DType, dtype: DType) -> NDArray[Any]:
    """JAX's: ``start * (1 - t) + stop * t``, and ``stop`` itself."""
    first, last = (cast(Any, np.asarray(n).astype(wide.numpy)) for n in (start, stop))
    steps = count - 1 if endpoint else count
    if count < 2:
        line = np.full(count, first)
    else:
        t = np.arange(steps).astype(wide.numpy) / wide.numpy.type(steps)
        line = first * (wide.numpy.type(1) - t) + last * t
        line = np.append(line, last) if endpoint else line
    return (np.floor(line) if dtype.is_integer else line).astype(dtype.numpy)


def _line_torch(start: Number, stop: Number, count: int, endpoint: bool, wide: DType, dtype: DType) -> NDArray[Any]:
    """PyTorch's: from both ends to the middle."""
    first, last = (cast(Any, np.asarray(n).astype(wide.numpy)) for n in (start, stop))
    if count < 2:
        return np.full(count, first).astype(dtype.numpy)
    step = (last - first) / wide.numpy.type(count - 1)
    i = np.arange(count).astype(wide.numpy)
    first_half = np.arange(count) < count // 2
    line: NDArray[Any] = cast(Any, np).where(
        first_half, first + step * i, last - step * (wide.numpy.type(count - 1) - i)
    )
    return line.astype(dtype.numpy)


RANGES: Final[Mapping[str, Callable[[Number, Number, Number, DType], NDArray[Any]]]] = {
    "torch": _range_torch,
    "jax": _range_jax,
    "max": _range_max,
}
"""The ranges of systems that do not compute them as NumPy does."""

LINES: Final[Mapping[str, Callable[[Number, Number, int, bool, DType, DType], NDArray[Any]]]] = {
    "numpy": _line_numpy,
    "jax": _line_jax,
    "torch": _line_torch,
}
"""How systems space numbers."""


def _system(semantics: str | Semantics | None) -> Semantics:
    return current() if semantics is None else get(semantics)


def _asked(system: Semantics, dtype: object) -> DType | None:
    """The dtype that was asked for, as the system holds it."""
    if dtype is None:
        return None
    found = read_dtype(dtype)
    system.operand(found)
    return require(system.cast(found, found).result, "a new array is of")


def _new(op: str, shape: Shape, value: Number, dtype: object, semantics: str | Semantics | None) -> Array:
    require_plain(op, shape, value)
    system = _system(semantics)

    def ask() -> Promotion:
        chosen = _asked(system, dtype)
        found = rules.default_type(system, op, value) if chosen is None else Type(chosen)
        return _promotion(op, found)

    def build(promotion: Promotion) -> Any:
        return spread(filling(system, value, promotion.result), promotion.result, views.shape_of(shape))

    return Array(noted(system, op, (), ask, build), system)


def _like(op: str, x: Any, value: Number, dtype: object) -> Array:
    require_plain(op, value)
    array = x if isinstance(x, Array) else asarray(x)
    system = array.semantics

    def ask() -> Promotion:
        chosen = _asked(system, dtype)
        return _promotion(op, Type(array.dtype, array.weak) if chosen is None else Type(chosen))

    def build(promotion: Promotion) -> Any:
        return spread(filling(system, value, promotion.result), promotion.result, array.shape)

    return Array(noted(system, op, (array.type,), ask, build), system)


def _made(system: Semantics, op: str, dtype: object, kind: Number, build: Callable[[DType], NDArray[Any]]) -> Array:
    def ask() -> Promotion:
        chosen = _asked(system, dtype)
        return _promotion(op, rules.default_type(system, op, kind) if chosen is None else Type(chosen))

    return Array(noted(system, op, (), ask, lambda promotion: data(build(promotion.result))), system)


def _promotion(op: str, found: Type) -> Promotion:
    step = Step("new array", f"'{op}' makes {found}")
    return Promotion(found.dtype, found.dtype, op, found.weak, steps=(step,))
