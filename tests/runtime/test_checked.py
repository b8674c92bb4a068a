"""Checked kernels: the bounds they are given, and the error that a fault becomes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.ir.position import Position
from weft.runtime.errors import Site

FAULT = """
  %hit = icmp eq i32 %x, 2
  br i1 %hit, label %bad, label %good
bad:
  %claimed = cmpxchg ptr %fault, i64 0, i64 1 monotonic monotonic
  %base = load i64, ptr %args
  %address = add i64 %base, OFFSET
  %f1 = getelementptr i64, ptr %fault, i64 1
  store i64 SITE, ptr %f1
  %x64 = sext i32 %x to i64
  %y64 = sext i32 %y to i64
  %f2 = getelementptr i64, ptr %fault, i64 2
  store i64 %x64, ptr %f2
  %f3 = getelementptr i64, ptr %fault, i64 3
  store i64 %y64, ptr %f3
  %f5 = getelementptr i64, ptr %fault, i64 5
  store i64 %address, ptr %f5
  ret i32 1
good:
  ret i32 0
"""
"""Program (2, y) reports an access OFFSET bytes behind the first argument."""


@weft.jit(checked=True)
def kernel(x: Any, n: Any, y: Any) -> None: ...


@pytest.fixture(autouse=True)
def _fresh(fake_compiler: Any) -> None:
    kernel._executables.clear()  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "kernels.py"
    path.write_text("def helper(p):\n    return tl.load(p + 1)\n\n\ndef kernel(x):\n    v = helper(x)\n")
    return str(path)


def fault(fake: Any, offset: int, site: Site) -> weft.OutOfBoundsError:
    """The error of a launch in which program (2, 0, 0) faults."""
    fake.programs["kernel"] = FAULT.replace("OFFSET", str(offset)).replace("SITE", "1")
    fake.sites = (Site("store", "y", 8, ()), site)
    with pytest.raises(weft.OutOfBoundsError) as raised:
        kernel[(4,)](np.zeros(10, np.float32), 7, np.zeros(4, np.int64))
    return raised.value


def test_the_message(fake_compiler: Any, source: str) -> None:
    frames = (Position(source, 2, 11, "helper"), Position(source, 6, 8, "kernel"))
    error = fault(fake_compiler, 48, Site("load", "x", 4, frames))
    assert str(error) == (
        f"""kernel 'kernel', program (2, 0, 0): load accesses element 12 of 'x', which has 10
  at {source}:2, in helper
        return tl.load(p + 1)
               ^
  called from {source}:6, in kernel
        v = helper(x)
            ^"""
    )
    assert (error.kernel, error.program, error.operation, error.argument) == ("kernel", (2, 0, 0), "load", "x")
    assert (error.index, error.length, error.frames) == (12, 10, frames)
    assert isinstance(error, IndexError)


def test_elements_before_the_array_and_sources_that_are_gone(fake_compiler: Any) -> None:
    error = fault(fake_compiler, -4, Site("store", "x", 4, (Position("/gone.py", 3, 0, "f"),)))
    assert str(error) == (
        "kernel 'kernel', program (2, 0, 0): store accesses element -1 of 'x', which has 10\n  at /gone.py:3, in f"
    )


def test_an_access_through_an_unknown_argument(fake_compiler: Any) -> None:
    error = fault(fake_compiler, -4, Site("load", None, 4, ()))
    assert str(error) == "kernel 'kernel', program (2, 0, 0): load accesses memory outside of all array arguments"


def test_the_error_survives_pickling(fake_compiler: Any) -> None:
    error = fault(fake_compiler, 48, Site("load", "x", 4, (Position("/gone.py", 3, 0, "f"),)))
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.frames == error.frames


def test_programs_that_stay_inside_raise_nothing_after_a_fault(fake_compiler: Any) -> None:
    fault(fake_compiler, 48, Site("load", "x", 4, ()))
    kernel[(2,)](np.zeros(10, np.float32), 7, np.zeros(4, np.int64))


def test_bounds_follow_all_arguments_in_order(fake_compiler: Any) -> None:
    """Slots: x, n, y, then first byte and one past the last of x and of y; the fake copies all seven to y."""
    copied = "\n".join(
        f"""
  %s{i} = getelementptr i64, ptr %args, i64 {i}
  %v{i} = load i64, ptr %s{i}
  %d{i} = getelementptr i64, ptr %out, i64 {i}
  store i64 %v{i}, ptr %d{i}"""
        for i in range(7)
    )
    fake_compiler.programs["kernel"] = f"""
  %third = getelementptr i64, ptr %args, i64 2
  %out = load ptr, ptr %third
{copied}
  ret i32 0
"""
    x, y = np.zeros(10, np.float32)[::-3], np.zeros(7, np.int64)
    kernel[(1,)](x, -3, y)
    start, first = x.ctypes.data, y.ctypes.data
    assert y.tolist() == [start, -3, first, start - 9 * 4, start + 4, first, first + 56]


def test_a_pointer_without_a_length_cannot_be_checked(fake_compiler: Any) -> None:
    array = np.zeros(4, np.float32)

    class Pointer:
        dtype = "float32"

        def data_ptr(self) -> int:
            return array.ctypes.data

    with pytest.raises(TypeError) as raised:
        kernel[(1,)](array, 7, Pointer())
    assert str(raised.value) == (
        "kernel 'kernel': parameter 'y': the object does not say how long it is, which a checked kernel must know; "
        "pass an array"
    )
