"""Accesses of elements that lie apart by equal distances: by windows, lane by lane, and by gathers and scatters.

Expected is what NumPy's slices give. All that lies between the elements stays as it is.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import weft.language as tl
from host_targets import compiled_for
from sampling import at_night, grid
from weft import dtypes
from weft.codegen import emit_llvm
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import X86_LEVELS, CpuTarget

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit
TRIPLE = llvm.get_process_triple()
X86 = "x86_64-unknown-linux-gnu"
AVX512 = CpuTarget(
    X86, "skylake-avx512", ",".join(f"+{f}" for level in X86_LEVELS.values() for f in level.split()), 512
)
ZEN4 = replace(AVX512, tuning=("slow-gathers",))
AVX2 = CpuTarget(X86, "haswell", "+avx,+avx2,+fma,+f16c,+sse2", 256)
TYPES = [np.bool_, np.int8, np.int16, np.float32, np.float64]
STEPS = [1, 2, 3, 4, 8, 15, 16, 64, -1, -2, -3]

jit = KernelFunction


@pytest.fixture(params=["native", "native,-slow-gathers", "native,+slow-gathers", "x86-64-v3", "x86-64"])
def at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CpuTarget:
    """What kernels are compiled for."""
    return compiled_for(request.param, monkeypatch)


@jit
def known_step(x: Any, out: Any, n: Any, STEP: tl.constexpr, OUT: tl.constexpr, N: tl.constexpr) -> None:
    """Along the axis whose programs run one by one: a function for several takes long to compile, and these are few."""
    i = tl.program_id(2) * N + tl.arange(0, N)
    tl.store(out + i * OUT, tl.load(x + i * STEP, mask=i < n), mask=i < n)


@jit
def run_time_step(x: Any, out: Any, n: Any, STEP: Any, OUT: Any, N: tl.constexpr) -> None:
    i = tl.program_id(2) * N + tl.arange(0, N)
    tl.store(out + i * OUT, tl.load(x + i * STEP, mask=i < n), mask=i < n)


@jit
def mixed(x: Any, out: Any, step: Any, row: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    """Of two dimensions, with a step in 64 bits, a difference and an inner number that is the same for all."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    at = (step * (M - 1 - i)).to(tl.int64) + (j * row + step - step)
    tl.store(out + i * N + j, tl.load(x + at))


@jit
def in_rows(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr, ROW: tl.constexpr, STEP: tl.constexpr) -> None:
    """Rows of columns with a gap, both ways; rows may overlap."""
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * ROW + j * STEP, tl.load(x + i * ROW + j * STEP))


