"""`weft.jit(semantics=...)`: what the operators of a launched kernel do in each system.

Expected values are what the packages gave for the same expression (recorded in `tests/golden`), or follow from the rule that
stands beside them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from weft import semantics
from weft.runtime import compiler
from weft.runtime.jit import JITFunction
from weft.semantics.systems.triton import TritonSemantics

Array = NDArray[Any]


def floor_divide(X: Any, Y: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) // tl.load(Y + i))


def remainder(X: Any, Y: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) % tl.load(Y + i))


def power(X: Any, Y: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) ** tl.load(Y + i))


def shift_left(X: Any, Y: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) << tl.load(Y + i))


def shift_right(X: Any, Y: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) >> tl.load(Y + i))


def true_divide(X: Any, Y: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) / tl.load(Y + i))


def add(X: Any, Y: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) + tl.load(Y + i))


def less(X: Any, Y: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) < tl.load(Y + i))


def maximum(X: Any, Y: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.maximum(tl.load(X + i), tl.load(Y + i)))


def run(function: Any, system: str | None, x: Array, y: Array, out: str) -> list[Any]:
    result = np.zeros(x.size, out)
    weft.jit(semantics=system)(function)[(1,)](x, y, result, x.size)
    return result.tolist()


def i32(*values: int) -> Array:
    return np.array(values, np.int32)


X, Y = i32(-7, 7, 7, -7), i32(2, -2, 0, 0)


@pytest.mark.parametrize(
    ("system", "quotients", "remainders"),
    [
        (None, [-3, -3, 0, 0], [-1, 1, 7, -7]),  # C's; by zero 0 and x
        ("triton", [-3, -3, 0, 0], [-1, 1, 7, -7]),
        ("dali", [-3, -3, 0, 0], [-1, 1, 7, -7]),
        ("jax", [-4, -4, -2, -2], [1, -1, 0, 0]),
        ("jax@0.10", [-4, -4, -2, -2], [1, -1, 0, 0]),
        ("numpy", [-4, -4, 0, 0], [1, -1, 0, 0]),
        ("torch", [-4, -4, 0, 0], [1, -1, 0, 0]),  # the package raises for zero divisors
    ],
)
def test_integer_division(system: str | None, quotients: list[int], remainders: list[int]) -> None:
    assert run(floor_divide, system, X, Y, "int32") == quotients
    assert run(remainder, system, X, Y, "int32") == remainders


def test_max_floors() -> None:
    assert run(floor_divide, "max", i32(7, -7), i32(-2, 2), "int32") == [-4, -4]
    assert run(remainder, "max", i32(7, -7), i32(-2, 2), "int32") == [-1, 1]


def test_dali_divides_floats_truly() -> None:
    x, y = np.array([42.5, -7.0], np.float32), np.array([9.0, 2.0], np.float32)
    assert run(floor_divide, "dali", x, y, "float32") == [4.722222328186035, -3.5]
    assert run(floor_divide, "jax", x, y, "float32") == [4.0, -4.0]


@pytest.mark.parametrize(
    ("system", "expected"), [("jax", "float32"), ("numpy", "float64"), ("max@26", "float64"), ("dali", "float32")]
)
def test_division_of_integers(system: str, expected: str) -> None:
    """1 / 3 as a float64 shows in which type it was divided."""
    third = run(true_divide, system, i32(1, 7), i32(3, 2), "float64")
    assert third == (np.array([1, 7], expected) / np.array([3, 2], expected)).tolist()


def test_shifts() -> None:
    """By the width and by -1: nothing is left, but x86 shifts modulo 32."""
    assert run(shift_left, "jax", i32(1, 1), i32(32, -1), "int32") == [0, 0]
    assert run(shift_left, "dali", i32(1, 1), i32(32, 31), "int32") == [1, -(2**31)]
    assert run(shift_right, "numpy", i32(-8, -8), i32(40, 1), "int32") == [-1, -4]


def test_triton_3_9_shifts_by_the_sign_of_the_left_side() -> None:
    """-8 >> 1 in uint32: 4294967292 if arithmetic."""
    amount = np.array([1, 1], np.uint32)
    assert run(shift_right, "triton@3.9", i32(-8, 8), amount, "uint32") == [4294967292, 4]
    assert run(shift_right, "triton@3.9", amount, i32(1, 0), "uint32") == [0, 1]


def test_powers() -> None:
    base, exponent = np.array([2, -3, 5, 1], np.int8), np.array([7, 3, 0, 100], np.int8)
    for system in ("jax", "numpy", "torch", "dali"):
        assert run(power, system, base, exponent, "int8") == [-128, -27, 1, 1], system
    assert run(power, "dali", i32(2, 1), i32(-1, -1), "int32") == [0, 0]


def test_comparisons_of_mixed_signs() -> None:
    """Triton converts -1 to uint32 first; JAX to int64; DALI and NumPy compare the numbers."""
    y = np.array([0, 0], np.uint32)
    assert run(less, "triton", i32(-1, 1), y, "bool") == [False, False]
    for system in ("jax", "numpy", "dali"):
        assert run(less, system, i32(-1, 1), y, "bool") == [True, False], system
    wide = np.array([2**64 - 1, 5], np.uint64), np.array([-1, 6], np.int64)
    for system in ("numpy", "dali"):
        assert run(less, system, *wide, "bool") == [False, True], system


def test_sums_of_bools() -> None:
    x = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert run(add, "triton", *x, "bool") == [False, True, True, False]  # modulo 2
    for system in ("jax", "numpy", "torch"):
        assert run(add, system, *x, "bool") == [True, True, True, False], system


def test_mixed_widths_promote() -> None:
    """200 + 100: Triton's int8 with uint8 is uint8, in JAX, NumPy and DALI it is int16."""
    x, y = np.array([100, -100], np.int8), np.array([200, 200], np.uint8)
    assert run(add, "triton", x, y, "int32") == [44, 100]
    for system in ("jax", "numpy", "torch", "dali", "max"):
        assert run(add, system, x, y, "int32") == [300, 100], system


