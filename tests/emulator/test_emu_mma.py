"""mma.sync on the machine: every shape and type against exact arithmetic, with registers packed by the ISA's formulas."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_exact import F16, F32, F64, Shape, power, rounded
from emulator_harness import execute, kernel, run
from emulator_isa import LEFT, RIGHT, VOLTA, Formula, accumulator, sizes, to_matrices, to_registers
from weft.emulator import PTXError, Undefined

ACCEPTED = [
    tuple(line.split())
    for line in (Path(__file__).parent.parent / "golden" / "emulator_mma.txt").read_text().splitlines()
    if not line.startswith("#")
]
"""(instruction, shape, D, A, B, C) that ptxas accepts."""

DENSE = [row[1:] for row in ACCEPTED if row[0] == "mma"]

CLASSES = {"f16": "16", "bf16": "16", "e4m3": "8", "e5m2": "8", "u8": "8", "s8": "8", "u4": "4", "s4": "4"}
"""The class of a type in the ISA's formulas, where that is not its name."""

WIDTHS = {"f64": 64, "tf32": 32, "16": 16, "8": 8, "4": 4, "b1": 1}

FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "f64": np.float64,
}

RANGES = {"u8": (0, 255), "s8": (-128, 127), "u4": (0, 15), "s4": (-8, 7), "b1": (0, 1)}

ACCUMULATOR_BITS = {"f16": 16, "f32": 32, "f64": 64, "s32": 32}


def encode(values: NDArray[Any], kind: str) -> NDArray[Any]:
    """Numbers of a type as the unsigned integers that have their bits."""
    if kind in FLOATS:
        encoded = values.astype(FLOATS[kind])
        return encoded.view(f"u{encoded.dtype.itemsize}")
    if kind == "s32":
        return values.astype(np.int64).astype(np.int32).view(np.uint32)
    low, high = RANGES[kind]
    return (values.astype(np.int64) & (1 << (high - low).bit_length()) - 1).astype(np.uint8)


def decode(bits: NDArray[Any], kind: str) -> NDArray[Any]:
    """The inverse, of accumulators."""
    return bits.view(np.int32) if kind == "s32" else bits.view(FLOATS[kind])


def layouts(shape: str, d: str, a: str, b: str, c: str) -> list[tuple[int, int, Formula]]:
    """(bits, elements, formula) of D, A, B and C with layouts .row.col."""
    if shape == "m8n8k4" and a == "f16":
        names = (f"C {d}", "A row", "B col", f"C {c}")
        bits = (ACCUMULATOR_BITS[d], 16, 16, ACCUMULATOR_BITS[c])
        return [(width, *VOLTA[name]) for width, name in zip(bits, names, strict=True)]
    left, right = CLASSES.get(a, a), CLASSES.get(b, b)
    return [
        (ACCUMULATOR_BITS[d], *accumulator(shape)),
        (WIDTHS[left], *LEFT[shape, left]),
        (WIDTHS[right], *RIGHT[shape, right]),
        (ACCUMULATOR_BITS[c], *accumulator(shape)),
    ]


def names(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{i}" for i in range(count)) + "}"


def multiply(
    instruction: str,
    places: list[tuple[int, int, Formula]],
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any],
    active: NDArray[np.bool_] | None = None,
) -> NDArray[Any]:
    """D's bits, (warps, rows, columns), of the bits of A, B and C."""
    at_d, at_a, at_b, at_c = places
    inputs: dict[str, tuple[str, Any]] = {}
    for letter, values, place in (("a", a, at_a), ("b", b, at_b), ("c", c, at_c)):
        for i, register in enumerate(to_registers(values, *place)):
            inputs[f"{letter}{i}"] = (f"b{max(32, place[0])}", register)
    count = at_d[1] * at_d[0] // max(32, at_d[0])
    outputs = {f"d{i}": f"b{max(32, at_d[0])}" for i in range(count)}
    counts = [sum(name[0] == letter for name in inputs) for letter in "abc"]
    operands = ", ".join(names(letter, n) for letter, n in zip("dabc", (count, *counts), strict=True))
    results = execute(f"{instruction} {operands};", inputs, outputs, active=active)
    found = [results[f"d{i}"] for i in range(count)]
    return to_matrices(found, (*a.shape[1:-1], b.shape[-1]), *at_d)


def matrices(shape: str, kind: str, warps: int) -> tuple[tuple[int, ...], ...]:
    """The shapes of A, B and C."""
    m, n, k = sizes(shape)
    four = (4,) if shape == "m8n8k4" and kind == "f16" else ()
    return (warps, *four, m, k), (warps, *four, k, n), (warps, *four, m, n)


