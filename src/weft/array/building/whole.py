"""What all operations on whole arrays are built of: one question to the system, one note to the tracer, one `Call`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.array.building.operations import Value
from weft.array.expression import tracing
from weft.array.expression.nodes import Call, Fill, Input, Node, Scalar, View
from weft.array.expression.structure import leaves
from weft.array.expression.support import require
from weft.dtypes import DType
from weft.semantics import Number, Operand, Promotion, PromotionError, Semantics, Type
from weft.semantics import arrangement as rules
from weft.semantics.conversions import convert as converted


def noted(
    system: Semantics,
    op: str,
    operands: Sequence[Operand],
    ask: Callable[[], Promotion],
    build: Callable[[Promotion], Node],
    by_types: bool = False,
) -> Value:
    """Asks the system, builds, and tells the tracer, as `operations` does for operators. ``by_types``: the answer depends on
    nothing but the operands' types, and is kept."""
    try:
        promotion = _answer(system, op, operands, ask, by_types and all(type(o) is Type for o in operands))
        node = build(promotion)
    except (PromotionError, OverflowError, TypeError, ValueError, IndexError) as error:
        tracing.note(op, operands, error)
        raise
    tracing.note(op, operands, promotion, node)
    return Value(node, promotion.weak)


_ANSWERS: Final[dict[tuple[int, str, tuple[Operand, ...]], tuple[Semantics, Promotion]]] = {}
"""What systems have answered about types alone; the system is kept, so that nothing else gets its identity."""


def _answer(
    system: Semantics, op: str, operands: Sequence[Operand], ask: Callable[[], Promotion], by_types: bool
) -> Promotion:
    key = (id(system), op, tuple(operands))
    if by_types and (known := _ANSWERS.get(key)) is not None:
        return known[1]
    rules.refuse_missing(system, op, operands)
    promotion = ask()
    require(promotion.result, f"in {system.name}, '{op}' gives")
    if by_types:
        _ANSWERS[key] = (system, promotion)
    return promotion


def moved(system: Semantics, op: str, value: Value, build: Callable[[], Node]) -> Value:
    """An operation that gives elements of one operand as they are."""
    return noted(system, op, (value.type,), lambda: rules.kept(op, value.type), lambda _: build(), by_types=True)


def require_plain(op: str, *values: object) -> None:
    """`TypeError` where an array stands for a number that shapes the result: its values are not read in silence."""
    if any(hasattr(leaf, "node") for leaf in leaves(values)):
        raise TypeError(
            f"'{op}' takes Python's numbers there, found an array; read it with int(array) or array.tolist()"
        )


def call(meaning: str, shape: tuple[int, ...], dtype: DType, *arguments: Node, **parameters: Any) -> Call:
    """A call with its parameters by name."""
    if "fill" in parameters:
        parameters["fill"] = Fill(parameters["fill"])
    return Call(shape, dtype, meaning=meaning, arguments=arguments, parameters=tuple(parameters.items()))


def data(array: NDArray[Any]) -> Input:
    """NumPy's data as a node."""
    return Input(array.shape, dtypes.named(array.dtype.name), array=array)


def filling(system: Semantics, value: Number, dtype: DType) -> Number:
    """What a number becomes that fills an array of ``dtype``: itself where it is one, else converted as an array is."""
    base = rules.family(system)
    if isinstance(value, np.generic):
        value = cast(Any, value).item()
    if not isinstance(value, (bool, int, float, complex)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"a number fills an array, found {type(value).__name__}")
    if isinstance(value, int) and dtype.is_integer and dtype.min <= value <= dtype.max:
        return int(value)
    integer = isinstance(value, int) and dtype.is_integer
    if integer and base in ("numpy", "max") or base == "torch" and _overflows(value, dtype):
        raise OverflowError(f"{value} is out of bounds for {dtype}")
    if base == "max" and not dtype.is_float and isinstance(value, float):
        raise PromotionError(f"MAX converts no Python float to {dtype}", "write an integer")
    own = np.asarray(value, dtypes.float64.numpy if isinstance(value, float) else None)
    with np.errstate(all="ignore"):
        if isinstance(value, complex) or dtype.is_complex or own.dtype == object:
            return np.asarray(value).astype(dtype.numpy).item()
        meaning = system.cast(dtypes.named(own.dtype.name), dtype).meaning
        found = converted(meaning, own, dtype)
    return cast(Number, found.item() if dtype.itemsize and not dtype.is_float else float(found))


def _overflows(value: Number, dtype: DType) -> bool:
    """Whether PyTorch refuses to fill an array with a number: negative integers wrap into unsigned types, nothing else does."""
    if isinstance(value, complex) or dtype.is_bool or dtype.is_complex:
        return False
    if dtype.is_integer:
        low = -dtype.max if isinstance(value, int) and not dtype.signed else dtype.min
        return not low <= value <= dtype.max
    return abs(value) > dtype.largest and not math.isinf(value)


def missing(dtype: DType) -> Number:
    """What JAX gives for an index out of bounds: NaN, the least or (unsigned) greatest integer, True."""
    if dtype.is_bool:
        return True
    if dtype.is_integer:
        return dtype.min if dtype.signed else dtype.max
    return complex(np.nan) if dtype.is_complex else float(np.nan)


def spread(number: Number, dtype: DType, shape: tuple[int, ...]) -> Node:
    """A number everywhere."""
    scalar = Scalar((), dtype, number)
    return View(shape, dtype, source=scalar) if shape else scalar
