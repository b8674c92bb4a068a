"""Sums and products on GPUs: when a product is added without being rounded, and which types are computed in pairs."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.codegen.llvm.types import Module
from weft.target import host

pytestmark = pytest.mark.jit

ELEMENTS = 1024
"""Eight for each of 128 threads."""


@weft.jit
def product_and_sum(x: Any, y: Any, z: Any, out: Any, SUBTRACT: tl.constexpr) -> None:
    i = tl.arange(0, 1024)
    product = tl.load(x + i) * tl.load(y + i)
    tl.store(out + i, tl.load(z + i) - product if SUBTRACT else product + tl.load(z + i))


@weft.jit
def arithmetic(x: Any, y: Any, out: Any, KIND: tl.constexpr) -> None:
    i = tl.arange(0, 1024)
    a = tl.load(x + i)
    b = tl.load(y + i)
    if KIND == "add":
        result = a + b
    elif KIND == "sub":
        result = a - b
    elif KIND == "mul":
        result = a * b
    elif KIND == "min":
        result = tl.minimum(a, b)
    elif KIND == "maxnan":
        result = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif KIND == "neg":
        result = -a
    elif KIND == "abs":
        result = tl.abs(a)
    else:
        result = tl.fma(a, b, a)
    tl.store(out + i, result)


def instructions(ptx: str) -> dict[str, int]:
    """How often each arithmetic instruction on floats stands in a module."""
    pattern = r"^\s*(?:@\S+\s+)?((?:add|sub|mul|fma|min|max|neg|abs|cvt|xor|and)\.[\w.]*(?:f16|f32|f64|f16x2|b32))\s"
    names = re.findall(pattern, ptx, re.MULTILINE)
    return {name: names.count(name) for name in sorted(set(names)) if not name.endswith("b32")}


def operands(dtype: Any) -> list[Any]:
    """Numbers whose products have more bits than the type, and addends that cancel what is left of them after rounding."""
    rng = np.random.default_rng(2)
    bits = np.finfo(dtype).nmant if dtype != ml_dtypes.bfloat16 else 7
    x, y = ((1 + rng.integers(0, 1 << bits, ELEMENTS) / (1 << bits)).astype(dtype) for _ in range(2))
    return [x, y, -(x * y)]


@pytest.mark.parametrize("subtract", [False, True], ids=["sum", "difference"])
@pytest.mark.parametrize(
    ("dtype", "fused", "apart"),
    [
        (np.float32, {"fma.rn.f32": 8}, {"mul.rn.f32": 8, "{}.rn.f32": 8}),
        (np.float64, {"fma.rn.f64": 8}, {"mul.rn.f64": 8, "{}.rn.f64": 8}),
        (np.float16, {"fma.rn.f16x2": 4}, {"mul.rn.f16x2": 4, "{}.rn.f16x2": 4}),
        (ml_dtypes.bfloat16, {"fma.rn.bf16x2": 4}, {"mul.rn.bf16x2": 4, "{}.rn.bf16x2": 4}),
    ],
    ids=["float32", "float64", "float16", "bfloat16"],
)
def test_a_product_is_added_unrounded_unless_fusion_is_off(
    dtype: Any, fused: dict[str, int], apart: dict[str, int], subtract: bool
) -> None:
    """What is left of a product after its rounded value is taken away: exactly that with fusion, and 0 without."""
    x, y, z = operands(dtype)
    if subtract:
        z = -z
    rest = np.array([int(float(a) * 2**52) * int(float(b) * 2**52) for a, b in zip(x, y, strict=True)], object)
    rest -= np.array([int(float(c) * 2**52) << 52 for c in np.abs(z)], object)
    exact = np.array([int(r) / 2**104 for r in rest]) * (-1 if subtract else 1)
    assert np.count_nonzero(exact) > 300
    out = np.zeros(ELEMENTS, dtype)
    for fusion, want, values in ((True, fused, exact), (False, apart, 0 * exact)):
        kernel = product_and_sum.compile(x, y, z, out, SUBTRACT=subtract, target="sm_90", enable_fp_fusion=fusion)
        found = {name: n for name, n in instructions(kernel.ptx).items() if not name.startswith("neg")}
        assert found == {name.format("sub" if subtract else "add"): n for name, n in want.items()}
        product_and_sum.on("sm_90")[(1,)](x, y, z, out, SUBTRACT=subtract, enable_fp_fusion=fusion)
        assert (out.astype(np.float64) == values).all()
    for fusion in (None, False):
        product_and_sum[(1,)](x, y, z, out, SUBTRACT=subtract, enable_fp_fusion=fusion)
        assert not out.any()  # a CPU fuses only where it is told to
    product_and_sum[(1,)](x, y, z, out, SUBTRACT=subtract, enable_fp_fusion=True)
    fuses = np.dtype(dtype).itemsize >= 4 and Module("m", host().triple, host().enabled).fma
    assert (out.astype(np.float64) == (exact if fuses else 0 * exact)).all()


@pytest.mark.parametrize(
    ("kind", "dtype", "target", "want"),
    [
        ("add", np.float16, "sm_80", "add.f16x2"),
        ("sub", np.float16, "sm_80", "sub.f16x2"),
        ("mul", np.float16, "sm_80", "mul.f16x2"),
        ("min", np.float16, "sm_80", "min.f16x2"),
        ("maxnan", np.float16, "sm_80", "max.NaN.f16x2"),
        ("fma", np.float16, "sm_80", "fma.rn.f16x2"),
        ("neg", np.float16, "sm_80", None),
        ("abs", np.float16, "sm_80", None),
        ("add", ml_dtypes.bfloat16, "sm_80", "fma.rn.bf16x2"),
        ("mul", ml_dtypes.bfloat16, "sm_80", "fma.rn.bf16x2"),
        ("add", ml_dtypes.bfloat16, "sm_90", "add.bf16x2"),
        ("mul", ml_dtypes.bfloat16, "sm_90", "mul.bf16x2"),
        ("min", ml_dtypes.bfloat16, "sm_80", "min.bf16x2"),
        ("maxnan", ml_dtypes.bfloat16, "sm_80", "max.NaN.bf16x2"),
        ("fma", ml_dtypes.bfloat16, "sm_80", "fma.rn.bf16x2"),
    ],
)
def test_narrow_floats_are_computed_in_pairs(kind: str, dtype: Any, target: str, want: str | None) -> None:
    """Four instructions for eight elements, no conversion; a sign is a bit of an integer operation."""
    x, y, _ = operands(dtype)
    ptx = arithmetic.compile(x, y, np.zeros_like(x), KIND=kind, target=target).ptx
    assert instructions(ptx) == ({want: 4} if want else {})
    assert want or len(re.findall(r"\b(?:xor|and)\.b32\b", ptx)) >= 4


def test_float32_is_rounded_to_pairs_of_narrow_floats() -> None:
    @weft.jit
    def rounding(x: Any, out: Any) -> None:
        i = tl.arange(0, 1024)
        tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))

    x = np.zeros(ELEMENTS, np.float32)
    for dtype, name in ((np.float16, "f16x2"), (ml_dtypes.bfloat16, "bf16x2")):
        ptx = rounding.compile(x, np.zeros(ELEMENTS, dtype), target="sm_80").ptx
        assert len(re.findall(rf"\bcvt\.rn\.{name}\.f32\b", ptx)) == 4
        assert len(re.findall(r"\bcvt\.rn\b", ptx)) == 4


@weft.jit
def converted(x: Any, out: Any) -> None:
    i = tl.arange(0, 1024)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@pytest.mark.parametrize("source", [np.int8, np.uint8])
@pytest.mark.parametrize(
    ("dtype", "want"),
    [
        (np.float16, {"prmt": 4, "add.rn.f16x2": 4}),
        (np.float32, {"prmt": 8, "add.rn.f32": 8}),
        (ml_dtypes.bfloat16, {"prmt": 8, "add.rn.f32": 8, "cvt.rn.bf16x2.f32": 4}),
    ],
    ids=["float16", "float32", "bfloat16"],
)
def test_bytes_become_floats_by_permutes(source: Any, dtype: Any, want: dict[str, int]) -> None:
    """Of four bytes two permutes make four float16 whose exponent is that of 1024, and four make float32 with that of 2**23; what
    they are too large by is taken away. Signed bytes have their signs turned first. All 256 of them, four times."""
    x = np.arange(1024).astype(source)
    out = np.zeros(1024, dtype)
    ptx = converted.compile(x, out, target="sm_80").ptx
    found = re.findall(r"^\s*(prmt|add\.rn\.f\w+|sub\.f\w+|cvt\.rn\.[\w.]+)", ptx, re.MULTILINE)
    assert {name: found.count(name) for name in found} == want
    assert ptx.count("xor.b32") == (2 if source is np.int8 else 0)
    converted.on("sm_80")[(1,)](x, out)
    np.testing.assert_array_equal(out, x.astype(dtype))


@weft.jit
def halves(x: Any, y: Any, upper: Any, lower: Any, n: Any, FACTOR: tl.constexpr, SIGNED: tl.constexpr) -> None:
    i = tl.arange(0, 1024)
    a = tl.load(x + i).to(tl.int64 if SIGNED else tl.uint64)
    b = FACTOR if FACTOR else tl.load(y).to(tl.int64 if SIGNED else tl.uint64)
    for _ in range(n):  # an extension of what does not change is moved out of the loop
        product = (a + 0) * b
        tl.store(upper + i, (product >> 32).to(upper.dtype.element_ty))
        tl.store(lower + i, product.to(lower.dtype.element_ty))


@weft.jit
def whole(x: Any, y: Any, out: Any) -> None:
    i = tl.arange(0, 1024)
    tl.store(out + i, tl.load(x + i).to(tl.int64) * tl.load(y + i).to(tl.int64))


EDGES = [0, 1, 2, 3, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF]


def words(dtype: Any) -> Any:
    """Numbers of 32 bits: the extreme ones, then random ones."""
    rng = np.random.default_rng(5)
    found = np.concatenate([np.array(EDGES, np.uint32), rng.integers(0, 1 << 32, ELEMENTS - len(EDGES), np.uint32)])
    return found.view(dtype)


@pytest.mark.parametrize(
    ("dtype", "signed", "factor", "upper"),
    [
        (np.uint32, False, 0xD2511F53, "u32"),
        (np.uint32, False, 0, "u32"),
        (np.uint32, True, 0xCD9E8D57, "u32"),
        (np.int32, True, -715827883, "s32"),
        (np.int32, True, 0, "s32"),
        (np.int32, False, -0x80000000, None),  # read as unsigned, the factor has 64 bits
        (np.int32, True, 0xCD9E8D57, None),  # no type of 32 bits has both operands
        (np.uint32, False, 1 << 32, None),
    ],
)
def test_a_product_whose_halves_are_used_has_32_bits(dtype: Any, signed: bool, factor: int, upper: str | None) -> None:
    """`mul.hi` and `mul.lo` for each element, and nothing of 64 bits but addresses; values are those of Python's integers."""
    x, y = words(dtype), np.array([0xFFFFFFF1], np.uint32).view(dtype)
    outs = [np.zeros(ELEMENTS, dtype) for _ in range(2)]
    factor = factor if signed else factor % 2**64
    options = {"FACTOR": factor, "SIGNED": signed}
    found = re.findall(
        r"\s(mul\.(?:hi|lo|wide)\.\w+|cvt\.[us]64\.[us]32)\s.*",
        halves.compile(x, y, *outs, 3, **options, target="sm_90").ptx,
    )
    if upper is not None:
        assert (found.count(f"mul.hi.{upper}"), found.count("mul.lo.s32")) == (8, 8)
        assert "mul.lo.s64" not in found
        assert not [name for name in found if name.startswith("cvt")]
    halves.on("sm_90")[(1,)](x, y, *outs, 3, **options)
    by = factor or int(y[0])
    products = [int(v) * by % 2**64 for v in x]
    for out, shift in zip(outs, (32, 0), strict=True):
        assert out.view(np.uint32).tolist() == [p >> shift & 0xFFFFFFFF for p in products]


