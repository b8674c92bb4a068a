"""Tensor copies in programs: against NumPy's slices and the ISA's swizzles; stores, reductions, counts, and what is wrong."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from weft.emulator import Checks, Fault, Misaligned, Module, OutOfBounds, PTXError, Race, TensorMap, Undefined
from weft.emulator.profile.profile import Profile

HEAD = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry test(.param .align 64 .b8 map[128], .param .u64 out, .param .align 4 .b8 at[20])
{
  .shared .align 1024 .b8 data[16384]; .shared .align 8 .b64 bar[2];
  .reg .b64 %y<8>; .reg .b32 %x<16>; .reg .b32 %c<5>; .reg .pred %q<8>; .reg .b16 %h<4>;
  mov.u32 %x0, %tid.x; setp.ne.u32 %q0, %x0, 0; mov.u32 %x9, data; mov.u32 %x10, bar;
  mov.b64 %y0, map; cvta.param.u64 %y1, %y0; ld.param.u64 %y2, [out];
  ld.param.b32 %c0, [at]; ld.param.b32 %c1, [at+4]; ld.param.b32 %c2, [at+8];
  ld.param.b32 %c3, [at+12]; ld.param.b32 %c4, [at+16];
  @!%q0 mbarrier.init.shared.b64 [bar], 1;
  bar.sync 0;
"""

LOAD = """
  @%q0 bra LOADED;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};
  cp.async.bulk.tensor.{rank}d.shared::cluster.global{tile}.mbarrier::complete_tx::bytes [%x9+{base}], [%y1, {{{at}}}], [%x10];
  LOADED: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0; @!%q1 bra LOADED;
"""

READ = """
  shl.b32 %x1, %x0, 2;
  LOOP: setp.ge.u32 %q2, %x1, {bytes}; @%q2 bra DONE;
  add.u32 %x2, %x1, %x9; ld.shared.u32 %x3, [%x2+{base}];
  cvt.u64.u32 %y3, %x1; add.u64 %y4, %y2, %y3; st.global.u32 [%y4], %x3;
  add.u32 %x1, %x1, 512; bra LOOP;
  DONE:
"""

FILL = """
  // Shared memory gets the output array's first {bytes} bytes.
  shl.b32 %x1, %x0, 2;
  LOOP: setp.ge.u32 %q2, %x1, {bytes}; @%q2 bra FILLED;
  cvt.u64.u32 %y3, %x1; add.u64 %y4, %y2, %y3; ld.global.u32 %x3, [%y4];
  add.u32 %x2, %x1, %x9; st.shared.u32 [%x2+{base}], %x3;
  add.u32 %x1, %x1, 512; bra LOOP;
  FILLED: fence.proxy.async.shared::cta; bar.sync 0;
"""

STORE = """
  @%q0 bra STORED;
  {instruction} [%y1, {{{at}}}], [%x9+{base}];
  cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;
  STORED:
"""


def coordinates(at: tuple[int, ...]) -> bytes:
    """The third parameter: up to five coordinates, PTX's order."""
    return np.array([*at, *[0] * (5 - len(at))], np.int32).tobytes()


def names(rank: int) -> str:
    return ", ".join(f"%c{k}" for k in range(rank))


def load(
    tensor_map: TensorMap,
    start: tuple[int, ...],
    size: int,
    base: int = 0,
    tile: str = "",
    checks: Checks | None = None,
) -> tuple[NDArray[np.uint8], Profile]:
    """What shared memory has from ``base`` on after a load of ``size`` bytes at NumPy-ordered coordinates."""
    rank = len(start)
    text = LOAD.format(bytes=size, rank=rank, tile=tile, base=base, at=names(rank)) + READ.format(bytes=size, base=base)
    found = np.zeros(size, np.uint8)
    args = [tensor_map, found, coordinates(start[::-1])]
    return found, Module(HEAD + text + "ret;\n}").launch("test", 1, 128, args, checks=checks)


