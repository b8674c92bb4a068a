"""Arrays that each thread updates a copy of: no update is lost or made twice, wherever threads pause, stop or meet others, and
memory that no program updates is not touched. Expected values are NumPy's ``ufunc.at``."""

# pyright: reportUnnecessaryComparison=false, reportArgumentType=false

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from entries import at_once, enter
from weft import dtypes
from weft.codegen import emit_llvm
from weft.codegen import kernel as abi
from weft.codegen.cpu import copies, exclusive
from weft.codegen.cpu.copies import MOST_BYTES
from weft.frontend import ConstantArgument, PointerArgument, build_module
from weft.options import Options
from weft.runtime import exclusion, executor
from weft.target import host

pytestmark = pytest.mark.jit

PROGRAMS = 96
N = 64
LOCK: Any = np.ctypeslib.as_array((ctypes.c_int64 * 16).from_address(exclusion.ADDRESS))


@pytest.fixture(autouse=True)
def _copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every launch that several threads share has copies, if its kernel may."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(copies, "_WORTH", 0)
    yield
    assert not LOCK.any(), "all have left"


@pytest.fixture(params=[1, 2, 4])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    pool = executor.Pool(request.param)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    return request.param


@weft.jit
def update(out: Any, at: Any, x: Any, lock: Any, seen: Any, N: tl.constexpr, KIND: tl.constexpr) -> None:
    """Updates elements -64 to 63, and says what the lock held: with copies, how many threads share it."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    p = out + (tl.load(at + i) & 127) - 64
    v = tl.load(x + i)
    if KIND == "add":
        tl.atomic_add(p, v)
    elif KIND == "min":
        tl.atomic_min(p, v, sem="relaxed")
    elif KIND == "max":
        tl.atomic_max(p, v, mask=i % 3 != 0)
    elif KIND == "and":
        tl.atomic_and(p, v)
    elif KIND == "or":
        tl.atomic_or(p, v)
    else:
        tl.atomic_xor(p, v, mask=v != 5)
    tl.store(seen + tl.program_id(0), tl.load(lock))


UFUNCS: Any = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.int32, np.uint64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("kind", UFUNCS)
def test_every_kind_gives_what_numpy_gives(kind: str, dtype: Any, threads: int) -> None:
    """Twice: the second launch is expected to be short, and pauses after its first program."""
    r: Any = np.random.default_rng(len(kind))
    limits: Any = np.iinfo(dtype)
    count = PROGRAMS * N
    at = r.integers(0, 1 << 30, count).astype(np.int32)
    x: Any = r.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
    memory: Any = r.integers(limits.min, limits.max, 160, dtype=dtype, endpoint=True)
    expected, seen = memory.copy(), np.zeros(PROGRAMS, np.int64)
    active = np.arange(count) % 3 != 0 if kind == "max" else x != 5 if kind == "xor" else np.full(count, True)
    for _ in range(2):
        update[(PROGRAMS,)](memory[80:], at, x, LOCK, seen, N=N, KIND=kind)
        UFUNCS[kind].at(expected, 16 + (at & 127)[active], x[active])
        assert memory.tolist() == expected.tolist()
    shared = set(seen.tolist()) <= set(range(1, threads + 1))
    assert shared == (threads > 1), "one thread has all atomics alone"


@pytest.mark.parametrize(
    ("dtype", "allowed"), [(np.float32, True), (np.float64, True), (np.float32, False), (np.float16, True)]
)
@pytest.mark.parametrize("measured", [True, False])
def test_floats_are_added_up_in_copies_where_a_launch_allows_any_order(
    dtype: Any, allowed: bool, measured: bool, threads: int
) -> None:
    """Of numbers whose sums are exact. A -0 to which nothing is added, or but -0, keeps its sign; with 0 it is 0."""
    r: Any = np.random.default_rng(8)
    at = r.integers(0, 88, PROGRAMS * N).astype(np.int32)
    x = r.integers(-3, 4, at.size).astype(dtype)
    x[at < 16] = 0.0
    x[at < 8] = -0.0
    memory, seen = np.full(160, -0.0, dtype), np.zeros(PROGRAMS, np.int64)
    expected = memory.copy()
    for _ in range(2):
        if measured:
            add_anywhere[(PROGRAMS,)](memory[16:], at, x, LOCK, seen, N=N, enable_fp_reassociation=allowed)
        else:
            update[(PROGRAMS,)](memory[80:], at, x, LOCK, seen, N=N, KIND="add", enable_fp_reassociation=allowed)
        np.add.at(expected, 16 + at, x)
        assert memory.tobytes() == expected.tobytes()
    shared = set(seen.tolist()) <= set(range(1, threads + 1))
    assert shared == (threads > 1 and allowed and dtype is not np.float16)


@weft.jit
def add_anywhere(out: Any, at: Any, x: Any, lock: Any, seen: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_add(out + tl.load(at + i), tl.load(x + i))
    tl.store(seen + tl.program_id(0), tl.load(lock))


@pytest.mark.parametrize(("kind", "copied"), [("add", True), ("max", False), ("min", False)])
def test_extremes_of_floats_are_not_copied(kind: str, copied: bool) -> None:
    """They depend on the order where zeros have signs."""
    signature: dict[str, Any] = {name: PointerArgument(dtypes.float32) for name in ("out", "x")}
    signature |= {name: PointerArgument(dtypes.int32) for name in ("at", "lock", "seen")}
    module = build_module(update, signature | {"N": ConstantArgument(N), "KIND": ConstantArgument(kind)})
    text = emit_llvm(module, host(), Options(disjoint=True, launch=(("enable_fp_reassociation", True),)))
    assert ("weft_end_copies" in text) == copied


@weft.jit
def count(out: Any, at: Any, N: tl.constexpr) -> None:
    tl.atomic_add(out + (tl.load(at + tl.program_id(0) * N + tl.arange(0, N)) & 127), 1)


@pytest.mark.parametrize("chunk", [1, 5, 12])
def test_pauses(chunk: int) -> None:
    """After each pause all that ran has reached the array."""
    at = np.random.default_rng(3).integers(0, 128, 12 * N).astype(np.int32)
    out, sums = np.zeros(128, np.int32), list[int]()
    handle = count.compile(out, at, N=N)
    enter(handle, (out, at), (12, 1, 1), chunk, pauses=True, paused=lambda: sums.append(int(out.sum())))
    assert sums[:12] == [N * (1 + program) for program in range(12)]
    assert (out == np.bincount(at, minlength=128)).all()


@weft.jit(debug=True)
def fails(out: Any, at: Any, N: tl.constexpr) -> None:
    tl.atomic_add(out + (tl.load(at + tl.arange(0, N)) & 127), 1)
    tl.device_assert(tl.load(at) != 0, "no")


def test_what_a_program_did_before_it_failed_is_kept(threads: int) -> None:
    at, out = np.zeros(N, np.int32), np.zeros(128, np.int32)
    with pytest.raises(weft.DeviceAssertionError):
        fails[(PROGRAMS,)](out, at, N=N)
    assert out[0] in [N * ran for ran in range(1, threads + 1)]
    assert not out[1:].any()


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no mprotect, which makes the page of the test")
def test_memory_that_is_not_updated_is_not_touched(threads: int) -> None:
    """The copy is of 128 elements, the array of 100 at the end of a page, behind which is one that may not be accessed."""
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    memory = np.frombuffer(pages, np.int32)
    end = memory.ctypes.data + mmap.PAGESIZE
    protect: Any = ctypes.CDLL(None).mprotect
    assert protect(ctypes.c_void_p(end), mmap.PAGESIZE, 0) == 0
    try:
        out = memory[mmap.PAGESIZE // 4 - 100 : mmap.PAGESIZE // 4]
        at = (np.arange(PROGRAMS * N) % 100).astype(np.int32)
        count[(PROGRAMS,)](out, at, N=N)
        assert (out == np.bincount(at)).all()
    finally:
        assert protect(ctypes.c_void_p(end), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0


@weft.jit
def count_and_read(out: Any, at: Any, x: Any, lock: Any, seen: Any, N: tl.constexpr) -> None:
    p = tl.program_id(0)
    tl.atomic_add(out + (tl.load(at + p * N + tl.arange(0, N)) & 127), 1)
    tl.store(seen + p, tl.load(x) + ((tl.load(lock) < 4096).to(tl.int64) << 32))


@pytest.mark.parametrize("shift", [0, 100, 128])
def test_arrays_that_overlap(shift: int, threads: int) -> None:
    """A program that reads through another argument what it has updated itself finds its updates, so that there are no copies."""
    memory, seen = np.zeros(256, np.int32), np.zeros(PROGRAMS, np.int64)
    at = np.full(PROGRAMS * N, shift % 128, np.int32)
    for launch in range(2):
        count_and_read[(PROGRAMS,)](memory[:128], at, memory[shift : shift + 8], LOCK, seen, N=N)
        found = seen & 0xFFFFFFFF
        if shift < 128:
            assert (found >= N * (1 + PROGRAMS * launch)).all()
            assert threads != 1 or found.tolist() == [N * (1 + i + PROGRAMS * launch) for i in range(PROGRAMS)]
        else:
            assert not found.any()
            assert (seen >> 32 == (threads > 1)).all()
        assert memory[at[0]] == (launch + 1) * PROGRAMS * N


@weft.jit
def fill_and_count(out: Any, at: Any, data: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(data + i, 7)
    tl.atomic_add(out + (tl.load(at + i) & 127), 1)


@weft.jit
def wait_and_sum(out: Any, data: Any, total: Any, N: tl.constexpr, COUNT: tl.constexpr) -> None:
    while tl.load(out, volatile=True) < COUNT:
        pass
    found = tl.zeros((N,), tl.int32)
    for k in range(COUNT // N):
        found += tl.load(data + k * N + tl.arange(0, N))
    tl.store(total, tl.sum(found))


def test_a_launch_that_waits_for_the_sum_of_another_finds_all_that_came_before(threads: int) -> None:
    size = PROGRAMS * N
    out, at, data, total = (np.zeros(count, np.int32) for count in (128, size, size, 1))
    out[0] = size
    wait_and_sum[(1,)](out, data, total, N=N, COUNT=size)
    for _ in range(10):
        out[:], data[:], total[:] = 0, 0, 0
        waits = threading.Thread(target=wait_and_sum[(1,)], args=(out, data, total), kwargs={"N": N, "COUNT": size})
        waits.start()
        fill_and_count[(PROGRAMS,)](out, at, data, N=N)
        waits.join(20)
        stuck = waits.is_alive()
        out[0] = size  # ends what is stuck
        waits.join()
        assert not stuck
        assert total[0] == 7 * size


@weft.jit
def count_alone(out: Any, at: Any, N: tl.constexpr) -> None:
    """It has no copies, for a barrier orders programs."""
    tl.atomic_add(out + tl.load(at + tl.program_id(0) * N + tl.arange(0, N)), 1)
    tl.debug_barrier()


@weft.jit
def count_one_by_one(out: Any, at: Any, N: tl.constexpr) -> None:
    for i in range(N):
        tl.atomic_add(out + tl.load(at + tl.program_id(0) * N + i), 1)


def test_launches_at_once(threads: int) -> None:
    """Six threads update one array: with copies, alone, and by atomic instructions."""
    out, at = np.zeros(128, np.int64), (np.arange(PROGRAMS * N) * 7 % 128).astype(np.int32)
    kernels: list[Any] = [count, count_alone, count, count_one_by_one, count_alone, count]
    for kernel in set(kernels):
        kernel[(PROGRAMS,)](out, at, N=N)
    out[:] = 0
    launches = 15

    def launch(kernel: Any) -> None:
        for _ in range(launches):
            kernel[(PROGRAMS,)](out, at, N=N)

    at_once([partial(launch, kernel) for kernel in kernels])
    assert out.tolist() == [len(kernels) * launches * PROGRAMS * N // 128] * 128


def test_copies_are_merged_by_atomic_instructions() -> None:
    """Two threads that merge at once lose updates so seldom that no launch would show it."""
    pointer = PointerArgument(dtypes.int32)
    module = build_module(count, {"out": pointer, "at": pointer, "N": ConstantArgument(N)})
    text = emit_llvm(module, host(), Options(disjoint=True))
    merging = text[text.index('define internal void @"weft_end_copies"') :].split("\n}\n")[0]
    assert "atomicrmw add" in merging
    assert "acq_rel" in merging
    assert "store" not in merging


@weft.jit
def count_limited(out: Any, at: Any, lock: Any, seen: Any, N: tl.constexpr) -> None:
    tl.atomic_add(out + (tl.load(at + tl.arange(0, 64)) & (N - 1)), 1)
    tl.store(seen + tl.program_id(0), tl.load(lock))


@weft.jit
def count_all(out: Any, at: Any, lock: Any, seen: Any, N: tl.constexpr) -> None:
    tl.atomic_add(out + tl.load(at + tl.arange(0, 64)), 1)
    tl.store(seen + tl.program_id(0), tl.load(lock))


@pytest.mark.parametrize("kernel", [count_limited, count_all], ids=["limited", "measured"])
@pytest.mark.parametrize(
    ("size", "chunk", "copied"),
    [(1 << 12, 275, True), (1 << 12, 225, False), (MOST_BYTES // 4, 4500, True), (MOST_BYTES // 4 + 16, 5000, False)],
)
def test_which_launches_are_worth_copies(
    kernel: Any, size: int, chunk: int, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 elements are accessed twice, two numbers once, and what is computed counts a sixteenth: 128 to 145. A thread's 8 chunks
    have to access 64 elements for each one of the copy: 8 * 128 * 256 = 64 * 2^12."""
    monkeypatch.setattr(copies, "_WORTH", 64)
    programs = chunk + 1
    out, at, seen = np.zeros(size, np.int32), np.arange(64, dtype=np.int32), np.zeros(programs, np.int64)
    arrays = out, at, LOCK, seen
    enter(kernel.compile(*arrays, N=1 << (size - 1).bit_length()), arrays, (programs, 1, 1), chunk)
    assert out[:64].tolist() == [programs] * 64
    assert set(seen.tolist()) == {1} if copied else seen[0] > exclusive.MOST_SHARED


