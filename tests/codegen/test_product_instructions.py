"""Vector instructions that multiply panels of narrow operands: which code has them, and that their results are those of a model.

Integers are compared with NumPy's. Floats are compared bit by bit with exact arithmetic and the roundings that the manuals
give. Instructions that this machine lacks are looked for in assembly only; `make aarch64` runs AArch64's.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product as product_of
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.utils.exceptions import VerifyException

import weft.language as tl
from host_targets import compiled_for
from weft import dtypes
from weft import target as targets
from weft.codegen import emit_assembly
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.ir.cpu import PackOp, Panel
from weft.ir.types import scalar, tensor
from weft.options import Options
from weft.target import PRODUCTS, X86_LEVELS, CpuTarget, packed_type, product_for

if TYPE_CHECKING:
    from codegen.conftest import Differential

Array = NDArray[Any]


@KernelFunction
def product(
    a_ptr: Any, b_ptr: Any, c_ptr: Any, K: Any, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, SUMS: tl.constexpr
) -> None:  # fmt: skip
    """Tiles of all rows and columns; the sums begin with what ``c`` holds."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    out = c_ptr + m[:, None] * N + n[None, :]
    total = tl.load(out)
    for at in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (at + k)[None, :], mask=(at + k)[None, :] < K, other=0)
        b = tl.load(b_ptr + (at + k)[:, None] * N + n[None, :], mask=(at + k)[:, None] < K, other=0)
        total = tl.dot(a, b, total)
    tl.store(out, total)


@KernelFunction
def alone(a_ptr: Any, b_ptr: Any, c_ptr: Any, T: tl.constexpr) -> None:
    """A dot in no loop, whose left operand's columns are contiguous; the panels have one step."""
    i = tl.arange(0, T)
    a, b = tl.load(a_ptr + i[None, :] * T + i[:, None]), tl.load(b_ptr + i[:, None] * T + i[None, :])
    tl.store(c_ptr + i[:, None] * T + i[None, :], tl.dot(a, b))


# ---- which instructions ----------------------------------------------------------------------------------------------

LINUX, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
NAMES: Final = {"bfloat16": dtypes.bfloat16, "float16": dtypes.float16, "int8": dtypes.int8, "float32": dtypes.float32}
INSTRUCTIONS: Final = (
    "vdpbf16ps",
    "vpdpbusd",
    "pmaddwd",
    "vcvtph2ps",
    "vcvtph2psx",
    "bfdot",
    "bfmmla",
    "sdot",
    "smmla",
    "fcvtl",
)


def target(level: str, features: str = "") -> CpuTarget:
    """A level of x86-64 with more features; AArch64 where there is no level."""
    if not level:
        return CpuTarget(ARM, "generic", ",".join(f"+{f}" for f in ["neon", *features.split()]), 128)
    names = list(X86_LEVELS)
    own = " ".join(X86_LEVELS[name] for name in names[: names.index(level) + 1]).split()
    text = ",".join(f"+{f}" for f in [*own, *features.split()] if f not in targets.TUNING)
    tuning = tuple(f for f in features.split() if f in targets.TUNING)
    return CpuTarget(LINUX, level, text, targets.vector_bits(text, LINUX), tuning=tuning)


def assembly(name: str, machine: CpuTarget, kernel: KernelFunction = product) -> str:
    sums = dtypes.int32 if name == "int8" else dtypes.float32
    operand, result = PointerArgument(NAMES[name], aligned=True), PointerArgument(sums, aligned=True)
    signature: dict[str, Argument] = {"a_ptr": operand, "b_ptr": operand, "c_ptr": result}
    if kernel is product:
        signature["K"] = ScalarArgument(dtypes.int32)
        constants = {"M": 32, "N": 32, "BK": 16, "SUMS": sums}
    else:
        constants = {"T": 32}
    signature |= {parameter: ConstantArgument(value) for parameter, value in constants.items()}
    return emit_assembly(build_module(kernel, signature), machine, Options(disjoint=True))