def test_maxima_with_nan() -> None:
    x, y = np.array([np.nan, 1.0], np.float32), np.array([1.0, np.nan], np.float32)
    assert run(maximum, "triton", x, y, "float32") == [1.0, 1.0]
    np.testing.assert_array_equal(run(maximum, "jax", x, y, "float32"), [np.nan, np.nan])
    np.testing.assert_array_equal(run(maximum, "dali", x, y, "float32"), [1.0, np.nan])  # x where x > y, else y


@weft.jit(semantics="jax")
def weakly(X: Any, OUT: Any, SCALED: Any, n: Any, N: tl.constexpr) -> None:
    """A number that becomes a run-time value keeps its weak type, so int8 stays int8 beside it."""
    i = tl.arange(0, N)
    step = 1
    for _ in range(3):
        step = step + 1
    x = tl.load(X + i)
    tl.static_assert((x + step).dtype == tl.int8)
    tl.static_assert((x + n).dtype == tl.int8)
    tl.static_assert((x * 1.5).dtype == tl.float64)
    tl.store(OUT + i, x + step)
    tl.store(SCALED + i, x + n)


def test_weak_values_stay_weak() -> None:
    x = np.array([1, 127, -1, 0], np.int8)
    out, scaled = np.zeros(4, np.int32), np.zeros(4, np.int32)
    weakly[(1,)](x, out, scaled, 100, 4)
    assert out.tolist() == [5, -125, 3, 4]  # 127 + 4 wraps
    assert scaled.tolist() == [101, -29, 99, 100]
    weakly[(1,)](x, out, scaled, 1, 4)  # a 1 is compiled in
    assert scaled.tolist() == [2, -128, 0, 1]


@weft.jit(semantics="jax")
def wrapping(X: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) + 300)


def test_literals_wrap_in_jax() -> None:
    """jnp.uint8(1) + 300 is 45."""
    out = np.zeros(2, np.int32)
    wrapping[(1,)](np.array([1, 255], np.uint8), out, 2)
    assert out.tolist() == [45, 43]


@weft.jit(semantics="dali")
def through_float32(X: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i) + 0.1)


def test_dali_passes_floats_as_float32() -> None:
    out = np.zeros(2)
    through_float32[(1,)](np.array([0.0, 1.0]), out, 2)
    assert out.tolist() == [0.10000000149011612, 1.1000000014901161]


def converting(X: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.load(X + i).to(tl.uint8))


@pytest.mark.parametrize(
    ("system", "expected"),
    [("triton", [44 + 211, 0, 2, 0]), ("jax", [255, 0, 2, 0]), ("numpy", [44, 251, 2, 0]), ("dali", [255, 0, 3, 1])],
)
def test_casts(system: str, expected: list[int]) -> None:
    """Saturating, as x86 wraps, and to the nearest: 300.7, -5, 2.5, 0.5."""
    out = np.zeros(4, np.uint8)
    weft.jit(semantics=system)(converting)[(1,)](np.array([300.7, -5, 2.5, 0.5], np.float32), out, 4)
    assert out.tolist() == expected


def reducing(X: Any, OUT: Any, N: tl.constexpr) -> None:
    tl.store(OUT, tl.sum(tl.load(X + tl.arange(0, N)), 0))


