"""Captured launches: what a repetition reads anew, what it keeps, and what it refuses."""

from __future__ import annotations

import gc
import inspect
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.codegen import compile as compiler
from weft.runtime import captured, direct, executor

pytestmark = pytest.mark.jit

assert compiler is not None  # native code is compiled where the compiler has been loaded

STEP = tl.constexpr(1)


@pytest.fixture(autouse=True, params=["native", "python"])
def through(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What repeats launches: native code, or Python, which takes those over that native code does not."""
    if request.param == "python":

        def launched(_: Any, launch: Callable[[], None]) -> Callable[[], None]:
            return launch

        monkeypatch.setattr(captured, "_direct", launched)
    return request.param


@weft.jit
def add(x: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(x + i, tl.load(x + i, mask=i < n) + STEP, mask=i < n)


@weft.jit
def scaled(x: Any, out: Any, factor: Any, n: Any) -> None:
    for i in range(n):
        tl.store(out + i, tl.load(x + i) * factor)


@pytest.mark.parametrize("grid", [1, 2, 40])
def test_a_repetition_reads_what_the_arrays_hold_then(grid: int) -> None:
    x = np.zeros(8 * grid, np.float32)
    again = add[(grid,)].bind(x, x.size, 8)
    assert not x.any()
    for _ in range(3):
        again()
    assert x.tolist() == [3] * x.size
    x[:] = np.arange(x.size)
    again()
    assert x.tolist() == [i + 1 for i in range(x.size)]


def test_numbers_and_the_grid_are_those_of_the_time() -> None:
    x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
    asked: list[int] = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        asked.append(meta["n"])
        return (1,)

    again = scaled[grid].bind(x, out, factor=-1e300, n=4)
    for _ in range(3):
        out[:] = 0
        again()
        assert out.tolist()[1:] == [-np.inf] * 3
    assert asked == [4]


def test_an_empty_grid() -> None:
    x = np.zeros(8, np.float32)
    again = add[(0,)].bind(x, 8, 8)
    again()
    assert not x.any()


@pytest.mark.usefixtures("apart")
def test_arrays_stay_alive() -> None:
    x = np.zeros(8, np.float32)
    alive = weakref.ref(x)
    again = add[(1,)].bind(x, 8, 8)
    del x
    gc.collect()
    found = alive()
    assert found is not None
    again()
    assert found.tolist() == [1] * 8
    del again, found
    gc.collect()
    assert alive() is None


def refused(again: Callable[[], None]) -> str:
    """What a repetition says."""
    with pytest.raises(RuntimeError) as raised:
        again()
    return str(raised.value)


@pytest.mark.parametrize("grid", [0, 1, 9])
def test_memory_that_moves(grid: int) -> None:
    """It is refused while it is elsewhere, and not where it is back."""
    x = np.zeros(8 * max(grid, 1), np.float32)
    again = add[(grid,)].bind(x, x.size, 8)
    again()
    before = x.copy()
    address = x.ctypes.data
    x.resize(2**20, refcheck=False)
    assert x.ctypes.data != address
    for _ in range(2):
        assert refused(again) == (
            "kernel 'add': parameter 'x': the array's memory has moved since the launch was bound; bind it again"
        )
    assert (x[: before.size] == before).all()
    add[(grid,)].bind(x, x.size, 8)()
    assert (x[: before.size] == before + (grid > 0)).all()


class Tensor:
    """Memory as PyTorch says it."""

    dtype = "float32"

    def __init__(self) -> None:
        self.array = np.zeros(8, np.float32)

    def data_ptr(self) -> int:
        return self.array.ctypes.data


def test_memory_of_tensors_that_moves() -> None:
    tensor, x = Tensor(), np.arange(8, dtype=np.float32)
    again = scaled[(1,)].bind(x, tensor, 2.0, 8)
    again()
    assert tensor.array.tolist() == [2 * i for i in range(8)]
    old, tensor.array = tensor.array, np.zeros(8, np.float32)
    assert refused(again) == (
        "kernel 'scaled': parameter 'out': the array's memory has moved since the launch was bound; bind it again"
    )
    tensor.array = old
    x[:] = 1
    again()
    assert old.tolist() == [2] * 8


@pytest.mark.parametrize("grid", [1, 9])
def test_a_changed_global(grid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(8 * grid, np.float32)
    again = add[(grid,)].bind(x, x.size, 8)
    monkeypatch.setitem(globals(), "STEP", tl.constexpr(10))
    assert refused(again) == "kernel 'add': a global or a helper has changed since the launch was bound; bind it again"
    other = add[(grid,)].bind(x, x.size, 8)
    other()
    assert refused(again).startswith("kernel 'add': a global")
    monkeypatch.undo()
    again()
    assert refused(other).startswith("kernel 'add': a global")
    assert x.tolist() == [11] * x.size


@pytest.mark.parametrize("grid", [1, 9])
def test_launches_elsewhere(grid: int) -> None:
    x = np.zeros(8 * grid, np.float32)
    message = "kernel 'add': launches are run elsewhere (weft.emulate) since the launch was bound; bind it again"
    again = add[(grid,)].bind(x, x.size, 8)
    with weft.emulate("sm_80"):
        assert refused(again) == message
        emulated = add[(grid,)].bind(x, x.size, 8)
        emulated()
        emulated()
    assert refused(emulated) == message
    again()
    assert x.tolist() == [3] * x.size


def test_what_a_launch_refuses_bind_refuses() -> None:
    x = np.zeros(8, np.float32)
    frozen = x.view()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="parameter 'x': found a read-only array, but the kernel writes through it"):
        add[(1,)].bind(frozen, 8, 8)
    with pytest.raises(TypeError, match=r"add\(\) missing 2 required arguments: 'n' and 'B'"):
        add[(1,)].bind(x)
    with pytest.raises(TypeError, match="kernel 'add': expected a grid of ints"):
        add["one"]  # type: ignore[index] - what is tested is that it is refused


def test_arrays_that_are_read_only() -> None:
    x = np.arange(8, dtype=np.float32)
    x.flags.writeable = False
    out = np.zeros(8, np.float32)
    again = scaled[(1,)].bind(x, out, 3.0, 8)
    again()
    assert out.tolist() == [3 * i for i in range(8)]


def test_checked_kernels_and_assertions() -> None:
    """Failures come each time, and leave nothing behind."""

    @weft.jit(checked=True)
    def checked(x: Any, at: Any) -> None:
        tl.store(x + tl.load(at), 1.0)

    @weft.jit(debug=True)
    def asserting(x: Any, at: Any) -> None:
        tl.device_assert(tl.load(at) < 4, "too far")
        tl.store(x + tl.load(at), 1.0)

    for kernel, error in ((checked, weft.OutOfBoundsError), (asserting, weft.DeviceAssertionError)):
        x, at = np.zeros(4, np.float32), np.zeros(1, np.int32)
        again = kernel[(1,)].bind(x, at)
        for i in (0, 4, 2, 5, 1):
            at[0] = i
            if i < 4:
                again()
            else:
                with pytest.raises(error):
                    again()
        assert x.tolist() == [1, 1, 1, 0]


def test_a_kernel_that_prints(capsys: pytest.CaptureFixture[str]) -> None:
    @weft.jit
    def printing(x: Any) -> None:
        tl.device_print("x", tl.load(x))

    x = np.zeros(1, np.int32)
    again = printing[(1,)].bind(x)
    for i in (5, 6):
        x[0] = i
        again()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines] == ["5", "6"]


@weft.jit
def counting(x: Any) -> None:
    tl.atomic_add(x, 1)


@pytest.mark.parametrize("grid", [1, 5])
def test_several_threads_repeat_one_launch(grid: int) -> None:
    x = np.zeros(1, np.int32)
    again = counting[(grid,)].bind(x)

    def repeat() -> None:
        for _ in range(500):
            again()

    threads = [threading.Thread(target=repeat) for _ in range(3)]
    for thread in threads:
        thread.start()
    repeat()
    for thread in threads:
        thread.join()
    assert x[0] == 4 * 500 * grid


def test_a_launch_that_another_thread_bound() -> None:
    x, made = np.zeros(1, np.int32), list[Callable[[], None]]()
    thread = threading.Thread(target=lambda: made.append(counting[(1,)].bind(x)))
    thread.start()
    thread.join()
    made[0]()
    made[0]()
    assert x[0] == 2


def test_other_threads_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watch asks the main thread's launch to return, for only there handlers run."""
    again = counting[(1,)].bind(np.zeros(1, np.int32))
    watch, woken = executor.pool().watch, list[str]()
    monkeypatch.setattr(watch, "wake", lambda: woken.append(threading.current_thread().name))
    monkeypatch.setattr(watch, "asleep", True)
    thread = threading.Thread(target=again)
    thread.start()
    thread.join()
    again()
    assert woken == ["MainThread"]


def test_a_repetition_within_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a signal handler may run it, between packing and native code: both run once."""
    x = np.zeros(1, np.int32)
    again = counting[(1,)].bind(x)
    again()
    watch = executor.pool().watch
    inside: list[int] = []

    def wake() -> None:
        watch.asleep = False
        if not inside:
            inside.append(1)
            again()

    monkeypatch.setattr(watch, "wake", wake)
    watch.asleep = True
    again()
    assert (inside, int(x[0])) == ([1], 3)
    again()
    assert x[0] == 4


@pytest.fixture
def raising() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, also in a process that a shell started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("raising")
def test_what_a_handler_raises_leaves_a_launch_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(1, np.int32)
    again = counting[(1,)].bind(x)
    watch = executor.pool().watch

    def wake() -> None:
        watch.asleep = False
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(watch, "wake", wake)
    for expected in (1, 2):
        watch.asleep = True
        with pytest.raises(KeyboardInterrupt):
            again()
        again()
        assert x[0] == expected


def test_a_word_that_stops_is_forgotten(through: str) -> None:
    """The watch may be late and stop or pause a launch that has ended."""
    x = np.zeros(1, np.int32)
    again = counting[(1,)].bind(x)
    again()
    if through == "native":
        shared = direct.process()
        assert inspect.isbuiltin(again)
        assert shared is not None
        workspace = shared.workspace
    else:
        closure = dict(zip(again.__code__.co_freevars, again.__closure__ or (), strict=True))
        workspace = closure["workspace"].cell_contents
    for harm in (workspace.stop, workspace.pause):
        harm()
        again()
    assert x[0] == 3
