"""The porting check, with expectations derived by hand from the systems' documented rules."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft.array as wa
from weft import dtypes, semantics
from weft.array import use_backend
from weft.array.comparing.check import compare
from weft.array.comparing.comparison import Comparison, Diverged, Kind, Line, Operation


@pytest.fixture(autouse=True)
def _reference() -> Iterator[None]:
    with use_backend("reference"):
        yield


def uint8(*values: int) -> Any:
    return np.array(values, np.uint8)


def int32(*values: int) -> Any:
    return np.array(values, np.int32)


def compared(function: Callable[[Any], Any], inputs: object, *systems: str) -> Comparison:
    """`compare` for lambdas, whose parameter it types."""
    return compare(function, inputs, systems or ("jax", "dali"))


def line_of(found: Comparison, source: str) -> Line:
    """The line with this text."""
    (line,) = [line for line in found.lines if line.source == source]
    return line


def only(found: Comparison, source: str) -> Operation:
    """The only operation of the line with this text."""
    (operation,) = line_of(found, source).operations
    return operation


def types(operation: Operation) -> dict[str, str]:
    """Each system's type."""
    return {system: cell.type for system, cell in operation.cells.items()}


def difference(operation: Operation) -> tuple[Any, ...]:
    """Count, size, index, both values and the distance of the only difference."""
    ((value,),) = [operation.values]
    found = value.found
    return found.count, found.size, found.index, found.first, found.second, found.absolute


# ---- types, values and bytes ------------------------------------------------------------------------------------------


def brighten(image: Any) -> Any:
    bright = image + 10
    return bright // 2


def test_bytes_wrap_in_jax_and_widen_in_dali() -> None:
    found = compare(brighten, uint8(0, 100, 250))
    add = only(found, "bright = image + 10")
    assert found.systems == ("jax", "dali") and found.function == "brighten" and not found.agree
    # 250 + 10 = 260 is 4 modulo 256; an int literal is an int32 constant in DALI, and uint8 with int32 is int32.
    assert types(add) == {"jax": "uint8", "dali": "int32"}
    assert (add.expression, add.kinds, add.propagated) == ("uint8 + 10", (Kind.DTYPE, Kind.VALUE), ())
    assert difference(add) == (1, 3, (2,), 4, 260, 256)
    assert add.values[0].found.relative == 256 / 260
    # Three elements of 1 and of 4 bytes; DALI's three operands become int32 on the way.
    assert [(c.nbytes, c.converted) for c in add.cells.values()] == [(3, 0), (12, 12)]


def test_what_follows_is_propagated() -> None:
    found = compare(brighten, uint8(0, 100, 250))
    half = only(found, "return bright // 2")
    # 4 // 2 = 2 and 260 // 2 = 130; 5 and 55 are equal.
    assert difference(half) == (1, 3, (2,), 2, 130, 128)
    assert half.kinds == half.propagated == (Kind.DTYPE, Kind.VALUE)
    (result,) = found.outputs
    assert result.op == "return" and result.propagated == (Kind.DTYPE, Kind.VALUE)
    for kind in (Kind.DTYPE, Kind.VALUE):
        first = found.first(kind)
        assert first is not None and first.source == "bright = image + 10"
    # jax: 3 + 3 bytes of results; dali: 12 + 12, and 12 of conversions.
    assert [(t.system, t.nbytes, t.converted) for t in found.totals] == [("jax", 6, 0), ("dali", 24, 12)]
    assert line_of(found, "bright = image + 10").nbytes("dali") == 24


def test_what_counts_as_converted() -> None:
    def share(x: Any) -> Any:
        quotient = x / x
        half = x[::2].astype("float16")
        return half.mean() + quotient.sum()

    found = compare(share, int32(1, 2, 3, 4), ("numpy", "jax"))

    def bytes_of(source: str, op: str) -> list[tuple[int, int]]:
        (operation,) = [o for o in line_of(found, source).operations if o.op == op]
        return [(c.nbytes, c.converted) for c in operation.cells.values()]

    # Both sides are the same four int32, converted once: to float64 in NumPy, to float32 in JAX.
    assert bytes_of("quotient = x / x", "/") == [(32, 32), (16, 16)]
    # A cast is a result, and the slice it reads no copy.
    assert bytes_of('half = x[::2].astype("float16")', "astype") == [(4, 0), (4, 0)]
    # Two float16 are added up as float32 (8 bytes), and the mean of 4 bytes becomes a float16.
    assert bytes_of("return half.mean() + quotient.sum()", "mean") == [(2, 12), (2, 12)]


def test_values_are_said_where_elements_part_first() -> None:
    def twice(x: Any) -> Any:
        y = x + 10
        return y * 2

    found = compare(twice, uint8(250, 120, 5))
    # Only element 0 differs after the first line (4, 260). 130 * 2 wraps to 4 in uint8: element 1 differs from here on.
    assert difference(only(found, "y = x + 10"))[:3] == (1, 3, (0,))
    double = only(found, "return y * 2")
    assert difference(double)[:5] == (2, 3, (1,), 4, 260)
    assert double.values[0].fresh == 1
    assert (double.kinds, double.propagated) == ((Kind.DTYPE, Kind.VALUE), (Kind.DTYPE,))
    assert [said for _, said in double.sentences()] == [
        "propagated: uint8 in jax, int32 in dali",
        "2 of 3 elements differ, 1 of them only from here on, first at [1]: 4 in jax, 260 in dali; "
        "by at most 512 (0.985 relative)",  # 8 and 520; 256 / 260 is more than 512 / 520
    ]