def sliced(
    array: NDArray[Any], start: tuple[int, ...], box: tuple[int, ...], fill: int = 0, steps: Any = None
) -> NDArray[np.uint8]:
    """The box's bytes: of the array padded on all sides."""
    steps = steps or (1,) * len(start)
    padded = np.pad(
        array.view(f"u{array.itemsize}"),
        [(b + abs(c), b + 9) for b, c in zip(box, start, strict=True)],
        constant_values=fill,
    )
    cut = tuple(slice(b + abs(c) + c, b + abs(c) + c + b, s) for b, c, s in zip(box, start, steps, strict=True))
    return np.ascontiguousarray(padded[cut]).reshape(-1).view(np.uint8)


def filled(*shape: int, dtype: Any = np.uint32, seed: int = 3) -> NDArray[Any]:
    """An array of random bytes."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.random.default_rng(seed).integers(0, 256, count).astype(np.uint8).view(dtype).reshape(shape)


# ---- loads -----------------------------------------------------------------------------------------------------------------

RANKS = [
    ((100,), (32,), np.uint32),
    ((20, 16), (8, 4), np.uint32),
    ((9, 64), (4, 32), np.float16),
    ((5, 6, 32), (2, 3, 16), np.uint8),
    ((3, 4, 5, 8), (2, 2, 3, 4), np.float32),
    ((3, 2, 3, 4, 8), (2, 1, 2, 3, 2), np.int64),
]


@pytest.mark.parametrize(("shape", "box", "dtype"), RANKS)
def test_loads_inside_and_beyond_every_side(shape: tuple[int, ...], box: tuple[int, ...], dtype: Any) -> None:
    array = filled(*shape, dtype=dtype)
    size = int(np.prod(box)) * array.itemsize
    starts = [tuple((n - b) // 2 for n, b in zip(shape, box, strict=True))]
    for k, (n, b) in enumerate(zip(shape, box, strict=True)):
        starts += [
            tuple(c if i == k else s for i, s in enumerate(starts[0])) for c in (-1, 1 - b, -b, n - 1, n - b + 1, n)
        ]
    for start in starts:
        found, profile = load(TensorMap(array, box=box), start, size)
        np.testing.assert_array_equal(found, sliced(array, start, box), err_msg=str(start))
        assert profile.total("async_shared_store_bytes") == size
        inside = [max(min(c + b, n) - max(c, 0), 0) for c, b, n in zip(start, box, shape, strict=True)]
        assert profile.total("async_global_load_bytes") == np.prod(inside) * array.itemsize


def test_element_strides_and_padded_rows() -> None:
    memory = filled(40, 24, dtype=np.uint16)
    array = memory[4:36, :20]  # rows of 40 bytes, 48 bytes apart
    found, _ = load(TensorMap(array, box=(12, 8), element_strides=(3, 1)), (5, 4), 4 * 16)
    np.testing.assert_array_equal(found, sliced(array, (5, 4), (12, 8), steps=(3, 1)))
    flat = memory.reshape(-1)
    described = TensorMap(
        flat, shape=(32, 20), dtype=np.uint16, strides=(48, 2), offset=4 * 48, box=(4, 8), l2_promotion="128B"
    )
    found, _ = load(described, (30, 15), 64)
    np.testing.assert_array_equal(found, sliced(array, (30, 15), (4, 8)))


@pytest.mark.parametrize(
    ("dtype", "nan"),
    [(np.float16, 0x7FF7), (ml_dtypes.bfloat16, 0x7FF7), (np.float32, 0x7FF77FF7), (np.float64, 0x7FF77FF77FF77FF7)],
)
def test_nans_for_what_is_outside(dtype: Any, nan: int) -> None:
    array = filled(6, 16, dtype=dtype)
    found, _ = load(TensorMap(array, box=(4, 8), fill="nan"), (-2, 12), 32 * array.itemsize)
    np.testing.assert_array_equal(found, sliced(array, (-2, 12), (4, 8), fill=nan))


ONE = 0x3F80_0000


@pytest.mark.parametrize(
    ("element", "given", "wanted"),
    [
        ("tf32", [ONE | 0x0FFF, ONE | 0x1000, ONE | 0x1001, ONE | 0x3000], [ONE, ONE, ONE | 0x2000, ONE | 0x4000]),
        (
            "tf32",
            [0xBF80_1001, 0x7F7F_FFFF, 0xFF80_0000, 0x7F80_0001],
            [0xBF80_2000, 0x7F80_0000, 0xFF80_0000, 0x7FFF_FFFF],
        ),
        ("tf32", [0x0000_1FFF, 0x8000_0001, 0, 0], [0x0000_2000, 0x8000_0000, 0, 0]),
        (
            "tf32.ftz",
            [0x0000_1FFF, 0x807F_FFFF, 0x0080_0000, ONE | 0x1001],
            [0, 0x8000_0000, 0x0080_0000, ONE | 0x2000],
        ),
        ("f32.ftz", [0x0000_1FFF, 0x807F_FFFF, 0x0080_0000, ONE | 0x1001], [0, 0x8000_0000, 0x0080_0000, ONE | 0x1001]),
    ],
)
def test_elements_that_loads_change(element: str, given: list[int], wanted: list[int]) -> None:
    array = np.tile(np.array(given, np.uint32), (4, 2)).view(np.float32)
    found, _ = load(TensorMap(array, box=(8, 8), element=element), (0, 0), 256)
    expected = np.zeros((8, 8), np.uint32)
    expected[:4] = np.tile(np.array(wanted, np.uint32), (4, 2))
    np.testing.assert_array_equal(found.view(np.uint32).reshape(8, 8), expected)
    with pytest.raises(
        Undefined, match=f"to global memory of elements of type {element}, which nothing says the values of"
    ):
        store(array, TensorMap(array, box=(4, 8), element=element), (0, 0), np.zeros(128, np.uint8))


def test_what_is_outside_is_not_rounded() -> None:
    array = np.ones((4, 8), np.float32)
    found, _ = load(TensorMap(array, box=(4, 8), element="tf32", fill="nan"), (2, 0), 128)
    assert set(found.view(np.uint32)[16:].tolist()) == {0x7FF7_7FF7}


# PTX ISA 5.5.7: the n-th 16-byte cell of a line of 128 bytes, and which cell of the unswizzled line it is.
TABLES: dict[str, list[str]] = {
    "32B": ["01234567", "10325476"],
    "64B": ["01234567", "10325476", "23016745", "32107654"],
    "128B": ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"],
    "128B_ATOM_32B": ["01234567", "23016745", "45670123", "67452301"],
    "128B_ATOM_32B_FLIP_8B": ["01234567", "23016745", "45670123", "67452301"],
    "128B_ATOM_64B": ["01234567", "45670123"],
}
MODES = [("32B", 16), ("64B", 32), *((mode, 64) for mode in TABLES if mode.startswith("128B"))]


def swizzled(dense: NDArray[np.uint8], mode: str, base: int) -> NDArray[np.uint8]:
    """Whole lines of a box at ``base``, by the table. Odd lines of the flip have the halves of each cell exchanged."""
    lines = dense.reshape(-1, 8, 16).copy()
    rows = [TABLES[mode][(base // 128 + i) % len(TABLES[mode])] for i in range(len(lines))]
    if "FLIP" in mode:
        odd = slice(1 - base // 128 % 2, None, 2)
        lines[odd] = np.roll(lines[odd], 8, axis=2)
    return np.stack([line[[int(c) for c in row]] for line, row in zip(lines, rows, strict=True)]).reshape(-1)


@pytest.mark.parametrize(("mode", "columns"), MODES)
@pytest.mark.parametrize("base", [0, 1024, 384])
def test_swizzles(mode: str, columns: int, base: int) -> None:
    array = filled(100, 128, dtype=np.float16)
    box = (64, columns)
    found, _ = load(TensorMap(array, box=box, swizzle=mode), (50, 30), 64 * columns * 2, base, ".tile")
    np.testing.assert_array_equal(found, swizzled(sliced(array, (50, 30), box), mode, base))


def test_several_threads_and_blocks_load_boxes_of_their_own() -> None:
    """Thread i of the first four loads box i of its block's row of boxes."""
    text = """
    setp.gt.u32 %q3, %x0, 3; @%q3 bra LOADED;
    @!%q0 mbarrier.expect_tx.shared.b64 [bar], 2048;
    bar.warp.sync 0xf;
    mov.u32 %x4, %ctaid.x; shl.b32 %c1, %x4, 3; shl.b32 %c0, %x0, 4; shl.b32 %x5, %x0, 9; add.u32 %x5, %x5, %x9;
    cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%x5], [%y1, {%c0, %c1}], [%x10];
    bar.warp.sync 0xf;
    @!%q0 mbarrier.arrive.shared.b64 _, [bar];
    mul.lo.u32 %x4, %x4, 2048; cvt.u64.u32 %y3, %x4; add.u64 %y2, %y2, %y3;
    bra WAIT;
    LOADED: mov.u32 %x4, %ctaid.x; mul.lo.u32 %x4, %x4, 2048; cvt.u64.u32 %y3, %x4; add.u64 %y2, %y2, %y3;
    WAIT: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0; @!%q1 bra WAIT;
    """
    array, found = filled(24, 64), np.zeros((3, 2048), np.uint8)
    module = Module(HEAD + text + READ.format(bytes=2048, base=0) + "ret;\n}")
    module.launch("test", 3, 128, [TensorMap(array, box=(8, 16)), found, coordinates(())])
    expected = array.reshape(3, 8, 4, 16).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(found.view(np.uint32), np.ascontiguousarray(expected).reshape(3, -1))


