"""What compiles a kernel, and what does not: numbers and shapes that change are arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pytest
from xdsl.dialects import func

import weft
import weft.array as wa
from weft import target as targets
from weft.array.execution import native, plans
from weft.array.expression import tracing
from weft.runtime import compiler
from weft.transforms.join_programs import joined_of

pytestmark = pytest.mark.jit


def forget() -> None:
    """Plans and kernels, also those that another test's objects keep."""
    for known in (native._plans, native._functions, plans._generated):  # pyright: ignore[reportPrivateUsage]
        known.clear()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that are compiled, or read from disk, while the test runs."""
    forget()
    made: list[str] = []
    known = compiler.artifact_for

    def counted(kernel: Any, *arguments: Any) -> Any:
        made.append(kernel.name)
        return known(kernel, *arguments)

    monkeypatch.setattr(compiler, "artifact_for", counted)
    return made


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_over_one_dimension_have_one_function(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And none for several programs at once, which their tiles are long enough to go without."""
    forget()
    made, known = list[bool](), compiler.artifact_for

    def noted(kernel: Any, signature: Any, options: Any) -> Any:
        module = compiler.laid_out(kernel, signature, options, targets.host())
        made.append(all(joined_of(op) is None for op in module.ops if isinstance(op, func.FuncOp)))
        return known(kernel, signature, options)

    monkeypatch.setattr(compiler, "artifact_for", noted)
    x = np.arange(5000, dtype=dtype)
    assert np.array_equal((wa.asarray(x, "numpy") * 3).numpy(), x * 3)
    assert made == [True]


@pytest.mark.parametrize("system", ["numpy", "torch", "jax", "dali", "triton"])
def test_a_number_that_changes_compiles_once(system: str, compiled: list[str]) -> None:
    data = np.arange(16, dtype=np.int32)
    x = wa.asarray(data, semantics=system)
    for i in range(100):
        assert np.array_equal((x * i).numpy(), data * i)
    assert compiled == ["fused_mul"]


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float8_e5m2", "float32", "float64", "uint8", "int64", "uint64"]
)
def test_numbers_of_each_type(dtype: str, compiled: list[str]) -> None:
    x = wa.asarray(np.arange(2, 10)).astype(dtype)
    numbers: list[float] = [0, 1, 3, 100]
    if "float" in dtype:
        numbers += [-0.0, 0.3, float("inf"), float("-inf"), float("nan"), -2.5]
    if dtype == "float64":
        numbers += [1e300, 5e-324]
    if dtype.endswith("int64"):
        numbers += [2**40, 2**63 - 1]
    if dtype == "uint64":
        numbers += [2**63 + 5]
    for number in numbers:
        scalar = np.asarray(number, x.dtype.numpy)
        got = (x + scalar[()]).numpy()
        (expected,) = wa.compute(x + scalar[()], backend="reference")
        assert got.tobytes() == expected.tobytes(), number
        assert (x + wa.asarray(scalar)).numpy().tobytes() == expected.tobytes(), number
    assert len(compiled) == 2  # of an array and a number, of two arrays


SHAPES: Final[list[tuple[list[tuple[int, ...]], Callable[[wa.Array], wa.Array], int]]] = [
    ([(n,) for n in (2, 3, 16, 17, 100, 256, 1000, 4096, 5000)], lambda x: x + x, 1),
    ([(2, 3), (16, 16), (30, 20), (1, 1000), (64, 1)], lambda x: x * 2.0, 1),
    ([(3, 17), (20, 60), (33, 47), (17, 33)], lambda x: x + x[0], 1),
    ([(3, 300), (2, 1001), (17, 999)], lambda x: x[:, ::2] + x[0, 0], 2),  # rows of an even size are one dimension
    ([(2, 3, 18), (3, 5, 19), (7, 6, 40)], lambda x: x[:, 1:] - x[0, :1], 1),
    ([(20, 700), (50, 1001), (3, 3000)], lambda x: x.sum(1), 1),
    ([(20, 70), (5, 120), (3, 65)], lambda x: x - x.max(axis=1, keepdims=True), 1),
    ([(20, 70), (31, 120), (55, 65)], lambda x: x.mean(axis=0), 1),
]
"""Shapes, what is computed for each, and how many kernels that takes."""


