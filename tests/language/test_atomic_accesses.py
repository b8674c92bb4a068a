"""tl.atomic_load, tl.atomic_store and tl.atomic_poll: what they read and write, the order they keep, and what they refuse."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import weft
import weft.language as tl
from frontend.conftest import execute
from machines import on
from sampling import grid, some
from weft.frontend import CompilationError

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_80", "sm_90")
DTYPES: Final = (np.int8, np.bool_, np.uint16, np.float16, np.int32, np.float32, np.int64, np.float64)


@weft.jit
def copied(x: Any, y: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    value = tl.atomic_load(x + i, i < n)
    tl.atomic_store(y + i, value, i < n)
    tl.atomic_store(y + B, tl.atomic_load(x + B, sem="relaxed"), sem="relaxed")


@pytest.mark.parametrize(("target", "dtype"), grid(3, TARGETS, DTYPES))
def test_elements_are_loaded_and_stored(target: str | None, dtype: type[Any]) -> None:
    x = np.arange(1, 34).astype(dtype)
    y = np.zeros_like(x)
    on(copied, target)[(1,)](x, y, 20, B=32)
    np.testing.assert_array_equal(y, np.where((np.arange(33) < 20) | (np.arange(33) == 32), x, np.zeros_like(x)))


@weft.jit
def relay(data: Any, flags: Any, out: Any, N: tl.constexpr, TILE: tl.constexpr) -> None:
    """Each program waits for the flags of the one before, adds 1 to what that has written, and raises its own."""
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    if TILE:
        seen = tl.atomic_poll(flags + pid * N + i, 7)
        tl.store(out + pid * N + i, seen)
    else:
        seen = tl.atomic_poll(flags + pid * N, 7)
        tl.store(out + pid * N, seen)
    value = tl.load(data + pid * N + i)
    tl.store(data + (pid + 1) * N + i, value + 1)
    tl.debug_barrier()
    tl.atomic_store(flags + (pid + 1) * N + i, 7)


@pytest.mark.parametrize(("target", "tile"), grid(2, TARGETS, (False, True)))
def test_programs_wait_until_flags_have_a_value(target: str | None, tile: bool) -> None:
    programs, n = 6, 16
    data, flags = np.zeros((programs + 1, n), np.int32), np.zeros((programs + 1, n), np.int32)
    out = np.zeros((programs, n), np.bool_)
    flags[0] = 7
    on(relay, target)[(programs,)](data, flags, out, N=n, TILE=tile)
    np.testing.assert_array_equal(data, np.repeat(np.arange(programs + 1), n).reshape(-1, n))
    np.testing.assert_array_equal(out, np.broadcast_to(np.arange(n) < (n if tile else 1), out.shape))


@weft.jit
def once(flags: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.atomic_poll(flags + i, 3, timeout_ns=0))


@pytest.mark.parametrize("target", TARGETS)
def test_without_time_each_flag_is_looked_at_once(target: str | None) -> None:
    flags, out = np.array([3, 2, 3, 0], np.int64), np.zeros(4, np.bool_)
    on(once, target)[(1,)](flags, out, N=4)
    np.testing.assert_array_equal(out, flags == 3)


@weft.jit
def in_time(flags: Any, out: Any, timeout_ns: Any, N: tl.constexpr, SHORT: tl.constexpr) -> None:
    """Program 0 waits for a flag, or for several, that program 1 sets; ``out`` says which it has seen, and after what time."""
    i: Any = tl.arange(0, N)
    program: Any = tl.program_id(0)
    if program == 0:
        start = tl.extra.cuda.globaltimer()
        if SHORT:
            tl.store(out, tl.atomic_poll(flags, 3, timeout_ns=SHORT))
        elif N == 1:
            tl.store(out, tl.atomic_poll(flags, 3, timeout_ns=timeout_ns))
        else:
            tl.store(out + i, tl.atomic_poll(flags + i, 3, timeout_ns=timeout_ns))
        tl.store(out + N, tl.extra.cuda.globaltimer() - start)
    else:
        tl.atomic_store(flags + i, 3)


LONG = 10**13


@pytest.mark.parametrize("size", [1, 2, 64])
@pytest.mark.parametrize("target", some(TARGETS, "sm_80"))
def test_time_limits(target: str | None, size: int) -> None:
    """A flag that is set ends the wait; a time that is over does, too. 0 at run time is one look."""
    flags, out = np.zeros(size, np.int32), np.full(size + 1, -1, np.int64)
    kernel = on(in_time, target)
    kernel[(1,)](flags, out, 0, N=size, SHORT=None)
    assert out[:size].tolist() == [0] * size
    kernel[(1,)](flags, out, 3000, N=size, SHORT=None)
    assert out[:size].tolist() == [0] * size
    assert out[size] >= 3000
    if size == 1:
        kernel[(1,)](flags, out, 0, N=size, SHORT=2000)
        assert (out[0], out[1] >= 2000) == (0, True)
    if size < 3:
        kernel[(2,)](flags, out, LONG, N=size, SHORT=None)
        assert out[:size].tolist() == [1] * size
        assert out[size] < LONG
    else:
        flags[::2] = 3
        kernel[(1,)](flags, out, 3000, N=size, SHORT=None)
        assert out[:size].tolist() == [1, 0] * (size // 2)


def test_time_limits_of_the_reference() -> None:
    flags, out = np.array([3, 0], np.int32), np.full(3, -1, np.int64)
    execute(in_time.fn, flags=flags, out=out, timeout_ns=np.int32(3000), N=2, SHORT=None)
    assert out[:2].tolist() == [1, 0]
    assert out[2] >= 3000


@weft.jit
def polled(x: Any, CASE: tl.constexpr) -> None:
    if CASE == "shape":
        tl.atomic_poll(x, tl.arange(0, 4))
    else:
        tl.atomic_poll(x, 1)


@pytest.mark.parametrize(
    ("dtype", "case", "message"),
    [
        (np.int32, "shape", "tl.atomic_poll: 'expected_value' does not broadcast to the shape of the pointers"),
        (np.int8, "", "tl.atomic_poll: takes pointers to integers of 16, 32 or 64 bits"),
        (np.float32, "", "tl.atomic_poll: takes pointers to integers of 16, 32 or 64 bits"),
    ],
)
def test_a_poll_refuses(dtype: type[Any], case: str, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        polled[(1,)](np.zeros(4, dtype), CASE=case)
    assert caught.value.message == message


@weft.jit
def ordered(x: Any, LOAD: tl.constexpr, STORE: tl.constexpr) -> None:
    tl.atomic_store(x, tl.atomic_load(x, sem=LOAD), sem=STORE)


@pytest.mark.parametrize(
    ("load", "store", "message"),
    [
        ("release", None, "'sem' is one of 'relaxed', 'acquire', found 'release'"),
        (None, "acq_rel", "'sem' is one of 'relaxed', 'release', found 'acq_rel'"),
    ],
)
def test_orders_that_an_access_does_not_have(load: str | None, store: str | None, message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        ordered[(1,)](np.zeros(1, np.int32), LOAD=load, STORE=store)
    assert caught.value.message == message