def test_a_product_that_is_used_whole_is_one_instruction() -> None:
    x, y, out = words(np.int32), words(np.int32)[::-1].copy(), np.zeros(ELEMENTS, np.int64)
    ptx = whole.compile(x, y, out, target="sm_90").ptx
    assert len(re.findall(r"\bmul\.wide\.s32\s", ptx)) >= 8
    assert not re.findall(r"\bmul\.(?:lo|hi)\b", ptx)
    whole.on("sm_90")[(1,)](x, y, out)
    assert out.tolist() == [int(a) * int(b) for a, b in zip(x, y, strict=True)]


@weft.jit
def upper_halves(x: Any, y: Any, out: Any, n: Any) -> None:
    i = tl.arange(0, 1024)
    a = tl.load(x + i)
    b = tl.load(y)
    for _ in range(n):  # the scalar is extended in front of the loop
        a = tl.umulhi(a, b) ^ i
    tl.store(out + i, a)


@pytest.mark.parametrize("dtype", [np.uint32, np.int32])
def test_an_upper_half_has_32_bits(dtype: Any) -> None:
    x, y, out = words(np.uint32), np.array([0xFFFFFFF1], np.uint32), np.zeros(ELEMENTS, np.uint32)
    arguments = [array.view(dtype) for array in (x, y, out)]
    ptx = upper_halves.compile(*arguments, 3, target="sm_90").ptx
    assert len(re.findall(r"\bmul\.hi\.u32\b", ptx)) == 8
    assert "mul.lo.s64" not in ptx
    upper_halves.on("sm_90")[(1,)](*arguments, 3)
    expected = [int(v) for v in x]
    for _ in range(3):
        expected = [(v * int(y[0]) >> 32) ^ i for i, v in enumerate(expected)]
    assert out.tolist() == expected


