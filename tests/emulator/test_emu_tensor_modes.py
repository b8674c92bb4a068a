"""Tensor copies of rows and of im2col columns: against NumPy's indices and the matrix that a convolution is a product with."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.emulator import Module, PTXError, TensorMap, Undefined

PTX = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry test(.param .align 64 .b8 map[128], .param .u64 data)
{{
  .shared .align 1024 .b8 box[16384]; .shared .align 8 .b64 bar;
  .reg .b64 %y<8>; .reg .b32 %x<8>; .reg .pred %q; .reg .b16 %h;
  mov.b64 %y0, map; cvta.param.u64 %y1, %y0; ld.param.u64 %y2, [data]; mov.u32 %x1, 0;
  {text}
  ret;
}}
"""

READ = """
  mbarrier.init.shared.b64 [bar], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {size};
  {instruction};
  WAIT: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra WAIT;
  LOOP: mov.u32 %x2, box; add.u32 %x2, %x2, %x1; ld.shared.b32 %x3, [%x2];
  cvt.u64.u32 %y3, %x1; add.u64 %y3, %y2, %y3; st.global.b32 [%y3], %x3;
  add.u32 %x1, %x1, 4; setp.lt.u32 %q, %x1, {size}; @%q bra LOOP;
"""

WRITE = """
  LOOP: mov.u32 %x2, box; add.u32 %x2, %x2, %x1; cvt.u64.u32 %y3, %x1; add.u64 %y3, %y2, %y3;
  ld.global.b32 %x3, [%y3]; st.shared.b32 [%x2], %x3;
  add.u32 %x1, %x1, 4; setp.lt.u32 %q, %x1, {size}; @%q bra LOOP;
  fence.proxy.async.shared::cta;
  {instruction};
  cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
"""


def listed(values: tuple[int, ...]) -> str:
    return "{" + ", ".join(map(str, values)) + "}"


def loading(mode: str, at: tuple[int, ...], offsets: tuple[int, ...] = ()) -> str:
    """A load from PTX-ordered coordinates."""
    rank = 2 if "gather" in mode else len(at)
    extra = f", {listed(offsets)}" if offsets else ""
    name = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
    return f"{name} [box], [%y1, {listed(at)}], [bar]{extra}"


def load(tensor_map: TensorMap, instruction: str, size: int) -> NDArray[np.uint8]:
    """What shared memory has after a load of ``size`` bytes."""
    found = np.zeros(size, np.uint8)
    text = READ.format(instruction=instruction, size=size)
    Module(PTX.format(text=text)).launch("test", 1, 1, [tensor_map, found])
    return found


def store(tensor_map: TensorMap, instruction: str, values: NDArray[Any]) -> None:
    """Stores an array's bytes from shared memory."""
    given = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    text = WRITE.format(instruction=instruction, size=given.size)
    Module(PTX.format(text=text)).launch("test", 1, 1, [tensor_map, given])


def filled(*shape: int, dtype: Any = np.uint32) -> NDArray[Any]:
    """An array of random numbers, none of them 0."""
    return np.random.default_rng(5).integers(1, 250, shape).astype(dtype)


# ---- four rows of a matrix -----------------------------------------------------------------------------------------------

GATHERED = [((0, 3, 3, 9), 4), ((-1, 2, 5, 10), 0), ((7, 6, 20, 1), -2), ((1, 1, 1, 1), 14)]


@pytest.mark.parametrize(("rows", "column"), GATHERED)
def test_gather4(rows: tuple[int, ...], column: int) -> None:
    array = filled(10, 16)
    found = load(TensorMap(array, box=(1, 8)), loading("tile::gather4", (column, *rows)), 128).view(np.uint32)
    padded = np.pad(array, [(1, 11), (8, 8)])
    expected = [padded[row + 1, column + 8 : column + 16] for row in rows]
    np.testing.assert_array_equal(found.reshape(4, 8), expected)


