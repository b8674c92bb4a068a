"""Algorithms of CUDA's libraries, run and compared with NumPy. Only the frame around each is ours; their headers, and so their
PTX, come with NVRTC in ``make oracles``."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_programs import PROGRAMS, program
from weft.emulator import Checks, Module, Scratch, Trap, Uninitialised

NAMES = ("library", "library_sm90")
RNG = np.random.default_rng(17)

pytestmark = pytest.mark.skipif(
    not (PROGRAMS / "library.ptx").exists(), reason="compiled with the libraries' headers, by `make oracles` only"
)


@pytest.fixture(params=NAMES)
def library(request: pytest.FixtureRequest) -> Module:
    return program(request.param)


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-99, 100, shape).astype(np.int32)


def test_radix_sort(library: Module) -> None:
    x, out = RNG.integers(-(2**31), 2**31, 512).astype(np.int32), np.zeros(512, np.int32)
    library.launch("radix_sort", 1, 128, [x, Scratch(out)])
    assert np.array_equal(out, np.sort(x))


def test_merge_sort(library: Module) -> None:
    """The last thread reads the word behind the tile, which was never written, and does not use it: the check reports it."""
    x, out = integers(256), np.zeros(256, np.int32)
    with pytest.raises(Uninitialised, match=r"read of 4 bytes of shared memory that has not been written"):
        library.launch("merge_sort", 1, 64, [x, Scratch(out)])
    library.launch("merge_sort", 1, 64, [x, Scratch(out)], checks=Checks(uninitialised=False))
    assert np.array_equal(out, np.sort(x)[::-1])


def test_scan(library: Module) -> None:
    x, out, total = integers(128), np.zeros(128, np.int32), np.zeros(1, np.int32)
    library.launch("scan", 1, 128, [x, Scratch(out), Scratch(total)])
    assert np.array_equal(out, np.cumsum(x) - x)
    assert total[0] == x.sum()


def test_reduce(library: Module) -> None:
    x, out = integers(256).astype(np.float32), np.zeros(1, np.float32)
    library.launch("reduce", 1, 256, [x, Scratch(out)])
    assert out[0] == x.sum()


def test_histogram(library: Module) -> None:
    x, out = RNG.integers(0, 20, 256).astype(np.uint8), np.zeros(256, np.uint32)
    library.launch("histogram", 1, 64, [x, Scratch(out)])
    assert np.array_equal(out, np.bincount(x, minlength=256))


def test_transpose(library: Module) -> None:
    x, out = np.arange(256, dtype=np.int32), np.zeros((64, 4), np.int32)
    library.launch("transpose", 1, 64, [x, Scratch(out)])
    assert np.array_equal(out, x.reshape(4, 64).T)


def test_groups(library: Module) -> None:
    x, out = integers(64), np.zeros((64, 4), np.int32)
    library.launch("groups", 1, 64, [x, Scratch(out)])
    tiles = x.reshape(8, 8)
    odd = (x % 2 == 1).reshape(2, 32)
    rank = np.where(odd, (np.cumsum(odd, axis=1) - 1) * 100 + odd.sum(axis=1, keepdims=True), 0)
    expected = [
        np.repeat(tiles.sum(axis=1), 8),
        np.repeat(tiles.max(axis=1), 8),
        np.cumsum(tiles, axis=1).ravel(),
        rank.ravel(),
    ]
    assert np.array_equal(out, np.stack(expected, axis=1))


def test_barriers(library: Module) -> None:
    x, out = integers(64), np.zeros((3, 64), np.int32)
    library.launch("barriers", 1, 64, [x, Scratch(out)])
    assert np.array_equal(out, [x[::-1] + i for i in range(3)])


def test_copy(library: Module) -> None:
    x, out = integers(64, 4), np.zeros((64, 4), np.int32)
    library.launch("copy", 1, 64, [x, Scratch(out)])
    assert np.array_equal(out, x[::-1])


def test_atomics(library: Module) -> None:
    total, largest, f, d = np.zeros(1, np.int32), np.zeros(1, np.uint64), np.zeros(1, np.float32), np.zeros(1)
    words = np.zeros(6, np.uint32)
    words[5] = 2**32 - 1
    library.launch("atomics", 2, 64, [total, largest, f, d, words])
    assert (total[0], largest[0], f[0], d[0]) == (2 * 64 * 3, 63 * 1000000007, 2 * 64 * 1.5, 2 * 64 * 0.25)
    flips = up = down = 0
    for i in range(128):
        flips ^= 1 << i % 64 % 31
        up = 0 if up >= 10 else up + 1
        down = 7 if down == 0 or down > 7 else down - 1
    assert words.tolist() == [flips, up, down, 2**32 - 63, 63, 2**32 - 256]


def test_across_the_grid(library: Module) -> None:
    x, out = integers(6 * 64), np.zeros(6 * 64, np.int32)
    expected = x.copy()
    for _ in range(3):
        expected = np.roll(np.roll(expected, -37) + 1, -11)
    library.launch("across_the_grid", (3, 2), 64, [x, Scratch(out), 3], cooperative=True)
    assert np.array_equal(x, expected)
    with pytest.raises(Trap, match="it reads %envreg1: grid.sync\\(\\) needs a launch with cooperative=True"):
        library.launch("across_the_grid", 2, 64, [x[:128], out[:128], 1])


def test_pairs_of_warps(library: Module) -> None:
    x, out = integers(256), np.zeros(256, np.int32)
    library.launch("pairs_of_warps", 1, 256, [x, Scratch(out)])
    assert np.array_equal(out, np.repeat(x.reshape(4, 64).sum(axis=1), 64))


def test_spread_histogram() -> None:
    x, out = RNG.integers(0, 256, 1000).astype(np.uint8), np.zeros(256, np.uint32)
    program("library_sm90").launch("spread_histogram", 8, 96, [x, 1000, out], cluster=4)
    assert np.array_equal(out, np.bincount(x, minlength=256))
