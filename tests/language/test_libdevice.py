"""The functions of libdevice that are written in the language, against NumPy in 80-bit floats, Python's integers and `math`."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from sampling import grid, some
from weft.frontend.errors import CompilationError
from weft.language.core import COMPOSITES, STUBS
from weft.language.extra import libdevice
from weft.language.extra.cuda import libdevice as libdevice_of_cuda

pytestmark = [
    pytest.mark.jit,
    pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="a long double of 64 bits is no oracle for float64"),
]

Array = NDArray[Any]
Function = Callable[..., Any]
Wide = np.longdouble
TARGETS: Final = some(["cpu", "sm_80", "sm_90"], "sm_80")
FORMS: Final = grid(2, [np.float32, np.float64], ["cpu", "sm_90", "sm_80"])
FLOATS: Final = {np.float32: (24, -126), np.float64: (53, -1022)}
"""Bits of precision, and the exponent of the least normal number."""


@weft.jit
def unary(x: Any, out: Any, FUNCTIONS: tl.constexpr, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    for k in tl.static_range(len(FUNCTIONS)):
        tl.store(out + k * B + i, FUNCTIONS[k](tl.load(x + i)))


@weft.jit
def binary(x: Any, y: Any, out: Any, FUNCTIONS: tl.constexpr, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    for k in tl.static_range(len(FUNCTIONS)):
        tl.store(out + k * B + i, FUNCTIONS[k](tl.load(x + i), tl.load(y + i)))


def results(kernel: Any, target: str, names: Sequence[str], inputs: Sequence[Array], dtype: Any) -> Array:
    """A row for each function."""
    out = np.zeros((len(names), inputs[0].size), dtype)
    functions = tuple(getattr(libdevice, name) for name in names)
    (kernel if target == "cpu" else kernel.on(target))[(1,)](*inputs, out, functions, inputs[0].size)
    return out


# ---- functions of one float, within an error -----------------------------------------------------------------------------

PI: Final = Wide("3.14159265358979323846264338327950288")


def sine_of_half_turns(x: Array) -> Array:
    """``sin(pi x)``: exact reflections bring x to at most 1/4 turn, since 80 bits of pi are too few near pi."""
    sign, rest = np.copysign(1, x), np.fmod(np.abs(x), 2)
    sign, rest = np.where(rest >= 1, -sign, sign), np.where(rest >= 1, rest - 1, rest)
    value = sign * np.sin(PI * np.where(rest > 0.5, 1 - rest, rest))
    return np.where(value == 0, np.copysign(0, x), value)


def cosine_of_half_turns(x: Array) -> Array:
    """``cos(pi x)``, likewise."""
    rest = np.fmod(np.abs(x), 2)
    rest = np.where(rest > 1, 2 - rest, rest)
    value = np.where(rest < 0.25, np.cos(PI * rest), np.sin(PI * (0.5 - rest)))
    return np.where(value == 0, 0, value)


FUNCTIONS: Final[dict[str, tuple[Function, float]]] = {
    "asin": (np.arcsin, 1.5),
    "acos": (np.arccos, 2),
    "atan": (np.arctan, 1),
    "sinh": (np.sinh, 40),
    "cosh": (np.cosh, 40),
    "asinh": (np.arcsinh, 2.5),
    "acosh": (np.arccosh, 2.5),
    "atanh": (np.arctanh, 2.5),
    "expm1": (np.expm1, 40),
    "log1p": (np.log1p, 1),
    "log10": (np.log10, 1),
    "exp10": (lambda x: np.power(Wide(10), x), 1),
    "fast_exp10f": (lambda x: np.power(Wide(10), x), 1),
    "fast_log10f": (np.log10, 1),
    "fast_logf": (np.log, 1),
    "fast_log2f": (np.log2, 1),
    "fast_expf": (np.exp, 40),
    "fast_sinf": (np.sin, 1),
    "fast_cosf": (np.cos, 1),
    "fast_tanf": (np.tan, 1),
    "fast_tanhf": (np.tanh, 2),
    "tan": (np.tan, 1),
    "cbrt": (np.cbrt, 1),
    "rcbrt": (lambda x: 1 / np.cbrt(x), 1.5),
    "sinpi": (sine_of_half_turns, 1.5),
    "cospi": (cosine_of_half_turns, 1.5),
    "rsqrt_rn": (lambda x: 1 / np.sqrt(x), 0.5),
    "rcp_rn": (lambda x: 1 / x, 0.5),
}
"""By name: the function in 80 bits, and the greatest error of float32 on GPUs, where the exponential is an approximation whose
error grows with its argument."""


def documented() -> dict[str, list[float]]:
    """The errors on CPUs that docs/language.md states: of float32 and float64."""
    page = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
    table = page.partition("| functions | float32 |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {name: [float(cell) for cell in cells] for names, *cells in rows for name in re.findall(r"`(\w+)`", names)}


ERRORS: Final = documented()
WORST_ANGLES: Final = (0.0075546885, 0.015624082, 0.2444822, 0.38942906, 0.9690681, 0.99532455)
"""Where asin and acos of float32 are furthest from the exact value, of every 31st number from 2^-13 to 1."""


def bound(name: str, dtype: Any, target: str) -> float:
    """The greatest error of a function that the target may make."""
    if target != "cpu" and dtype is np.float32:
        return FUNCTIONS[name][1]
    return ERRORS[name][dtype is np.float64]


def test_the_page_has_each_function_once() -> None:
    assert sorted(ERRORS) == sorted(FUNCTIONS)


def samples(dtype: Any, count: int = 256) -> Array:
    """Special values, and numbers of all sizes, most of them near 1."""
    random = np.random.default_rng(3)
    least, greatest = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    special = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 10.0, 19.99, 20.0, 20.1, 88.0, 89.5, 1e3, 1e9, np.inf, np.nan]
    special += [
        least,
        2 * least,
        np.finfo(dtype).smallest_normal,
        1e-7,
        1e-20,
        0.9999999,
        1.0000001,
        *WORST_ANGLES,
        greatest,
        greatest / 4,
    ]
    numbers = np.concatenate([special, 2.0 ** random.uniform(-12, 8, count // 4), random.uniform(0, 1.2, count // 4)])
    both = np.concatenate([numbers, -numbers, 2.0 ** random.uniform(-60, 60, count)]).astype(dtype)
    return both[:count].copy()


def unit(exact: Array, dtype: Any) -> Array:
    """The distance of the dtype's numbers around each value."""
    bits, least = FLOATS[dtype]
    exponents = np.frexp(np.where(np.isfinite(exact), exact, 0))[1]
    return np.ldexp(Wide(1), np.maximum(exponents - 1, least) - bits + 1)