@pytest.mark.parametrize(("system", "expected"), [("jax", 400), ("numpy", 400), ("triton", 400), ("max", 400 - 512)])
def test_sums_accumulate_in_the_systems_type(system: str, expected: int) -> None:
    """Four times 100 of int8: MAX sums in int8."""
    out = np.zeros(1, np.int64)
    weft.jit(semantics=system)(reducing)[(1,)](np.full(4, 100, np.int8), out, 4)
    assert out.tolist() == [expected]


def maxima(X: Any, OUT: Any, AT: Any, N: tl.constexpr) -> None:
    x = tl.load(X + tl.arange(0, N))
    tl.store(OUT, tl.max(x, 0))
    tl.store(AT, tl.argmax(x, 0))


def test_reductions_treat_nan_as_the_systems_maximum() -> None:
    x = np.array([1.0, np.nan, 3.0, np.nan], np.float32)
    for system, value, place in (("triton", 3.0, 2), ("jax", np.nan, 1), ("numpy", np.nan, 1)):
        out, at = np.zeros(1, np.float32), np.zeros(1, np.int64)
        weft.jit(semantics=system)(maxima)[(1,)](x, out, at, 4)
        np.testing.assert_array_equal(out, [value])
        assert at.tolist() == [place], system


def calculus(X: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(OUT + i, tl.exp(tl.load(X + i)))


def test_functions_promote_integers_where_the_system_does() -> None:
    """NumPy's exp of int8 is a float16: 2.71875."""
    for system, expected in (("numpy", 2.71875), ("jax", float(np.exp(np.float32(1))))):
        out = np.zeros(2, np.float64)
        weft.jit(semantics=system)(calculus)[(1,)](np.array([1, 0], np.int8), out, 2)
        np.testing.assert_allclose(out, [expected, 1.0], rtol=1e-7)


# Helpers


@weft.jit
def halves(x: Any) -> Any:
    return x // 2


@weft.jit(semantics="triton")
def halves_as_triton(x: Any) -> Any:
    return x // 2


@weft.jit(semantics="jax")
def calling(X: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    x = tl.load(X + i)
    tl.store(OUT + i, halves(x))  # pyright: ignore[reportArgumentType]
    tl.store(OUT + N + i, halves_as_triton(x))  # pyright: ignore[reportArgumentType]
    tl.store(OUT + 2 * N + i, x // 2)


def test_a_helper_follows_its_caller_unless_it_names_a_semantics() -> None:
    out = np.zeros(6, np.int32)
    calling[(1,)](i32(-7, 7), out, 2)
    assert out.tolist() == [-4, 3, -3, 3, -4, 3]


# The option


def test_the_option_takes_names_and_objects() -> None:
    by_object = weft.jit(semantics=semantics.get("jax"))(floor_divide)
    out = np.zeros(2, np.int32)
    by_object[(1,)](i32(-7, 7), i32(2, 2), out, 2)
    assert out.tolist() == [-4, 3]
    assert by_object.semantics is semantics.get("jax")
    assert weft.jit(floor_divide).semantics is None


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError) as error:
        weft.jit(semantics="jaxx")
    assert str(error.value) == "unknown semantics 'jaxx'; did you mean 'jax'?"


def test_the_compiled_handle_names_the_semantics() -> None:
    arguments = i32(1, 2), i32(1, 2), i32(1, 2), 2
    handle = weft.jit(semantics="jax")(floor_divide).compile(*arguments)
    assert handle.semantics is semantics.get("jax")
    assert repr(handle) == "<compiled floor_divide, semantics jax>"
    assert repr(weft.jit(floor_divide).compile(*arguments)) == "<compiled floor_divide, semantics triton>"


def key_of(kernel: JITFunction) -> str | None:
    handle = kernel.compile(i32(1, 2), i32(1, 2), i32(1, 2), 2)
    return compiler.disk_key(kernel, handle.signature, handle.options)


def test_the_semantics_is_part_of_the_disk_key() -> None:
    keys = [key_of(weft.jit(semantics=name)(floor_divide)) for name in (None, "triton@3.9", "jax", "numpy")]
    assert None not in keys
    assert len(set(keys)) == 4
    assert key_of(weft.jit(semantics="jax")(floor_divide)) == keys[2]


def test_a_semantics_of_the_users_own_is_not_kept_on_disk() -> None:
    """Its name says nothing to another process."""
    known = semantics.triton
    own = TritonSemantics(known.name, known.title, known.rules)
    assert key_of(weft.jit(semantics=own)(floor_divide)) is None