def test_what_is_counted() -> None:
    # Rows of 48 bytes, 80 bytes apart: row k from byte 80 k + 16 to 80 k + 64.
    array = filled(8, 20)
    _, profile = load(TensorMap(array, box=(4, 12)), (2, 4), 192)
    sectors = {(80 * (2 + k) + 16 + i) // 32 for k in range(4) for i in range(48)}
    assert profile.total("async_global_load_sectors") == len(sectors)
    assert profile.total("global_load_bytes") == 0


@pytest.mark.parametrize("checks", [Checks.none(), Checks(races=False), Checks(uninitialised=False)])
def test_the_same_without_checks(checks: Checks) -> None:
    array = filled(20, 64, dtype=np.float16)
    found, _ = load(TensorMap(array, box=(8, 64), swizzle="128B"), (15, 8), 1024, checks=checks)
    np.testing.assert_array_equal(found, swizzled(sliced(array, (15, 8), (8, 64)), "128B", 0))


# ---- stores ----------------------------------------------------------------------------------------------------------------


def store(
    array: NDArray[Any],
    tensor_map: TensorMap,
    start: tuple[int, ...],
    given: NDArray[np.uint8],
    base: int = 0,
    operation: str = "",
) -> Profile:
    """Stores the bytes, as they are in shared memory from ``base`` on, to a box at NumPy-ordered coordinates."""
    rank = len(start)
    reduce = "cp.reduce.async.bulk.tensor" if operation else "cp.async.bulk.tensor"
    instruction = f"{reduce}.{rank}d.global.shared::cta{operation}.tile.bulk_group"
    text = FILL.format(bytes=given.size, base=base) + STORE.format(instruction=instruction, at=names(rank), base=base)
    return Module(HEAD + text + "ret;\n}").launch("test", 1, 128, [tensor_map, given, coordinates(start[::-1])])


@pytest.mark.parametrize(("shape", "box", "dtype"), RANKS)
def test_stores_are_cut_off_at_the_end(shape: tuple[int, ...], box: tuple[int, ...], dtype: Any) -> None:
    given = filled(*box, dtype=dtype, seed=8)
    middle = tuple((n - b) // 2 for n, b in zip(shape, box, strict=True))
    starts = [middle, tuple(n - 1 for n in shape), shape]
    starts += [tuple(n - 1 if i == k else s for i, s in enumerate(middle)) for k, n in enumerate(shape)]
    for start in starts:
        array = filled(*shape, dtype=dtype)
        expected = array.copy()
        cut = tuple(slice(c, c + b) for c, b in zip(start, box, strict=True))
        part = tuple(slice(0, max(min(b, n - c), 0)) for c, b, n in zip(start, box, shape, strict=True))
        expected[cut] = given[part]
        profile = store(array, TensorMap(array, box=box), start, given.reshape(-1).view(np.uint8))
        assert array.tobytes() == expected.tobytes(), start
        assert profile.total("async_global_store_bytes") == given[part].nbytes
        assert profile.total("async_shared_load_bytes") == given.nbytes


@pytest.mark.parametrize(("mode", "columns"), MODES)
@pytest.mark.parametrize("base", [0, 640])
def test_swizzled_stores(mode: str, columns: int, base: int) -> None:
    given = filled(32, columns, dtype=np.uint16, seed=4)
    array = np.zeros((40, 128), np.uint16)
    store(
        array,
        TensorMap(array, box=(32, columns), swizzle=mode),
        (3, 8),
        swizzled(given.reshape(-1).view(np.uint8), mode, base),
        base,
    )
    expected = np.zeros_like(array)
    expected[3:35, 8 : 8 + columns] = given
    np.testing.assert_array_equal(array, expected)


REDUCTIONS: list[tuple[str, Any, Any]] = [
    (".add", np.uint32, np.add),
    (".add", np.int32, np.add),
    (".add", np.uint64, np.add),
    (".min", np.int32, np.minimum),
    (".max", np.int64, np.maximum),
    (".inc", np.uint32, lambda a, b: np.where(a >= b, 0, a + 1)),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    (".dec", np.uint32, lambda a, b: np.where((a == 0) | (a > b), b, a - 1)),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    (".and", np.uint32, np.bitwise_and),
    (".or", np.int64, np.bitwise_or),
    (".xor", np.uint64, np.bitwise_xor),
]


@pytest.mark.parametrize(("operation", "dtype", "expected"), REDUCTIONS)
def test_reductions(operation: str, dtype: Any, expected: Any) -> None:
    array, given = filled(10, 16, dtype=dtype), filled(4, 8, dtype=dtype, seed=9)
    result = array.copy()
    result[8:10, 12:16] = expected(array[8:10, 12:16], given[:2, :4])
    store(array, TensorMap(array, box=(4, 8)), (8, 12), given.reshape(-1).view(np.uint8), operation=operation)
    np.testing.assert_array_equal(array, result)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_sums_of_floats(dtype: Any) -> None:
    """Numbers of few bits, whose sums are exact."""
    rng = np.random.default_rng(2)
    array, given = (rng.integers(-60, 60, shape).astype(dtype) for shape in ((6, 16), (2, 8)))
    result = array.copy()
    result[1:3, 4:12] = (array[1:3, 4:12].astype(np.float64) + given.astype(np.float64)).astype(dtype)
    store(array, TensorMap(array, box=(2, 8)), (1, 4), given.reshape(-1).view(np.uint8), operation=".add")
    assert array.tobytes() == result.tobytes()


def test_prefetches_do_nothing() -> None:
    text = "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%y1, {%c0, %c1}];"
    array = filled(8, 16)
    args = [TensorMap(array, box=(4, 8)), np.zeros(4), coordinates((100, -9))]
    profile = Module(HEAD + text + "ret;\n}").launch("test", 1, 32, args)
    assert profile.total("async_global_load_bytes") == 0


# ---- who has seen it -------------------------------------------------------------------------------------------------------


def test_boxes_that_nobody_waits_for() -> None:
    array = filled(8, 16)
    text = LOAD.format(bytes=128, rank=2, tile="", base=0, at=names(2)) + READ.format(bytes=128, base=0)
    args = [TensorMap(array, box=(4, 8)), np.zeros(128, np.uint8), coordinates((0, 0))]
    hasty = text.replace("LOADED: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0; @!%q1 bra LOADED;", "LOADED:")
    with pytest.raises(Race) as caught:
        Module(HEAD + hasty + "ret;\n}").launch("test", 1, 128, args)
    assert caught.value.message.endswith("nothing orders them: its completion is not waited for")


def test_stores_need_a_proxy_fence() -> None:
    array, given = np.zeros((8, 16), np.uint32), filled(4, 8)
    text = FILL.format(bytes=128, base=0) + STORE.format(
        instruction="cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", at=names(2), base=0
    )
    args = [TensorMap(array, box=(4, 8)), given, coordinates((0, 0))]
    with pytest.raises(Race) as caught:
        Module(HEAD + text.replace("fence.proxy.async.shared::cta;", "") + "ret;\n}").launch("test", 1, 128, args)
    assert caught.value.message.endswith("a generic write that no fence.proxy.async follows")


# ---- what is wrong ---------------------------------------------------------------------------------------------------------


def fault_of(action: Any, kind: type[Fault]) -> Fault:
    with pytest.raises(kind) as caught:
        action()
    assert type(caught.value) is kind
    return caught.value


def test_faults_of_loads() -> None:
    array = filled(8, 16)
    good = TensorMap(array, box=(4, 8))
    error = fault_of(lambda: load(good, (0, 0), 128, base=64), Misaligned)
    assert error.message == "a box in shared memory at an address that is no multiple of 128"
    assert error.where.address == "0x40 of the block's shared memory (16400 bytes)"
    error = fault_of(lambda: load(good, (0, 0, 0), 128), Undefined)
    assert error.message == "a tensor copy of 3 dimensions, with a tensor map of 2"
    error = fault_of(lambda: load(good, (0, 0), 128, base=16384), OutOfBounds)
    assert error.message == "write of 128 bytes of shared memory"
    driver = np.arange(128, dtype=np.uint8).tobytes()
    error = fault_of(lambda: load(driver, (0, 0), 128), Undefined)  # pyright: ignore[reportArgumentType]
    assert error.message == (
        "these 128 bytes are no tensor map: one that the CUDA driver encoded is opaque; "
        "give the launch a weft.emulator.TensorMap instead"
    )


def test_faults_of_stores() -> None:
    array, given = filled(8, 16), np.zeros(128, np.uint8)
    good = TensorMap(array, box=(4, 8))
    error = fault_of(lambda: store(array, good, (-1, 3), given), Undefined)
    assert error.message == "a box that is stored at coordinates {3, -1}; only loads may start at negative ones"
    halves = filled(8, 16, dtype=np.float32)
    error = fault_of(lambda: store(halves, TensorMap(halves, box=(4, 8)), (0, 0), given, operation=".min"), Undefined)
    assert error.message == ".min of a tensor has elements of types u32, s32, u64, s64, f16, bf16, not f32"


def test_a_box_shorter_than_the_bytes_expected() -> None:
    """What is outside counts as copied, so the barrier completes; what a program expects too much never does."""
    array = filled(8, 16)
    found, _ = load(TensorMap(array, box=(4, 8)), (6, 12), 128)
    np.testing.assert_array_equal(found, sliced(array, (6, 12), (4, 8)))
    with pytest.raises(Fault) as caught:
        load(TensorMap(array, box=(4, 8)), (6, 12), 144)
    assert caught.value.message == (
        "threads wait for what will never come:\n    mbarrier at shared 0x4000: phase 0 lacks 16 bytes"
    )


REFUSED = [
    (
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col::h.mbarrier::complete_tx::bytes "
        "[%x9], [%y1, {%c0, %c1, %c2}], [%x10];",
        "the emulator does not know '.im2col::h' of cp",
    ),
    (
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%x9], [%y1, {%c0}], [%x10];",
        "a tensor copy of .2d has 2 coordinates, not 1",
    ),
    (
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%x9], [%y1], [%x10];",
        "operand 1 of cp must be a tensor map and coordinates",
    ),
    (
        "cp.async.bulk.tensor.1d.global.shared::cta.mbarrier::complete_tx::bytes [%y1, {%c0}], [%x9];",
        "there is no tensor copy from .shared::cta to .global with .mbarrier::complete_tx::bytes",
    ),
    (
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.bulk_group [%y1, {%c0}], [%x9];",
        "cp has none of .add, .min, .max, .inc, .dec, .and, .or, .xor",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refusals(text: str, message: str) -> None:
    array = filled(8, 16)
    with pytest.raises(PTXError) as caught:
        Module(HEAD + text + "ret;\n}").launch("test", 1, 32, [TensorMap(array, box=(4, 8)), array, coordinates(())])
    assert str(caught.value).startswith(f"PTX line {caught.value.line}: {message}\n")