def integers(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> NDArray[np.int64]:
    low, high = RANGES.get(kind, (-3, 3))
    return rng.integers(low, high + 1, shape)


def text(shape: str, d: str, a: str, b: str, c: str, extra: str = "") -> str:
    return f"mma.sync.aligned.{shape}.row.col{extra}.{d}.{a}.{b}.{c}" + (".xor.popc" if a == "b1" else "")


@pytest.mark.parametrize(("shape", "d", "a", "b", "c"), DENSE)
def test_every_instruction_is_exact_on_integers(shape: str, d: str, a: str, b: str, c: str) -> None:
    rng = np.random.default_rng(5)
    for_a, for_b, for_c = matrices(shape, a, 2)
    x, y = integers(rng, a, for_a), integers(rng, b, for_b)
    z = rng.integers(-(1 << 31), 1 << 31, for_c) if c == "s32" else rng.integers(-9, 10, for_c)
    found = multiply(text(shape, d, a, b, c), layouts(shape, d, a, b, c), encode(x, a), encode(y, b), encode(z, c))
    product = (x[..., :, :, None] ^ y[..., None, :, :]).sum(axis=-2) if a == "b1" else x @ y
    expected = product + z
    if d == "s32":
        expected = (expected + (1 << 31)) % (1 << 32) - (1 << 31)
    np.testing.assert_array_equal(decode(found, d), expected)


@pytest.mark.parametrize(
    "spelling",
    ["mma.sync.aligned.{}.row.col.s32.b1.b1.s32.and.popc", "mma.and.popc.sync.aligned.{}.row.col.s32.b1.b1.s32"],
)
@pytest.mark.parametrize("shape", ["m8n8k128", "m16n8k128", "m16n8k256"])
def test_bits_anded(shape: str, spelling: str) -> None:
    rng = np.random.default_rng(6)
    for_a, for_b, for_c = matrices(shape, "b1", 1)
    x, y, z = integers(rng, "b1", for_a), integers(rng, "b1", for_b), rng.integers(-9, 10, for_c)
    places = layouts(shape, "s32", "b1", "b1", "s32")
    found = multiply(spelling.format(shape), places, encode(x, "b1"), encode(y, "b1"), encode(z, "s32"))
    np.testing.assert_array_equal(found.view(np.int32), (x & 1) @ (y & 1) + z)


@pytest.mark.parametrize(("left", "right"), [("row", "row"), ("row", "col"), ("col", "row"), ("col", "col")])
@pytest.mark.parametrize(("d", "c"), [("f16", "f16"), ("f32", "f16"), ("f32", "f32")])
def test_volta_layouts(left: str, right: str, d: str, c: str) -> None:
    rng = np.random.default_rng(7)
    for_a, for_b, for_c = matrices("m8n8k4", "f16", 2)
    x, y, z = (rng.integers(-20, 21, shape) for shape in (for_a, for_b, for_c))
    places = [
        (ACCUMULATOR_BITS[d], *VOLTA[f"C {d}"]),
        (16, *VOLTA[f"A {left}"]),
        (16, *VOLTA[f"B {right}"]),
        (ACCUMULATOR_BITS[c], *VOLTA[f"C {c}"]),
    ]
    instruction = f"mma.sync.aligned.m8n8k4.{left}.{right}.{d}.f16.f16.{c}"
    found = multiply(instruction, places, encode(x, "f16"), encode(y, "f16"), encode(z, c))
    np.testing.assert_array_equal(decode(found, d), x @ y + z)


# ---- floats ---------------------------------------------------------------------------------------------------------------

FORMATS: dict[str, Shape] = {"f16": F16, "f32": F32}


def finite(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Numbers of a type of any finite size: random bits, subnormals among them; wide types within 2^-40 to 2^40 mostly."""
    if kind in ("tf32", "f32", "bf16"):
        values = rng.standard_normal(shape) * np.exp2(rng.integers(-40, 41, shape))
        bits = encode(values, kind)
        return (bits & np.uint32(0xFFFF_E000) if kind == "tf32" else bits).view(FLOATS[kind])
    size = np.dtype(FLOATS[kind]).itemsize
    bits = rng.integers(0, 1 << 8 * size, shape).astype(f"u{size}")
    values = bits.view(FLOATS[kind])
    return np.where(np.isfinite(values.astype(np.float64)), values, np.ones_like(values))


def exact(x: NDArray[Any], y: NDArray[Any], z: NDArray[Any]) -> tuple[Fraction, Fraction]:
    """The exact x . y + z, and by how much the definition's float64 sum may be off: n terms, n 2^-53 of their magnitudes."""
    terms = [Fraction(float(p)) * Fraction(float(q)) for p, q in zip(x, y, strict=True)] + [Fraction(float(z))]
    return sum(terms, Fraction(0)), len(terms) * power(-53) * sum(map(abs, terms), Fraction(0))


NARROW = [row for row in DENSE if row[1] in FORMATS and row[2] == row[3]]


@pytest.mark.parametrize(("shape", "d", "a", "b", "c"), NARROW)
def test_random_floats_are_rounded_once(shape: str, d: str, a: str, b: str, c: str) -> None:
    rng = np.random.default_rng(8)
    for_a, for_b, for_c = matrices(shape, a, 1)
    x, y, z = finite(rng, a, for_a), finite(rng, b, for_b), finite(rng, c, for_c)
    found = multiply(text(shape, d, a, b, c), layouts(shape, d, a, b, c), encode(x, a), encode(y, b), encode(z, c))
    result = decode(found, d).astype(np.float64)
    matrix = result[0].reshape(-1, *result.shape[-2:])
    lefts, rights, olds = (v[0].reshape(-1, *v.shape[-2:]) for v in (x, y, z))
    same = 0
    for which, row, column in np.ndindex(*matrix.shape):
        value, error = exact(lefts[which, row], rights[which, :, column], olds[which, row, column])
        low, high = rounded(value - error, FORMATS[d], "rn"), rounded(value + error, FORMATS[d], "rn")
        assert low <= matrix[which, row, column] <= high
        same += low == high
    assert same > 0.9 * matrix.size  # the bound leaves nearly every result one value


def case(shape: str, d: str, a: str, c: str, row: list[Any], column: list[Any], old: Any) -> NDArray[Any]:
    """D[0, 0]'s bits of a product whose first row, first column and C are given, the rest zero."""
    m, n, k = sizes(shape)
    x, y, z = np.zeros((1, m, k)), np.zeros((1, k, n)), np.zeros((1, m, n))
    x[0, 0, : len(row)], y[0, : len(column), 0], z[0, 0, 0] = row, column, old
    places = layouts(shape, d, a, a, c)
    with np.errstate(all="ignore"):
        bits = encode(x, a), encode(y, a), encode(z, c)
    return multiply(text(shape, d, a, a, c), places, *bits)[0, 0, 0]


INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("shape", "d", "a", "c", "row", "column", "old", "expected"),
    [
        ("m16n8k16", "f32", "f16", "f32", [INF], [0.0], 1.0, 0x7FFFFFFF),  # inf * 0: the canonical NaN
        ("m16n8k16", "f16", "f16", "f16", [INF], [0.0], 1.0, 0x7FFF),
        ("m16n8k16", "f32", "f16", "f32", [INF, INF], [1.0, -1.0], 1.0, 0x7FFFFFFF),
        ("m16n8k16", "f32", "f16", "f32", [1.0], [1.0], NAN, 0x7FFFFFFF),
        ("m16n8k16", "f32", "f16", "f32", [INF], [2.0], -5.0, 0x7F800000),
        ("m16n8k16", "f16", "f16", "f16", [60000.0], [2.0], 0.0, 0x7C00),  # overflow
        ("m16n8k16", "f16", "f16", "f16", [65504.0], [1.0], 15.9, 0x7BFF),  # 65519.9 is nearer to 65504 than to 65536
        ("m16n8k16", "f16", "f16", "f16", [2.0**-14], [2.0**-10], 0.0, 0x0001),  # subnormal result
        ("m16n8k16", "f32", "f16", "f32", [2.0**-24], [2.0**-24], 0.0, 0x27800000),  # subnormal operands: 2^-48
        ("m16n8k16", "f32", "bf16", "f32", [2.0**-133], [1.0], 0.0, 0x00010000),  # and one of bf16's
        ("m16n8k8", "f32", "tf32", "f32", [2.0**127], [2.0], 0.0, 0x7F800000),
        ("m16n8k32", "f32", "e4m3", "f32", [NAN], [0.0], 1.0, 0x7FFFFFFF),
        ("m16n8k32", "f32", "e5m2", "f32", [INF], [1.0], 1.0, 0x7F800000),
        ("m16n8k32", "f16", "e4m3", "f16", [448.0], [448.0], 0.0, 0x7C00),
        # 1 + 2^-24 + 2^-60 is above the tie, which 2^-60 decides; adding in float32 would give 1.
        ("m16n8k16", "f32", "bf16", "f32", [2.0**-12, 2.0**-30], [2.0**-12, 2.0**-22], 1.0, 0x3F800001),
        ("m16n8k16", "f32", "bf16", "f32", [2.0**-12], [2.0**-12], 1.0, 0x3F800000),  # the tie itself: to even
        # A large term that cancels: nothing is lost below 53 bits.
        ("m16n8k16", "f32", "bf16", "f32", [2.0**20, 2.0**20, 1.0], [1.0, -1.0, 2.0**-24], 0.0, 0x33800000),
    ],
)
def test_special_values(
    shape: str, d: str, a: str, c: str, row: list[float], column: list[float], old: float, expected: int
) -> None:
    assert int(case(shape, d, a, c, row, column, old)) == expected


def test_the_low_bits_of_tf32_are_ignored() -> None:
    rng = np.random.default_rng(9)
    x, y = (finite(rng, "tf32", shape) for shape in ((1, 16, 8), (1, 8, 8)))
    z = np.zeros((1, 16, 8), np.uint32)
    places = layouts("m16n8k8", "f32", "tf32", "tf32", "f32")
    instruction = text("m16n8k8", "f32", "tf32", "tf32", "f32")
    clean = multiply(instruction, places, x.view(np.uint32), y.view(np.uint32), z)
    dirt = rng.integers(0, 1 << 13, x.shape).astype(np.uint32)
    dirty = multiply(instruction, places, x.view(np.uint32) | dirt, y.view(np.uint32) | 0x1FFF, z)
    np.testing.assert_array_equal(clean, dirty)


@pytest.mark.parametrize("mode", ["", "rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("shape", ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"])
def test_doubles_are_fused_in_order(shape: str, mode: str) -> None:
    rng = np.random.default_rng(10)
    for_a, for_b, for_c = matrices(shape, "f64", 1)
    x, y, z = (rng.standard_normal(s) * np.exp2(rng.integers(-3, 4, s)) for s in (for_a, for_b, for_c))
    instruction = f"mma.sync.aligned.{shape}.row.col{mode and '.' + mode}.f64.f64.f64.f64"
    places = layouts(shape, "f64", "f64", "f64", "f64")
    found = multiply(instruction, places, x.view(np.uint64), y.view(np.uint64), z.view(np.uint64))
    for row, column in np.ndindex(*for_c[1:]):
        total = float(z[0, row, column])
        for p, q in zip(x[0, row], y[0, :, column], strict=True):
            total = rounded(Fraction(float(p)) * Fraction(float(q)) + Fraction(total), F64, mode or "rn")
        assert found.view(np.float64)[0, row, column] == total


# ---- integers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "shape"), [("u8", "u8", "m16n8k32"), ("s8", "u8", "m8n8k16"), ("s4", "u4", "m16n8k64")]
)
@pytest.mark.parametrize("saturate", [True, False])
def test_overflow_saturates_or_wraps(left: str, right: str, shape: str, saturate: bool) -> None:
    m, n, k = sizes(shape)
    high, low = RANGES[left][1], RANGES[left][0]
    x, y = np.full((1, m, k), high), np.full((1, k, n), RANGES[right][1])
    x[0, 1] = low
    z = np.empty((1, m, n), np.int64)
    z[0, :, : n // 2], z[0, :, n // 2 :] = (1 << 31) - 1, -(1 << 31)
    instruction = text(shape, "s32", left, right, "s32", ".satfinite" if saturate else "")
    places = layouts(shape, "s32", left, right, "s32")
    found = multiply(instruction, places, encode(x, left), encode(y, right), encode(z, "s32")).view(np.int32)
    sums = x @ y + z
    assert sums.max() > (1 << 31) - 1 and (low == 0 or sums.min() < -(1 << 31))
    wrapped = (sums + (1 << 31)) % (1 << 32) - (1 << 31)
    np.testing.assert_array_equal(found, np.clip(sums, -(1 << 31), (1 << 31) - 1) if saturate else wrapped)


# ---- who executes ---------------------------------------------------------------------------------------------------------


def half_product(active: NDArray[np.bool_] | None, warps: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """D and the exact product of a m16n8k16 with f16."""
    rng = np.random.default_rng(11)
    x, y, z = (rng.integers(-3, 4, (warps, *shape)) for shape in ((16, 16), (16, 8), (16, 8)))
    names_ = ("f32", "f16", "f16", "f32")
    found = multiply(
        text("m16n8k16", *names_),
        layouts("m16n8k16", *names_),
        encode(x, "f16"),
        encode(y, "f16"),
        encode(z, "f32"),
        active,
    )
    return found.view(np.float32), x @ y + z


def test_inactive_warps_are_left_alone() -> None:
    active = np.repeat([True, False, True], 32)
    found, expected = half_product(active, 3)
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])
    assert not found[1].any()


