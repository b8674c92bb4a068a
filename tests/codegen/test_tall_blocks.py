"""Blocks of six rows of products where a machine has 16 vector registers: which products have them, and values at each number of
rows that a tile or a mask leaves, in programs that fill the panel and in those that find it."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import product_kernels
import weft
import weft.language as tl
from host_targets import compiled_for
from sampling import grid
from weft import dtypes
from weft.codegen import emit_llvm
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget

AVX2 = CpuTarget("x86_64-unknown-linux-gnu", "haswell", "+avx,+avx2,+fma,+f16c,+sse2", 256)


@weft.jit
def turned(a: Any, b: Any, c: Any, K: Any, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr) -> None:
    """The left operand's columns lie in memory one behind the other."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, K, BK):
        x = tl.load(a + m[:, None] + (at + k)[None, :] * M)
        total = tl.dot(x, tl.load(b + (at + k)[:, None] * N + n[None, :]), total)
    tl.store(c + m[:, None] * N + n[None, :], total)


product, whole, twice = (
    weft.jit(each.fn) for each in (product_kernels.product, product_kernels.whole, product_kernels.twice)
)
"""Kernels of their own, which are compiled for AVX2 alone."""

TYPES: dict[str, tuple[Any, Any, Any]] = {
    "float32": (np.float32, np.float32, tl.float32),
    "float64": (np.float64, np.float64, tl.float64),
    "int8": (np.int8, np.int32, tl.int32),
    "uint8": (np.uint8, np.int32, tl.int32),
}


def text_of(dtype: Any, sums: Any, tile: tuple[int, int, int], target: CpuTarget) -> str:
    constants = dict(zip(("BM", "BN", "BK"), tile, strict=True)) | {"WRAP": False, "SUMS": sums}
    signature: dict[str, Argument] = {
        **dict.fromkeys("ab", PointerArgument(dtype, aligned=True)),
        "c": PointerArgument(sums, aligned=True),
        **dict.fromkeys("MNK", ScalarArgument(dtypes.int32)),
        **{name: ConstantArgument(value) for name, value in constants.items()},
    }
    return emit_llvm(build_module(KernelFunction(product.fn), signature), target, Options(disjoint=True))


def sums_of(text: str) -> set[tuple[int, str]]:
    """The sums that the loops over panels carry: how many, and their type."""
    heads = re.findall(r"^depth\S*:\n((?:  %\S+ = phi .*\n)+)", text, re.M)
    phis = [re.findall(r"phi +(<\d+ x \w+>)", head) for head in heads]
    return {(len(found), found[0]) for found in phis if found}


@pytest.mark.parametrize(
    ("dtype", "sums", "tile", "expected"),
    [
        (dtypes.float32, dtypes.float32, (16, 16, 16), {(8, "<8 x float>"), (12, "<8 x float>")}),
        (dtypes.float32, dtypes.float32, (64, 32, 16), {(8, "<8 x float>"), (12, "<8 x float>")}),
        (dtypes.float64, dtypes.float64, (64, 32, 16), {(8, "<4 x double>"), (12, "<4 x double>")}),
        (dtypes.bfloat16, dtypes.float32, (64, 32, 16), {(8, "<8 x float>"), (12, "<8 x float>")}),
    ],
)
def test_products_with_tall_blocks(dtype: Any, sums: Any, tile: tuple[int, int, int], expected: Any) -> None:
    """Pairs of vectors across, also of float64, of whose numbers a tile's register has four vectors."""
    text = text_of(dtype, sums, tile, AVX2)
    assert sums_of(text) == expected
    assert re.findall(r"urem i64 %\S+, (\d+)", text).count("12") == 1, (
        "two blocks at a time: what is left is whole blocks of four"
    )


