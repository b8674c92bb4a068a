"""Launching, with kernels assembled from LLVM text: what reaches native code, what is compiled when, and what is
refused."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.dtypes import float32, int32, int64
from weft.frontend.signature import ConstantArgument, PointerArgument, ScalarArgument
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.artifacts import Artifact

COPY_SLOTS = """
  %out = load ptr, ptr %args
  br label %loop
loop:
  %i = phi i64 [0, %0], [%j, %loop]
  %from = getelementptr i64, ptr %args, i64 %i
  %value = load i64, ptr %from
  %to = getelementptr i64, ptr %out, i64 %i
  store i64 %value, ptr %to
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, COUNT
  br i1 %more, label %loop, label %end
end:
  ret i32 0
"""
"""Copies the first COUNT argument slots to where the first one points."""

ADD_ID = """
  %out = load ptr, ptr %args
  %y16 = mul i32 %y, 16
  %z256 = mul i32 %z, 256
  %xy = add i32 %x, %y16
  %xyz = add i32 %xy, %z256
  %at = getelementptr i32, ptr %out, i32 %xyz
  %old = atomicrmw add ptr %at, i32 1 monotonic
  ret i32 0
"""
"""Adds 1 to element x + 16 y + 256 z of an int32 array."""


@weft.jit
def slots(out: Any, n: Any, s: Any, flag: Any, big: Any, BLOCK: tl.constexpr = 8) -> None: ...  # pyright: ignore[reportArgumentType]


@weft.jit
def count(out: Any) -> None: ...


@pytest.fixture(autouse=True)
def _fresh(fake_compiler: Any) -> None:
    """Kernels of the module forget what earlier tests compiled."""
    fake_compiler.programs |= {"slots": COPY_SLOTS.replace("COUNT", "5"), "count": ADD_ID}
    for kernel in (slots, count):
        kernel._executables.clear()  # pyright: ignore[reportPrivateUsage]


def test_slots_reach_the_kernel() -> None:
    out = np.zeros(5, np.uint64)
    slots[(1,)](out, -2, 1.5, True, 2**64 - 1)
    assert out.tolist() == [out.ctypes.data, 2**64 - 2, 0x3FC00000, 1, 2**64 - 1]


def test_floats_beyond_float32_reach_it_as_infinities() -> None:
    out = np.zeros(5, np.uint64)
    slots[(1,)](out, 5, -1e300, False, 7)
    assert out.tolist()[1:] == [5, 0xFF800000, 0, 7]


@pytest.mark.parametrize("grid", [(1,), 5, (3, 2), [3, 2, 4], (16, 16, 4)])
def test_each_program_of_the_grid_runs_once(grid: Any) -> None:
    out = np.zeros((4, 16, 16), np.int32)
    count[grid](out)
    nx, ny, nz = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
    expected = np.zeros_like(out)
    expected[:nz, :ny, :nx] = 1
    assert np.array_equal(out, expected)


def test_an_empty_grid_runs_nothing() -> None:
    out = np.zeros((4, 16, 16), np.int32)
    for grid in (0, (4, 0), (1, 1, 0)):
        count[grid](out)
    assert not out.any()


def test_a_grid_computed_from_all_arguments() -> None:
    out = np.zeros((4, 16, 16), np.int32)
    asked: list[dict[str, Any]] = []

    def grid(meta: dict[str, Any]) -> tuple[int, ...]:
        asked.append(meta)
        return (weft.cdiv(meta["n"], meta["BLOCK"]),)

    @weft.jit
    def ranged(out: Any, n: Any, BLOCK: tl.constexpr, unused: Any = None) -> None: ...

    compiler_programs(ranged.name, ADD_ID)
    ranged[grid](out, 10, BLOCK=4, num_warps=8)
    assert asked == [{"out": out, "n": 10, "BLOCK": 4, "unused": None}]
    assert out.sum() == 3


def compiler_programs(name: str, program: str) -> None:
    """Gives the fake compiler that is in place a program."""
    compiler.build.__self__.programs[name] = program  # pyright: ignore[reportFunctionMemberAccess]


def test_signature_and_options_reach_the_compiler(fake_compiler: Any) -> None:
    out, other = np.zeros(64, np.uint64), np.zeros(64, np.float32)
    slots[(1,)](out, 32, 0.5, 1, other[1:], BLOCK=16)
    ((name, signature, options),) = fake_compiler.calls
    assert name == "slots"
    aligned = out.ctypes.data % 16 == 0
    assert signature == {
        "out": PointerArgument(weft.language.uint64, aligned),
        "n": ScalarArgument(int32, True),
        "s": ScalarArgument(float32),
        "flag": ConstantArgument(1),
        "big": PointerArgument(float32, other[1:].ctypes.data % 16 == 0),
        "BLOCK": ConstantArgument(16),
    }
    assert options == Options(checked=False, disjoint=True)


def test_one_compilation_for_each_key(fake_compiler: Any) -> None:
    out = np.zeros(64, np.uint64)
    for n in (2, 3, 5, 7):
        slots[(1,)](out, n, 0.5, True, 9)
    assert len(fake_compiler.calls) == 1
    slots[(1,)](out, 16, 0.5, True, 9)  # divisible
    slots[(1,)](out, 2**40 + 1, 0.5, True, 9)  # int64
    slots[(1,)](out, 2, 0.5, True, 9, BLOCK=4)  # another constant
    slots[(1,)](out, 2, 0.5, True, out)  # a pointer, to what another points to
    assert len(fake_compiler.calls) == 5
    assert fake_compiler.calls[2][1]["n"] == ScalarArgument(int64)
    assert [call[2].disjoint for call in fake_compiler.calls] == [True, True, True, True, False]
    slots[(1,)](out, 2, 0.5, True, np.zeros(64, np.uint64))
    assert fake_compiler.calls[-1][2].disjoint


def test_launches_with_equal_values_of_different_types_are_different(fake_compiler: Any) -> None:
    out = np.zeros(64, np.uint64)
    for block in (2, 2.0, 1, True, 0.0, -0.0):
        slots[(1,)](out, 2, 0.5, True, 9, BLOCK=block)
    found = [call[1]["BLOCK"].value for call in fake_compiler.calls]
    assert [(type(value), str(value)) for value in found] == [
        (int, "2"),
        (float, "2.0"),
        (int, "1"),
        (bool, "True"),
        (float, "0.0"),
        (float, "-0.0"),
    ]


def test_the_disk_saves_the_compiler(fake_compiler: Any) -> None:
    out = np.zeros((4, 16, 16), np.int32)
    count[(3,)](out)
    count._executables.clear()  # pyright: ignore[reportPrivateUsage]
    count[(3,)](out)
    assert len(fake_compiler.calls) == 1
    assert out.sum() == 6


def test_a_damaged_entry_is_compiled_again(fake_compiler: Any, tmp_path: Any) -> None:
    out = np.zeros((4, 16, 16), np.int32)
    count[(3,)](out)
    (path,) = (tmp_path / "cache").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    count._executables.clear()  # pyright: ignore[reportPrivateUsage]
    count[(3,)](out)
    assert len(fake_compiler.calls) == 2
    assert out.sum() == 6
    assert path.stat().st_size == len(whole)


def test_checked_kernels_are_not_kept_on_disk(fake_compiler: Any, tmp_path: Any) -> None:
    @weft.jit(checked=True)
    def checked(out: Any) -> None: ...

    fake_compiler.programs["checked"] = ADD_ID
    checked[(1,)](np.zeros(256, np.int32))
    assert not (tmp_path / "cache").exists()
    assert fake_compiler.calls[0][2].checked


def test_what_a_disk_key_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    signature = {"out": PointerArgument(float32, True), "B": ConstantArgument(4)}
    options = Options(checked=False, disjoint=True)
    base = compiler.disk_key(count, signature, options)
    others = [
        compiler.disk_key(slots, signature, options),
        compiler.disk_key(count, {**signature, "out": PointerArgument(float32, False)}, options),
        compiler.disk_key(count, {**signature, "out": PointerArgument(int32, True)}, options),
        compiler.disk_key(count, {**signature, "B": ConstantArgument(4.0)}, options),
        compiler.disk_key(count, {**signature, "B": ConstantArgument("4")}, options),
        compiler.disk_key(count, {**signature, "B": ConstantArgument((4,))}, options),
        compiler.disk_key(count, {**signature, "B": ConstantArgument(slots)}, options),
        compiler.disk_key(count, {**signature, "B": ConstantArgument(tl.int32)}, options),
        compiler.disk_key(count, signature, Options(checked=False, disjoint=False)),
    ]
    with monkeypatch.context() as patch:
        patch.setattr(weft, "__version__", "0.0.0")
        others.append(compiler.disk_key(count, signature, options))
    assert base == compiler.disk_key(count, dict(signature), options)
    assert None not in others
    assert len({base, *others}) == len(others) + 1


def test_constants_without_a_lasting_spelling_are_not_kept() -> None:
    options = Options(checked=False, disjoint=True)
    assert compiler.disk_key(count, {"B": ConstantArgument(object())}, options) is None
    assert compiler.disk_key(count, {"B": ConstantArgument((1, object()))}, options) is None


def test_read_only_arrays_as_inputs_and_as_outputs(fake_compiler: Any) -> None:
    fake_compiler.written = ("out",)
    out, source = np.zeros(64, np.uint64), np.zeros(64, np.uint64)
    source.flags.writeable = False
    slots[(1,)](out, 2, 0.5, True, source)
    with pytest.raises(ValueError, match="read-only") as raised:
        slots[(1,)](source, 2, 0.5, True, out)
    assert str(raised.value) == (
        "kernel 'slots': parameter 'out': found a read-only array, but the kernel writes through it; "
        "pass a writable one"
    )
    assert not source.any()


def test_scratch_is_as_large_as_asked(fake_compiler: Any) -> None:
    fake_compiler.scratch = 4096
    fake_compiler.programs["count"] = """
  %out = load ptr, ptr %args
  call void @llvm.memset.p0.i64(ptr %scratch, i8 1, i64 4096, i1 false)
  %address = ptrtoint ptr %scratch to i64
  %low = and i64 %address, 63
  store i64 %low, ptr %out
  ret i32 0