def test_a_part_of_a_warp_is_a_fault() -> None:
    active = np.ones(64, np.bool_)
    active[32 + 5] = False
    with pytest.raises(Undefined) as caught:
        half_product(active, 2)
    assert caught.value.message == (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 must be executed by all lanes of a warp together; "
        "this lane is elsewhere"
    )
    assert caught.value.where.thread == (37, 0, 0)


def test_a_warp_with_lanes_that_exited_is_a_fault() -> None:
    ptx = kernel(
        "setp.ge.u32 %p, %at_i0, 30; @%p exit; movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;",
        {"a": "b32"},
        {"d": "b32"},
        ".reg .pred %p;",
    )
    values = np.arange(32, dtype=np.uint32)
    with pytest.raises(Undefined) as caught:
        run(ptx, [values, values.copy()])
    assert caught.value.message == (
        "movmatrix.sync.aligned.m8n8.trans.b16 needs all 32 lanes of a warp; this lane has exited or never was"
    )
    assert caught.value.where.thread == (30, 0, 0)


def test_results_may_overwrite_operands() -> None:
    rng = np.random.default_rng(12)
    x, y, z = (rng.integers(-3, 4, (1, *shape)) for shape in ((16, 16), (16, 8), (16, 8)))
    at_d, at_a, at_b, at_c = layouts("m16n8k16", "f32", "f16", "f16", "f32")
    inputs: dict[str, tuple[str, Any]] = {}
    for letter, values, place in (
        ("a", encode(x, "f16"), at_a),
        ("b", encode(y, "f16"), at_b),
        ("c", encode(z, "f32"), at_c),
    ):
        for i, register in enumerate(to_registers(values, *place)):
            inputs[f"{letter}{i}"] = ("b32", register)
    instruction = text("m16n8k16", "f32", "f16", "f16", "f32")
    moves = " ".join(f"mov.b32 %d{i}, %{r};" for i, r in enumerate(("a0", "c1", "b0", "c3")))
    written = f"{instruction} {{%a0, %c1, %b0, %c3}}, {names('a', 4)}, {names('b', 2)}, {names('c', 4)}; {moves}"
    results = execute(written, inputs, {f"d{i}": "b32" for i in range(4)})
    found = to_matrices([results[f"d{i}"] for i in range(4)], (16, 8), *at_d)
    np.testing.assert_array_equal(found.view(np.float32), x @ y + z)


