"""Boxes of tensors: the runs of a copy against slices of a padded NumPy array, swizzled places against the ISA's tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.emulator.arith.swizzle import Swizzle
from weft.emulator.arith.tensor_copy import CHUNK, Shared, Tensor, gather, scatter, touched_sectors

BASE = 0x10_0000_0100


def tensor(
    shape: tuple[int, ...], element: int, box: tuple[int, ...], steps: tuple[int, ...] | None = None, pad: int = 0
) -> tuple[Tensor, NDArray[np.uint8]]:
    """A tensor of NumPy's ``shape`` with rows padded to 16 bytes and by ``pad`` more, and its memory: bytes that all differ from
    their neighbours. ``box`` and ``steps`` are in NumPy's order too."""
    strides = [element]
    for n in reversed(shape[1:]):
        strides.append(-(-strides[-1] * n // 16) * 16 + pad)
    size = strides[-1] * shape[0] + 64
    memory = np.random.default_rng(size).integers(1, 256, size).astype(np.uint8)
    steps = steps or (1,) * len(shape)
    return Tensor(BASE, element, shape[::-1], tuple(strides), box[::-1], steps[::-1]), memory


def expected_box(t: Tensor, memory: NDArray[np.uint8], start: tuple[int, ...]) -> NDArray[np.uint8]:
    """What a load at NumPy-ordered coordinates finds: a view of the tensor, padded on all sides, sliced."""
    shape, strides = t.sizes[::-1], t.strides[::-1]
    view = np.lib.stride_tricks.as_strided(memory, (*shape, t.element), (*strides, 1))
    margin = 300
    sides = [(margin, margin + 300)] * len(shape)
    padded = np.pad(view, [*sides, (0, 0)]) if len(shape) <= 2 else None
    box, steps = t.box[::-1], t.steps[::-1]
    if padded is not None:
        cut = tuple(slice(margin + c, margin + c + b, s) for c, b, s in zip(start, box, steps, strict=True))
        return np.ascontiguousarray(padded[cut]).reshape(-1)
    counts = [len(range(0, b, s)) for b, s in zip(box, steps, strict=True)]
    result = np.zeros((*counts, t.element), np.uint8)
    for place in itertools.product(*map(range, counts)):
        index = tuple(c + k * s for c, k, s in zip(start, place, steps, strict=True))
        if all(0 <= i < n for i, n in zip(index, shape, strict=True)):
            result[place] = view[index]
    return result.reshape(-1)


def load(t: Tensor, memory: NDArray[np.uint8], starts: list[tuple[int, ...]]) -> NDArray[np.uint8]:
    """Boxes by their runs; coordinates in NumPy's order."""
    dense = np.zeros((len(starts), t.bytes), np.uint8)
    for runs in t.runs(np.array([s[::-1] for s in starts], np.int64)):
        flat = (runs.address - np.uint64(t.address)).astype(np.int64)
        scatter(runs, memory[flat[:, None] + np.arange(runs.size)], dense)
    return dense


CASES = [
    ((100,), 1, (16,), None),
    ((70,), 4, (32,), None),
    ((9, 40), 2, (4, 16), None),
    ((5, 33), 1, (8, 32), None),
    ((20, 12), 8, (6, 4), (3, 1)),
    ((3, 6, 24), 4, (2, 3, 8), None),
    ((7, 5, 9, 16), 2, (4, 1, 3, 8), (2, 1, 3, 1)),
    ((2, 3, 4, 5, 20), 1, (2, 2, 3, 2, 16), None),
    ((6, 2, 3, 2, 8), 8, (5, 1, 1, 2, 2), (2, 1, 1, 1, 1)),
]


@pytest.mark.parametrize(("shape", "element", "box", "steps"), CASES)
@pytest.mark.parametrize("pad", [0, 16])
def test_loads_of_every_rank(
    shape: tuple[int, ...], element: int, box: tuple[int, ...], steps: tuple[int, ...] | None, pad: int
) -> None:
    t, memory = tensor(shape, element, box, steps, pad)
    rng = np.random.default_rng(7)
    starts = [tuple(0 for _ in shape)]
    # Beyond each end of each dimension, by one element, by a part of a box, and altogether.
    for k, (n, b) in enumerate(zip(shape, box, strict=True)):
        for c in (-1, -b + 1, -b, -b - 5, n - b, n - b + 1, n - 1, n, n + 7):
            starts.append(tuple(c if i == k else int(rng.integers(0, m)) for i, m in enumerate(shape)))
    for _ in range(10):
        starts.append(tuple(int(rng.integers(-b, n + 1)) for n, b in zip(shape, box, strict=True)))
    found = load(t, memory, starts)
    for start, dense in zip(starts, found, strict=True):
        np.testing.assert_array_equal(dense, expected_box(t, memory, start), err_msg=str(start))


@pytest.mark.parametrize(("shape", "element", "box", "steps"), CASES)
def test_runs_gather_what_they_scatter(
    shape: tuple[int, ...], element: int, box: tuple[int, ...], steps: tuple[int, ...] | None
) -> None:
    """A store of what a load found writes each byte of the tensor that the box has, and no other."""
    t, memory = tensor(shape, element, box, steps)
    start = tuple(n // 2 for n in shape)
    (dense,) = load(t, memory, [start])
    written = np.zeros_like(memory)
    for runs in t.runs(np.array([start[::-1]], np.int64)):
        flat = (runs.address - np.uint64(t.address)).astype(np.int64)
        written[flat[:, None] + np.arange(runs.size)] = gather(runs, dense[None])
    mark = np.zeros_like(memory)
    view = np.lib.stride_tricks.as_strided(mark, (*shape, element), (*t.strides[::-1], 1))
    rows = zip(start, box, t.steps[::-1], strict=True)
    view[tuple(slice(c, c + b, s) for c, b, s in rows)] = 1
    np.testing.assert_array_equal(written, memory * mark)


@st.composite
def drawn(draw: st.DrawFn) -> tuple[tuple[int, ...], int, tuple[int, ...], tuple[int, ...], int, tuple[int, ...]]:
    """A small tensor, its box, and where the box begins: around the tensor on all sides."""
    rank = draw(st.integers(1, 5))
    element = draw(st.sampled_from([1, 2, 4, 8]))
    shape = tuple(draw(st.integers(1, 6)) for _ in range(rank - 1)) + (draw(st.integers(1, 40)),)
    steps = tuple(draw(st.integers(1, 3)) for _ in range(rank - 1)) + (1,)
    box = tuple(draw(st.integers(1, 4)) for _ in range(rank - 1)) + (16 // element * draw(st.integers(1, 2)),)
    start = tuple(draw(st.integers(-b - 1, n + 1)) for b, n in zip(box, shape, strict=True))
    return shape, element, box, steps, 16 * draw(st.integers(0, 1)), start


@settings(max_examples=200, deadline=None)
@given(drawn())
def test_any_box_of_any_tensor(
    case: tuple[tuple[int, ...], int, tuple[int, ...], tuple[int, ...], int, tuple[int, ...]],
) -> None:
    shape, element, box, steps, pad, start = case
    t, memory = tensor(shape, element, box, steps, pad)
    (dense,) = load(t, memory, [start])
    np.testing.assert_array_equal(dense, expected_box(t, memory, start))


def test_a_box_outside_moves_nothing() -> None:
    t, _ = tensor((4, 32), 1, (2, 16))
    assert t.runs(np.array([[32, 0], [0, 4], [-16, 0], [0, -2]], np.int64)) == []


def test_the_worked_example() -> None:
    t = Tensor(BASE, 1, (20, 4), (1, 32), (16, 2), (1, 1))
    (runs,) = t.runs(np.array([[-1, 3]], np.int64))
    assert (runs.copy.tolist(), runs.place.tolist(), runs.size) == ([0], [1], 15)
    assert (runs.address - np.uint64(BASE)).tolist() == [96]


# The tables of PTX ISA 5.5.7, each row a line of 128 bytes: where the n-th 16-byte cell of the source's line is.
TABLES: dict[Swizzle, list[str]] = {
    Swizzle.B32: ["01234567", "10325476"],
    Swizzle.B64: ["01234567", "10325476", "23016745", "32107654"],
    Swizzle.B128: [
        "01234567",
        "10325476",
        "23016745",
        "32107654",
        "45670123",
        "54761032",
        "67452301",
        "76543210",
    ],
}


@pytest.mark.parametrize("swizzle", TABLES)
@pytest.mark.parametrize("base", [0, 128, 512, 1024, 1408])
@pytest.mark.parametrize("lines", [1, 4, 8, 19])
def test_swizzled_boxes(swizzle: Swizzle, base: int, lines: int) -> None:
    """The table's rows follow the address: a box that starts in a later line begins with that line's row."""
    size = lines * 128
    dense = np.random.default_rng(base).integers(0, 256, (1, size)).astype(np.uint8)
    shared = np.zeros(4096, np.uint8)
    places = Shared.of(np.array([base], np.uint64), size, swizzle)
    assert places.addresses.tolist() == [base]
    shared[base : base + size] = places.arrange(dense)[0]
    table = TABLES[swizzle]
    for line in range(lines):
        row = table[(base // 128 + line) % len(table)]
        for cell in range(8):
            source = dense[0, line * 128 + int(row[cell]) * 16 :][:16]
            np.testing.assert_array_equal(shared[base + line * 128 + cell * 16 :][:16], source)
    np.testing.assert_array_equal(places.collect(places.arrange(dense)), dense)


@pytest.mark.parametrize("swizzle", TABLES)
@pytest.mark.parametrize("size", [16, 96, 144, 400])
def test_swizzled_boxes_that_end_within_a_line(swizzle: Swizzle, size: int) -> None:
    bases = np.array([256, 1152], np.uint64)
    dense = np.random.default_rng(size).integers(0, 256, (2, size)).astype(np.uint8)
    places = Shared.of(bases, size, swizzle)
    assert places.size == CHUNK
    table = TABLES[swizzle]
    arranged = places.arrange(dense)
    at = {(int(c), int(a)): values for c, a, values in zip(places.copy, places.addresses, arranged, strict=True)}
    for copy, base in enumerate((256, 1152)):
        for chunk in range(size // 16):
            line, cell = (base + 16 * chunk) // 128, chunk % 8
            row = table[line % len(table)]
            where = line * 128 + 16 * row.index(str(cell))
            np.testing.assert_array_equal(at.pop((copy, where)), dense[copy, 16 * chunk :][:16])
    assert not at
    np.testing.assert_array_equal(places.collect(arranged), dense)


@pytest.mark.parametrize("size", [16, 256, 8192])
def test_several_boxes_at_once(size: int) -> None:
    """Alike in the pattern, or not: each as if it were alone."""
    dense = np.random.default_rng(size).integers(0, 256, (64, size)).astype(np.uint8)
    for bases in ([8192 * k for k in range(64)], [8192 * k + 128 * (k % 5) for k in range(64)]):
        together = Shared.of(np.array(bases, np.uint64), size, Swizzle.B128)
        arranged = together.arrange(dense)
        alone = [Shared.of(np.array([base], np.uint64), size, Swizzle.B128) for base in bases]
        expected = [places.arrange(box[None]) for places, box in zip(alone, dense, strict=True)]
        np.testing.assert_array_equal(arranged, np.concatenate(expected))
        assert together.addresses.tolist() == [int(a) for p in alone for a in p.addresses]
        np.testing.assert_array_equal(together.collect(arranged), dense)


def test_unswizzled_boxes_are_as_they_are() -> None:
    dense = np.arange(96, dtype=np.uint8).reshape(2, 48)
    places = Shared.of(np.array([128, 256], np.uint64), 48, Swizzle.NONE)
    assert places.arrange(dense) is dense
    assert places.collect(dense) is dense
    assert (places.addresses.tolist(), places.size, places.copy.tolist()) == ([128, 256], 48, [0, 1])


@pytest.mark.parametrize("size", [1, 8, 16, 32, 33, 48, 96, 128])
def test_sectors(size: int) -> None:
    """Against sets of sector numbers, one for each copy."""
    rng = np.random.default_rng(size)
    for _ in range(20):
        copy = np.sort(rng.integers(0, 3, 12))
        addresses = rng.integers(0, 40, 12).astype(np.uint64) * np.uint64(8) + np.uint64(BASE)
        touched = {(int(c), (int(a) + i) // 32) for c, a in zip(copy, addresses, strict=True) for i in range(size)}
        assert touched_sectors(copy, addresses, size) == len(touched)