"""
    out = np.full(1, 99, np.int64)
    count[(1,)](out)
    assert out[0] == 0


def test_two_threads_first_launching_one_kernel() -> None:
    out = np.zeros((4, 16, 16), np.int32)
    barrier = threading.Barrier(4)

    def launch() -> None:
        barrier.wait()
        for _ in range(10):
            count[(16, 16)](out)

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (out[0] == 40).all()


def test_a_kernel_launched_while_another_compiles(fake_compiler: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile-time function of the user may launch kernels, the one being compiled included."""
    out = np.zeros((4, 16, 16), np.int32)
    original = fake_compiler.build

    def build(kernel: Any, signature: Any, options: Any, stages: Any = None) -> Artifact:
        if signature["out"] == PointerArgument(int64, True):
            count[(1,)](out)
        return original(kernel, signature, options)

    monkeypatch.setattr(compiler, "build", build)
    wide = np.zeros(64 + 2, np.int64)
    wide = wide[(-wide.ctypes.data // 8) % 2 :]
    count[(1,)](wide)
    assert out.sum() == 1
    assert wide.sum() == 1


def test_keywords_of_triton_are_accepted() -> None:
    @weft.jit(
        version=1,
        repr=str,
        launch_metadata=dict,
        debug=False,
        noinline=True,
        do_not_specialize=["n"],
        do_not_specialize_on_alignment=["out"],
    )
    def keyworded(out: Any, n: Any) -> None: ...

    compiler_programs("keyworded", ADD_ID)
    out = np.zeros(4, np.int32)
    keyworded[(1,)](out, 1, num_warps=4, num_stages=3, num_ctas=1, maxnreg=None, enable_fp_fusion=False)
    signature = compiler.build.__self__.calls[0][1]  # pyright: ignore[reportFunctionMemberAccess]
    assert signature == {"out": PointerArgument(int32, False), "n": ScalarArgument(int32, False)}


def test_launch_options_reach_the_compiler_and_the_key() -> None:
    @weft.jit
    def tuned(out: Any) -> None: ...

    compiler_programs("tuned", ADD_ID)
    out = np.zeros(4, np.int32)
    for keywords in ({}, {"num_warps": 8}, {"num_warps": 4}, {"enable_fp_fusion": False}, {"num_warps": 8}):
        tuned[(1,)](out, **keywords)
    calls = compiler.build.__self__.calls  # pyright: ignore[reportFunctionMemberAccess]
    assert [options.launch for _, _, options in calls] == [(), (("num_warps", 8),), (("enable_fp_fusion", False),)]
    keys = {compiler.disk_key(tuned, {}, options) for _, _, options in calls}
    assert len(keys) == 3


def test_checked_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel() -> None: ...

    for text, expected in (("1", True), ("true", True), ("0", False), ("", False)):
        monkeypatch.setenv("WEFT_CHECKED", text)
        assert weft.jit(kernel).checked is expected
        assert weft.jit(checked=False)(kernel).checked is False
        assert weft.jit(checked=True)(kernel).checked is True


def test_kernels_are_pickled_and_copied_by_name() -> None:
    assert pickle.loads(pickle.dumps(count)) is count
    assert copy.deepcopy(count) is count


def test_compile_and_warmup_run_nothing(fake_compiler: Any) -> None:
    out = np.zeros((4, 16, 16), np.int32)
    handle = count.compile(out)
    assert handle.signature == {"out": PointerArgument(int32, out.ctypes.data % 16 == 0)}
    assert count.warmup(out, grid=(4,)).executable is handle.executable
    assert len(fake_compiler.calls) == 1
    assert not out.any()


def test_errors_of_the_compiler_are_raised_and_compiling_is_tried_again(fake_compiler: Any) -> None:
    fake_compiler.programs["count"] = "ret i32 undefined_name\n"
    out = np.zeros((4, 16, 16), np.int32)
    with pytest.raises(RuntimeError, match="parsing error"):
        count[(1,)](out)
    fake_compiler.programs["count"] = ADD_ID
    count[(1,)](out)
    assert out.sum() == 1