def test_constants_and_sinks_among_the_operands() -> None:
    text_ = text("m16n8k16", "f32", "f16", "f16", "f32")
    ones = "{0x3C003C00, 0x3C003C00, 0x3C003C00, 0x3C003C00}"  # A: 1.0 everywhere
    written = f"{text_} {{%d0, _, _, %d3}}, {ones}, {{%b, %b}}, {{0f00000000, 0f00000000, 0f00000000, 0f3F800000}};"
    two = np.full(32, 0x40004000, np.uint32)  # B: 2.0 everywhere
    results = execute(written, {"b": ("b32", two)}, {"d0": "f32", "d3": "f32"})
    np.testing.assert_array_equal(results["d0"], np.full(32, 32.0))
    np.testing.assert_array_equal(results["d3"], np.full(32, 33.0))


COUNTED: list[tuple[str, int]] = [
    (
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%c0,%c1,%c2,%c3},{%a,%a,%a,%a},{%a,%a},{%c0,%c1,%c2,%c3};",
        4096,
    ),
    ("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%c0,%c1,%c2,%c3},{%a,%a},{%a,%a},{%c0,%c1,%c2,%c3};", 2048),
    ("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%c0,%c1},{%a},{%a},{%c0,%c1};", 2048),
]


@pytest.mark.parametrize(("written", "work"), COUNTED)
def test_counters(written: str, work: int) -> None:
    # 3 blocks of 2 warps each; 2 M N K of each warp, of the four products of m8n8k4 together.
    ptx = kernel(written, {"a": "b32"}, {}, ".reg .b32 %c<4>;")
    outcome = run(ptx, [np.zeros(192, np.uint32)], grid=3, block=64)
    counted = outcome.counters.rows()
    assert [c["mma"] for c in counted if "mma" in c] == [6]
    assert [c["matrix_flops"] for c in counted if "matrix_flops" in c] == [6 * work]


