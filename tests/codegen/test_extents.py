"""Sums and totals that end with rows: values, signs of zeros, and which loops they are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from sampling import at_night
from weft import target as targets
from weft.codegen import emit_llvm
from weft.dtypes import float32, int32
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget

pytestmark = pytest.mark.jit

RNG = np.random.default_rng(0)
AVX512 = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512dq,+avx512vl", 512)


@weft.jit
def centred(x: Any, out: Any, totals: Any, m: Any, n: Any, KIND: tl.constexpr, N: tl.constexpr) -> None:
    """Rows less their means, their variances, and totals of rows."""
    at = tl.arange(0, N)
    inside = at < n
    total = tl.zeros((N,), tl.float32)
    for row in range(0, m):
        v = tl.load(x + row * n + at, mask=inside, other=0.0)
        middle = tl.sum(v, axis=0) / n
        less = tl.where(inside, v - middle, 0.0)
        squares = tl.sum(less * less, axis=0)
        tl.store(out + row * n + at, less * squares, mask=inside)
        total += less * v
    tl.store(totals + at, total, mask=inside)


def in_numpy(x: Any) -> tuple[Any, Any]:
    """As `centred`, of integers of which all numbers are exact where ``n`` is a power of two."""
    less = x - x.mean(axis=1, keepdims=True)
    return less * (less * less).sum(axis=1, keepdims=True), (less * x).sum(axis=0)


centred_of_any_length = weft.jit(do_not_specialize=("n",))(centred.fn)
"""`centred`, compiled once for all lengths of rows."""


@pytest.mark.parametrize("n", [1, 2, 16, 32, 64, 128, 256])
@pytest.mark.parametrize("size", [256, 1024])
def test_values(n: int, size: int) -> None:
    """Nothing behind the end of a row is added, stored or changed. By day tiles of 256 have kernels of their own for rows of 1
    and of multiples of 16."""
    kernel = centred if at_night() or size == 256 else centred_of_any_length
    x = RNG.integers(-4, 5, (6, n)).astype(np.float32)
    out, totals = np.full((7, n), 7, np.float32), np.full(n + 1, 7, np.float32)
    kernel[(1,)](x, out, totals, 6, n, KIND="", N=size)
    expected, total = in_numpy(x)
    np.testing.assert_allclose(out[:6], expected, rtol=1e-5)
    np.testing.assert_allclose(totals[:n], total, rtol=1e-5, atol=1e-5)
    assert (out[6] == 7).all() and totals[n] == 7


@weft.jit
def summed(x: Any, out: Any, totals: Any, m: Any, n: Any, KIND: tl.constexpr, N: tl.constexpr) -> None:
    """Sums of rows and their totals, behind whose end there is what the kind says."""
    at = tl.arange(0, N)
    inside = at < n
    total = tl.full((N,), -0.0 if KIND == "from -0" else 3.0 if KIND == "from 3" else 0.0, tl.float32)
    for row in range(0, m):
        v = tl.load(x + row * n + at, mask=inside, other=1.0 if KIND == "ones" else -0.0 if KIND == "-0" else 0.0)
        w = tl.where(at < m, v, 1.0) if KIND == "chosen" else v
        if KIND == "infinite":
            w = v * tl.load(totals)
        if KIND == "two ends":
            w = v + tl.load(x + row * n + at, mask=at < m, other=0.0)
        if KIND == "maximum":
            w = tl.maximum(v, -1.0)
        tl.store(out + row, tl.sum(w, axis=0))
        total = w - total if KIND == "differences" else total + w
    tl.store(totals + 1 + at, total)


KINDS = ["", "ones", "-0", "from -0", "from 3", "chosen", "infinite", "two ends", "maximum", "differences"]


summed_of_any_length = weft.jit(do_not_specialize=("n",))(summed.fn)
"""`summed`, compiled once for all lengths of rows."""


def expected_of(kind: str, x: Any, size: int, first: float) -> tuple[Any, Any]:
    """As `summed`."""
    m, n = x.shape
    v = np.full((m, size), 1.0 if kind == "ones" else -0.0 if kind == "-0" else 0.0, np.float32)
    v[:, :n] = x
    at = np.arange(size)
    w = np.where(at < m, v, np.float32(1)) if kind == "chosen" else v
    if kind == "infinite":
        w = v * np.float32(first)
    if kind == "two ends":
        again = np.zeros((m, size), np.float32)
        again[:, : min(m, size)] = x.reshape(-1)[(np.arange(m)[:, None] * n + np.arange(min(m, size)))]
        w = v + again
    if kind == "maximum":
        w = np.maximum(v, np.float32(-1))
    total = np.full(size, -0.0 if kind == "from -0" else 3.0 if kind == "from 3" else 0.0, np.float32)
    for row in w:
        total = row - total if kind == "differences" else total + row
    return w.sum(axis=1, initial=np.float32(-0.0)), total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("values", ["numbers", "negative zeros"])
def test_what_is_behind_the_end(kind: str, values: str) -> None:
    """With the signs of zeros. A number times infinity is no zero. By day every third kind has a kernel of its own for rows of
    multiples of 16."""
    kernel = summed if at_night() or kind in KINDS[::3] else summed_of_any_length
    m, size, first = 5, 512, np.inf if kind == "infinite" else 2.0
    for n in (5, 16, 64, 70, 128, 500, 512):
        x = np.full(m * n + m, -0.0, np.float32)
        if values == "numbers":
            x[...] = RNG.integers(1, 9, m * n + m)
        rows = x[: m * n].reshape(m, n)
        out, totals = np.zeros(m, np.float32), np.zeros(size + 1, np.float32)
        totals[0] = first
        kernel[(1,)](x, out, totals, m, n, KIND=kind, N=size)
        with np.errstate(invalid="ignore"):
            sums, total = expected_of(kind, rows, size, first)
        for found, wanted in ((out, sums), (totals[1:], total)):
            np.testing.assert_array_equal(found, wanted, err_msg=f"{n}")
            numbers = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]), err_msg=f"{n}")


def loops_to_ends(kernel: Any, kind: str) -> int:
    """How many loops of a kernel end with a row: an iteration count is limited by the registers of a row."""
    constants: dict[str, Argument] = {"KIND": ConstantArgument(kind), "N": ConstantArgument(1024)}
    signature: dict[str, Argument] = {name: PointerArgument(float32) for name in ("x", "out", "totals")}
    signature |= {name: ScalarArgument(int32) for name in ("m", "n")} | constants
    text = emit_llvm(build_module(KernelFunction(kernel.fn), signature), targets.host(), Options(disjoint=True))
    return sum("call i64 @" in line and "umin" in line for line in text.splitlines())


def test_which_loops_end_with_rows() -> None:
    assert loops_to_ends(centred, "") == 4  # the sum, the squares, the stores in the loop and behind it
    found = {kind: number for kind in KINDS if (number := loops_to_ends(summed, kind))}
    assert found == {"": 2, "from 3": 2, "two ends": 2, "from -0": 1, "differences": 1}  # the sum, the total


@weft.jit
def doubled(
    x: Any, flags: Any, out: Any, m: Any, n: Any, limit: Any, KIND: tl.constexpr, M: tl.constexpr, N: tl.constexpr
) -> None:
    """Rows of a matrix, twice, where the masks of a kind let them through."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    rows, columns = i < m, j < n
    stored = rows & columns
    loaded = stored
    if KIND == "flags":
        loaded = stored = (tl.load(flags + i) > 0) & columns
    if KIND == "columns":
        loaded = stored = columns
    if KIND == "two ends":
        loaded = stored = rows & columns & (j <= limit)
    if KIND == "no rows":
        loaded = j < n
    if KIND == "another end":
        loaded = rows & (j < limit)
    if KIND == "a hole":
        loaded = stored = rows & columns & (j != limit)
    at = i * N + j
    if KIND == "no mask":
        tl.store(out + at, 2 * tl.load(x + at), mask=stored)
    else:
        tl.store(out + at, 2 * tl.load(x + at, mask=loaded, other=-1.0), mask=stored)