def test_values_may_meet_again() -> None:
    def back(x: Any) -> Any:
        y = x + 10
        return y - 20

    # 4 - 20 wraps to 240, which is 260 - 20.
    found = compare(back, uint8(250))
    assert only(found, "y = x + 10").kinds == (Kind.DTYPE, Kind.VALUE)
    assert only(found, "return y - 20").kinds == (Kind.DTYPE,)


def test_division_of_negatives() -> None:
    def half(x: Any) -> Any:
        return x // 2

    found = compare(half, int32(7, -7), ("jax", "triton", "dali"))
    operation = only(found, "return x // 2")
    # -3.5 is -4 rounded down and -3 toward zero. The types agree.
    assert operation.kinds == (Kind.VALUE,)
    assert [(v.first, v.second, v.found.first, v.found.second) for v in operation.values] == [
        ("jax", "triton", -4, -3),
        ("jax", "dali", -4, -3),
    ]
    meanings = {c.system: c.meaning for c in operation.cells.values()}
    assert meanings == {"jax": "floor_divide_xla", "triton": "truncate_divide", "dali": "truncate_divide_checked"}
    # On positive numbers the quotients agree, and only the meanings say that they need not.
    positive = compare(half, int32(7, 8))
    assert positive.agree and only(positive, "return x // 2").kinds == (Kind.MEANING,)
    positive.raise_for_divergence()
    # jax and numpy round down alike, but not the quotients by zero.
    assert only(compare(half, int32(7), ("jax", "numpy")), "return x // 2").kinds == (Kind.MEANING,)


def test_int64_with_uint64() -> None:
    def add(x: Any, y: Any) -> Any:
        return x + y

    inputs = (np.array([2**53, 1], np.int64), np.array([1, 2], np.uint64))
    found = compare(add, inputs, ("numpy", "dali@2"))
    operation = only(found, "return x + y")
    assert types(operation) == {"numpy": "float64", "dali@2": "int64"}
    # 2**53 + 1 is no float64: the tie goes to the even 2**53. The integers keep it; the difference of 1 is not rounded away.
    assert difference(operation) == (1, 2, (0,), float(2**53), 2**53 + 1, 1)
    weak = only(compare(add, inputs, ("jax", "numpy")), "return x + y")
    assert (types(weak), weak.kinds) == ({"jax": "float64*", "numpy": "float64"}, ())


def test_literals_travel_to_dali_as_float32() -> None:
    found = compared(lambda x: x * 0.1, np.array([0.0, 2.0, 3.0]))
    (line,) = found.lines
    (operation,) = line.operations
    tenth = float(np.float32(0.1))
    assert (operation.kinds, types(operation)) == ((Kind.VALUE,), {"jax": "float64", "dali": "float64"})
    # 2 * x is exact, so the difference there is twice the literal's; 3 * 0.1 has the greatest.
    assert difference(operation) == (2, 3, (1,), 0.2, 2 * tenth, abs(3.0 * 0.1 - 3.0 * tenth))
    assert [c.literals[0].became for c in operation.cells.values()] == [0.1, tenth]
    assert [said for _, said in operation.sentences()] == [
        "2 of 3 elements differ, first at [1]: 0.2 in jax, 0.20000000298023224 in dali; by at most 4.47e-09 "
        "(1.49e-08 relative); 0.1 is 0.1 in jax, 0.10000000149011612 in dali"
    ]
    assert "lambda x: x * 0.1" in line.source


def test_sums_and_means() -> None:
    def total(x: Any) -> Any:
        return x.sum()

    def mean(x: Any) -> Any:
        return x.mean()

    bools = only(compare(total, np.ones(3, np.bool_), ("numpy", "triton", "max")), "return x.sum()")
    # Three, in int64 and uint32; MAX keeps bool, in which the sum is an "or".
    assert types(bools) == {"numpy": "int64", "triton": "uint32", "max": "bool"}
    assert [(v.second, v.found.first, v.found.second) for v in bools.values] == [("max", 3, True)]
    means = only(compare(mean, int32(2**24 + 1, 2**24 + 1), ("jax", "numpy")), "return x.mean()")
    # 2**24 + 1 is no float32.
    assert types(means) == {"jax": "float32", "numpy": "float64"}
    assert difference(means) == (1, 1, (), 2.0**24, 2.0**24 + 1, 1)
    # Elements converted to the type of the sum: 2 * 4 and 2 * 8 bytes, for one result each.
    assert [(c.nbytes, c.converted) for c in means.cells.values()] == [(4, 8), (8, 16)]