# ---- refusals -------------------------------------------------------------------------------------------------------------


def refusal(written: str) -> str:
    """The message of the error that an instruction is refused with, on the line of the instruction."""
    ptx = kernel(written, {"a": "b32"}, {}, ".reg .b32 %c<8>; .reg .b64 %q<4>;")
    with pytest.raises(PTXError) as caught:
        run(ptx, [np.zeros(32, np.uint32)])
    first, second = str(caught.value).splitlines()
    assert second.strip() == written.rstrip(";")
    return first.split(": ", 1)[1]


ARGUMENTS = "{%c0,%c1,%c2,%c3}, {%a,%a,%a,%a}, {%a,%a}, {%c0,%c1,%c2,%c3};"


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (
            "mma.sync.aligned.m16n8k4.row.col.f32.f16.f16.f32",
            "mma of shape .m16n8k4 does not exist with types .f32.f16.f16.f32",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32",
            "mma of shape .m16n8k16 does not exist with types .f16.f16.f16.f32",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32",
            "mma of shape .m16n8k16 does not exist with types .f32.f16.bf16.f32",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f32",
            "mma of shape .m16n8k16 does not exist with types .f32.f32",
        ),
        ("mma.sync.aligned.m16n8k16.row.col", "mma of shape .m16n8k16 does not exist with no types"),
        (
            "mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32",
            "the emulator does not know '.e2m1' of mma",
        ),
        (
            "mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 must have layouts .row.col",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k16.row.f32.f16.f16.f32 has 1 layouts, expected two",
        ),
        (
            "mma.sync.aligned.row.col.f32.f16.f16.f32",
            "mma.sync.aligned.row.col.f32.f16.f16.f32 has 0 shapes, expected one",
        ),
        (
            "mma.aligned.m16n8k16.row.col.f32.f16.f16.f32",
            "mma.aligned.m16n8k16.row.col.f32.f16.f16.f32 has no '.sync'",
        ),
        (
            "mma.sync.m16n8k16.row.col.f32.f16.f16.f32",
            "mma.sync.m16n8k16.row.col.f32.f16.f16.f32 has no '.aligned'",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32",
            "'.satfinite' is not for mma with these types",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.rz.f32.f16.f16.f32",
            "'.rz' is not for mma with these types",
        ),
        (
            "mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor",
            "mma of bits needs '.xor.popc' or '.and.popc'",
        ),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 has 4 registers in a vector operand, expected 2",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
            "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 has 4 registers in a vector operand, expected 2",
        ),
    ],
)
def test_refused_instructions(instruction: str, message: str) -> None:
    assert refusal(f"{instruction} {ARGUMENTS}") == message