@jit
def where_odd(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    """A mask that no single lane decides, and what is loaded where it is false."""
    i = tl.arange(0, N)
    some = (i % 32 < 16) | (i % 3 == n)
    tl.store(out + i * 2, tl.load(x + i * 2, mask=some, other=7), mask=(i % 32 >= 16) | some)


def pattern(size: int, dtype: Any) -> np.ndarray[Any, Any]:
    return (np.arange(size) * 37 % 101 % (2 if dtype is np.bool_ else 128)).astype(dtype)


def named(value: Any) -> str:
    return value.name if isinstance(value, KernelFunction) else np.dtype(value).name


@pytest.mark.parametrize(("kernel", "dtype"), grid(2, [known_step, run_time_step], TYPES), ids=named)
def test_steps(at: CpuTarget, differ: Differential, kernel: KernelFunction, dtype: Any) -> None:
    """Of loads and stores, of a whole tile and of tails that end within the first register and within another. By day each type
    has every fifth step, and of each step loads of one size and stores of the other, in turns."""
    known = STEPS if at_night() else STEPS[TYPES.index(dtype) :: 5]
    for step in known if kernel is known_step else (1, 2, 3, -3):
        for place, (n, size) in enumerate(((77, 64), (5, 16))):
            ways = ("load", "store") if at_night() else (("load", "store")[(STEPS.index(step) + place) % 2],)
            reach = (n - 1) * abs(step) + 1
            data, flat = pattern(reach, dtype), pattern(n, dtype)
            first = reach - 1 if step < 0 else 0
            # as whole arrays: the pointer is the element of index 0, which is the last one where steps are negative
            gathered, scattered = np.zeros(n, dtype), pattern(reach, dtype)[::-1].copy()
            expected = scattered.copy()
            expected[first::step] = flat
            grid = (1, 1, -(-n // size))
            arrays = {"load": (data[first:], gathered, step, 1), "store": (flat, scattered[first:], 1, step)}
            for a, b, s, o in (arrays[way] for way in ways):
                given = {"x": a, "out": b, "n": np.int32(n), "STEP": s, "OUT": o, "N": size}
                if kernel is run_time_step:
                    given |= {"STEP": np.int32(s), "OUT": np.int32(o)}
                module = differ.build(kernel, **given)
                names = ["x", "out", "n", "STEP", "OUT"][: 5 if kernel is run_time_step else 3]
                differ.native(module, [given[name] for name in names], grid, disjoint=True)
            if "load" in ways:
                np.testing.assert_array_equal(gathered, data[first::step][:n], str((step, n)))
            if "store" in ways:
                np.testing.assert_array_equal(scattered, expected, str((step, n)))


@jit
def two_steps(x: Any, y: Any, out: Any, first: Any, second: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i * first) + tl.load(y + i * second))


@pytest.mark.parametrize("steps", [(2, 2), (2, 3), (3, 2), (1, 2)], ids=str)
@pytest.mark.parametrize("types", [(np.float32, np.float32), (np.float32, np.int8)], ids=str)
def test_steps_of_two_arrays(
    at: CpuTarget, differ: Differential, types: tuple[Any, Any], steps: tuple[int, int]
) -> None:
    """All of them decide."""
    n = 64
    x, y = (pattern(n * step, dtype) for step, dtype in zip(steps, types, strict=True))
    out = np.zeros(n, np.float32)
    given = {"x": x, "y": y, "out": out, "first": np.int32(steps[0]), "second": np.int32(steps[1])}
    differ.native(differ.build(two_steps, **given, N=n), list(given.values()), disjoint=True)
    np.testing.assert_array_equal(out, x[:: steps[0]].astype(np.float32) + y[:: steps[1]])


@jit
def both_ways(x: Any, out: Any, down: Any, across: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.load(x + i * down + j * across))


@pytest.mark.parametrize("steps", [(8, 2), (7, 2), (11, 2), (8, 3)], ids=str)
def test_steps_of_two_axes(at: CpuTarget, differ: Differential, steps: tuple[int, int]) -> None:
    """Lanes of one register go along both: every second element is what all of them are."""
    m, n, x = 16, 4, np.arange(400, dtype=np.float32)
    out = np.zeros((m, n), np.float32)
    given = {"x": x, "out": out, "down": np.int32(steps[0]), "across": np.int32(steps[1])}
    differ.native(differ.build(both_ways, **given, M=m, N=n), list(given.values()), disjoint=True)
    np.testing.assert_array_equal(out, x[np.arange(m)[:, None] * steps[0] + np.arange(n) * steps[1]])


@pytest.mark.parametrize(("step", "row"), [(3, 40), (-5, 2), (1, 7), (0, 3)])
def test_steps_that_are_sums_and_products(at: CpuTarget, differ: Differential, step: int, row: int) -> None:
    m, n = 4, 8
    data, out = np.arange(400, dtype=np.float32), np.zeros(m * n, np.float32)
    middle = 100
    given = {"x": data[middle:], "out": out, "step": np.int32(step), "row": np.int32(row)}
    module = differ.build(mixed, **given, M=m, N=n)
    differ.native(module, list(given.values()))
    i, j = np.arange(m)[:, None], np.arange(n)
    np.testing.assert_array_equal(out.reshape(m, n), middle + step * (m - 1 - i) + j * row)


@pytest.mark.parametrize("row", [0, 1, 3, 8, 100, 1025, 3000])
@pytest.mark.parametrize("step", [1, 2, -2])
def test_rows_of_a_tile_apart_and_overlapping(at: CpuTarget, differ: Differential, row: int, step: int) -> None:
    """Where lanes meet they store equal numbers."""
    m, n = 8, 2
    size, middle = 7 * row + 8, 4
    data, out = np.arange(size, dtype=np.int32), np.full(size, -1, np.int32)
    module = differ.build(in_rows, x=data, out=out, M=m, N=n, ROW=row, STEP=step)
    differ.native(module, [data[middle:], out[middle:]])
    touched = {middle + i * row + j * step for i in range(m) for j in range(n)}
    assert out.tolist() == [k if k in touched else -1 for k in range(size)]


@jit
def last_stays(out: Any, values: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * 2 + j * 2, tl.load(values + i * N + j))


def test_where_lanes_meet_the_last_one_stays(at: CpuTarget, differ: Differential) -> None:
    """In the order of the lanes, as in the reference."""
    values = np.arange(1, 17, dtype=np.int32)
    after = differ(last_stays, out=np.zeros(20, np.int32), values=values, M=2, N=8)
    assert after["out"][:18:2].tolist() == [1, 9, 10, 11, 12, 13, 14, 15, 16]


def test_masks_that_no_lane_decides(at: CpuTarget, differ: Differential) -> None:
    data = np.arange(256, dtype=np.float32)
    differ(where_odd, x=data, out=np.zeros(256, np.float32), n=np.int32(1), N=128)


@jit
def to_the_end(x: Any, out: Any, STEP: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i * STEP, tl.load(x + i * STEP) + 1)


@pytest.mark.skipif(
    not hasattr(mmap, "PROT_READ"), reason="this system has no mprotect, by which the test forbids a page"
)
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.float32, np.float64])
def test_nothing_outside_the_first_and_the_last_element_is_touched(
    at: CpuTarget, differ: Differential, dtype: Any
) -> None:
    """With the first element at the beginning of a page, and the last at the end of it, between pages that may not be read."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 3 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    protect = ctypes.CDLL(None).mprotect
    for forbidden in (start, start + 2 * page):
        assert protect(ctypes.c_void_p(forbidden), ctypes.c_size_t(page), 0) == 0
    size = np.dtype(dtype).itemsize
    whole = np.frombuffer(memory, dtype, page // size, page)
    steps = (2, 3, 4, 7, 8, -1, -2, -5)
    for step in steps if at_night() else steps[size.bit_length() - 1 :: 4]:
        for lanes in (16, 32):
            reach = (lanes - 1) * abs(step) + 1
            if reach > len(whole):
                continue
            for part in (whole[:reach], whole[len(whole) - reach :]):
                part[:] = pattern(reach, dtype) % 100
                expected = part.copy()
                expected[::step] += np.array(1, dtype)
                first = part[reach - 1 if step < 0 else 0 :]
                module = differ.build(to_the_end, x=first, out=first, STEP=step, N=lanes)
                differ.native(module, [first, first])
                np.testing.assert_array_equal(part, expected, str((step, lanes)))


@jit
def stepping(x: Any, out: Any, step: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i * step, tl.load(x + i * step) + 1)


def program(kernel: KernelFunction, target: CpuTarget, dtype: Any = dtypes.float32, **values: Any) -> str:
    """LLVM IR of a kernel whose arguments are arrays, and numbers where no constant is given."""
    signature: dict[str, Argument] = {}
    for name in (parameter.name for parameter in kernel.parameters):
        constant = values.get(name)
        if constant is not None:
            signature[name] = ConstantArgument(constant)
        else:
            signature[name] = PointerArgument(dtype) if name in ("x", "out") else ScalarArgument(dtypes.int32)
    text = emit_llvm(build_module(kernel, signature), target, Options(disjoint=True))
    return text[text.index(".program") :]


def counts(text: str) -> dict[str, int]:
    """How often a program loads and stores vectors and single elements, and gathers and scatters."""
    patterns = {
        "vectors": r"= load <\d+ x \w+>",
        "masked": r"call void @\"?llvm\.masked\.store",
        "loads": r"= load float,",
        "stores": r" store float ",
        "gathers": r"call .*llvm\.masked\.gather",
        "scatters": r"call .*llvm\.masked\.scatter",
    }
    found = {name: len(re.findall(pattern, text)) for name, pattern in patterns.items()}
    return {name: count for name, count in found.items() if count}


@pytest.mark.parametrize(
    ("target", "step", "expected"),
    [
        (AVX512, 2, {"vectors": 2, "masked": 2}),
        (AVX512, 8, {"vectors": 8, "masked": 8}),
        (AVX512, 16, {"gathers": 1, "scatters": 1}),
        (ZEN4, 2, {"vectors": 2, "masked": 2}),
        (ZEN4, 16, {"loads": 16, "stores": 16}),
        (AVX2, 4, {"vectors": 8, "stores": 16}),
        (AVX2, 8, {"loads": 16, "stores": 16}),
    ],
    ids=lambda value: value.cpu + "".join(value.tuning) if isinstance(value, CpuTarget) else str(value),
)
def test_how_elements_apart_are_accessed(target: CpuTarget, step: int, expected: dict[str, int]) -> None:
    """The wider the machine's vectors, the more elements of one are of use."""
    assert counts(program(to_the_end, target, STEP=step, N=16)) == expected


@jit
def summed(x: Any, out: Any, step: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out, tl.sum(tl.load(x + i * step)))


@pytest.mark.parametrize(
    ("kernel", "target", "expected"),
    [
        (stepping, AVX512, {"gathers": 1, "scatters": 1}),
        (stepping, ZEN4, {"vectors": 2, "loads": 16, "stores": 32}),
        (stepping, AVX2, {"vectors": 4, "loads": 16, "stores": 32}),
        (summed, AVX2, {"loads": 17, "stores": 2}),
    ],
    ids=["avx512", "zen4", "avx2", "reduced"],
)
def test_how_a_run_time_step_is_accessed(kernel: KernelFunction, target: CpuTarget, expected: dict[str, int]) -> None:
    """Loops that store have a version that loads every second element by windows."""
    assert counts(program(kernel, target, N=16)) == expected