DECIDED = ["", "flags", "columns", "two ends", "no mask"]
DOUBLED = [*DECIDED, "no rows", "another end", "a hole"]
doubled_of_any_size = weft.jit(do_not_specialize=("m", "n", "limit"))(doubled.fn)
"""`doubled`, compiled once for all ends."""


@pytest.mark.parametrize("kind", DOUBLED)
def test_rows_that_end_at_each_place(kind: str) -> None:
    """By day two kinds have kernels of their own for ends of 1 and of multiples of 16."""
    kernel = doubled if at_night() or kind in ("", "two ends") else doubled_of_any_size
    rows, columns = 8, 128
    x = RNG.integers(-9, 10, (rows, columns)).astype(np.float32)
    flags = (np.arange(rows) % 3).astype(np.int32)
    i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
    for m, n, limit in [
        (8, 0, 3),
        (7, 1, 50),
        (8, 15, 15),
        (5, 16, 15),
        (8, 17, 16),
        (1, 60, 100),
        (3, 127, 37),
        (8, 128, 64),
        (2, 130, 64),
        (8, 200, 120),
    ]:
        out = np.full((rows + 1, columns), 7, np.float32)
        kernel[(1,)](x, flags, out, m, n, limit, KIND=kind, M=rows, N=columns)
        stored = (i < m) & (j < n)
        stored = (
            (flags[:, None] > 0) & (j < n) if kind == "flags" else stored | (j < n) if kind == "columns" else stored
        )
        stored = stored & (j <= limit) if kind == "two ends" else stored & (j != limit) if kind == "a hole" else stored
        loaded = (i < m) & (j < limit) if kind == "another end" else stored
        expected = np.where(stored, 2 * np.where(loaded, x, -1), 7)
        np.testing.assert_array_equal(out[:rows], expected, err_msg=f"{m}, {n}, {limit}")
        assert (out[rows] == 7).all()


@pytest.mark.parametrize("by_16", [False, True])
@pytest.mark.parametrize("kind", DOUBLED)
def test_ends_that_decide_leave_one_load_of_whole_registers(kind: str, by_16: bool) -> None:
    """Otherwise there is another one for whole registers of a group that is cut off, and the group has two. Rows of multiples of
    16 floats end with a register."""
    signature: dict[str, Argument] = {name: PointerArgument(float32) for name in ("x", "out")}
    signature |= {"flags": PointerArgument(int32), "M": ConstantArgument(8), "N": ConstantArgument(128)}
    signature |= {name: ScalarArgument(int32, by_16) for name in ("m", "n", "limit")} | {"KIND": ConstantArgument(kind)}
    function = KernelFunction(doubled.fn)
    ordered = {each.name: signature[each.name] for each in function.parameters}
    text = emit_llvm(build_module(function, ordered), AVX512, Options(disjoint=True))
    whole = len(re.findall(r"= load <16 x float>", text))
    assert (whole == (2 if kind == "no mask" else 1)) == (kind in DECIDED and not by_16), whole