def test_weak_types_are_told_but_no_divergence() -> None:
    def scaled(x: Any) -> Any:
        return wa.asarray(0.5) * x

    found = compare(scaled, int32(1, 2), ("jax", "numpy"))
    operation = only(found, "return wa.asarray(0.5) * x")
    # The weak float64 yields to nothing here, but stays weak; NumPy's 0-d float64 is as strong as any.
    assert types(operation) == {"jax": "float64*", "numpy": "float64"}
    assert found.agree and operation.kinds == ()
    # Beside float32 the weak one yields, the strong one does not.
    other = only(compare(scaled, np.ones(2, np.float32), ("jax", "numpy")), "return wa.asarray(0.5) * x")
    assert (types(other), other.kinds) == ({"jax": "float32", "numpy": "float64"}, (Kind.DTYPE,))


def test_matmul() -> None:
    def square(x: Any) -> Any:
        return x @ x

    x = np.full((2, 2), 100, np.int8)
    # 2 * 100 * 100 = 20000 = 78 * 256 + 32
    found = compare(square, x, ("jax", "numpy"))
    assert found.agree and types(only(found, "return x @ x")) == {"jax": "int8", "numpy": "int8"}
    assert compare(square, np.eye(2, dtype=np.float32), ("numpy", "torch", "max")).agree


def test_narrowed_inputs_are_a_divergence() -> None:
    def same(x: Any) -> Any:
        return x + x

    found = compare(same, {"x": np.array([2**31, 1])}, ("jax", "jax-x32"))
    (given,) = found.inputs
    # 2**31 wraps to -2**31 in the 32 bits that JAX without 64-bit types has.
    assert (given.op, types(given), given.kinds) == (
        "x",
        {"jax": "int64", "jax-x32": "int32"},
        (Kind.DTYPE, Kind.VALUE),
    )
    assert difference(given) == (1, 2, (0,), 2**31, -(2**31), 2**32)
    assert only(found, "return x + x").propagated == (Kind.DTYPE, Kind.VALUE)


# ---- where ------------------------------------------------------------------------------------------------------------


HELPER = """\
def lighten(x):
    lighter = x + 200
    return lighter
"""


