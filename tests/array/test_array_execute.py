"""What execution must withstand: expressions of any size, memory of any layout and extent, errors and threads in the middle."""

from __future__ import annotations

import gc
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from weft.array import Array, asarray, compute, kernels, repeat, tile
from weft.array.execution import memory
from weft.array.programs import canonical, schedule
from weft.array.programs.canonical import FUSED

pytestmark = pytest.mark.jit


def given(data: Any) -> Array:
    return asarray(data, "numpy")


def statements(text: str) -> int:
    return text.count("\n    v")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """A lower limit of what is fused, for kernels that compile soon."""
    monkeypatch.setattr(canonical, "FUSED", 10)
    monkeypatch.setattr(schedule, "FUSED", 10)
    return 10


@pytest.mark.parametrize(("shape", "axis"), [((0, 0), 0), ((0, 3, 0), 2), ((4, 0, 0), 1)])
def test_sums_of_nothing_to_nothing(shape: tuple[int, ...], axis: int) -> None:
    x = np.zeros(shape, "float32")
    assert given(x).sum(axis).numpy().shape == x.sum(axis).shape


@pytest.mark.parametrize("op", ["max", "argmax"])
@pytest.mark.parametrize(("shape", "axis"), [((0, 3), 1), ((4, 2, 0), 1)])
def test_extremes_of_something_to_nothing(op: str, shape: tuple[int, ...], axis: int) -> None:
    x = np.zeros(shape, "float32")
    assert given(x).reduce(op, axis).numpy().shape == x.sum(axis).shape


def test_empty_arrays_in_the_middle_of_an_expression() -> None:
    x = given(np.ones((4, 3), "float32"))
    nothing = x[:, :0] * 2.0
    total = nothing.sum(axis=1, keepdims=True) + x
    both = compute(total, nothing + 1.0, nothing.T)
    np.testing.assert_array_equal(both[0], np.ones((4, 3)))
    assert [b.shape for b in both] == [(4, 3), (4, 0), (0, 4)]


def test_unaligned_data_in_any_order() -> None:
    raw = np.zeros(41, "u1")[1:].view("<i4")
    raw[:] = np.arange(10)
    assert not raw.flags.aligned
    np.testing.assert_array_equal((given(raw[::-1]) + 1).numpy(), np.arange(10, 0, -1))
    np.testing.assert_array_equal(given(raw.reshape(2, 5).T).sum(axis=1).numpy(), [5, 7, 9, 11, 13])


def test_one_number_spread_beside_a_reduced_row() -> None:
    # exp-like work on a number broadcast to the rows joins the rows' kernel, where it stays one number.
    x, y = np.arange(70 * 37, dtype="float32").reshape(70, 37) % 9, np.arange(50, dtype="float32")
    top = given(y).max()
    twice = (top.broadcast_to(70) * np.float32(2)).expand_dims(1)
    got = (given(x) + top - given(x).max(axis=1, keepdims=True)) - twice
    np.testing.assert_array_equal(got.numpy(), x + 49 - x.max(1, keepdims=True) - 98)


def test_long_chains_are_cut() -> None:
    x = given(np.ones(50, "float32"))
    y = x
    for i in range(5000):
        y = y * x + 1.0 if i % 2 else y - x
    texts = kernels(y)
    assert len(texts) == pytest.approx(7500 / FUSED, rel=0.1)
    assert max(map(statements, texts)) < FUSED + 10


def test_a_chain_that_is_cut_computes_the_same(few: int) -> None:
    x = given(np.arange(50, dtype="int32"))
    y = x
    for i in range(10 * few):
        y = y * x + 1 if i % 3 else y - x
    want = x.numpy()
    for i in range(10 * few):
        want = want * x.numpy() + 1 if i % 3 else want - x.numpy()
    assert len(kernels(y)) > 10
    np.testing.assert_array_equal(y.numpy(), want)