def test_refused_operands() -> None:
    instruction = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    assert refusal(f"{instruction} {{%c0,%c1,%c2,%c3}}, {{%a,%a,%a,%q0}}, {{%a,%a}}, {{%c0,%c1,%c2,%c3}};") == (
        f"{instruction} has a register of 64 bits, expected 32"
    )
    assert refusal(f"{instruction} {{%c0,%c1}}, {{%a,%a,%a,%a}}, {{%a,%a}}, {{%c0,%c1,%c2,%c3}};") == (
        f"{instruction} has 2 registers in a vector result, expected 4"
    )
    assert (
        refusal(f"{instruction} {{%c0,%c1,%c2,%c3}}, {{%a,%a,%a,%a}}, {{%a,%a}};") == "mma has 3 operands, expected 4"
    )


@pytest.mark.parametrize("table", ["mma", "mma.sp"])
def test_the_tables_have_what_ptxas_accepts_and_nothing_else(table: str) -> None:
    from weft.emulator.ops.mma import MMA
    from weft.emulator.ops.mma_sparse import SPARSE

    rows = MMA if table == "mma" else SPARSE
    found = [
        (shape, d, a, b, c)
        for row in rows
        for shape in row.shapes
        for a in row.types
        for b in row.types
        for d, c in row.accumulators
    ]
    assert sorted(found) == sorted(row[1:] for row in ACCEPTED if row[0] == table)