@pytest.mark.parametrize(("shapes", "function", "count"), SHAPES)
def test_a_shape_that_changes_compiles_once(
    shapes: list[tuple[int, ...]], function: Callable[[wa.Array], wa.Array], count: int, compiled: list[str]
) -> None:
    for shape in shapes:
        data = (np.arange(int(np.prod(shape))) % 13).reshape(shape).astype(np.float32)
        (expected,) = wa.compute(function(wa.asarray(data)), backend="reference")
        np.testing.assert_allclose(function(wa.asarray(data)).numpy(), expected, rtol=1e-6)
    assert len(compiled) == count


def test_a_fused_function_of_another_number_compiles_nothing(compiled: list[str]) -> None:
    @wa.fuse
    def scaled(x: wa.Array, by: float) -> wa.Array:
        return x * by - by

    data = np.arange(7, dtype=np.float32)
    for by in (2.0, 0.5, -3.0):
        assert np.array_equal(scaled(data, by).numpy(), data * np.float32(by) - np.float32(by))
    assert compiled == ["fused_sub"]
    assert scaled.signatures == 3


def test_functions_of_one_structure_share_kernels_and_not_their_arguments(compiled: list[str]) -> None:
    a, b, c = (np.asarray(values, np.float32) for values in ([1, 2], [10, 20], [5, 5]))

    @wa.fuse
    def minus(x: wa.Array, y: wa.Array, z: wa.Array) -> wa.Array:
        return x - y

    @wa.fuse
    def swapped(x: wa.Array, y: wa.Array, z: wa.Array) -> wa.Array:
        return z - x

    for _ in range(2):
        assert minus(a, b, c).numpy().tolist() == [-9, -18]
        assert swapped(a, b, c).numpy().tolist() == [4, 3]
        assert swapped(a, b, wa.asarray(c)).numpy().tolist() == [4, 3]
    assert compiled == ["fused_sub"]


def test_which_operands_are_the_same_array_is_not_forgotten() -> None:
    x, y = wa.asarray(np.asarray([1, 2], np.float32)), wa.asarray(np.asarray([10, 20], np.float32))
    for _ in range(2):
        assert (x - x).numpy().tolist() == [0, 0]
        assert (x - y).numpy().tolist() == [-9, -18]
        assert (y - x).numpy().tolist() == [9, 18]
        assert ((x - y) - (y - x)).numpy().tolist() == [-18, -36]
        assert ((x - y) - (x - y)).numpy().tolist() == [0, 0]


def test_operands_of_other_strides_and_addresses() -> None:
    data = np.arange(12, dtype=np.float32)
    unaligned = np.frombuffer(b"\0" + data.tobytes(), np.float32, 6, offset=1)
    other = wa.asarray(data[:6])
    for view in (data[:6], data[6:], data[::2], data[5::-1], unaligned, data[:6].copy()):
        assert (wa.asarray(view) + other).numpy().tolist() == (view + data[:6]).tolist()


def test_kernels_of_arrays_run_in_the_emulator_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.arange(5, dtype=np.float64)
    expected = [2 * value + 0.1 for value in range(5)]
    with weft.emulate("sm_90"):
        assert (wa.asarray(data) * 2 + 0.1).numpy().tolist() == expected
    monkeypatch.setenv("WEFT_CHECKED", "1")
    forget()
    assert (wa.asarray(data) * 2 + 0.1).numpy().tolist() == expected
    forget()


def test_recipes_are_not_used_while_operations_are_recorded() -> None:
    x, y = wa.asarray(np.ones(3, np.int8)), wa.asarray(np.ones(3, np.int16))
    for _ in range(2):
        _ = x + y, -x
    with tracing.record() as events:
        _ = x + y, -x
    assert [event.op for event in events] == ["+", "neg"]


def test_recipes_do_not_look_at_what_is_below_their_operands() -> None:
    x = wa.asarray(np.ones(3, np.float32))
    y = x
    for _ in range(3000):
        y = y + y[::-1]  # a view between each two: no recipe reaches past its operands
    assert not np.isfinite(y.numpy()).any()
