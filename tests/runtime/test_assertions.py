"""Assertions of kernels: natively, in the emulator and in the reference; silent without debug."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from frontend.conftest import build, execute
from sampling import grid
from weft import reference
from weft.emulator.errors import Trap
from weft.frontend.source import KernelFunction
from weft.options import Options
from weft.runtime import compiler

pytestmark = pytest.mark.jit


def checks(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.device_assert(v >= 0, "values are not negative", mask=i < n)
    tl.store(out + i, v)
    positive(tl.program_id(0), n)


def positive(pid: Any, n: Any) -> None:
    assert pid < n, "too many programs"


checking, silent = weft.jit(debug=True)(checks), weft.jit(checks)
positive = weft.jit(positive)


def arrays(negative: int | None, n: int) -> tuple[Any, Any]:
    x = np.arange(n, dtype=np.float32)
    if negative is not None:
        x[negative] = -1
    return x, np.zeros(n, np.float32)


@pytest.mark.parametrize("size", [4, 64, 1024])
def test_a_failed_element_raises(size: int) -> None:
    x, out = arrays(size - 1, size)
    with pytest.raises(weft.DeviceAssertionError) as caught:
        checking[(1,)](x, out, size, N=size)
    error = caught.value
    assert (error.message, error.program, error.kernel) == ("values are not negative", (0, 0, 0), "checks")
    assert str(error).splitlines()[0] == "kernel 'checks', program (0, 0, 0): assertion failed: values are not negative"
    assert 'tl.device_assert(v >= 0, "values are not negative", mask=i < n)' in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    checking[(1,)](x, out, size - 1, N=size)  # the mask leaves the element out
    assert np.array_equal(out, x)


def test_assert_in_a_helper_names_both_lines() -> None:
    x, out = arrays(None, 4)
    with pytest.raises(weft.DeviceAssertionError) as caught:
        checking[(3, 2)](x, out, 2, N=4)
    assert (caught.value.message, caught.value.program[0]) == ("too many programs", 2)
    assert [frame.function for frame in caught.value.frames] == ["positive", "checks"]


def test_without_debug_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    x, out = arrays(1, 4)
    silent[(9,)](x, out, 4, N=4)
    assert np.array_equal(out, x)
    monkeypatch.setenv("TRITON_DEBUG", "1")
    again = weft.jit(checks)
    with pytest.raises(weft.DeviceAssertionError):
        again[(1,)](x, out, 4, N=4)


@pytest.mark.parametrize(("decorated", "variable"), [(None, "0"), (None, "1"), (False, "1"), (True, "0")])
def test_a_launch_has_the_last_word(monkeypatch: pytest.MonkeyPatch, decorated: bool | None, variable: str) -> None:
    monkeypatch.setenv("TRITON_DEBUG", variable)
    kernel = weft.jit(debug=decorated)(checks)
    x, out = arrays(1, 4)
    kernel[(1,)](x, out, 4, N=4, debug=False)
    with pytest.raises(weft.DeviceAssertionError):
        kernel[(1,)](x, out, 4, N=4, debug=True)
    with pytest.raises(Trap):
        kernel.on("sm_80")[(1,)](x, out, 4, N=4, debug=True)
    assert "tile.assert" in kernel.compile(x, out, 4, N=4, debug=True).ir
    assert "tile.assert" not in kernel.compile(x, out, 4, N=4, debug=False).ir
    assert ("tile.assert" in kernel.compile(x, out, 4, N=4, debug=None).ir) == (
        variable == "1" if decorated is None else decorated
    )


def test_debug_of_a_launch_is_a_bool() -> None:
    with pytest.raises(TypeError) as raised:
        silent[(1,)](*arrays(1, 4), 4, N=4, debug=1)
    assert str(raised.value) == "checks(): debug must be a bool or None, found 1"


def test_entries_on_disk_know_where_assertions_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors name the line, so a kernel that has moved is compiled again."""

    def keys(place: str) -> list[str | None]:
        def places(_: KernelFunction) -> str:
            return place

        monkeypatch.setattr(KernelFunction, "places", places)
        launches = [(checking, ()), (silent, (("debug", True),)), (silent, ()), (checking, (("debug", False),))]
        return [compiler.disk_key(kernel, {}, Options(launch=launch)) for kernel, launch in launches]

    before, after = keys("file.py:1:0"), keys("file.py:2:0")
    assert None not in before
    assert [a == b for a, b in zip(before, after, strict=True)] == [False, False, True, True]


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_in_the_emulator(target: str) -> None:
    x, out = arrays(1, 64)
    checking.on(target)[(1,)](np.abs(x), out, 64, N=64)
    assert np.array_equal(out, np.abs(x))
    with pytest.raises(Trap) as caught:
        checking.on(target)[(1,)](x, out, 64, N=64)
    assert "checks: assertion 'values are not negative' failed" in str(caught.value)
    assert "test_assertions.py" in str(caught.value)


