"""`numpy` against the NumPy that runs here, for every type: the rules are ours, the answers must be its.

NumPy's rules change between versions (``floor`` of integers in 2.1): NumPy 2.0.2 failed 37 of these tests. They are skipped under
other versions than those that the title names.

The types a ufunc computes in come from its ``resolve_dtypes``, results and refusals from executing it on arrays of ones.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft import semantics
from weft.dtypes import DType
from weft.semantics import PromotionError
from weft.semantics.systems import numpy_loops

NUMPY = semantics.get("numpy")
TYPES = NUMPY.dtypes

BINARY: dict[str, np.ufunc] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.remainder,
    "**": np.power,
    "fpow": np.float_power,
    "fmod": np.fmod,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "atan2": np.arctan2,
    "logaddexp": np.logaddexp,
    "matmul": np.matmul,
}
UNARY: dict[str, np.ufunc] = {
    "pos": np.positive,
    "neg": np.negative,
    "~": np.invert,
    "not": np.logical_not,
    "abs": np.absolute,
    **{
        name: getattr(np, name)
        for name in (
            *("fabs", "sign", "square", "sqrt", "cbrt", "exp", "exp2", "log", "log2", "log10"),
            *("sin", "cos", "tan", "tanh", "floor", "ceil"),
        )
    },
}
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    name: getattr(np, name)
    for name in ("sum", "prod", "mean", "cumsum", "max", "min", "argmax", "argmin", "any", "all")
}
NUMBERS = (True, 0, 1, 2, 3, 127, 128, 255, 256, 2**31, 2**40, 2**63 - 1, 0.5, 1.5, -1.5, float("nan"), 1j)
REFUSED = "refused"

RUNNING = f"NumPy {np.__version__} with the types of ml_dtypes {ml_dtypes.__version__}"
pytestmark = pytest.mark.skipif(NUMPY.title != RUNNING, reason=f"the rules are those of {NUMPY.title}")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Divisions by zero and overflows of the numbers do not matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def name_of(dtype: np.dtype[Any]) -> str:
    return dtype.name


def weft_says(compute: Callable[[], DType]) -> str:
    try:
        return str(compute())
    except PromotionError:
        return REFUSED


def numpy_says(compute: Callable[[], Any]) -> str:
    try:
        found = compute()
    except (TypeError, OverflowError, ValueError):
        return REFUSED
    return name_of(getattr(found, "dtype", found))  # an array, a NumPy scalar or a dtype


def array(dtype: DType, matrix: bool = False) -> np.ndarray[Any, Any]:
    return np.ones((1, 1) if matrix else 1, dtype.numpy)


def test_safe_casts() -> None:
    wrong = [
        (a, b) for a in TYPES for b in TYPES if numpy_loops.safe(a, b) != bool(np.can_cast(a.numpy, b.numpy, "safe"))
    ]
    assert not wrong
    order = sorted(TYPES, key=lambda d: d.numpy.num)
    assert order == sorted(TYPES, key=lambda d: numpy_loops.NUMBER[d])


def test_common_type_of_two_and_of_three() -> None:
    for count in (1, 2, 3):
        wrong = [
            types
            for types in itertools.product(TYPES, repeat=count)
            if weft_says(lambda t=types: NUMPY.common(*t).result)
            != numpy_says(lambda t=types: np.result_type(*(d.numpy for d in t)))
        ]
        assert not wrong


def test_common_type_of_more() -> None:
    rng = random.Random(7)
    samples = [tuple(rng.choices(TYPES, k=rng.randint(4, 7))) for _ in range(8000)]
    wrong = [
        types
        for types in samples
        if weft_says(lambda t=types: NUMPY.common(*t).result)
        != numpy_says(lambda t=types: np.result_type(*(d.numpy for d in t)))
    ]
    assert not wrong


def test_common_type_with_a_number() -> None:
    wrong = [
        (dtype, value)
        for dtype in TYPES
        for value in (1, 1.5, 2j, True)
        if {
            weft_says(lambda a=dtype, v=value: NUMPY.common(a, v).result),
            weft_says(lambda a=dtype, v=value: NUMPY.common(v, a).result),
        }
        != {numpy_says(lambda a=dtype, v=value: np.result_type(a.numpy, v))}
    ]
    assert not wrong


@pytest.mark.parametrize("op", BINARY)
def test_binary(op: str) -> None:
    ufunc, matrix = BINARY[op], op == "matmul"
    wrong: list[str] = []
    for a, b in itertools.product(TYPES, repeat=2):
        got = weft_says(lambda a=a, b=b: NUMPY.binary(op, a, b).result)
        want = numpy_says(lambda a=a, b=b: ufunc(array(a, matrix), array(b, matrix)))
        if got != want:
            wrong.append(f"{a} {op} {b}: {got}, NumPy {want}")
        elif got != REFUSED:
            found = NUMPY.binary(op, a, b)
            left, right, _ = ufunc.resolve_dtypes((a.numpy, b.numpy, None))
            loop = {name_of(left), name_of(right)}
            if {str(found.operands)} != loop and not (found.keeps and loop == {"int64", "uint64"}):
                wrong.append(f"{a} {op} {b}: computes in {found.operands}, NumPy in {loop}")
    assert not wrong


def raised(x: Any, y: Any) -> Any:
    """The operator, which squares where np.power does not."""
    return x**y


@pytest.mark.parametrize("op", [op for op in BINARY if op != "matmul"])
def test_binary_with_a_number(op: str) -> None:
    call: Any = raised if op == "**" else BINARY[op]
    wrong: list[str] = []
    for dtype, value in itertools.product(TYPES, NUMBERS):
        pairs = ((dtype, value), (value, dtype))
        for ours, theirs in zip(pairs, ((array(dtype), value), (value, array(dtype))), strict=True):
            got = weft_says(lambda ours=ours: NUMPY.binary(op, *ours).result)
            want = numpy_says(lambda theirs=theirs: call(*theirs))
            if got != want:
                wrong.append(f"{ours}: {got}, NumPy {want}")
    assert not wrong


@pytest.mark.parametrize("op", UNARY)
def test_unary(op: str) -> None:
    wrong: list[str] = []
    for dtype in TYPES:
        got = weft_says(lambda d=dtype: NUMPY.unary(op, d).result)
        want = numpy_says(lambda d=dtype: UNARY[op](array(d)))
        if got != want:
            wrong.append(f"{dtype}: {got}, NumPy {want}")
    assert not wrong


def test_real_and_imaginary_parts() -> None:
    assert [str(NUMPY.unary("real", d).result) for d in TYPES] == [name_of(np.real(array(d)).dtype) for d in TYPES]


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reductions(op: str) -> None:
    got = [weft_says(lambda d=dtype: NUMPY.reduction(op, d).result) for dtype in TYPES]
    assert got == [numpy_says(lambda d=dtype: REDUCTIONS[op](array(d))) for dtype in TYPES]


def test_where_with_arrays_and_numbers() -> None:
    wrong: list[str] = []
    others = (*TYPES, *NUMBERS, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1)
    for a, b in itertools.product(TYPES, others):
        got = weft_says(lambda a=a, b=b: NUMPY.binary("where", a, b).result)
        want = numpy_says(lambda a=a, b=b: np.where([True], array(a), array(b) if isinstance(b, DType) else b))
        if got != want:
            wrong.append(f"where {a} {b}: {got}, NumPy {want}")
    assert not wrong


def test_concatenate() -> None:
    wrong = [
        (a, b)
        for a, b in itertools.product(TYPES, repeat=2)
        if weft_says(lambda a=a, b=b: NUMPY.binary("concat", a, b).result)
        != numpy_says(lambda a=a, b=b: np.concatenate([array(a), array(b)]))
    ]
    assert not wrong


def test_clip() -> None:
    wrong: list[str] = []
    bounds = (*TYPES, 0, 300, 1.5)
    for value, bound in itertools.product(TYPES, bounds):
        limit: Any = array(bound) if isinstance(bound, DType) else bound
        got = weft_says(lambda v=value, b=bound: NUMPY.ternary("clamp", v, b, b).result)
        want = numpy_says(lambda v=value, b=limit: np.clip(array(v), b, b))
        if got != want:
            wrong.append(f"clip {value} {bound}: {got}, NumPy {want}")
    assert not wrong


@pytest.mark.parametrize("value", [True, 0, -1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 1.5, 2j])
def test_a_number_by_itself(value: complex) -> None:
    assert str(NUMPY.literal(value).dtype) == np.asarray(value).dtype.name


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_a_number_by_itself_that_numpy_makes_an_object(value: int) -> None:
    assert np.asarray(value).dtype == object
    with pytest.raises(
        PromotionError, match=f"^Python integer {value} fits neither int64 nor uint64; write it as a float$"
    ):
        NUMPY.literal(value)