@weft.jit
def widened(x: Any, wide: Any, half: Any, rows: Any, SIZE: tl.constexpr) -> None:
    """All of an array, as float32 and as float16; and one element by itself."""
    i = tl.arange(0, SIZE)
    value = tl.load(x + i)
    tl.store(wide + i, value.to(tl.float32))
    tl.store(half + i, value.to(tl.float16))
    tl.store(rows, tl.load(x + 3).to(tl.float32))


@pytest.mark.parametrize(("target", "want"), [("sm_80", 0), ("sm_89", 1), ("sm_90", 1)])
@pytest.mark.parametrize("warps", [1, 4])
def test_every_float8_e4m3fn_becomes_float16_by_pairs(target: str, want: int, warps: int) -> None:
    """Where there is an instruction of two: also of two elements of a thread, and of a scalar, which is a pair with a zero."""
    x = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    wide, half, rows = np.zeros(256, np.float32), np.zeros(256, np.float16), np.zeros(1, np.float32)
    arguments: dict[str, Any] = {"SIZE": 256, "num_warps": warps}
    handle = widened.compile(x, wide, half, rows, target=target, **arguments)
    pairs = 256 // (64 * warps) + 1
    assert handle.ptx.count("cvt.rn.f16x2.e4m3x2") == want * pairs
    widened.on(target)[(1,)](x, wide, half, rows, **arguments)
    np.testing.assert_array_equal(wide, x.astype(np.float32))
    np.testing.assert_array_equal(half, x.astype(np.float16))
    assert rows[0] == np.float32(x[3])