def test_in_the_reference() -> None:
    x, out = arrays(1, 4)
    module = build(checking, x=x, out=out, n=np.int32(4), N=4)
    with pytest.raises(AssertionError, match="values are not negative"):
        reference.run(module, [x, out, 4], (1,))


@weft.jit(debug=True)
def zeros(x: Any, out: Any, limit: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.expect_zero(tl.load(x + i), i >= limit) + 1)
    assert N == 16
    tl.device_assert(True, "holds")


def test_expect_zero() -> None:
    x, out = np.zeros(16, np.float32), np.zeros(16, np.float32)
    x[:5] = 2
    zeros[(1,)](x, out, 5, N=16)
    assert np.array_equal(out, x + 1)
    with pytest.raises(weft.DeviceAssertionError, match="expect_zero expected x == 0 where mask is true"):
        zeros[(1,)](x, out, 4, N=16)


@weft.jit(debug=True)
def in_a_loop(x: Any, out: Any, n: Any) -> None:
    for i in range(n):
        v: Any = tl.load(x + i)
        assert v != 7
        if v == 5:
            break
        tl.store(out, v)


def test_in_a_loop() -> None:
    out = np.zeros(1, np.int32)
    in_a_loop[(1,)](np.array([1, 2, 5, 7], np.int32), out, 4)
    assert out[0] == 2
    with pytest.raises(weft.DeviceAssertionError) as caught:
        in_a_loop[(1,)](np.array([1, 3, 7, 5], np.int32), out, 4)
    assert (out[0], caught.value.message) == (3, "")


@weft.jit
def exact_add(a: Any, b: Any) -> Any:
    """Triton's tests check the sum of two int32 so."""
    wide = a.to(tl.int64) + b.to(tl.int64)
    tl.device_assert((wide >= -(2**31)) & (wide < 2**31), "overflow")
    if a < 0:
        assert b < 100, "large"
        if b > 50:
            assert a > -10, "small"
    return a + b


def sums(x: Any, out: Any, N: tl.constexpr, M: tl.constexpr, AXIS: tl.constexpr, SCAN: tl.constexpr) -> None:
    i = tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :]
    v = tl.load(x + i)
    if SCAN:
        tl.store(out + i, tl.associative_scan(v, AXIS, exact_add))
    else:
        total = tl.reduce(v, AXIS, exact_add)
        tl.store(out + tl.arange(0, M if AXIS == 0 else N), total)


checked_sums = weft.jit(debug=True)(sums)
SHAPE = 8, 16


def summed(x: Any, axis: int, scan: bool, kernel: Any = checked_sums) -> Any:
    expected = x.cumsum(axis) if scan else x.sum(axis)
    out = np.zeros(expected.shape, np.int32)
    kernel[(1,)](np.ascontiguousarray(x, np.int32), out, N=SHAPE[0], M=SHAPE[1], AXIS=axis, SCAN=scan)
    return out


@pytest.mark.parametrize(("target", "axis", "scan"), grid(2, [None, "sm_80", "sm_90"], [0, 1], [False, True]))
def test_in_a_combine_function(target: str | None, axis: int, scan: bool) -> None:
    """Positive elements reach no branch; a failure is that of a sum that is needed, whatever the order of the sums is."""
    kernel: Any = checked_sums if target is None else checked_sums.on(target)
    failure = weft.DeviceAssertionError if target is None else Trap
    rng = np.random.default_rng(axis)
    x = rng.integers(0, 2**26, SHAPE)
    assert np.array_equal(summed(x, axis, scan, kernel), (x.cumsum(axis) if scan else x.sum(axis)).astype(np.int32))
    for message, found in (
        ("overflow", np.where(x == x.max(), 2**31 - 1, x)),
        ("large", np.where(rng.random(SHAPE) < 0.5, -1, 100)),
        (
            "small",
            np.moveaxis(
                np.array([-20, 80, -20] + [0] * (SHAPE[axis] - 3)) + np.zeros((SHAPE[1 - axis], 1), int), 1, axis
            ),
        ),
    ):
        with pytest.raises(failure, match=message):
            summed(found, axis, scan, kernel)


def test_a_failure_in_a_combine_function_names_its_line() -> None:
    with pytest.raises(weft.DeviceAssertionError) as caught:
        summed(np.full(SHAPE, 2**30), 1, False)
    assert [frame.function for frame in caught.value.frames] == ["exact_add", "sums"]
    assert summed(np.full(SHAPE, 2**30), 1, False, weft.jit(sums)).tolist() == [0] * SHAPE[0]


@pytest.mark.parametrize("scan", [False, True])
def test_in_a_combine_function_in_the_reference(scan: bool) -> None:
    """It executes the assertions where they stand."""
    for message, x in (
        ("overflow", np.full(SHAPE, 2**30)),
        ("large", np.where(np.arange(16) % 2, 100, -1) + np.zeros((8, 1))),
    ):
        with pytest.raises(AssertionError, match=message):
            execute(checked_sums, x=x.astype(np.int32), out=np.zeros(SHAPE, np.int32), N=8, M=16, AXIS=1, SCAN=scan)