@pytest.mark.parametrize("kernel", [product, alone], ids=["nest", "alone"])
@pytest.mark.parametrize(
    ("name", "machine", "expected"),
    [
        ("bfloat16", target("x86-64-v4", "avx512bf16 fast-dpbf16ps"), "vdpbf16ps"),
        ("bfloat16", target("x86-64-v4", "avx512bf16"), ""),
        ("bfloat16", target("x86-64-v4", "fast-dpbf16ps"), ""),
        ("bfloat16", target("", "bf16"), "bfmmla"),
        ("bfloat16", target("", "dotprod i8mm"), ""),
        ("int8", target("x86-64-v4", "avx512vnni avxvnni"), "vpdpbusd"),
        ("int8", target("x86-64-v3", "avxvnni"), "vpdpbusd"),
        ("int8", target("x86-64-v4"), "pmaddwd"),
        ("int8", target("x86-64-v3"), "pmaddwd"),
        ("int8", target("x86-64"), "pmaddwd"),
        ("int8", target("", "dotprod"), "sdot"),
        ("int8", target("", "dotprod i8mm"), "smmla"),
        ("int8", target("", "i8mm"), "smmla"),
        ("int8", target("", "bf16"), ""),
        ("float16", target("x86-64-v4", "avx512fp16"), "vcvtph2psx"),
        ("float16", target("x86-64-v4"), "vcvtph2ps"),
        ("float16", target("x86-64-v3"), "vcvtph2ps"),
        ("float16", target(""), "fcvtl"),
        ("float32", target("x86-64-v4", "avx512bf16 fast-dpbf16ps avx512vnni"), ""),
    ],
    ids=lambda value: "-".join(sorted(value.enabled))[-30:] if isinstance(value, CpuTarget) else value,
)
def test_instructions(name: str, machine: CpuTarget, expected: str, kernel: KernelFunction) -> None:
    """What the machine has for the type. float16 is converted to float32 by instructions, once for each panel."""
    text = assembly(name, machine, kernel)
    used = {found for found in INSTRUCTIONS if f"{found}\t" in text}
    assert used == ({expected} if expected else set())
    wide = f"%{'xyz'[machine.vector_bits.bit_length() - 8]}mm" if machine.triple == LINUX else ".4s"
    lines = [line for line in text.split("\n") if expected and f"{expected}\t" in line]
    assert all(wide in line for line in lines)


@pytest.mark.skipif(
    targets.architecture(targets.host().triple) != "x86_64", reason="LLVM reads the host's assembly alone in text"
)
def test_a_word_that_the_instruction_repeats() -> None:
    """Sums of one vector across: each product of bfloat16 reads its word of the left panel from memory itself."""
    signature: dict[str, Argument] = {
        "a_ptr": PointerArgument(dtypes.bfloat16, aligned=True),
        "b_ptr": PointerArgument(dtypes.bfloat16, aligned=True),
        "c_ptr": PointerArgument(dtypes.float32, aligned=True),
        "K": ScalarArgument(dtypes.int32),
    }
    for columns, embedded in ((16, True), (32, False)):
        constants = {"M": 32, "N": columns, "BK": 16, "SUMS": dtypes.float32}
        module = build_module(product, signature | {name: ConstantArgument(value) for name, value in constants.items()})
        machine = target("x86-64-v4", "avx512bf16 fast-dpbf16ps")
        text = emit_assembly(module, machine, Options(disjoint=True))
        lines = [line for line in text.split("\n") if "vdpbf16ps\t" in line]
        filling = 2 * 16 if embedded else 16
        assert len(lines) == 2 * 16 + filling, (
            "two words of the depth at once, and as many vectors where the panel is filled"
        )
        assert all(("{1to16}" in line) is embedded for line in lines)


