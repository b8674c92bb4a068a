"""What kernels print: natively, in the emulator and in the reference, beside C's own printf."""

from __future__ import annotations

import contextlib
import ctypes
import io
from collections import Counter
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from c_library import snprintf
from frontend.conftest import build
from weft import reference
from weft.emulator.errors import Fault
from weft.ir.printing import POINTER, Print
from weft.runtime import cache, executor
from weft.runtime.artifacts import Artifact
from weft.runtime.executor import Pool

pytestmark = pytest.mark.jit

MACHINES = ["reference", "native", "sm_80", "sm_90"]


def printed(kernel: Any, grid: tuple[int, ...], *arguments: Any, on: str, **constants: Any) -> str:
    """What a launch writes to ``sys.stdout``."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        if on == "reference":
            given = dict(zip((p.name for p in kernel.parameters), arguments, strict=False))
            reference.run(build(kernel, **given, **constants), list(arguments), grid)
        else:
            (kernel if on == "native" else kernel.on(on))[grid](*arguments, **constants)
    return text.getvalue()


I32, U32, I64, U64, F64 = ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_double

FORMATS = {
    (False, "int8"): ("%i", I32), (False, "uint8"): ("%u", U32), (False, "int32"): ("%i", I32),
    (False, "uint32"): ("%u", U32), (False, "int64"): ("%lli", I64), (False, "uint64"): ("%llu", U64),
    (False, "bool"): ("%u", U32), (False, "float32"): ("%f", F64), (False, "float64"): ("%f", F64),
    (True, "int8"): ("0x%02x", I32), (True, "uint16"): ("0x%04x", U32), (True, "int32"): ("0x%08x", I32),
    (True, "int64"): ("0x%016llx", I64), (True, "uint64"): ("0x%016llx", U64), (True, "bool"): ("0x%x", U32),
    (True, "float32"): ("%a", F64), (True, "float64"): ("%a", F64), (True, POINTER): ("%p", U64), (False, POINTER): ("%p", U64),
}  # fmt: skip
"""Whether it is hexadecimal, and the type -> the directive in the PTX of Triton 3.9, and C's type of the argument."""


@pytest.mark.parametrize(("hexadecimal", "type_"), FORMATS)
def test_python_and_c_print_the_same(hexadecimal: bool, type_: str) -> None:
    directive, argument = FORMATS[hexadecimal, type_]
    if type_.startswith("float"):
        values = np.array([0, -0.0, 1.5, -1e20, 3e-40, np.inf, -np.inf, np.nan, 1 / 3], type_)
    elif type_ == "bool":
        values = np.array([False, True])
    else:
        info = np.iinfo("int64" if type_ == POINTER else type_)
        values = np.array([0, 1, 77, info.max, info.min], info.dtype)
    what = Print(" x%: ", hexadecimal, type_, values.shape)
    assert what.format == f"pid (%u, %u, %u) idx (%1u) x%%: {directive}\n"
    expected = [snprintf(what.format, U32(1), U32(2), U32(3), U32(i), argument(v.item())) for i, v in enumerate(values)]
    assert what.text((1, 2, 3), values) == "".join(expected)


@pytest.mark.parametrize(
    ("shape", "indices"),
    [((), ""), ((1,), "%u"), ((16,), "%2u"), ((8, 128), "%1u, %3u"), ((2, 1, 1024), "%1u, %u, %4u")],
)
def test_indices_are_as_wide_as_in_triton(shape: tuple[int, ...], indices: str) -> None:
    assert Print(" x: ", False, "int32", shape).format == f"pid (%u, %u, %u) idx ({indices}) x: %i\n"


@weft.jit
def vector(x: Any, N: tl.constexpr) -> None:
    v = tl.load(x + tl.arange(0, N))
    print("v", v)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize(("dtype", "directive"), [("int32", "%i"), ("uint8", "%u"), ("float16", "%f"), ("bool", "%u")])
def test_a_vector(on: str, dtype: str, directive: str) -> None:
    x = np.arange(-2, 14).astype(dtype)
    argument = F64 if directive == "%f" else I32
    lines = [snprintf(f"pid (0, 0, 0) idx (%2u) v: {directive}", i, argument(v.item())) for i, v in enumerate(x)]
    assert Counter(printed(vector, (1,), x, on=on, N=16).splitlines()) == Counter(lines)


@pytest.mark.parametrize("size", [2, 64, 2048])
def test_native_code_prints_in_row_major_order(size: int) -> None:
    x = np.arange(size, dtype=np.int64)
    width = len(str(size - 1))
    assert printed(vector, (1,), x, on="native", N=size) == "".join(
        f"pid (0, 0, 0) idx ({i:{width}}) v: {i}\n" for i in range(size)
    )


@weft.jit
def many(x: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + j[None, :])
    tl.device_print("begins ")
    if tl.program_id(0) % 2 > 0:
        tl.device_print("odd: ", tile, n, hex=True)
    for k in range(n):
        print("k", k, True)
        tile += 1
    tl.device_print("", tl.trans(tile))
    tl.device_print("sum", tl.sum(tl.sum(tile, 0), 0) * 0.5)