def test_an_operand_used_twice_is_computed_once() -> None:
    x = given(np.ones(5, "float32"))
    y = x
    for _ in range(60):
        y = y + y
    (text,) = kernels(y)
    assert statements(text) < 70
    assert y.numpy().tolist() == [2.0**60] * 5


def test_halving_does_not_load_every_element_by_itself() -> None:
    n = 1 << 12
    x = given(np.arange(n, dtype="int64"))
    while x.size > 1:
        half = x.size // 2
        x = x[:half] + x[half:]
    assert max(text.count("tl.load") for text in kernels(x)) <= 2 * FUSED
    assert x.numpy().tolist() == [n * (n - 1) // 2]


def test_many_outputs_of_one_operand(few: int) -> None:
    x = np.arange(30, dtype="int32")
    shared = given(x) + 1
    outputs = [shared * i + 1 for i in range(3 * few)]
    assert max(map(statements, kernels(*outputs))) < 4 * few
    for i, got in enumerate(compute(*outputs)):
        np.testing.assert_array_equal(got, (x + 1) * i + 1)


def test_many_reductions_of_one_row(few: int) -> None:
    x = np.arange(20 * 30, dtype="float32").reshape(20, 30) % 7
    got = given(x)
    for _ in range(few):
        got = got - got.max(axis=1, keepdims=True) + 1.0
    assert 1 < len(kernels(got)) < 12
    np.testing.assert_array_equal(got.numpy(), x - x.max(1, keepdims=True) + 1)


@pytest.mark.usefixtures("apart")
def test_memory_between_kernels_is_returned_when_it_was_read(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = memory._Pool()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(memory, "_pool", pool)
    n = memory.SMALLEST
    x = given(np.ones(n, "int8"))
    y = x
    for _ in range(6 * few):
        y = y ^ x
    assert len(kernels(y)) == 6
    assert y.numpy().min() == 1
    del y
    gc.collect()
    assert {size: len(blocks) for size, blocks in pool._blocks.items()} == {n: 2}  # pyright: ignore[reportPrivateUsage]


STEP = 1 << 26


@pytest.mark.parametrize("shape", [(48, 2), (48, 1), (48, 600)])
def test_offsets_beyond_32_bits(shape: tuple[int, int]) -> None:
    # 48 rows 2**26 elements apart: the last begin beyond 2**31. Untouched pages take no memory.
    whole = np.zeros((48, STEP), "int8")
    x = whole[:, : shape[1]]
    x[47, 0], x[40, -1], x[3, 0] = 3, 5, 1
    np.testing.assert_array_equal((given(x) + 1).numpy(), x + 1)
    np.testing.assert_array_equal(given(x).sum(axis=0).numpy(), x.sum(0, dtype="int8"))
    np.testing.assert_array_equal(given(x).max(axis=1).numpy(), x.max(1))
    np.testing.assert_array_equal(given(x).argmax(axis=0).numpy(), x.argmax(0))
    np.testing.assert_array_equal(given(x[:, 0]).cumsum(0).numpy(), x[:, 0].cumsum())


def test_products_of_matrices_beyond_32_bits() -> None:
    x = np.zeros((48, STEP), "float16")[:, :2]
    x[47, 0], x[40, 1], x[3, 0] = 3, 5, 1
    ones = np.arange(96, dtype="float16").reshape(48, 2)
    np.testing.assert_array_equal((given(x) @ given(ones[:2])).numpy(), x @ ones[:2])
    np.testing.assert_array_equal((given(x.T) @ given(ones)).numpy(), x.T @ ones)
    np.testing.assert_array_equal((given(ones.T) @ given(x)).numpy(), ones.T @ x)


def test_an_error_is_raised_anew_each_time() -> None:
    def raised() -> ZeroDivisionError:
        with pytest.raises(ZeroDivisionError) as caught:
            (asarray(np.ones(4, "int32"), "torch") // asarray(np.zeros(4, "int32"), "torch")).numpy()
        return caught.value

    first, second = raised(), raised()
    assert first is not second
    assert len(traceback.extract_tb(first.__traceback__)) == len(traceback.extract_tb(second.__traceback__))


@pytest.mark.usefixtures("apart")
def test_memory_returned_while_memory_is_taken() -> None:
    # An array in a cycle dies in whatever allocation makes the collector run: here, one of the pool's own.
    def meddle() -> None:
        pool = memory._pool  # pyright: ignore[reportPrivateUsage]
        with pool._lock:  # pyright: ignore[reportPrivateUsage]
            cycle: list[Any] = [memory.empty((memory.SMALLEST,), np.dtype("u1"))]
            cycle.append(cycle)
            del cycle
            gc.collect()

    worker = threading.Thread(target=meddle, daemon=True)
    worker.start()
    worker.join(20)
    assert not worker.is_alive()


def test_threads_compute_at_once() -> None:
    x = np.arange(3 * memory.SMALLEST // 4, dtype="int32")
    shared = given(x) * 3

    def work(i: int) -> bool:
        own = (given(x) + i).numpy()
        return bool((own == x + i).all() and (shared.numpy() == x * 3).all() and int((shared - own).min()) == -i)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(12)))


@pytest.mark.parametrize("system", ["triton", "jax", "numpy"])
def test_what_is_beyond_float8_is_no_number(system: str) -> None:
    """Kernels in Triton's semantics saturate, and PyTorch does; the other arrays have the conversion of `weft.semantics`."""
    found = asarray(np.array([448, 464, 465, np.inf], np.float32), system).astype("float8_e4m3fn").numpy()
    np.testing.assert_array_equal(found.astype(np.float32), [448, 448, np.nan, np.nan])


def test_a_result_of_another_shape_is_no_copy() -> None:
    """What a kernel stores in row-major order is the result under every shape; other operations on the way have their kernel."""
    x = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    a = given(x)
    twice = a * 2.0
    made = [twice.reshape(24), a.sum(1).reshape(2, 2), (a @ a.T).reshape(2, 8), repeat(a, 2), tile(a, 2)]
    expected = [(x * 2).reshape(24), x.sum(1).reshape(2, 2), (x @ x.T).reshape(2, 8), np.repeat(x, 2), np.tile(x, 2)]
    assert [len(kernels(m)) for m in made] == [1] * len(made)
    for m, e in zip(made, expected, strict=True):
        np.testing.assert_allclose(m.numpy(), e, rtol=1e-6)
    assert len(kernels((a.T * 2.0).reshape(24))) == 1
    np.testing.assert_array_equal((a.T * 2.0).reshape(24).numpy(), (x.T * 2).reshape(24))
    part = (a * 2.0)[:, 1:].reshape(20)
    np.testing.assert_array_equal(part.numpy(), (x * 2)[:, 1:].reshape(20))
    for key in (slice(2), slice(1, None), slice(None, None, -1), slice(None, None, 2)):
        assert len(kernels(a.sum(1)[key])) == 2  # a part of what is stored is copied from it
        np.testing.assert_array_equal(a.sum(1)[key].numpy(), x.sum(1)[key])
    turned = x.reshape(2, 2, 6)
    np.testing.assert_array_equal(given(turned).sum(0).T.numpy(), turned.sum(0).T)


def test_results_of_several_shapes_share_memory_that_lives_with_each() -> None:
    """Over 1 MiB, where memory of results is used again as soon as nothing refers to it."""
    x = np.random.default_rng(3).random((1 << 10, 1 << 9), dtype=np.float32)
    for keep in (0, 1, 2):
        a = given(x) * 2.0
        kept = list(compute(a, a.reshape(-1), a.reshape(1 << 9, 1 << 10).sum(1), a.reshape(1 << 9, 1, 1 << 10)))[keep]
        del a
        for _ in range(4):
            (given(x) * 3.0).numpy()
            (given(x).reshape(-1) * 5.0).numpy()
        np.testing.assert_allclose(kept, [x * 2, (x * 2).reshape(-1), (x * 2).reshape(512, -1).sum(1)][keep], rtol=1e-5)