@pytest.mark.parametrize("swizzle", ["32B", "64B", "128B"])
def test_gather4_swizzles_like_a_box_of_four_rows(swizzle: str) -> None:
    width = int(swizzle[:-1]) // 4
    array = filled(16, 64)
    gathered = load(
        TensorMap(array, box=(1, width), swizzle=swizzle), loading("tile::gather4", (8, 5, 2, 11, 8)), 16 * width
    )
    together = np.ascontiguousarray(array[[5, 2, 11, 8], 8 : 8 + width])
    expected = load(TensorMap(together, box=(4, width), swizzle=swizzle), loading("tile", (0, 0)), 16 * width)
    np.testing.assert_array_equal(gathered, expected)


@pytest.mark.parametrize(("rows", "column"), [((0, 3, 2, 9), 4), ((5, 20, 6, 10), 12)])
def test_scatter4(rows: tuple[int, ...], column: int) -> None:
    array, given = filled(10, 16), filled(4, 8) + 1000
    expected = array.copy()
    for row, values in zip(rows, given, strict=True):
        if row < 10:
            expected[row, column : column + 8] = values[: 16 - column]
    name = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
    store(TensorMap(array, box=(1, 8)), f"{name} [%y1, {listed((column, *rows))}], [box]", given)
    np.testing.assert_array_equal(array, expected)


# ---- columns of a convolution ----------------------------------------------------------------------------------------------


