"""Arrays and `weft.semantics` say the same of every form an operand may have, in every system and version."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft.array as wa
from sampling import grid
from weft import dtypes
from weft.semantics import SYSTEMS, Constant, PromotionError, Type, get

NAMES = {"+": "add", "/": "truediv", "//": "floordiv", "**": "pow", "&": "and_", "<<": "lshift", "<": "lt", "==": "eq"}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {op: getattr(operator, name) for op, name in NAMES.items()}
REFLECTED = {"<": ">", "==": "=="}
"""What Python asks the right side where the left side has no answer."""

FORMS: list[Any] = [
    *(True, 0, 3, 300, -1, 2**31, 2**40, 2**64, 2.5, 1e300, float("nan"), 1j),
    *(np.bool_(True), np.int8(1), np.uint8(200), np.int32(3), np.int64(-1), np.int64(300), np.uint64(2**40)),
    *(np.float16(2), np.float32(1.5), np.float64(0.1), np.complex64(1j)),
    *(Constant(3, dtypes.int64), Constant(300, dtypes.int32), Constant(2.5, dtypes.float32)),
    *(np.array([1, 2]), np.array([300, 2]), np.array([-1, 2], np.int8), np.array([1, 2], np.uint8)),
    *(np.array([2**40, 1]), np.array([2**63, 1], np.uint64), np.array([True, False])),
    *(np.array([0.5, 2.0]), np.array([0.5, 2.0], np.float32), np.array([0.5, 2.0], np.float16)),
    *(np.array([1j, 2]), np.array(3), np.array(300), np.array(2.5), np.array(True), np.zeros((0, 1))),
    *([1, 2], (1, 2), [300, 1], [2**40, 1], [0.5, 2], [True, False], [[1], [2]], [1, [2]]),
]


NUMPYS: Any = (np.generic, np.ndarray)
LISTS: Any = (list, tuple, np.complex64)
POWERS_ARE_ITS_OWN = np.lib.NumpyVersion(np.__version__) < "2.3.0"
"""NumPy reads the value of an exponent without dimensions, whoever's it is (docs/platforms.md)."""


def shown(form: Any) -> str:
    return f"{type(form).__name__} {form!r}"


def outcome(ask: Callable[..., Any], *arguments: Any) -> Type | str | None:
    """The type, or the refusal's text; None for types that the system has and weft does not compute with."""
    try:
        found: Type = ask(*arguments).type
    except wa.UnsupportedDType:
        return None
    except (TypeError, ValueError, OverflowError) as error:
        return str(error)
    return Type(found.dtype, found.weak)


def arrays(system: str) -> Iterator[wa.Array]:
    """Arrays of each kind, without dimensions too, and weak ones where there are any."""
    for dtype in ("bool", "uint8", "int32", "int64", "float16", "float32"):
        yield wa.asarray(np.ones(2, dtype), system)
    yield wa.asarray(np.ones((), np.int16), system)
    if system.startswith("jax"):
        yield wa.asarray(3, system)
        yield wa.asarray(2.5, system)


def question(op: str, form: Any, array: Any, left: bool) -> tuple[str, Any, Any] | None:
    """What Python's operator asks `Semantics.resolve`; None where that cannot be known."""
    if not left:
        return op, array.type, form
    if op == "**" and POWERS_ARE_ITS_OWN and type(form) is np.ndarray and array.ndim == 0:
        return None
    if op in REFLECTED:
        if type(form) is np.ndarray and form.ndim == 0:
            return None  # NumPy asks about its scalars as it does about these
        if not isinstance(form, NUMPYS):
            return REFLECTED[op], array.type, form
    return op, form, array.type


@pytest.mark.parametrize(("system", "op"), grid(8, list(SYSTEMS), list(OPERATORS)))
def test_arrays_and_semantics_say_the_same(system: str, op: str) -> None:
    for array in arrays(system):
        for form in FORMS:
            for left in (False, True):
                if (asked := question(op, form, array, left)) is None:
                    continue
                sides: Any = (form, array) if left else (array, form)
                if (found := outcome(OPERATORS[op], *sides)) is None:
                    continue
                said = outcome(get(system).resolve, *asked)
                where = f"{system}: {array.type} {op} {shown(form)}, {'left' if left else 'right'}"
                assert isinstance(found, str) == isinstance(said, str), f"{where}: {found}, {said}"
                if not isinstance(form, LISTS):  # Python and NumPy refuse these by themselves
                    assert found == said, where


@pytest.mark.parametrize("system", ["max", "max@26"])
def test_max_looks_at_the_elements_of_numpys_arrays(system: str) -> None:
    x: Any = wa.asarray(np.array([1, 250], np.uint8), system)
    for backend in ("native", "reference"):
        with wa.use_backend(backend):
            total = x + np.array([1, 2])
            assert (total.dtype, total.numpy().tolist()) == (dtypes.uint8, [2, 252])
            assert (np.array([1, 2]) * x).numpy().tolist() == [1, 244]
            assert wa.where(x > 3, np.array([7, 8]), x).numpy().tolist() == [1, 8]
            half = wa.asarray(np.ones(2, np.float16), system) + np.array([0.1, 2**11])
            assert half.dtype is dtypes.float16
            assert half.numpy().tolist() == [float(np.float16(1) + np.float16(0.1)), 2049 // 2 * 2]
    with pytest.raises(PromotionError) as raised:
        wa.apply("+", x, np.array([1, 300]))
    assert str(raised.value) == (
        "Unsafe cast: uint8 does not hold the array of int64, from 1 to 300, exactly; "
        "cast the other side: ops.cast(x, DType.uint16)"
    )
    # Data alone are arrays of the system, as asarray makes them.
    with wa.use_backend("reference"):
        assert wa.apply("+", np.array([300]), np.array([1]), semantics=system).dtype is dtypes.int64


def test_dalis_numpy_scalars() -> None:
    x: Any = wa.asarray(np.array([1.0], np.float32), "dali@2")
    with pytest.raises(PromotionError) as raised:
        wa.apply("+", x, np.float64(0.1))
    assert str(raised.value) == (
        "DALI's arithmetic does not take numpy.float64; pass float(x), or Constant(x).float64()"
    )
    # On the left NumPy's scalar is asked first, and hands on a number of Python, which is a float32.
    assert (np.float64(0.1) + x).dtype is dtypes.float32
    assert (np.int64(1) + wa.asarray(np.array([1], np.int8), "dali@2")).dtype is dtypes.int32
    assert (wa.asarray(np.array([1], np.int8), "dali@2") + np.int64(1)).dtype is dtypes.int64
    assert (wa.asarray(np.array([1.0], np.float32), "dali") + np.float64(0.1)).dtype is dtypes.float64