@weft.jit
def count_anywhere(out: Any, at: Any, lock: Any, seen: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_add(out + tl.load(at + i), 1, mask=i % 5 != 0)
    tl.atomic_add(out + tl.load(at + tl.program_id(0)), 1)
    tl.store(seen + tl.program_id(0), tl.load(lock))


@weft.jit
def count_two(out: Any, more: Any, lock: Any, seen: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N) * n
    tl.atomic_add(out + i, 1)
    tl.atomic_add(more + i, 1)
    tl.store(seen + tl.program_id(0), tl.load(lock))


@pytest.mark.parametrize("size", [MOST_BYTES // 8, MOST_BYTES // 8 + 16])
def test_all_copies_together_are_short(size: int, threads: int) -> None:
    out, more, seen = np.zeros(size, np.int32), np.zeros(size, np.int32), np.zeros(PROGRAMS, np.int64)
    count_two[(PROGRAMS,)](out, more, LOCK, seen, (size - 1) // 31, N=32)
    assert out.sum() == more.sum() == 32 * PROGRAMS
    shared = set(seen.tolist()) <= set(range(1, threads + 1))
    assert shared == (threads > 1 and 8 * size <= MOST_BYTES)


@pytest.mark.parametrize(("step", "length"), [(1, 128), (-1, 128), (1, 0)])
@pytest.mark.parametrize("dtype", [np.int32, np.uint8], ids=lambda dtype: dtype.__name__)
def test_what_is_beyond_an_array_is_updated_in_memory(step: int, length: int, dtype: Any, threads: int) -> None:
    """Elements on both sides of a view of whole cache lines, in the same registers as those in it. A view that goes backwards
    points to its last element; kernels know nothing of steps."""
    at = step * np.random.default_rng(5).integers(-30, 160, PROGRAMS * N).astype(np.int32)
    memory, seen = np.zeros(450, dtype), np.zeros(PROGRAMS, np.int64)
    first = 128 - memory.ctypes.data % 64 // memory.itemsize
    expected, start = memory.copy(), first if step == 1 else first + 127
    for _ in range(3):
        count_anywhere[(PROGRAMS,)](memory[first:][:length][::step], at, LOCK, seen, N=N)
        np.add.at(expected, start + at[np.arange(at.size) % 5 != 0], 1)
        np.add.at(expected, start + at[:PROGRAMS], 1)
        assert memory.tolist() == expected.tolist()
    shared = set(seen.tolist()) <= set(range(1, threads + 1))
    assert shared == (threads > 1 and length > 0)


class OnlyAnAddress:
    """An array that does not say how long it is."""

    def __init__(self, array: Any):
        self.dtype = tl.int32
        self._array = array

    def data_ptr(self) -> int:
        return self._array.ctypes.data


@weft.jit
def count_computed(out: Any, n: Any, N: tl.constexpr) -> None:
    tl.atomic_add(out + (tl.program_id(0) * N + tl.arange(0, N)) % n, 1)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("bound", [True, False], ids=["captured", "launched"])
def test_arrays_of_unknown_length(known: bool, bound: bool, threads: int) -> None:
    """Launches that do not say how long an array is have no copies of it."""
    out = np.zeros(96, np.int32)
    given = (out if known else OnlyAnAddress(out), out.size)
    launch = count_computed[(PROGRAMS,)].bind(*given, N=N) if bound else None
    for i in range(3):
        if launch is None:
            count_computed[(PROGRAMS,)](*given, N=N)
        else:
            launch()
        assert out.tolist() == [(1 + i) * PROGRAMS * N // 96] * 96


@weft.jit
def update_three(out: Any, high: Any, low: Any, at: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    to = tl.load(at + i)
    tl.atomic_xor(out + to, i)
    tl.atomic_max(high + to, i)
    tl.atomic_min(low + i % 4, i)


def test_several_arrays(threads: int) -> None:
    at = np.random.default_rng(6).integers(0, 50, PROGRAMS * N).astype(np.int32)
    out, high, low = np.zeros(50, np.int32), np.full(51, -1, np.int64), np.full(4, 9999, np.uint16)
    count = np.arange(at.size)
    for _ in range(2):
        out[:], high[:], low[:] = 0, -1, 9999
        update_three[(PROGRAMS,)](out, high, low, at, N=N)
        expected = np.zeros(50, np.int32), np.full(51, -1, np.int64)
        np.bitwise_xor.at(expected[0], at, count.astype(np.int32))
        np.maximum.at(expected[1], at, count)
        assert out.tolist() == expected[0].tolist()
        assert high.tolist() == expected[1].tolist()
        assert low.tolist() == [0, 1, 2, 3]


@weft.jit
def count_second(n: Any, at: Any, out: Any, N: tl.constexpr) -> None:
    tl.atomic_add(out + tl.load(at + tl.arange(0, N)), n)


def test_whose_bounds_launches_state() -> None:
    """Those of the second array, which is the third argument."""
    at = np.zeros(N, np.int32)
    executable = count_second.compile(5, at, np.zeros(N, np.int32), N=N).executable
    assert executable.artifact.measured == (2,)
    assert executable.measures([(16, 32), (48, 80)]) == [48, 80]
    assert executable.measures([(16, 32), None]) == [0, 0]


def test_the_runtime_and_code_generation_agree() -> None:
    assert abi.CHUNKS_PER_THREAD == executor.CHUNKS_PER_THREAD


def test_the_lock_says_who_has_it() -> None:
    """What the tests take for granted."""
    assert exclusive.MOST_SHARED < exclusion.ADDRESS