def columns(
    array: NDArray[Any], taps: tuple[int, ...], padding: int, stride: int, dilation: int
) -> dict[Any, NDArray[Any]]:
    """For each tap of a convolution (its place in D, H, W) what it is multiplied with: an array (N, outputs ..., C)."""
    spatial = array.shape[1:-1]
    outputs = [(n + 2 * padding - dilation * (t - 1) - 1) // stride + 1 for n, t in zip(spatial, taps, strict=True)]
    padded = np.pad(array, [(0, 0), *[(padding, padding)] * len(taps), (0, 0)])
    found: dict[Any, NDArray[Any]] = {}
    for tap in itertools.product(*map(range, taps)):
        places: list[NDArray[Any]] = [np.arange(n) * stride + t * dilation for n, t in zip(outputs, tap, strict=True)]
        every: list[NDArray[Any]] = [np.arange(len(array)), *places, np.arange(array.shape[-1])]
        found[tap] = padded[np.ix_(*every)]
    return found


CONVOLUTIONS = [
    ((3, 11, 16), (3,), 1, 1, 1),
    ((4, 9, 16), (4,), 2, 2, 2),
    ((2, 5, 6, 16), (3, 3), 1, 1, 1),
    ((3, 7, 8, 16), (3, 2), 0, 2, 1),
    ((2, 6, 5, 16), (1, 3), 2, 3, 2),
    ((2, 3, 4, 5, 16), (2, 3, 3), 1, 1, 1),
    ((2, 5, 4, 5, 16), (2, 2, 3), 1, 2, 1),
]


@pytest.mark.parametrize(("shape", "taps", "padding", "stride", "dilation"), CONVOLUTIONS)
def test_im2col(shape: tuple[int, ...], taps: tuple[int, ...], padding: int, stride: int, dilation: int) -> None:
    array = filled(*shape)
    rank, pixels = len(shape), 13
    tensor_map = TensorMap.im2col(
        array,
        lower=[-padding] * len(taps),
        upper=[padding - dilation * (t - 1) for t in taps],
        channels=8,
        pixels=pixels,
        element_strides=(1, *[stride] * len(taps), 1),
    )
    rng = np.random.default_rng(1)
    for tap, matrix in columns(array, taps, padding, stride, dilation).items():
        outputs = matrix.shape[:-1]
        flat = np.concatenate((matrix.reshape(-1, 16), np.zeros((pixels, 16), np.uint32)))
        for first in (0, int(rng.integers(np.prod(outputs))), int(np.prod(outputs)) - 2):
            n, *place = np.unravel_index(first, outputs)
            at = (4, *[int(p) * stride - padding for p in reversed(place)], int(n))
            instruction = loading("im2col", at, tuple(t * dilation for t in reversed(tap)))
            found = load(tensor_map, instruction, pixels * 32).view(np.uint32)
            np.testing.assert_array_equal(found.reshape(pixels, 8), flat[first : first + pixels, 4:12])
    assert rank == len(taps) + 2


@pytest.mark.parametrize(
    ("mode", "halo", "shift"), [("im2col::w", 0, 1), ("im2col::w", 3, 2), ("im2col::w::128", 0, 0)]
)
@pytest.mark.parametrize("stride", [1, 2])
def test_im2col_of_rows(mode: str, halo: int, shift: int, stride: int) -> None:
    """The rows of pixels at one H, image after image: the outputs of a convolution of one row of the image."""
    array = filled(5, 3, 9, 8)
    count = 128 if mode.endswith("128") else 10 + halo
    tensor_map = TensorMap.im2col(
        array, lower=-1, upper=-1, channels=8, pixels=10, element_strides=(1, 1, stride, 1), swizzle="32B"
    )
    matrix = columns(array[:, 1], (3,), 1, stride, 1)[shift,]
    flat = np.concatenate((matrix.reshape(-1, 8), np.zeros((128, 8), np.uint32)))
    first = matrix.shape[1] + 2
    instruction = loading(mode, (0, 2 * stride - 1, 1, 1), (halo, shift))
    found = load(tensor_map, instruction, count * 32).view(np.uint32).reshape(count, 8)
    cells = np.arange(count * 2)  # the 32B swizzle: bit 7 of an address goes into bit 4
    found = found.reshape(-1, 4)[cells ^ (cells >> 3 & 1)].reshape(count, 8)
    np.testing.assert_array_equal(found, flat[first : first + count])


def test_im2col_of_rows_may_begin_left_of_the_box() -> None:
    array = filled(2, 1, 4, 8)
    tensor_map = TensorMap.im2col(array, lower=0, upper=0, channels=8, pixels=7, swizzle="32B")
    found = load(tensor_map, loading("im2col::w", (0, -2, 0, 0), (0, 0)), 7 * 32).view(np.uint32).reshape(-1, 4)
    cells = np.arange(14)
    zeros = np.zeros((2, 8), np.uint32)
    expected = np.concatenate((zeros, array[0, 0], array[1, 0, :1]))
    np.testing.assert_array_equal(found[cells ^ (cells >> 3 & 1)].reshape(7, 8), expected)


MULTICAST = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry test(.param .align 64 .b8 map[128], .param .u64 data) .reqnctapercluster 2
{{
  .shared .align 1024 .b8 box[2048]; .shared .align 8 .b64 bar;
  .reg .b64 %y<8>; .reg .b32 %x<8>; .reg .pred %q; .reg .b16 %h;
  mov.b64 %y0, map; cvta.param.u64 %y1, %y0; ld.param.u64 %y2, [data]; mov.u32 %x0, %cluster_ctarank; mov.u32 %x1, 0;
  mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {size};
  barrier.cluster.arrive; barrier.cluster.wait;
  createpolicy.fractional.L2::evict_first.b64 %y4, 1.0;
  setp.eq.u32 %q, %x0, 1; mov.b16 %h, {mask};
  @%q {instruction};
  WAIT: mbarrier.try_wait.parity.shared.b64 %q, [bar], 0; @!%q bra WAIT;
  mul.lo.u32 %x4, %x0, {size}; cvt.u64.u32 %y3, %x4; add.u64 %y2, %y2, %y3;
  LOOP: mov.u32 %x2, box; add.u32 %x2, %x2, %x1; ld.shared.b32 %x3, [%x2];
  cvt.u64.u32 %y3, %x1; add.u64 %y3, %y2, %y3; st.global.b32 [%y3], %x3;
  add.u32 %x1, %x1, 4; setp.lt.u32 %q, %x1, {size}; @%q bra LOOP;
  barrier.cluster.arrive; barrier.cluster.wait;
  ret;
}}
"""
"""Block 1 of a cluster of two loads for both."""


@pytest.mark.parametrize(
    ("mode", "at", "offsets"),
    [
        ("tile::gather4", (4, 0, 3, 3, 9), ""),
        ("im2col", (4, 1, 0), ", {%h1}"),
        ("im2col::w", (4, 1, 0), ", {0, %h1}"),
    ],
)
@pytest.mark.parametrize("hinted", [False, True])
def test_multicasts_and_cache_hints(mode: str, at: tuple[int, ...], offsets: str, hinted: bool) -> None:
    """The mask of blocks and the policy stand behind the offsets; the tensor is read once. The offset is 2."""
    if mode == "tile::gather4":
        array = filled(10, 16)
        tensor_map, rows = TensorMap(array, box=(1, 8)), 4
        expected = array[[0, 3, 3, 9], 4:12]
    else:
        array, rows = filled(2, 6, 16), 5
        corners: dict[str, Any] = {"lower": -1, "upper": -1, "swizzle": "32B"}
        if mode == "im2col":
            corners = {"lower": (-1,), "upper": (-1,)}
        tensor_map = TensorMap.im2col(array, channels=8, pixels=rows, **corners)
        # The box is W = -1 to 4. From 1 on, moved by 2: 3, 4, 5, 6 (padding), then -1 + 2 of the second image.
        expected = np.concatenate((array[0, 3:6, 4:12], np.zeros((1, 8), np.uint32), array[1, 1:2, 4:12]))
    name = f"cp.async.bulk.tensor.{2 if 'gather' in mode else 3}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes"
    name += ".multicast::cluster" + ".L2::cache_hint" * hinted
    given = f"[box], [%y1, {listed(at)}], [bar]{offsets.replace('%h1', '2')}, %h" + ", %y4" * hinted
    found = np.zeros((2, rows, 8), np.uint32)
    text = MULTICAST.format(size=rows * 32, mask=3, instruction=f"{name} {given}")
    profile = Module(text).launch("test", 2, 1, [tensor_map, found])
    if "::w" in mode:
        cells = np.arange(rows * 2)
        found = found.reshape(2, -1, 4)[:, cells ^ (cells >> 3 & 1)].reshape(found.shape)
    np.testing.assert_array_equal(found, [expected, expected])
    inside = int((expected != 0).any(axis=1).sum())
    assert profile.total("async_global_load_bytes") == inside * 32
    assert profile.total("async_shared_store_bytes") == 2 * rows * 32


def test_im2col_stores() -> None:
    array, given = filled(2, 4, 5, 16), filled(9, 8) + 1000
    expected = array.copy()
    # From (1, 1, 2) on: 2, 3, 4 of the row, then 5 of the next, then one of row 3. Rows of the box end at W = 4 - 1.
    tensor_map = TensorMap.im2col(array, lower=(0, 1), upper=(0, -1), channels=8, pixels=9)
    places = [(1, 1, 2), (1, 1, 3), *[(1, 2, w) for w in (1, 2, 3)], *[(1, 3, w) for w in (1, 2, 3)]]
    for place, values in zip(places, given, strict=False):  # the ninth is beyond the last image
        expected[(*place, slice(8, 16))] = values
    store(
        tensor_map,
        "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%y1, {8, 2, 1, 1}], [box]",
        given,
    )
    np.testing.assert_array_equal(array, expected)
    store(
        tensor_map,
        "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group [%y1, {8, 2, 1, 1}], [box]",
        given,
    )
    for place, values in zip(places, given, strict=False):
        expected[(*place, slice(8, 16))] += values
    np.testing.assert_array_equal(array, expected)


def test_prefetches_move_nothing() -> None:
    array = filled(2, 4, 5, 16)
    tensor_map = TensorMap.im2col(array, lower=(0, 0), upper=(0, 0), channels=8, pixels=9)
    text = "cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%y1, {0, 0, 0, 0}], {0, 1};"
    profile = Module(PTX.format(text=text)).launch("test", 1, 1, [tensor_map, array])
    assert profile.total("async_global_load_bytes") == 0


# ---- what is wrong ---------------------------------------------------------------------------------------------------------

TILED: dict[str, Any] = {"box": (1, 2, 2, 8)}
CORNERS: dict[str, Any] = {"lower": (0, 0), "upper": (-1, -1), "channels": 8, "pixels": 4}
WIDE: dict[str, Any] = {"lower": 0, "upper": 0, "channels": 8, "pixels": 4, "swizzle": "32B"}

FAULTS: list[tuple[dict[str, Any], str, str]] = [
    (
        TILED,
        loading("im2col", (0, 0, 0, 0), (0, 0)),
        "a tensor copy of '.im2col' with a tensor map that is tiled, expected one that is im2col",
    ),
    (
        CORNERS,
        loading("tile", (0, 0, 0, 0)),
        "a tensor copy of '.tile' with a tensor map that is im2col, expected one that is tiled",
    ),
    (
        WIDE,
        loading("im2col", (0, 0, 0, 0), (0, 0)),
        "a tensor copy of '.im2col' with a tensor map that is im2col::w, expected one that is im2col",
    ),
    (
        CORNERS,
        loading("im2col", (0, 4, 0, 0), (0, 0)),
        "an im2col copy from {0, 4, 0, 0}, which is outside the box of pixels",
    ),
    (
        CORNERS,
        loading("im2col", (0, 0, -1, 0), (0, 0)),
        "an im2col copy from {0, 0, -1, 0}, which is outside the box of pixels",
    ),
    (
        WIDE,
        loading("im2col::w", (0, 5, 0, 0), (0, 0)),
        "an im2col copy from {0, 5, 0, 0}, which is outside the box of pixels",
    ),
    (CORNERS, loading("im2col", (0, 0, 0, 0), (0, 256)), "an im2col offset of 256, expected one below 256"),
    (WIDE, loading("im2col::w", (0, 0, 0, 0), (512, 0)), "wHalo of 512, expected one below 512"),
    (WIDE, loading("im2col::w", (0, 0, 0, 0), (0, 32)), "wOffset of 32, expected one below 32"),
    (WIDE, loading("im2col::w::128", (0, 0, 0, 0), (32, 0)), "wHalo of 32, expected one below 32"),
    (
        WIDE,
        loading("im2col::w::128", (0, 0, 0, 0), (1, 0)),
        "the emulator does not know how '.im2col::w::128' orders halos; give a wHalo of 0",
    ),
]


@pytest.mark.parametrize(("described", "instruction", "message"), FAULTS)
def test_faults(described: dict[str, Any], instruction: str, message: str) -> None:
    array = filled(2, 4, 5, 16)
    make = TensorMap if "box" in described else TensorMap.im2col
    with pytest.raises(Undefined) as caught:
        load(make(array, **described), instruction, 128)
    assert caught.value.message == message


def test_faults_of_rows() -> None:
    array = filled(8, 16)
    with pytest.raises(Undefined) as caught:
        load(TensorMap(array, box=(2, 8)), loading("tile::gather4", (0, 0, 1, 2, 3)), 128)
    assert caught.value.message == "a tensor copy of '.tile::gather4' with a box of 2 rows, expected 1"
    name = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group"
    with pytest.raises(Undefined) as caught:
        store(TensorMap(array, box=(1, 8)), f"{name} [%y1, {{0, 1, 2, -3, 4}}], [box]", filled(4, 8))
    assert caught.value.message == "a box that is stored at coordinates {0, -3}; only loads may start at negative ones"


def test_threads_with_different_halos_are_refused() -> None:
    text = (
        "mov.u32 %x4, %tid.x; cvt.u16.u32 %h, %x4; "
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes "
        "[box], [%y1, {0, 0, 0}], [bar], {%h, 0};"
    )
    array = filled(2, 5, 16)
    tensor_map = TensorMap.im2col(array, **WIDE)
    with pytest.raises(Undefined) as caught:
        Module(PTX.format(text=f"mbarrier.init.shared.b64 [bar], 1; {text}")).launch("test", 1, 2, [tensor_map, array])
    assert (
        caught.value.message
        == "threads of one execution of '.im2col::w' with different wHalo are not known to the emulator"
    )


REFUSED = [
    (loading("im2col", (0, 0, 0, 0), (0,)), "'.im2col' of .4d has 2 offsets, not 1"),
    (loading("im2col", (0, 0), (0,)), "'.im2col' is of tensors of .3d, .4d or .5d"),
    (loading("im2col::w", (0, 0, 0), (0,)), "'.im2col::w' of .3d has 2 offsets, not 1"),
    (loading("tile::gather4", (0, 0)), "a tensor copy of .2d has 5 coordinates, not 2"),
    (
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes "
        "[box], [%y1, {0, 0, 0, 0, 0}], [bar]",
        "'.tile::gather4' is of .2d tensors",
    ),
    (loading("tile::scatter4", (0, 0, 0, 0, 0)), "'.tile::scatter4' is not for copies to .shared::cluster"),
    (
        "cp.async.bulk.tensor.3d.global.shared::cta.im2col.bulk_group [%y1, {0, 0, 0}], [box]",
        "'.im2col' is not for copies to .global",
    ),
]


@pytest.mark.parametrize(("instruction", "message"), REFUSED)
def test_refusals(instruction: str, message: str) -> None:
    array = filled(2, 4, 5, 16)
    with pytest.raises(PTXError) as caught:
        load(TensorMap(array, box=(1, 2, 2, 8)), instruction, 128)
    assert str(caught.value).splitlines()[0].split(": ", 1)[1] == message


MAPS: list[tuple[dict[str, Any], str]] = [
    ({"lower": (0,)}, "lower has 1 entries, expected 2"),
    ({"upper": (0, 0, 0)}, "upper has 3 entries, expected 2"),
    ({"lower": (0, -129)}, "a corner of the box of pixels is -129, expected -128 to 127"),
    ({"upper": (128, 0)}, "a corner of the box of pixels is 128, expected -128 to 127"),
    ({"upper": (0, -5)}, "the box of pixels is empty"),
    ({"pixels": 1025}, "a column has 1025 pixels, expected 1 to 1024"),
    ({"channels": 3}, "a row of the box has 12 bytes, expected a multiple of 16"),
    ({"lower": 0, "upper": 0}, "im2col::w needs a swizzle"),
]


@pytest.mark.parametrize(("changed", "message"), MAPS)
def test_maps_that_are_none(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="TensorMap") as caught:
        TensorMap.im2col(filled(2, 4, 5, 16), **CORNERS | changed)
    assert str(caught.value) == f"TensorMap: {message}"


def test_a_matrix_has_no_columns() -> None:
    with pytest.raises(ValueError, match="TensorMap") as caught:
        TensorMap.im2col(filled(4, 16), lower=(), upper=(), channels=8, pixels=4)
    assert str(caught.value) == "TensorMap: the tensor has 2 axes, expected 3 to 5 for im2col"


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas on this machine")
def test_ptxas_takes_what_is_executed_and_refuses_what_is_refused(tmp_path: Path) -> None:
    def verdict(text: str) -> int:
        source = tmp_path / "k.ptx"
        source.write_text(PTX.format(text=text + ";"))
        command = ["ptxas", "-arch=sm_100a", "-o", str(tmp_path / "k.cubin"), str(source)]
        return subprocess.run(command, capture_output=True, check=False).returncode

    assert verdict("; ".join(instruction for _, instruction, _ in FAULTS)) == 0
    assert all(verdict(instruction) != 0 for instruction, _ in REFUSED)