def test_products_without() -> None:
    """Eight rows hold no two tall blocks. int8 is multiplied in pairs and added: a sum needs another register meanwhile. With 32
    registers blocks have 16 sums."""
    few = text_of(dtypes.float32, dtypes.float32, (8, 16, 16), AVX2)
    assert sums_of(few) == {(8, "<8 x float>")}
    assert max(number for number, _ in sums_of(text_of(dtypes.int8, dtypes.int32, (64, 32, 16), AVX2))) == 8
    wide = CpuTarget(AVX2.triple, "x86-64-v4", "+avx512f,+avx512bw,+avx512vl", 512)
    assert max(sums_of(text_of(dtypes.float32, dtypes.float32, (64, 32, 16), wide))) == (16, "<16 x float>")


@pytest.fixture
def avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine, without AVX-512."""
    assert compiled_for("x86-64-v3", monkeypatch).vector_bits == 256


@pytest.mark.jit
@pytest.mark.parametrize(
    ("name", "tile"), grid(2, tuple(TYPES), ((8, 16, 16), (16, 16, 16), (32, 64, 16), (64, 32, 32)))
)
def test_each_number_of_rows(avx2: None, name: str, tile: tuple[int, int, int]) -> None:
    """Of one program, which fills the panel, and of several. 40 columns are no whole group, 45 of the depth no whole step. The
    right operand is another one each time: what an earlier launch left in a panel would do."""
    dtype, result, sums = TYPES[name]
    bm, bn, bk = tile
    random = np.random.default_rng(bm)
    columns, depth = 40, 45
    constants = dict(BM=bm, BN=bn, BK=bk, WRAP=False, SUMS=sums)
    for rows in range(1, bm + 18):
        a, b = (random.integers(0, 5, shape).astype(dtype) for shape in ((rows, depth), (depth, columns)))
        c = np.full((rows + 1, columns), 99, result)
        programs = weft.cdiv(rows, bm) * weft.cdiv(columns, bn)
        product[(programs,)](a, b, c, rows, columns, depth, **constants)
        np.testing.assert_array_equal(c[:rows], a.astype(np.int64) @ b.astype(np.int64), err_msg=f"{rows} rows")
        assert np.all(c[rows] == 99)


@pytest.mark.jit
@pytest.mark.parametrize("bm", [16, 32, 64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_whole_tiles(avx2: None, dtype: Any, bm: int) -> None:
    """Tiles of which all rows are wanted: of 16, 32 and 64 twelve leave four and eight. The second program finds the panel."""
    random = np.random.default_rng(bm)
    a, b = (random.integers(-4, 5, shape).astype(dtype) for shape in ((2 * bm, 48), (48, 32)))
    c = np.full((2 * bm, 32), 99, dtype)
    whole[(2,)](a, b, c, 48, M=bm, N=32, BK=16)
    np.testing.assert_array_equal(c, a @ b)


@pytest.mark.jit
@pytest.mark.parametrize("rows", [8, 16, 20, 24])
def test_sums_of_several_panels(avx2: None, rows: int) -> None:
    """Panels have 2,048 of the depth. Sums of the first are read and written again: each row once."""
    random = np.random.default_rng(rows)
    a, b = (random.integers(-2, 3, shape).astype(np.float32) for shape in ((rows, 2100), (2100, 16)))
    c = np.full((rows, 16), 99, np.float32)
    product[(weft.cdiv(rows, 32),)](a, b, c, rows, 16, 2100, BM=32, BN=16, BK=64, WRAP=False, SUMS=tl.float32)
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


@pytest.mark.jit
def test_a_left_panel_of_groups_of_rows(avx2: None) -> None:
    """Sixteen rows lie together there, and no block is in two of such groups."""
    random = np.random.default_rng(3)
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((64, 64), (64, 32)))
    c = np.full((64, 32), 99, np.float32)
    turned[(1,)](a, b, c, 64, M=64, N=32, BK=16)
    np.testing.assert_array_equal(c, a.T @ b)


@pytest.mark.jit
def test_a_panel_that_was_filled_before(avx2: None) -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((64, 64), (64, 32)))
    c = np.full((64, 32), 99, np.float32)
    twice[(1,)](a, b, c, 64, M=32, N=32, BK=16)
    np.testing.assert_array_equal(c, a @ b)