def assert_near(name: str, inputs: tuple[Array, ...], found: Array, exact: Array, dtype: Any, error: float) -> None:
    """NaN, infinities and the signs of zeros are those of ``exact``; elsewhere ``error`` units at most."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(dtype)
        apart = np.abs(found.astype(Wide) - exact) / unit(exact, dtype)
        near = np.where(np.isfinite(rounded), apart <= error, found == rounded)
        near |= np.isfinite(found) & np.isinf(rounded) & (np.nextafter(found, rounded) == rounded)
        near |= np.isinf(found) & (apart == np.inf) & (np.abs(rounded) > np.finfo(dtype).max * (1 - 1e-4))
        good = np.where(np.isnan(exact), np.isnan(found), near)
        good &= (found != 0) | (np.signbit(found) == np.signbit(exact))
    wrong = [
        f"{name}({', '.join(str(x[i]) for x in inputs)}) = {found[i]!r}, expected {rounded[i]!r}: {float(apart[i]):.2f}"
        for i in np.flatnonzero(~good)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("dtype", "target"), FORMS)
def test_functions_of_one_float(dtype: Any, target: str) -> None:
    x = samples(dtype)
    with np.errstate(all="ignore"):
        exact = {name: np.asarray(row[0](x.astype(Wide))) for name, row in FUNCTIONS.items()}
    for name, found in zip(FUNCTIONS, results(unary, target, tuple(FUNCTIONS), [x], dtype), strict=True):
        assert_near(name, (x,), found, exact[name], dtype, bound(name, dtype, target))


def test_narrow_floats_are_rounded_once() -> None:
    x = np.linspace(-1, 1, 64).astype(np.float16)
    wide = results(unary, "cpu", ["asin", "expm1", "sinpi"], [x.astype(np.float32)], np.float32)
    assert np.array_equal(results(unary, "cpu", ["asin", "expm1", "sinpi"], [x], np.float16), wide.astype(np.float16))


# ---- of two floats -------------------------------------------------------------------------------------------------------

TWO: Final[dict[str, tuple[Function, float]]] = {
    "atan2": (np.arctan2, 1),
    "pow": (np.power, 1),
    "fast_powf": (np.power, 1),
    "hypot": (np.hypot, 2),
    "rhypot": (lambda x, y: 1 / np.hypot(x, y), 2.5),
    "fmod": (np.fmod, 0),
    "fdim": (lambda x, y: np.where(x <= y, 0, x - y), 0.5),
    "add_rn": (np.add, 0.5),
    "sub_rn": (np.subtract, 0.5),
    "mul_rn": (np.multiply, 0.5),
    "fast_dividef": (np.divide, 2.5),
    "copysign": (np.copysign, 0),
}
"""By name: the function in 80 bits, and the greatest error."""


def pairs(dtype: Any, count: int = 256) -> tuple[Array, Array]:
    """Special values with each other, and random numbers."""
    random = np.random.default_rng(4)
    special = np.array([0.0, -0.0, 1, -1, 2.5, -3, np.inf, -np.inf, np.nan, np.finfo(dtype).smallest_subnormal], dtype)
    x, y = (a.ravel() for a in np.meshgrid(special, special))
    more = (2.0 ** random.uniform(-5, 5, (2, count)) * random.choice([-1, 1], (2, count))).astype(dtype)
    return np.concatenate([x, more[0]])[:count], np.concatenate([y, more[1]])[:count]


@pytest.mark.parametrize(("dtype", "target"), FORMS)
def test_functions_of_two_floats(dtype: Any, target: str) -> None:
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        exact = {name: np.asarray(row[0](x.astype(Wide), y.astype(Wide))) for name, row in TWO.items()}
    for name, found in zip(TWO, results(binary, target, tuple(TWO), [x, y], dtype), strict=True):
        assert_near(name, (x, y), found, exact[name], dtype, TWO[name][1])


@pytest.mark.parametrize(("dtype", "target"), FORMS)
def test_remainder_and_nextafter(dtype: Any, target: str) -> None:
    """IEEE's remainder is `math.remainder`, which is exact in float64; ties, and numbers whose double or half is none."""
    x, y = pairs(dtype)
    tie = np.array([1, -1, 3, 5, 7, 0.5, 1.5, 2.5], dtype)
    greatest, least = np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal
    x[:12] = [*tie, greatest, greatest, 3 * least, 5 * least]
    y[:12] = [2, 2, 2, 2, 2, 1, 1, 1, greatest / 2, greatest, 2 * least, 3 * least]

    def remainder(a: Any, b: Any) -> float:
        return math.nan if math.isinf(a) or b == 0 or math.isnan(a) else math.remainder(a, b)

    found = results(binary, target, ["remainder", "nextafter"], [x, y], dtype)
    expected = np.array([remainder(float(a), float(b)) for a, b in zip(x, y, strict=True)]).astype(dtype)
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(np.signbit(found[0][expected == 0]), np.signbit(x[expected == 0]))
    following = np.nextafter(x, y)
    np.testing.assert_array_equal(found[1], following)
    known = ~np.isnan(following)
    assert np.array_equal(np.signbit(found[1][known]), np.signbit(following[known]))