def lines_of_many(x: np.ndarray[Any, Any], pid: int, n: int) -> list[str]:
    start = f"pid ({pid}, 0, 0)"
    lines = [f"{start} begins "]
    if pid % 2:
        lines += [f"{start} idx ({i}, {j}) odd: (operand 0) 0x{x[i, j]:08x}" for i, j in np.ndindex(x.shape)]
        lines += [f"{start} idx () odd: (operand 1) 0x{n:08x}"]
    for k in range(n):
        lines += [f"{start} idx () k: (operand 0) {k}", f"{start} idx () k: (operand 1) 1"]
    x = x.T + n
    lines += [f"{start} idx ({i}, {j}): {x[i, j]}" for i, j in np.ndindex(x.shape)]
    return [*lines, f"{start} idx () sum: {x.sum() * 0.5:f}"]


@pytest.mark.parametrize("on", MACHINES)
def test_values_of_many_kinds(on: str) -> None:
    x = np.arange(32, dtype=np.int32).reshape(4, 8)
    found = printed(many, (5,), x, np.int32(2), on=on, M=4, N=8).splitlines()
    for pid in range(5):
        mine, expected = [line for line in found if line.startswith(f"pid ({pid},")], lines_of_many(x, pid, 2)
        assert Counter(mine) == Counter(expected)
        if on in ("reference", "native"):
            assert mine == expected  # a GPU's threads print side by side
    assert len(found) == sum(len(lines_of_many(x, pid, 2)) for pid in range(5))


@weft.jit
def overwrites(x: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    before = tl.load(x + i)
    tl.store(x + i, before * 2)
    print("before", before)
    print("after", tl.load(x + i))


@pytest.mark.parametrize("on", MACHINES)
def test_a_print_shows_the_values_of_its_place(on: str) -> None:
    found = Counter(printed(overwrites, (1,), np.arange(4, dtype=np.int16), on=on, N=4).splitlines())
    assert found == Counter(
        f"pid (0, 0, 0) idx ({i}) {name}: {i * scale}"
        for i in range(4)
        for name, scale in (("before", 1), ("after", 2))
    )


@weft.jit
def copies(x: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(x + j)[None, :]
    tl.store(x + N + i[:, None] * N + j[None, :], row + i[:, None])
    print("row", row)
    print("sums", tl.sum(tl.load(x + N + i[:, None] * N + j[None, :]), 1))


@pytest.mark.parametrize("on", MACHINES)
def test_copies_of_an_element_are_printed_once(on: str) -> None:
    x = np.zeros((33, 8), np.int32)
    found = Counter(printed(copies, (1,), x.reshape(-1), on=on, M=32, N=8).splitlines())
    rows = [f"pid (0, 0, 0) idx (0, {j}) row: 0" for j in range(8)]
    assert found == Counter([*rows, *(f"pid (0, 0, 0) idx ({i:2}) sums: {8 * i}" for i in range(32))])


@weft.jit
def addresses(x: Any, N: tl.constexpr) -> None:
    print("at", x + tl.arange(0, N), (x + 1).to(tl.int64, bitcast=True))
    print("bits", tl.load(x + tl.arange(0, N)).to(tl.float8e5))


@pytest.mark.parametrize("on", ["native", "sm_90"])
def test_pointers_and_bytes(on: str) -> None:
    x = np.array([1, -2], np.float32)
    first, second, at, *bits = sorted(
        printed(addresses, (1,), x, on=on, N=2).splitlines(), key=lambda line: "bits" in line
    )
    base = int(at.rsplit(" ", 1)[1]) - 4
    shown = {f"pid (0, 0, 0) idx ({i}) at: (operand 0) 0x{base + 4 * i:x}" for i in range(2)}
    assert {first, second, at} == {*shown, f"pid (0, 0, 0) idx () at: (operand 1) {base + 4}"}
    assert on != "native" or base == x.ctypes.data
    assert sorted(bits) == ["pid (0, 0, 0) idx (0) bits: 60", "pid (0, 0, 0) idx (1) bits: 192"]


def test_threads_do_not_cut_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Pool(4)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    x = np.arange(32, dtype=np.int32).reshape(4, 8)
    found = printed(many, (40,), x, 1, on="native", M=4, N=8).splitlines()
    for pid in range(40):
        assert [line for line in found if line.startswith(f"pid ({pid},")] == lines_of_many(x, pid, 1)
    assert len(found) == sum(len(lines_of_many(x, pid, 1)) for pid in range(40))


def test_what_printing_raises_is_raised() -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError("the disk is full")

    with contextlib.redirect_stdout(Full()), pytest.raises(OSError, match="the disk is full"):
        vector[(64,)](np.arange(16), N=16)


@weft.jit
def fails(x: Any) -> None:
    print("here")
    tl.store(x + 100, 1.0)


def test_what_was_printed_before_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Fault):
        fails.on("sm_80")[(1,)](np.zeros(1, np.float32))
    assert capsys.readouterr().out == "pid (0, 0, 0) here\n"


def test_prints_survive_the_disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    artifact = Artifact(b"code", "k", 64, ("x",), (), (Print(" x: ", True, "int32", (4, 2), (1, 2, 4)),))
    assert cache.store("key", artifact)
    assert cache.load("key") == artifact