@pytest.fixture
def lighten(tmp_path: Path) -> Callable[[Any], Any]:
    """A function in another file."""
    path = tmp_path / "helpers.py"
    path.write_text(HELPER)
    spec = importlib.util.spec_from_file_location("helpers", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.lighten


def test_lines_of_a_helper_in_another_file(lighten: Callable[[Any], Any], tmp_path: Path) -> None:
    def through(x: Any) -> Any:
        y = lighten(x)
        return lighten(y) * 1

    found = compare(through, uint8(100))
    first, second = line_of(found, "lighter = x + 200").operations
    assert line_of(found, "lighter = x + 200").location == f"{tmp_path / 'helpers.py'}:2"
    # 300 wraps to 44; 44 + 200 = 244 fits, but its operand differed: 500 in DALI.
    assert (difference(first)[3:5], first.propagated) == ((44, 300), ())
    assert (difference(second)[3:5], second.propagated, second.occurrence) == (
        (244, 500),
        (Kind.DTYPE, Kind.VALUE),
        1,
    )


def test_a_loop_is_one_line() -> None:
    def repeated(x: Any) -> Any:
        for step in (1, 2, 3):
            x = x * step
        return x

    found = compare(repeated, uint8(50))
    (line,) = found.lines
    # 50, 100, then 300 = 44 modulo 256.
    assert [o.occurrence for o in line.operations] == [0, 1, 2]
    assert [Kind.VALUE in o.kinds for o in line.operations] == [False, False, True]
    assert [o.propagated for o in line.operations] == [(), (Kind.DTYPE,), (Kind.DTYPE,)]
    assert (line.nbytes("jax"), line.nbytes("dali")) == (3, 16)  # DALI converts the first operand only


def test_branches_that_part() -> None:
    def branches(x: Any) -> Any:
        total = (x + 100).max()
        if total > 255:
            x = x - 1
        return x * 2

    found = compare(branches, uint8(1, 200))
    # The greatest of 101 and 300, which is 44 in JAX: only DALI subtracts.
    skipped = only(found, "x = x - 1")
    assert skipped.kinds == (Kind.CONTROL,) and list(skipped.cells) == ["dali"] and skipped.unreached == ()
    assert [said for _, said in skipped.sentences()] == ["only dali does this"]
    # The condition was computed while the function ran, and yet follows from the sum.
    condition = only(found, "if total > 255:")
    assert (condition.kinds, condition.propagated) == ((Kind.VALUE,), (Kind.VALUE,))
    # The line after the branch is compared with itself: 2 * 1 and 0 * 2, 400 - 256 and 398.
    after = only(found, "return x * 2")
    assert difference(after)[:5] == (2, 2, (0,), 2, 0)
    # Its operand is the input in JAX, what only DALI did in DALI; but uint8 * 2 and int32 * 2 agree in type if the operands do.
    assert after.propagated == (Kind.DTYPE, Kind.VALUE)


def test_loops_of_different_lengths() -> None:
    def turns(x: Any) -> Any:
        while int(x.max()) < 200:
            x = x + 100
        return x * 1

    found = compare(turns, uint8(90, 180))
    jax = [o for o in line_of(found, "x = x + 100").operations if "jax" in o.cells]
    dali = [o for o in line_of(found, "x = x + 100").operations if "dali" in o.cells]
    # JAX: (90, 180), (190, 24), (34, 124), (134, 224); DALI: (90, 180), (190, 280).
    assert (len(jax), len(dali)) == (3, 1)
    assert [o.kinds for o in jax[1:]] == [(Kind.CONTROL,), (Kind.CONTROL,)]
    assert list(only(found, "return x * 1").cells) == ["jax", "dali"]


def test_other_operations_on_one_line() -> None:
    def by_type(x: Any) -> Any:
        y = x + 1
        return y * 2 if y.dtype == dtypes.uint8 else -y

    found = compare(by_type, uint8(3))
    line = line_of(found, "return y * 2 if y.dtype == dtypes.uint8 else -y")
    assert [(o.expression, list(o.cells), o.kinds) for o in line.operations] == [
        ("uint8 * 2", ["jax"], (Kind.CONTROL,)),
        ("-int32", ["dali"], (Kind.CONTROL,)),
    ]


# ---- refusals, failures, stops ----------------------------------------------------------------------------------------


def twice_refused(x: Any) -> Any:
    y = x + 300
    return y + 400


def test_a_refusal_is_reported_and_computed_with_a_cast() -> None:
    found = compare(twice_refused, uint8(1), ("dali", "numpy"))
    first = only(found, "y = x + 300")
    assert first.kinds == (Kind.REFUSED,) and types(first) == {"dali": "int32", "numpy": "int32"}
    cell = first.cells["numpy"]
    assert cell.refusal == "Python integer 300 out of bounds for uint8; convert the other side with .astype(np.int16)"
    assert cell.continued == "continued with both operands cast to int32, as dali computes"
    # With y in int32, 400 is in bounds.
    assert only(found, "return y + 400").kinds == () and not found.agree and not found.stops
    # JAX wraps 300 to 44, and so does the cast it suggests: 1 + 44 + 144.
    jax = compare(twice_refused, uint8(1), ("jax", "numpy"))
    assert [o.kinds for o in jax.operations] == [(), (Kind.REFUSED,), (Kind.REFUSED,), ()]


def test_a_refusal_that_no_cast_helps_stops_the_system() -> None:
    def product(x: Any) -> Any:
        y = x + x
        z = y @ y
        return z + x

    found = compare(product, np.eye(2, dtype=np.float32), ("jax", "dali"))
    refused = only(found, "z = y @ y")
    assert refused.kinds == (Kind.REFUSED,) and refused.cells["dali"].dtype is None
    after = only(found, "return z + x")
    assert (after.kinds, after.unreached) == ((), ("dali",))
    (stop,) = found.stops
    reason = (
        "dali has no operation 'matmul'; "
        "it has + - * / // % ** & | ^ << >> < <= > >= == != minimum maximum atan2 fpow fdiv concat"
    )
    assert (stop.system, stop.reason) == ("dali", reason)
    assert stop.location == line_of(found, "z = y @ y").location
    assert not found.agree


def test_an_exception_of_the_functions_own_stops_the_system() -> None:
    def positive(x: Any) -> Any:
        y = x + 10
        if y.dtype != dtypes.uint8:
            raise RuntimeError("no bytes any more")
        return y

    (stop,) = (found := compare(positive, uint8(1))).stops
    assert (stop.system, stop.reason) == ("dali", "no bytes any more")
    assert found.outputs[0].unreached == ("dali",) and not found.agree


def test_a_branch_not_taken_before_the_stop_is_no_part_of_it() -> None:
    def late(x: Any) -> Any:
        y = x + 10
        if y.dtype == dtypes.uint8:
            y = -y
        z = y + 0
        return z @ z

    found = compare(late, uint8(1, 2))
    assert [stop.system for stop in found.stops] == ["dali"]
    assert (only(found, "y = -y").kinds, only(found, "y = -y").unreached) == ((Kind.CONTROL,), ())
    assert found.outputs[0].unreached == ("dali",)


def test_operations_that_fail_on_the_values() -> None:
    def divide(x: Any, y: Any) -> Any:
        q = x // y
        r = x + 1
        return q + r

    found = compare(divide, (int32(1, 2), int32(1, 0)), ("numpy", "dali"))
    quotient = only(found, "q = x // y")
    assert (quotient.kinds, quotient.propagated) == ((Kind.FAILED,), ())
    assert [said for _, said in quotient.sentences()] == ["dali fails on these values: division by zero of int32"]
    assert only(found, "r = x + 1").kinds == ()
    assert only(found, "return q + r").propagated == (Kind.FAILED,)


def test_nan_equals_nan() -> None:
    def root(x: Any) -> Any:
        return wa.sqrt(x)

    assert compare(root, np.array([-1.0, 4.0]), ("jax", "numpy")).agree

    def least(x: Any) -> Any:
        return wa.minimum(x, 1.0)

    # A NaN stays in JAX; Triton's minimum gives the number.
    found = compare(least, np.array([np.nan, 0.0], np.float32), ("jax", "triton"))
    (difference,) = only(found, "return wa.minimum(x, 1.0)").values
    assert (difference.found.count, difference.found.nans, difference.found.second) == (1, 1, 1.0)
    assert np.isnan(difference.found.first) and np.isnan(difference.found.absolute)
    assert [said for _, said in only(found, "return wa.minimum(x, 1.0)").sentences()] == [
        "1 of 2 elements differ, first at [0]: nan in jax, 1.0 in triton"
    ]
    values = json.loads(found.to_json())["lines"][0]["operations"][0]["values"][0]
    assert (values["first"], values["second"], values["absolute"]) == ("nan", 1.0, "nan")


# ---- inputs and results -----------------------------------------------------------------------------------------------


def nested(x: Any, *rest: Any, weights: Any, scale: float) -> Any:
    a, b = weights["w"]
    return {"sum": x + a + rest[0], "pair": [x * b, x * scale]}


def last(*rest: Any) -> Any:
    return rest[-1] + 0


def test_nests_of_arguments_and_results() -> None:
    arrays = [np.full(2, v, np.float32) for v in (1, 2, 3)]

    def call(x: Any, first: Any, weights: Any) -> Any:
        return nested(x, first, weights=weights, scale=2.0)

    found = compare(call, {"x": arrays[0], "first": np.float32(4), "weights": {"w": (arrays[1], arrays[2])}})
    assert [o.op for o in found.inputs] == ["x", "first", "weights['w'][0]", "weights['w'][1]"]
    assert [o.op for o in found.outputs] == ["return['sum']", "return['pair'][0]", "return['pair'][1]"]
    assert found.agree
    assert [o.op for o in compare(last, (1, arrays[0])).inputs] == ["rest[1]"]


def test_results_that_nest_otherwise() -> None:
    def either(x: Any) -> Any:
        y = x + 1
        return (y, y) if y.dtype == dtypes.uint8 else y

    found = compare(either, uint8(1))
    assert found.structures == {"jax": "(Array, Array)", "dali": "Array"} and not found.agree


def test_numpy_results_and_numbers_are_compared() -> None:
    def leaves(x: Any) -> Any:
        y = x + 10
        return y.numpy(), int(y.max())

    found = compare(leaves, uint8(250))
    # 260 and 4; a Python int is an int64.
    assert [types(o) for o in found.outputs] == [
        {"jax": "uint8", "dali": "int32"},
        {"jax": "int64", "dali": "int64"},
    ]
    assert [difference(o)[3:5] for o in found.outputs] == [(4, 260), (4, 260)]
    assert [o.propagated for o in found.outputs] == [(Kind.DTYPE, Kind.VALUE), (Kind.VALUE,)]


def test_a_fused_function_is_opened() -> None:
    @wa.fuse(semantics="jax")
    def fused(x: Any) -> Any:
        return x + 10

    assert types(only(compare(fused, uint8(1)), "return x + 10")) == {"jax": "uint8", "dali": "int32"}


def test_empty_arrays_agree_in_values() -> None:
    found = compare(brighten, np.empty((0, 3), np.uint8))
    assert only(found, "bright = image + 10").kinds == (Kind.DTYPE,)


@pytest.mark.jit
def test_the_backends_find_the_same() -> None:
    reference, native = (compare(brighten, uint8(0, 100, 250), backend=b) for b in ("reference", "native"))
    assert reference.data() == native.data()


@pytest.mark.jit
def test_many_values_are_computed_by_kernels() -> None:
    image = np.random.default_rng(3).integers(0, 256, (300, 500)).astype(np.uint8)
    add = only(compare(brighten, image), "bright = image + 10")
    # Above 245 the sum wraps.
    assert add.values[0].found.count == int((image > 245).sum())
    assert add.values[0].found.index == tuple(int(i) for i in np.argwhere(image > 245)[0])


def test_a_refusal_that_the_function_handles() -> None:
    def caught(x: Any) -> Any:
        try:
            y = x + 300
        except TypeError:
            y = x + 100
        return y

    found = compare(caught, uint8(1), ("jax", "numpy"))
    refused = only(found, "y = x + 300")
    assert (refused.kinds, refused.cells["numpy"].continued) == ((Kind.REFUSED,), "")
    assert only(found, "y = x + 100").kinds == (Kind.CONTROL,)
    # 301 - 256 and 101, which come of different lines.
    (result,) = found.outputs
    assert difference(result)[3:5] == (45, 101) and result.propagated == (Kind.VALUE,)


def test_a_refusing_function_that_names_its_system() -> None:
    def mixing(x: Any) -> Any:
        y = x + wa.asarray([1, 2], x.semantics.name)
        return y, x + 300

    # The continued execution would mix arrays with those of the system itself, so the refusal ends it.
    stopped = compare(mixing, uint8(1, 2), ("jax", "numpy"))
    assert [stop.reason.partition(";")[0] for stop in stopped.stops] == ["Python integer 300 out of bounds for uint8"]


# ---- for tests and programs -------------------------------------------------------------------------------------------


def test_agreement_raises_nothing() -> None:
    found = compared(lambda x: x * 2.0, np.ones(3, np.float32), "jax", "dali", "numpy", "torch")
    assert found.agree and found.raise_for_divergence() is None


def test_divergence_raises_with_the_lines_at_fault() -> None:
    found = compare(brighten, uint8(0, 100, 250))
    location = line_of(found, "bright = image + 10").location
    with pytest.raises(Diverged) as raised:
        found.raise_for_divergence()
    assert str(raised.value) == (
        "brighten: jax and dali diverge\n"
        f"  {location}: bright = image + 10\n"
        "    uint8 + 10: uint8 in jax, int32 in dali\n"
        "    uint8 + 10: 1 of 3 elements differ, first at [2]: 4 in jax, 260 in dali; by at most 256 (0.985 relative)"
    )
    assert isinstance(raised.value, AssertionError)


def test_other_types_and_small_differences_may_pass() -> None:
    small = compare(brighten, uint8(0, 100))
    small.raise_for_divergence(dtypes=False)
    with pytest.raises(Diverged, match="uint8 in jax, int32 in dali"):
        small.raise_for_divergence(rtol=1.0)
    tenths = compared(lambda x: x * 0.1, np.array([1.0]))
    # float32(0.1) is 1.49e-8 from 0.1, relatively.
    tenths.raise_for_divergence(rtol=1.5e-8)
    with pytest.raises(Diverged):
        tenths.raise_for_divergence(rtol=1.4e-8)
    with pytest.raises(Diverged, match=re.escape("stopped at")):
        compared(lambda x: x @ x, np.ones(2, np.float32)).raise_for_divergence(dtypes=False, rtol=1.0)


def test_a_port_is_exact_where_the_results_are() -> None:
    def rounded_down(x: Any) -> Any:
        return (x - (x % 3 + 3) % 3) // 3

    found = compare(rounded_down, int32(-8, -7, 7))
    # -8 % 3 is 1 rounded down and -2 toward zero; adding 3 makes both 1 modulo 3.
    assert [o.kinds for o in found.lines[0].operations[:2]] == [(Kind.VALUE,), (Kind.VALUE,)]
    assert found.exact and not found.agree
    found.raise_for_divergence(results=True)
    with pytest.raises(Diverged):
        found.raise_for_divergence()
    # What does not run is no port, even if a cast would make it one.
    refused = compare(twice_refused, uint8(1), ("dali", "numpy"))
    assert not refused.exact and not any(o.kinds for o in refused.outputs)
    with pytest.raises(Diverged):
        refused.raise_for_divergence(results=True)


def test_types_that_would_part_by_themselves() -> None:
    def scaled(x: Any) -> Any:
        y = x + 40
        z = y - 1
        return z * 0.5

    found = compare(scaled, uint8(1))
    # uint8 - 1 is uint8 in JAX and int32 in DALI, but int32 - 1 is int32 in both: a cast before it is enough.
    assert only(found, "z = y - 1").propagated == (Kind.DTYPE,)
    assert only(compare(scaled, uint8(1), ("dali", "jax")), "z = y - 1").propagated == (Kind.DTYPE,)
    # uint8 * 0.5 and int32 * 0.5 are both float32 in DALI, and float64 in JAX.
    assert types(only(found, "return z * 0.5")) == {"jax": "float64*", "dali": "float32"}
    assert (only(found, "return z * 0.5").kinds, only(found, "return z * 0.5").propagated) == ((Kind.DTYPE,), ())


def test_casts_differ_only_in_what_does_not_fit() -> None:
    def wide(x: Any) -> Any:
        return x.astype("int16")

    assert only(compare(wide, uint8(1)), 'return x.astype("int16")').kinds == ()
    floats = only(compare(wide, np.array([1.0], np.float32)), 'return x.astype("int16")')
    assert floats.kinds == (Kind.MEANING,) and floats.expression == "astype(float32, int16)"
    # 1.5: JAX truncates, DALI rounds.
    assert difference(only(compare(wide, np.array([1.5], np.float32)), 'return x.astype("int16")'))[3:5] == (1, 2)


def test_json() -> None:
    found = compare(brighten, uint8(0, 100, 250))
    data = json.loads(found.to_json())
    assert data == found.data()
    assert (data["function"], data["systems"], data["agree"]) == ("brighten", ["jax", "dali"], False)
    assert data["totals"] == {"jax": {"results": 6, "conversions": 0}, "dali": {"results": 24, "conversions": 12}}
    line = data["lines"][0]
    assert (line["source"], line["kinds"], line["bytes"]) == (
        "bright = image + 10",
        ["dtype", "value"],
        {"jax": 3, "dali": 24},
    )
    (operation,) = line["operations"]
    assert operation["systems"]["dali"] == {
        "operands": ["uint8", "10"],
        "dtype": "int32",
        "weak": False,
        "shape": [3],
        "meaning": "add",
        "within": "int32",
        "bytes": 12,
        "converted": 12,
        "literals": {"10": 10},
    }
    assert operation["values"] == [
        {
            "systems": ["jax", "dali"],
            "count": 1,
            "fresh": 1,
            "size": 3,
            "index": [2],
            "first": 4,
            "second": 260,
            "absolute": 256.0,
            "relative": 256 / 260,
            "nans": 0,
        }
    ]


def test_semantics_offers_it() -> None:
    assert semantics.compare is compare


# ---- errors -----------------------------------------------------------------------------------------------------------


def nothing(x: Any) -> None:
    assert (x + 1).shape == (1,)


def fails(x: Any) -> Any:
    raise RuntimeError("out of order")


@wa.fuse
def wrapped(x: Any) -> Any:
    return x + 1


def test_a_system_whose_numbers_have_no_type_of_their_own_is_compared_too() -> None:
    """x // 2 is int32 in DALI and int8 in MAX, and x + 1 of int32 is int32 in both: propagated."""
    found = compared(lambda x: (x // 2) + 1, np.array([-7], np.int8), "dali", "max")
    division, addition = (operation for line in found.lines for operation in line.operations)
    assert types(division) == {"dali": "int32", "max": "int8"}
    assert types(addition) == {"dali": "int32", "max": "int8"}
    assert division.kinds == (Kind.DTYPE, Kind.VALUE)
    assert division.propagated == ()
    assert addition.propagated == (Kind.DTYPE, Kind.VALUE)


ERRORS: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (
        ValueError,
        "compare takes two systems or more, found jax; for example systems=('jax', 'dali')",
        lambda: compare(brighten, uint8(1), ("jax",)),
    ),
    (
        ValueError,
        "compare takes two systems or more, found none; for example systems=('jax', 'dali')",
        lambda: compare(brighten, uint8(1), ()),
    ),
    (
        ValueError,
        "compare takes two systems or more, found jax; for example systems=('jax', 'dali')",
        lambda: compare(brighten, uint8(1), "jax"),
    ),
    (
        ValueError,
        "unknown semantics 'dalli'; did you mean 'dali'?",
        lambda: compare(brighten, uint8(1), ("jax", "dalli")),
    ),
    (
        ValueError,
        "compare found jax twice among the systems",
        lambda: compare(brighten, uint8(1), ("jax", "dali", "jax")),
    ),
    (TypeError, "nothing returned no arrays in jax, found NoneType", lambda: compare(nothing, uint8(1))),
    (
        TypeError,
        "<lambda> returned no arrays in jax, found float and str",
        lambda: compared(lambda _: (1.0, "a"), uint8(1)),
    ),
    (TypeError, "<lambda> returned no arrays in jax, found nothing", lambda: compared(lambda _: [], uint8(1))),
    (TypeError, "too many positional arguments", lambda: compare(brighten, (uint8(1), 2))),
    (TypeError, "missing a required argument: 'image'", lambda: compare(brighten, ())),
    (TypeError, "got an unexpected keyword argument 'picture'", lambda: compare(brighten, {"image": 1, "picture": 2})),
    (
        ValueError,
        "input 'image' in dali: dali has no dtype bfloat16; "
        "it has bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64",
        lambda: compare(brighten, np.ones(2, dtypes.bfloat16.numpy)),
    ),
    (
        TypeError,
        "input 'image[0]' in jax: the array has byte-swapped >f4 elements; pass array.astype(array.dtype.newbyteorder('='))",
        lambda: compare(brighten, ([np.zeros(1, ">f4")],)),
    ),
    (
        ValueError,
        "unknown backend 'nativ'; weft.array has native, reference",
        lambda: compare(brighten, uint8(1), backend="nativ"),
    ),
]


@pytest.mark.parametrize(("kind", "message", "call"), ERRORS)
def test_errors(kind: type[Exception], message: str, call: Callable[[], Any]) -> None:
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value) == message


def test_a_function_that_fails_everywhere() -> None:
    line = fails.__code__.co_firstlineno + 1
    with pytest.raises(ValueError) as raised:
        compare(fails, uint8(1))
    place = f"({__file__}:{line})"
    assert str(raised.value) == f"fails fails in every system; jax: out of order {place}; dali: out of order {place}"
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_what_is_wrapped_inside_is_opened() -> None:
    def calls(x: Any) -> Any:
        return wrapped(x * 1)

    found = compare(calls, uint8(1))
    assert [line.source for line in found.lines] == ["return wrapped(x * 1)", "return x + 1"]
    assert types(only(found, "return x + 1")) == {"jax": "uint8", "dali": "int32"}


def test_graphs_have_no_values() -> None:
    def builds(x: Any) -> Any:
        graph = wa.Graph(x.semantics)
        graph.output(graph.input("p", "uint8", (1,)) + 1)
        return x

    line = builds.__code__.co_firstlineno + 2
    with pytest.raises(TypeError) as raised:
        compare(builds, uint8(1))
    assert str(raised.value) == (
        f"{__file__}:{line} builds a graph, whose arrays have no values; compare a function that computes"
    )


# ---- values that leave the systems -------------------------------------------------------------------------------------


def test_numpys_functions_follow_the_systems() -> None:
    def limited(x: Any) -> Any:
        return np.clip(x, -5, 300)

    # NumPy passes over bounds outside uint8 and JAX wraps them. Both ran NumPy's rules before, and "agreed".
    found = compare(limited, uint8(1, 250), ("jax", "numpy"))
    assert only(found, "return np.clip(x, -5, 300)").kinds[0] is Kind.VALUE and found.exits == ()
    assert not found.agree and not found.exact

    def joined(x: Any) -> Any:
        numpys: Any = np
        return numpys.where(x > 3, x, x + 1) + numpys.sum(x, keepdims=True)

    (line,) = compare(joined, uint8(1, 250), ("jax", "dali")).lines
    assert [o.op for o in line.operations] == [">", "+", "where", "sum", "+"]


LEAVING: list[tuple[str, Callable[[Any], Any]]] = [
    ("numpy.asarray", lambda x: wa.asarray(np.asarray(x) * 2, x.semantics.name)),
    (".numpy()", lambda x: x + x.numpy()),
    (".item()", lambda x: x + x[0].item()),
    ("float()", lambda x: x * float(x[0])),
    ("int()", lambda x: x[int(x[0]) :]),
    ("an index", lambda x: x[x[0] :]),
    ("DLPack", lambda x: x + np.from_dlpack(x)),
    ("weft.array.compute", lambda x: x + wa.compute(x)[0]),
    ("numpy.array_equal", lambda x: x if np.array_equal(x, x) else x),
]


@pytest.mark.parametrize(("way", "leave"), LEAVING, ids=[way for way, _ in LEAVING])
def test_no_agreement_where_values_leave(way: str, leave: Callable[[Any], Any]) -> None:
    found = compare(leave, int32(0, 1), ("jax", "numpy"))
    assert not found.diverges and not found.agree and not found.exact
    (left,) = found.exits
    assert (left.way, left.systems, left.file, left.branch) == (way, ("jax", "numpy"), __file__, False)
    assert left.source in Path(__file__).read_text(encoding="utf-8")
    with pytest.raises(Diverged) as raised:
        found.raise_for_divergence(results=True)
    assert str(raised.value) == (
        f"<lambda>: jax and numpy cannot be compared where values left them\n"
        f"  {left.location}: {left.source}\n"
        f"    values left jax and numpy: {way}"
    )
    found.raise_for_divergence(exits=False)
    assert "agree in every" not in str(found)
    assert found.data()["exits"] == [
        {"way": way, "file": __file__, "line": left.line, "source": left.source, "systems": ["jax", "numpy"]}
    ]


def test_a_move_to_another_system_is_an_exit() -> None:
    def moved(x: Any) -> Any:
        return wa.asarray(x, "numpy") // 2

    found = compare(moved, int32(-7), ("jax", "dali"))
    assert [e.way for e in found.exits] == ["asarray(semantics='numpy')", "an array of numpy is returned"]
    assert found.exits[0].systems == ("jax", "dali") and not found.agree
    # What numpy itself does there is no exit of numpy's.
    assert [e.systems for e in compare(moved, int32(-7), ("jax", "numpy")).exits] == [("jax",), ("jax",)]

    def foreign(x: Any) -> Any:
        return x + 1, wa.asarray([1], "numpy") + 1

    assert [e.way for e in compare(foreign, int32(1), ("jax", "torch")).exits] == ["an array of numpy is returned"]


def test_a_branch_is_no_exit_of_values() -> None:
    def halved(x: Any) -> Any:
        return x if (x > 3).any() else x + 1

    found = compare(halved, int32(1, 2), ("jax", "numpy"))
    assert [(e.way, e.branch) for e in found.exits] == [("bool()", True)]
    assert found.left == () and found.agree and found.exact and found.raise_for_divergence() is None


def test_exits_of_an_execution_that_stops() -> None:
    def stopped(x: Any) -> Any:
        y = float(x[0])
        return x @ x + y

    found = compare(stopped, int32(1), ("numpy", "dali"))
    assert [stop.system for stop in found.stops] == ["dali"]
    assert [(e.way, e.systems) for e in found.exits] == [("float()", ("numpy", "dali"))]


def test_the_report_says_where_values_leave() -> None:
    def reported(x: Any) -> Any:
        return x + np.asarray(x)

    text = str(compare(reported, int32(1), ("jax", "numpy")))
    lines = text.splitlines()
    assert lines[0] == "reported: not known whether jax and numpy agree, for values left them"
    assert re.fullmatch(r"  values leave        \S+:\d+  return x \+ np.asarray\(x\)", lines[1])
    assert lines[2] == "                      numpy.asarray in jax and numpy; what is computed of them is not compared"
    both = str(compared(lambda x: x // 2 + np.asarray(x), int32(-7)))
    assert both.startswith("<lambda>: jax and dali diverge on 1 of 1 lines") and "values leave" in both