@weft.jit
def lengths(x: Any, y: Any, z: Any, w: Any, out: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    a, b, c, d = tl.load(x + i), tl.load(y + i), tl.load(z + i), tl.load(w + i)
    tl.store(out + i, libdevice.norm3d(a, b, c))
    tl.store(out + B + i, libdevice.norm4d(a, b, c, d))
    tl.store(out + 2 * B + i, libdevice.rnorm3d(a, b, c))
    tl.store(out + 3 * B + i, libdevice.rnorm4d(a, b, c, d))
    tl.store(out + 4 * B + i, libdevice.fma_rn(a, b, c))


def test_lengths() -> None:
    random = np.random.default_rng(5)
    v = (2.0 ** random.uniform(-100, 100, (4, 64))).astype(np.float32)
    v[:, :3] = [[0, 3e38, np.inf], [0, 0, 1], [0, 0, np.nan], [0, 0, 1]]
    out = np.zeros((5, 64), np.float32)
    lengths[(1,)](*v, out, 64)
    wide = v.astype(Wide)
    with np.errstate(all="ignore"):
        three, four = np.sqrt((wide[:3] ** 2).sum(0)), np.sqrt((wide**2).sum(0))
        three[2] = four[2] = np.inf
        expected = (three, four, 1 / three, 1 / four, wide[0] * wide[1] + wide[2])
    for name, found, exact, error in zip(
        ("norm3d", "norm4d", "rnorm3d", "rnorm4d", "fma_rn"), out, expected, (2, 2, 2.5, 2.5, 0.501), strict=True
    ):
        assert_near(name, tuple(v), found, exact, np.float32, error)


# ---- whole numbers, bits -------------------------------------------------------------------------------------------------


def away(x: Array) -> Array:
    """Rounded to nearest, ties away from zero: exact in 80 bits."""
    return np.copysign(np.floor(np.abs(x.astype(Wide)) + Wide(0.5)), x).astype(x.dtype)


def scale(x: Array) -> Array:
    """floor(log2) by frexp, which is exact."""
    with np.errstate(all="ignore"):
        value = (np.frexp(x)[1] - 1).astype(x.dtype)
        value = np.where(np.isinf(x), np.inf, np.where(np.isnan(x), np.nan, value))
        return np.where(x == 0, -np.inf, value).astype(x.dtype)


WHOLE: Final[dict[str, Function]] = {
    "trunc": np.trunc,
    "rint": np.rint,
    "nearbyint": np.rint,
    "round": away,
    "logb": scale,
    "saturatef": lambda x: np.where(np.isnan(x), 0, np.clip(x, 0, 1)),
}


@pytest.mark.parametrize(("dtype", "target"), FORMS)
def test_whole_numbers(dtype: Any, target: str) -> None:
    halves = np.arange(-8, 8) / 2
    near = np.nextafter(halves.astype(dtype), np.inf, dtype=dtype)
    limit = 2.0 ** np.array([22, 23, 24, 51, 52, 53]) + 0.5
    extra = np.concatenate([halves, near, limit, -limit, 2.0 ** np.array([22, 23]) - 0.5]).astype(dtype)
    x = np.concatenate([extra, samples(dtype)])[:256]
    with np.errstate(all="ignore"):
        for name, found in zip(WHOLE, results(unary, target, tuple(WHOLE), [x], dtype), strict=True):
            expected = np.asarray(WHOLE[name](x))
            np.testing.assert_array_equal(found, expected, err_msg=name)
            if name not in ("logb", "saturatef"):
                known = ~np.isnan(expected)
                assert np.array_equal(np.signbit(found[known]), np.signbit(expected[known])), name


TO_INTEGER: Final = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
ROUNDED: Final[dict[str, Function]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("source", "dtype"), [("float", np.float32), ("double", np.float64)])
def test_conversions_to_integers(source: str, dtype: Any, target: str) -> None:
    """They saturate, and NaN gives 0. Unsigned ones come as the bits of signed ones."""
    x = np.array([0, -0.5, 0.5, 1.5, 2.5, -1.5, -2.5, 0.9, 1e5, -1e5, 3e9, -3e9, 1e19, -1e19, np.inf, np.nan], dtype)
    for kind, integer in TO_INTEGER.items():
        names = [f"{source}2{kind}_{r}" for r in ROUNDED]
        signed = np.dtype(f"i{np.dtype(integer).itemsize}")
        for name, found in zip(names, results(unary, target, names, [x], signed), strict=True):
            bounds = np.iinfo(integer)
            whole = ROUNDED[name[-2:]](np.nan_to_num(x.astype(Wide), posinf=1e30, neginf=-1e30))
            expected = [min(max(int(v), int(bounds.min)), int(bounds.max)) for v in whole]
            assert found.astype(integer).tolist() == expected, name
    names = ["llrint", "llround"]
    found = results(unary, target, names, [x[:8]], np.int64)
    assert found[0].tolist() == np.rint(x[:8]).astype(np.int64).tolist()
    assert found[1].tolist() == away(x[:8]).astype(np.int64).tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_numbers_become_floats(target: str) -> None:
    for name, dtype, result in (
        ("int2float_rn", np.int32, np.float32),
        ("uint2float_rn", np.uint32, np.float32),
        ("ll2float_rn", np.int64, np.float32),
        ("ull2float_rn", np.uint64, np.float32),
        ("int2double_rn", np.int32, np.float64),
        ("uint2double_rn", np.uint32, np.float64),
        ("ll2double_rn", np.int64, np.float64),
        ("ull2double_rn", np.uint64, np.float64),
        ("double2float_rn", np.float64, np.float32),
    ):
        x = integers(dtype) if dtype is not np.float64 else samples(dtype, 64)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(
                results(unary, target, [name], [x], result)[0], x.astype(result), err_msg=name
            )


def integers(dtype: Any, count: int = 64) -> Array:
    """All sizes, both signs, and the limits."""
    bounds, random = np.iinfo(dtype), np.random.default_rng(6)
    words = random.integers(bounds.min, bounds.max, count, dtype, endpoint=True)
    words >>= random.integers(0, bounds.bits, count).astype(dtype)
    words[:6] = [0, 1, 2, bounds.max, bounds.min, bounds.max - 1]
    return words


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (value >> (bits - 1) << bits)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_bits_of_integers(dtype: Any, target: str) -> None:
    x, bits = integers(dtype), np.iinfo(dtype).bits
    words = [int(v) & ((1 << bits) - 1) for v in x]
    expected = [
        [word.bit_count() for word in words],
        [bits - word.bit_length() for word in words],
        [(word & -word).bit_length() for word in words],
        [signed(int(f"{word:0{bits}b}"[::-1], 2), bits) for word in words],
    ]
    assert results(unary, target, ["popc", "clz", "ffs", "brev"], [x], dtype).tolist() == expected


@weft.jit
def counts(x: Any) -> None:
    word = tl.load(x)
    tl.static_assert(libdevice.popc(word).dtype == tl.int32)
    tl.static_assert(libdevice.clz(word).dtype == tl.int32)
    tl.static_assert(libdevice.ffs(word).dtype == tl.int32)
    tl.static_assert(libdevice.brev(word).dtype == x.dtype.element_ty)


def test_counts_of_bits_are_int32() -> None:
    for dtype in (np.int32, np.uint32, np.int64, np.uint64):
        counts[(1,)](np.ones(1, dtype))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_products_and_means(dtype: Any, target: str) -> None:
    x, bits = integers(dtype), np.iinfo(dtype).bits
    y = np.roll(x, 7)
    both = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    assert results(binary, target, ["mulhi"], [x, y], dtype)[0].tolist() == [a * b >> bits for a, b in both]
    if bits == 64:
        return

    def low(a: int) -> int:
        return a & 0xFFFFFF if dtype is np.uint32 else signed(a, 24)

    expected = [
        [(low(a) * low(b)) & 0xFFFFFFFF for a, b in both],
        [a + b >> 1 for a, b in both],
        [a + b + 1 >> 1 for a, b in both],
    ]
    found = results(binary, target, ["mul24", "hadd", "rhadd"], [x, y], dtype)
    assert found[0].view(np.uint32).tolist() == expected[0]
    assert found[1:].tolist() == expected[1:]


@weft.jit
def of_three(x: Any, y: Any, z: Any, out: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    a, b, c = tl.load(x + i), tl.load(y + i), tl.load(z + i)
    tl.store(out + i, libdevice.byte_perm(a, b, c))
    tl.store(out + B + i, libdevice.sad(a, b, c.to(tl.uint32)))


def test_three_integers() -> None:
    x, y, z = integers(np.int32), np.roll(integers(np.int32), 9), np.roll(integers(np.int32), 30)
    z[:2] = 0x7654, 0x3210
    out = np.zeros((2, 64), np.int32)
    of_three[(1,)](x, y, z, out, 64)
    for a, b, c, permuted, sum_ in zip(x, y, z, *out, strict=True):
        source = int(a).to_bytes(4, "little", signed=True) + int(b).to_bytes(4, "little", signed=True)
        chosen = bytes(source[(int(c) >> 4 * n) & 7] for n in range(4))
        assert int(permuted) == int.from_bytes(chosen, "little", signed=True)
        assert int(sum_) == signed(abs(int(a) - int(b)) + int(c), 32)


@pytest.mark.parametrize("target", TARGETS)
def test_bits_of_floats(target: str) -> None:
    x, y = samples(np.float32, 64), samples(np.float64, 64)
    for name, given, expected in (
        ("float_as_int", x, x.view(np.int32)),
        ("float_as_uint", x, x.view(np.int32)),
        ("int_as_float", x.view(np.int32), x),
        ("uint_as_float", x.view(np.uint32), x),
        ("double_as_longlong", y, y.view(np.int64)),
        ("longlong_as_double", y.view(np.int64), y),
        ("double2hiint", y, (y.view(np.int64) >> 32).astype(np.int32)),
        ("double2loint", y, y.view(np.int64).astype(np.int32)),
        ("signbit", x, np.signbit(x).astype(np.int32)),
        ("isnan", y, np.isnan(y)),
        ("isinf", x, np.isinf(x)),
        ("finitef", x, np.isfinite(x)),
        ("isfinited", y, np.isfinite(y)),
    ):
        found = results(unary, target, [name], [given], expected.dtype)[0]
        np.testing.assert_array_equal(found, expected, err_msg=name)
    upper, lower = (y.view(np.int64) >> 32).astype(np.int32), y.view(np.int64).astype(np.int32)
    found = results(binary, target, ["hiloint2double"], [upper, lower], np.float64)[0]
    assert np.array_equal(found.view(np.int64), y.view(np.int64))


@pytest.mark.parametrize(("dtype", "target"), FORMS)
def test_scales(dtype: Any, target: str) -> None:
    """NumPy's ldexp, into subnormals and beyond the greatest number; and int32's limits where there is no exponent."""
    x = samples(dtype)
    n = np.random.default_rng(7).integers(-2200, 2200, x.size).astype(np.int32)
    n[::2] //= 15
    n[:4] = [2**31 - 1, -(2**31), 0, 1]
    with np.errstate(all="ignore"):
        expected = np.ldexp(x, n)
    for found in results(binary, target, ["scalbn", "ldexp"], [x, n], dtype):
        np.testing.assert_array_equal(found, expected)
    exponents = np.where(np.isfinite(x) & (x != 0), np.nan_to_num(scale(x).astype(np.float64)), -(2**31))
    exponents = np.where(np.isinf(x), 2**31 - 1, exponents)
    assert np.array_equal(results(unary, target, ["ilogb"], [x], np.int32)[0], exponents)


@pytest.mark.parametrize("target", TARGETS)
def test_powers_by_integers(target: str) -> None:
    """The exponent keeps its parity, which float32 would lose."""
    x = np.array([-1, -1, -2, 0.5, 3, 1.0000001, -1.0000001, 0], np.float32)
    n = np.array([2**24 + 1, 2**31 - 1, 3, -149, 4, 2**24 + 1, -(2**24) - 1, -3], np.int32)
    exact = np.array(
        [-1, -1, -8, 2.0**149, 81, *(v.astype(Wide) ** int(k) for v, k in zip(x[5:7], n[5:7], strict=True)), np.inf],
        Wide,
    )
    with np.errstate(all="ignore"):
        found = results(binary, target, ["pow"], [x, n], np.float32)[0]
    assert_near("pow", (x, n), found, exact, np.float32, 0.51)


# ---- names and refusals --------------------------------------------------------------------------------------------------


def test_each_function_is_here() -> None:
    """Names of functions in the language are tested above; the others are those of `triton.language`."""
    text = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    names = {name for name in libdevice.__all__ if getattr(libdevice, name) in COMPOSITES}
    # Tests put these together: f"{operation}_{mode}".
    modes, integral = ("rd", "ru", "rz"), ("int", "uint", "ll", "ull")
    made = {f"{s}2{k}_{r}" for s in ("float", "double") for k in TO_INTEGER for r in ROUNDED}
    made |= {f"{name}_{mode}" for name in ("add", "sub", "mul", "div", "rcp", "fma", "sqrt") for mode in modes}
    made |= {f"{source}2float_{mode}" for source in (*integral, "double") for mode in modes}
    made |= {f"{source}2double_{mode}" for source in ("ll", "ull") for mode in modes}
    assert {name for name in names - made if f'"{name}"' not in text and f"libdevice.{name}(" not in text} == set()
    assert {name for name in libdevice.__all__ if getattr(libdevice, name) in STUBS} == set(libdevice.__all__) - names
    assert libdevice_of_cuda is libdevice


@weft.jit
def apply(x: Any, FUNCTION: tl.constexpr) -> None:
    tl.store(x, FUNCTION(tl.load(x)))


@pytest.mark.parametrize(
    ("function", "dtype", "message"),
    [
        (libdevice.asin, np.int32, "libdevice.asin: takes floats"),
        (libdevice.float2int_rn, np.int64, "libdevice.float2int_rn: takes floats"),
        (libdevice.popc, np.int16, "libdevice.popc: takes integers of 32 or 64 bits"),
        (libdevice.clz, np.float32, "libdevice.clz: takes integers of 32 or 64 bits"),
    ],
)
def test_refusals(function: Any, dtype: Any, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        apply[(1,)](np.zeros(1, dtype), function)
    assert caught.value.message == message