def test_the_machine_decides() -> None:
    """Rows of the table by features and types, best first."""
    everything = frozenset(feature for row in PRODUCTS.values() for feature in row.needs)
    assert product_for(everything, "bfloat16", "float32").name == "amx.bf16"
    assert product_for(everything - {"amx-bf16"}, "bfloat16", "float32").name == "avx512.bf16"
    assert product_for(everything - {"amx-tile"}, "int8", "int32").name == "avx512.vnni"
    assert product_for(everything, "int8", "int32", 8, 64).name == "avx512.vnni"
    assert product_for(frozenset({"i8mm", "dotprod"}), "int8", "int32", 1, 64).name == "arm.sdot"
    assert product_for(frozenset({"i8mm", "dotprod"}), "int8", "int32", 2, 64).name == "arm.smmla"
    assert packed_type(everything, "int8", "int32") == "int8"
    assert packed_type(frozenset({"avx2"}), "int8", "int32") == "int16"
    assert packed_type(frozenset(), "int8", "int32") is None
    assert packed_type(everything, "int8", "float32") is None
    assert packed_type(everything, "float32", "float32") is None


def test_only_integers_have_a_sign_to_flip() -> None:
    value = tile.ConstantOp(1.0, tensor(dtypes.float32, (16, 16))).results[0]
    number = tile.ConstantOp(0, scalar(dtypes.int64)).results[0]
    op = PackOp(value, number, number, number, Panel(1, 16, 0, unsigned=True))
    with pytest.raises(VerifyException) as error:
        op.verify_()
    assert str(error.value) == "cpu.pack writes integers as unsigned ones, found tensor<16x16xf32>"


# ---- their results ---------------------------------------------------------------------------------------------------

TARGETS: Final = (
    "native",
    "native,-amx-tile",
    "native,-amx-tile,+fast-dpbf16ps",
    "x86-64-v4",
    "x86-64-v4,+avx512vnni",
    "x86-64-v3,+avxvnni",
    "x86-64-v3",
    "x86-64",
    "native,-i8mm",
    "native,-bf16,-dotprod,-i8mm",
)


def row_at(name: str, machine: str) -> tuple[str, int] | str:
    """The instructions by which a target multiplies a type, and its width; the target where this CPU does not run it."""
    try:
        made = targets.made_of(targets.host(), machine)
    except ValueError:
        return machine
    return product_for(made.enabled, name, "int32" if name == "int8" else "float32").name, made.vector_bits


def on_targets(*names: str) -> list[Any]:
    """Each type on each target. ``make test`` keeps each type by each instruction at each width, and of several types each target
    with one; the targets whose instructions another one has are nightly."""
    known: set[object] = set()
    used: set[str] = set()
    cases: list[Any] = []
    for name, machine in product_of(names, TARGETS):
        row = name, row_at(name, machine)
        repeated = row in known and (machine in used or name != names[-1] or len(names) == 1)
        known.add(row)
        used |= set() if repeated else {machine}
        cases.append(pytest.param(machine, name, marks=pytest.mark.nightly if repeated else ()))
    return cases


@pytest.fixture(params=TARGETS)
def at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CpuTarget:
    """A target that this machine can run, as what is compiled for."""
    return compiled_for(request.param, monkeypatch)


def run(differ: Differential, a: Array, b: Array, start: Array, bk: int) -> Array:
    """``start + a @ b`` by the kernel for the target that is set."""
    return run_several(differ, [(a, b)], start, bk)[0]


def run_several(differ: Differential, operands: Sequence[tuple[Array, Array]], start: Array, bk: int) -> list[Array]:
    """``start + a @ b`` of each pair of operands, all of one shape, by one kernel for the target that is set."""
    (a, b), results = operands[0], [start.copy() for _ in operands]
    constants = {"M": a.shape[0], "N": b.shape[1], "BK": bk, "SUMS": dtypes.from_numpy(start.dtype)}
    depth = np.int32(a.shape[1])
    code = differ.compiled(differ.build(product, a_ptr=a, b_ptr=b, c_ptr=start, K=depth, **constants), disjoint=True)
    for (a, b), out in zip(operands, results, strict=True):
        differ.launch(code, [a, b, out, depth])
    return results


@pytest.mark.jit
@pytest.mark.parametrize(("at", "name"), on_targets("int8"), indirect=["at"])
@pytest.mark.parametrize(
    ("m", "n", "k", "bk"), [(16, 16, 70, 16), (64, 32, 200, 64), (1, 16, 20, 16), (2, 64, 33, 16), (32, 128, 2100, 32)]
)
def test_integers_are_exact(differ: Differential, at: CpuTarget, name: str, m: int, n: int, k: int, bk: int) -> None:
    """All values of int8, sums that wrap around, and depths that no group divides."""
    r = np.random.default_rng(m)
    a, b = (r.integers(-128, 128, shape).astype(NAMES[name].numpy) for shape in ((m, k), (k, n)))
    a[0], b[:, 0], a[-1] = -128, -128, 127
    start = r.integers(-(2**31), 2**31, (m, n)).astype(np.int32)
    expected = (start.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    assert np.array_equal(run(differ, a, b, start, bk), expected)


@pytest.mark.jit
@pytest.mark.parametrize(("at", "name"), on_targets("int8", "bfloat16", "float16", "float32"), indirect=["at"])
def test_a_dot_in_no_loop(differ: Differential, at: CpuTarget, name: str) -> None:
    """Small whole numbers, whose sums are exact."""
    r = np.random.default_rng(5)
    a, b = (r.integers(-4, 5, (32, 32)).astype(NAMES[name].numpy) for _ in range(2))
    out = np.zeros((32, 32), np.int32 if name == "int8" else np.float32)
    after = differ(alone, promises=(True,), a_ptr=a, b_ptr=b, c_ptr=out, T=32)
    assert np.array_equal(after["c_ptr"], a.astype(np.float64).T @ b.astype(np.float64))


Rounding = Callable[[Fraction], Fraction]


def _quantum(x: Fraction) -> Fraction:
    """The last place of a float32 as great as ``x``."""
    exponent = abs(x).numerator.bit_length() - x.denominator.bit_length()
    if Fraction(2) ** exponent > abs(x):
        exponent -= 1
    return Fraction(2) ** (exponent - 23)


def to_nearest(x: Fraction) -> Fraction:
    """Rounded to float32, ties to even; subnormal numbers are 0."""
    if x == 0:
        return x
    rounded = round(x / _quantum(x)) * _quantum(x)
    return rounded if abs(rounded) >= Fraction(2) ** -126 else Fraction(0)


def to_odd(x: Fraction) -> Fraction:
    """Rounded to float32: inexact numbers to that neighbour whose last bit is 1; subnormal numbers are 0."""
    if x == 0:
        return x
    quantum = _quantum(x)
    whole = abs(x) // quantum
    magnitude = (whole if whole * quantum == abs(x) else whole | 1) * quantum
    return (magnitude if x > 0 else -magnitude) if magnitude >= Fraction(2) ** -126 else Fraction(0)


def vdpbf16ps(total: Fraction, pair: list[Fraction]) -> Fraction:
    """Two multiply-adds, the second product first (Intel SDM, VDPBF16PS)."""
    return to_nearest(to_nearest(total + pair[1]) + pair[0])


def bfdot(total: Fraction, pair: list[Fraction]) -> Fraction:
    """The sum of the products, then the total (Arm ARM, BFDotAdd, without FEAT_EBF16)."""
    return to_odd(total + to_odd(to_odd(pair[0]) + to_odd(pair[1])))


MODELS: Final = {"avx512.bf16": vdpbf16ps, "arm.bfdot": bfdot, "arm.bfmmla": bfdot}
"""BFMMLA is two BFDOT (Arm ARM, BFMatMulAdd)."""


def modelled(a: Array, b: Array, start: Array, add: Callable[[Fraction, list[Fraction]], Fraction]) -> Array:
    """The sums by a model of an instruction; subnormal operands and sums are 0."""

    def exact(x: Any) -> Fraction:
        return Fraction(float(x)) if abs(float(x)) >= 2.0**-126 else Fraction(0)

    out = np.zeros(start.shape, np.float32)
    for i, j in np.ndindex(*start.shape):
        products = [exact(x) * exact(y) for x, y in zip(a[i], b[:, j], strict=True)]
        products += [Fraction(0)] * (len(products) % 2)
        total = exact(start[i, j])
        for at in range(0, len(products), 2):
            total = add(total, products[at : at + 2])
        out[i, j] = float(total)
    return out


@pytest.mark.jit
@pytest.mark.parametrize(("at", "name"), on_targets("bfloat16"), indirect=["at"])
@pytest.mark.parametrize("m", [1, 8])
@pytest.mark.parametrize("exponents", [(-4, 4), (-70, -56)], ids=["ordinary", "subnormal"])
def test_bfloat16_is_the_model(
    differ: Differential, at: CpuTarget, name: str, m: int, exponents: tuple[int, int]
) -> None:
    """Bit by bit, with numbers of all signs and exponents that differ, and with products and sums below the normal numbers.
    AArch64 takes BFDOT for one row."""
    chosen = product_for(at.enabled, name, "float32", m, 16)
    r, n, k = np.random.default_rng(1), 16, 37

    def numbers(*shape: int) -> Array:
        sizes = np.exp2(r.integers(*exponents, shape)) * r.uniform(1, 2, shape) * r.choice([-1, 1], shape)
        return sizes.astype(ml_dtypes.bfloat16)

    a, b = numbers(m, k), numbers(k, n)
    a[0, 0], b[0, 0] = 2.0**-130, 2.0**100
    start = (r.standard_normal((m, n)) * 2.0 ** (2 * exponents[0])).astype(np.float32)
    out = run(differ, a, b, start, 16)
    if (model := MODELS.get(chosen.name)) is not None:
        assert np.array_equal(out, modelled(a, b, start, model))
    elif chosen is targets.FMA and exponents[0] > -60:  # sums of float32, each with one rounding
        exact = start.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
        magnitude = np.abs(start) + np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        assert np.all(np.abs(out - exact) <= k * 2.0**-24 * magnitude)


@pytest.mark.jit
def test_infinities_and_nan(differ: Differential, at: CpuTarget) -> None:
    a, b = np.ones((2, 32), ml_dtypes.bfloat16), np.ones((32, 16), ml_dtypes.bfloat16)
    a[0, 3], b[5, 1], b[4, 2] = np.inf, -np.inf, np.nan
    out = run(differ, a, b, np.zeros((2, 16), np.float32), 32)
    expected = np.full((2, 16), 32.0, np.float32)
    expected[0], expected[:, 1], expected[0, 1], expected[:, 2] = np.inf, -np.inf, np.nan, np.nan
    assert np.array_equal(out, expected, equal_nan=True)


CUTS = ("depth", "rows", "columns")


def cut_in_turns(cases: list[Any]) -> list[Any]:
    """Each case with each way to cut a product into tiles; ``make test`` has one of each case, in turns. Each type has all three,
    also where a machine can run only every third case."""
    found: list[Any] = []
    turn = 0
    for case in cases:
        for place, cut in enumerate(CUTS):
            left_out = place != (turn + turn // 3) % 3
            marks = case.marks or (pytest.mark.nightly if left_out else ())
            found.append(pytest.param(*case.values, cut, marks=marks))
        turn += not case.marks
    return found


@pytest.mark.jit
@pytest.mark.parametrize(
    ("at", "name", "cut"), cut_in_turns(on_targets("int8", "bfloat16", "float32")), indirect=["at"]
)
def test_sums_do_not_depend_on_tiles(differ: Differential, at: CpuTarget, name: str, cut: str) -> None:
    """Bit by bit, for steps of any depth and rows of any number."""
    r = np.random.default_rng(3)
    a, b = (r.standard_normal(shape) * 20 for shape in ((64, 300), (300, 64)))
    a, b = a.astype(NAMES[name].numpy), b.astype(NAMES[name].numpy)
    zero = np.zeros((64, 64), np.int32 if name == "int8" else np.float32)
    whole = run(differ, a, b, zero, 16)
    if cut == "depth":
        assert np.array_equal(run(differ, a, b, zero, 64), whole)
    elif cut == "rows":
        rows = run_several(differ, [(a[i : i + 16], b) for i in range(0, 64, 16)], zero[:16], 32)
        assert np.array_equal(np.concatenate(rows), whole)
    else:
        parts = [(a, np.ascontiguousarray(b[:, j : j + 16])) for j in range(0, 64, 16)]
        columns = run_several(differ, parts, zero[:, :16].copy(), 16)
        assert np.array_equal(np.concatenate(columns, axis=1), whole)
