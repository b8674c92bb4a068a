"""Bulk copies and reductions: against slices of bytes and exact arithmetic on elements; who has seen them; and what is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from emulator_harness import kernel, run
from weft.emulator import Fault, Misaligned, OutOfBounds, PTXError, Race, Undefined
from weft.emulator.arith.bulk_reduce import GLOBAL, SHARED, reduction
from weft.emulator.machine.launch import Outcome

DECLARATIONS = """.shared .align 128 .b8 data[8192]; .shared .align 8 .b64 bar[4];
  .reg .b64 %s<8>; .reg .pred %q<8>; .reg .b32 %x<16>; .reg .b64 %y<8>; .reg .b16 %h<4>;"""

START = """
  mov.u32 %x0, %tid.x; setp.ne.u32 %q0, %x0, 0; mov.u32 %x9, data; mov.u32 %x10, bar;
  ld.param.u64 %y0, [p_src]; ld.param.u64 %y1, [p_dst];
  @!%q0 mbarrier.init.shared.b64 [bar], 1;
  bar.sync 0;
"""
"""%q0: not thread 0. %x9, %x10: shared memory, and an mbarrier of one arrival."""

WAIT = "\nWAIT: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0; @!%q1 bra WAIT;\n"

COPY_IN = """
  @%q0 bra AFTER;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], {size};
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x9], [%y0], {size}, [%x10];
  AFTER:
"""

STORE = """
  fence.proxy.async.shared::cta; bar.sync 0;
  @%q0 cp.async.bulk.commit_group;
  @%q0 bra STORED;
  cp.async.bulk.global.shared::cta.bulk_group [%y1], [%x9], {size};
  cp.async.bulk.commit_group;
  STORED: cp.async.bulk.wait_group{read} 0;
"""


def program(text: str) -> str:
    """A kernel of a source and a destination."""
    return (
        kernel(START + text, {}, {"src": "u64", "dst": "u64"}, DECLARATIONS).split("ld.param.u64 %at0, [p_src]")[0]
        + "ret;\n}\n"
    )


def launched(text: str, source: NDArray[Any], target: NDArray[Any], threads: int = 64, grid: int = 1) -> Outcome:
    return run(program(text), [source, target], grid=grid, block=threads)


def bytes_of(size: int, seed: int = 1) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, size).astype(np.uint8)


READ_BACK = """
  // Every thread copies its words of the first {size} bytes of shared memory to the destination.
  shl.b32 %x1, %x0, 2;
  LOOP: setp.ge.u32 %q2, %x1, {size}; @%q2 bra DONE;
  add.u32 %x2, %x1, %x9; ld.shared.u32 %x3, [%x2];
  cvt.u64.u32 %y2, %x1; add.u64 %y3, %y1, %y2; st.global.u32 [%y3], %x3;
  add.u32 %x1, %x1, 256; bra LOOP;
  DONE:
"""


@pytest.mark.parametrize("to", ["shared::cluster", "shared::cta"])
@pytest.mark.parametrize("size", [16, 128, 4080, 8192])
def test_into_shared_memory(to: str, size: int) -> None:
    source, found = bytes_of(size), np.zeros(size, np.uint8)
    text = COPY_IN.format(size=size).replace("shared::cluster", to)
    outcome = launched(text + WAIT + READ_BACK.format(size=size), source, found)
    np.testing.assert_array_equal(found, source)
    totals: dict[str, int] = {}
    for site in range(outcome.counters.sites):
        for name, amount in outcome.counters.rows()[site].items():
            totals[name] = totals.get(name, 0) + amount
    assert totals["async_global_load_bytes"] == totals["async_shared_store_bytes"] == size
    assert totals["async_global_load_sectors"] == -(-size // 32)
    assert "global_load_bytes" not in totals


@pytest.mark.parametrize("read", ["", ".read"])
def test_out_of_shared_memory(read: str) -> None:
    source, found = bytes_of(1024), np.zeros(2048, np.uint8)
    text = COPY_IN.format(size=1024) + WAIT + STORE.format(size=1024, read=read).replace("[%y1]", "[%y1+512]")
    launched(text, source, found)
    np.testing.assert_array_equal(found, np.concatenate([np.zeros(512), source, np.zeros(512)]))


def test_within_shared_memory() -> None:
    """A cluster of one block copies to itself."""
    text = (
        COPY_IN.format(size=256)
        + WAIT
        + """
    @%q0 bra COPIED;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; add.u32 %x1, %x9, 4096;
    cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%x1], [%x9], 256, [%x10];
    COPIED: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 1; @!%q1 bra COPIED;
    add.u32 %x9, %x9, 4096;
    """
        + READ_BACK.format(size=256)
    )
    # The loop of COPIED is behind the copy's label: thread 0 comes to it from the copy, the others by the branch.
    source, found = bytes_of(256), np.zeros(256, np.uint8)
    launched(text, source, found)
    np.testing.assert_array_equal(found, source)


def test_each_thread_its_own_size() -> None:
    """Lane i of warp 0 copies 16 (i % 4) bytes; a copy of none is none."""
    text = """
    setp.gt.u32 %q3, %x0, 31; @%q3 bra AFTER;
    @!%q0 mbarrier.expect_tx.shared.b64 [bar], 768;
    bar.warp.sync -1;
    and.b32 %x1, %x0, 3; shl.b32 %x1, %x1, 4; mul.lo.u32 %x2, %x0, 64; add.u32 %x3, %x9, %x2;
    cvt.u64.u32 %y2, %x2; add.u64 %y3, %y0, %y2;
    mov.u32 %x4, 0; st.shared.v4.u32 [%x3], {%x4, %x4, %x4, %x4}; st.shared.v4.u32 [%x3+16], {%x4, %x4, %x4, %x4};
    st.shared.v4.u32 [%x3+32], {%x4, %x4, %x4, %x4}; st.shared.v4.u32 [%x3+48], {%x4, %x4, %x4, %x4};
    fence.proxy.async;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x3], [%y3], %x1, [%x10];
    bar.warp.sync -1;
    @!%q0 mbarrier.arrive.shared.b64 _, [bar];
    AFTER:
    """
    source, found = bytes_of(2048), np.zeros(2048, np.uint8)
    launched(text + WAIT + "bar.sync 0;" + READ_BACK.format(size=2048), source, found)
    kept = np.arange(64)[None] < 16 * (np.arange(32) % 4)[:, None]
    np.testing.assert_array_equal(found.reshape(32, 64), np.where(kept, source.reshape(32, 64), 0))


def test_multicast_to_the_one_block_there_is() -> None:
    text = COPY_IN.format(size=64).replace("bytes [", "bytes.multicast::cluster.L2::cache_hint [")
    text = text.replace("[%x10];", "[%x10], %h0, %s0;").replace("@%q0", "mov.u16 %h0, 1; mov.b64 %s0, 0;\n@%q0", 1)
    source, found = bytes_of(64), np.zeros(64, np.uint8)
    launched(text + WAIT + READ_BACK.format(size=64), source, found)
    np.testing.assert_array_equal(found, source)
    with pytest.raises(Undefined) as caught:
        launched(text.replace("%h0, 1", "%h0, 3") + WAIT, source, found)
    assert caught.value.message == "a multicast to blocks 0x3 of the cluster; it has block 0 only, which is mask 0x1"


def test_a_prefetch_does_nothing() -> None:
    text = "mov.b64 %s0, 0; cp.async.bulk.prefetch.L2.global [%y0], 64;"
    text += "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%y0], 64, %s0;"
    launched(text, bytes_of(64), np.zeros(1))


# ---- who has seen it ------------------------------------------------------------------------------------------------------

FILL = "shl.b32 %x1, %x0, 2; add.u32 %x1, %x1, %x9; st.shared.u32 [%x1], %x0;\n"

READ_ONE = "ld.shared.u32 %x3, [%x9];\n"


def race_of(text: str) -> str:
    """The race a text has, "" if none."""
    try:
        launched(text, bytes_of(256), np.zeros(256, np.uint8))
    except Race as race:
        return race.message
    return ""


def test_a_copy_that_nobody_waits_for() -> None:
    assert race_of(COPY_IN.format(size=256) + READ_ONE) == (
        "thread (0, 0, 0) of block (0, 0, 0) reads shared 0x0..0x3, which an asynchronous operation of thread (0, 0, 0) "
        "wrote at PTX line 22; nothing orders them: its completion is not waited for"
    )
    assert race_of(COPY_IN.format(size=256) + WAIT + READ_ONE) == ""


def test_a_store_of_what_was_written_needs_a_proxy_fence() -> None:
    store = STORE.format(size=256, read=".read")
    assert race_of(FILL + store) == ""
    message = race_of(FILL + store.replace("fence.proxy.async.shared::cta;", ""))
    assert message.endswith("a generic write that no fence.proxy.async follows")


def test_what_is_stored_may_be_overwritten_after_the_wait_only() -> None:
    store = STORE.format(size=256, read=".read") + "bar.sync 0;\n"
    assert race_of(FILL + store + "add.u32 %x0, %x0, 1; st.shared.u32 [%x1], %x0;") == ""
    late = store.replace("wait_group.read 0", "wait_group.read 1")
    assert race_of(FILL + late + "add.u32 %x0, %x0, 1; st.shared.u32 [%x1], %x0;")


def test_a_copy_over_what_others_still_read() -> None:
    again = COPY_IN.format(size=256).replace("AFTER", "AGAIN")
    text = COPY_IN.format(size=256) + WAIT + FILL.partition("st.shared")[0] + "ld.shared.u32 %x3, [%x1];\n"
    assert race_of(text + "bar.sync 0;" + again) == ""
    assert race_of(text + again)


def test_copies_are_not_ordered_among_themselves() -> None:
    """Two copies to one place, and a store of what is still being loaded."""
    twice = COPY_IN.format(size=256).replace(
        "AFTER:", "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x9], [%y0+0], 128, [%x10]; AFTER:"
    )
    other = bytes_of(512)
    with pytest.raises(Race) as caught:
        launched(twice.replace("[%y0+0]", "[%y0+256]"), other, np.zeros(1))
    assert caught.value.message == (
        "an asynchronous operation of thread (0, 0, 0) of block (0, 0, 0) writes shared 0x0..0x3, which an asynchronous "
        "operation of thread (0, 0, 0) wrote at PTX line 22; nothing orders them: its completion is not waited for"
    )
    assert race_of(COPY_IN.format(size=256) + STORE.format(size=256, read="").replace("bar.sync 0;", ""))
    assert race_of(COPY_IN.format(size=256) + WAIT + STORE.format(size=256, read="").replace("bar.sync 0;", "")) == ""


SECOND = """
  @%q0 bra AGAIN;
  mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x9+4096], [%y0], 64, [%x10];
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x9+4160], [%y0], 64, [%x10];
  AGAIN:
"""


def test_who_waited_for_a_phase_has_not_seen_the_next() -> None:
    text = COPY_IN.format(size=256) + WAIT + SECOND
    later = WAIT.replace("WAIT", "LATER").replace("[bar], 0", "[bar], 1")
    assert race_of(text + READ_ONE) == ""
    for place in (4096, 4160):
        read = f"ld.shared.u32 %x3, [%x9+{place}];\n"
        assert "its completion is not waited for" in race_of(text + read)
        assert race_of(text + later + read) == ""


def test_lanes_whose_copies_have_barriers_of_their_own() -> None:
    """Even lanes of a warp copy for one barrier and odd ones for another; whoever waited for one has not seen the other."""
    text = """
    @!%q0 mbarrier.init.shared.b64 [bar+8], 1; @!%q0 mbarrier.init.shared.b64 [bar+16], 1;
    bar.sync 0;
    @!%q0 mbarrier.expect_tx.shared.b64 [bar+8], 256; @!%q0 mbarrier.expect_tx.shared.b64 [bar+16], 256;
    setp.gt.u32 %q3, %x0, 31; @%q3 bra COPIED;
    bar.warp.sync -1;
    and.b32 %x1, %x0, 1; shl.b32 %x2, %x1, 3; add.u32 %x2, %x2, %x10; shl.b32 %x3, %x0, 4;
    cvt.u64.u32 %y2, %x3; add.u64 %y3, %y0, %y2; add.u32 %x4, %x3, %x9;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x4], [%y3], 16, [%x2+8];
    bar.warp.sync -1;
    @!%q0 mbarrier.arrive.shared.b64 _, [bar+8]; @!%q0 mbarrier.arrive.shared.b64 _, [bar+16];
    COPIED: mbarrier.try_wait.parity.shared.b64 %q1, [bar+8], 0;
    """
    source = bytes_of(512)
    for place, both, clean in ((0, False, True), (16, False, False), (16, True, True)):
        wait = "mbarrier.try_wait.parity.shared.b64 %q1, [bar+16], 0;\n" if both else ""
        found = np.zeros(4, np.uint8)
        read = f"ld.shared.u32 %x5, [%x9+{place}]; @!%q0 st.global.u32 [%y1], %x5;\n"
        if clean:
            launched(text + wait + read, source, found)
            np.testing.assert_array_equal(found, source[place : place + 4])
        else:
            with pytest.raises(Race):
                launched(text + wait + read, source, found)


def test_blocks_whose_copies_are_in_different_phases() -> None:
    """Block i copies 1 + i pieces one after the other, each waited for."""
    text = """
    mov.u32 %x1, 0; mov.u32 %x2, %ctaid.x; mov.u32 %x6, 0;
    NEXT: and.b32 %x3, %x1, 1;
    @%q0 bra WAIT;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x9], [%y0], 32, [%x10];
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%x9+32], [%y0+32], 32, [%x10];
    WAIT: mbarrier.try_wait.parity.shared.b64 %q1, [bar], %x3; @!%q1 bra WAIT;
    ld.shared.u32 %x4, [%x9]; ld.shared.u32 %x5, [%x9+32]; add.u32 %x6, %x6, %x4; add.u32 %x6, %x6, %x5;
    bar.sync 0;
    add.u64 %y0, %y0, 64; add.u32 %x1, %x1, 1; setp.le.u32 %q2, %x1, %x2; @%q2 bra NEXT;
    mul.wide.u32 %y2, %x2, 4; add.u64 %y3, %y1, %y2; @!%q0 st.global.u32 [%y3], %x6;
    """
    source, found = np.arange(16 * 6, dtype=np.uint32), np.zeros(6, np.uint32)
    launched(text, source, found, grid=6)
    pieces = source.reshape(6, 2, 8)[:, :, 0].sum(axis=1)
    np.testing.assert_array_equal(found, np.cumsum(pieces))


# ---- reductions ------------------------------------------------------------------------------------------------------------

INTEGERS = {"u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32, "b64": np.uint64}
FLOATS: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
MANTISSA = {"f16": (11, -24, 65504.0), "bf16": (8, -133, 3.3895313892515355e38)}


def integers(kind: str, seed: int) -> NDArray[Any]:
    dtype = INTEGERS[kind]
    info = np.iinfo(dtype)
    edges = [info.min, info.max, 0, 1, info.max - 1, info.min + 1, 5, 6]
    values = np.random.default_rng(seed).integers(info.min, info.max, 56, dtype=dtype, endpoint=True)
    return np.concatenate([np.array(edges, dtype), values])


EXACT: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "inc": lambda a, b: 0 if a >= b else a + 1,
    "dec": lambda a, b: b if a == 0 or a > b else a - 1,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize(
    ("operation", "kind"), [(op, kind) for op, kinds in GLOBAL.items() for kind in kinds if kind in INTEGERS]
)
def test_integer_reductions(operation: str, kind: str) -> None:
    x, y = integers(kind, 1), np.roll(integers(kind, 2), 3)
    x, y = np.repeat(x, 8)[:512], np.tile(y, 8)[:512]
    found = reduction(operation, kind)(x.view(np.uint8), y.view(np.uint8)).view(x.dtype)
    bits = 8 * x.itemsize
    for a, b, r in zip(x.tolist(), y.tolist(), found.tolist(), strict=True):
        assert (EXACT[operation](a, b) - r) % (1 << bits) == 0


def rounded(value: Fraction, kind: str) -> float:
    """To nearest even in a format of so many significant bits, with subnormal numbers; infinity beyond the largest."""
    bits, least, largest = MANTISSA[kind]
    if value == 0:
        return 0.0
    exponent = max(math.floor(math.log2(abs(value))) - bits + 1, least)
    while abs(value) / Fraction(2) ** exponent >= 2**bits:
        exponent += 1
    step = Fraction(2) ** exponent
    result = round(value / step) * step
    return math.copysign(math.inf, result) if abs(result) > Fraction(largest) else float(result)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_sums_of_halves(kind: str) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.integers(0, 1 << 16, 4000).astype(np.uint16).view(FLOATS[kind]) for _ in range(2))
    with np.errstate(all="ignore"):
        y[:1000] = (x[:1000].astype(np.float32) * rng.uniform(-1.5, 1.5, 1000)).astype(FLOATS[kind])
    found = reduction("add", kind)(x.view(np.uint8), y.view(np.uint8)).view(FLOATS[kind])
    for a, b, r in zip(*([float(v) for v in values] for values in (x, y, found)), strict=True):
        if math.isfinite(a) and math.isfinite(b):
            assert rounded(Fraction(a) + Fraction(b), kind) == r
        else:
            assert math.isnan(r) if math.isnan(a + b) else r == a + b


@pytest.mark.parametrize(("kind", "nan"), [("f16", 0x7FFF), ("bf16", 0x7FFF), ("f32", 0x7FFF_FFFF)])
def test_nans_and_subnormals_of_sums(kind: str, nan: int) -> None:
    dtype = FLOATS[kind]
    tiny = np.ones(1, f"u{np.dtype(dtype).itemsize}").view(dtype)
    x = np.concatenate([np.array([np.nan, np.inf, -0.0, 0.0, 1.0], dtype), tiny])
    y = np.concatenate([np.array([1.0, -np.inf, -0.0, -0.0, -1.0], dtype), tiny])
    bits = reduction("add", kind)(x.view(np.uint8), y.view(np.uint8)).view(tiny.view(f"u{tiny.itemsize}").dtype)
    assert bits.tolist() == [nan, nan, 1 << (8 * tiny.itemsize - 1), 0, 0, 2]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_extremes_of_halves(kind: str) -> None:
    dtype = FLOATS[kind]
    x = np.array([1.0, -0.0, 0.0, np.nan, 2.0, np.nan, -np.inf, 3.0], dtype)
    y = np.array([2.0, 0.0, -0.0, 1.0, np.nan, np.nan, 5.0, 3.0], dtype)
    least = reduction("min", kind)(x.view(np.uint8), y.view(np.uint8)).view(np.uint16)
    most = reduction("max", kind)(x.view(np.uint8), y.view(np.uint8)).view(np.uint16)

    def bits(*values: float) -> list[int]:
        return [
            0x7FFF if math.isnan(v) else int(b)
            for v, b in zip(values, np.array(values, dtype).view(np.uint16), strict=True)
        ]

    assert least.tolist() == bits(1.0, -0.0, -0.0, 1.0, 2.0, math.nan, -math.inf, 3.0)
    assert most.tolist() == bits(2.0, 0.0, 0.0, 1.0, 2.0, math.nan, 5.0, 3.0)


def test_a_reduction_there_is_none_of() -> None:
    with pytest.raises(ValueError) as caught:
        reduction("inc", "s32")
    assert str(caught.value) == "there is no reduction inc of s32"


REDUCE = """
  @%q0 bra REDUCED;
  cp.reduce.async.bulk.global.shared::cta.bulk_group{modifiers} [%y1], [%x9], 256;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
  REDUCED:
"""


@pytest.mark.parametrize("operation", GLOBAL)
def test_reductions_in_global_memory(operation: str) -> None:
    for kind in GLOBAL[operation]:
        halves = operation == "add" and kind in ("f16", "bf16")
        text = COPY_IN.format(size=256) + WAIT + REDUCE.format(modifiers=f".{operation}{'.noftz' * halves}.{kind}")
        source, target = bytes_of(256, 5), bytes_of(256, 6)
        expected = reduction(operation, kind)(target, source)
        launched(text, source, target)
        np.testing.assert_array_equal(target, expected)


def test_blocks_that_reduce_to_one_place() -> None:
    """Resident at once, one after the other."""
    text = COPY_IN.format(size=256) + WAIT + REDUCE.format(modifiers=".add.u32")
    source, target = np.arange(64, dtype=np.uint32), np.full(64, 7, np.uint32)
    launched(text, source, target, grid=6)
    np.testing.assert_array_equal(target, 7 + 6 * np.arange(64))


@pytest.mark.parametrize("operation", SHARED)
def test_reductions_in_shared_memory(operation: str) -> None:
    for kind in SHARED[operation]:
        text = (
            COPY_IN.format(size=256)
            + f"""
    @%q0 bra SECOND;
    mbarrier.expect_tx.shared.b64 [bar+8], 256; add.u32 %x1, %x9, 4096; add.u64 %y2, %y0, 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%x1], [%y2], 256, [%x10+8];
    mbarrier.arrive.shared.b64 _, [bar+8];
    SECOND: mbarrier.try_wait.parity.shared.b64 %q1, [bar+8], 0; @!%q1 bra SECOND;
    {WAIT}
    @%q0 bra COMBINED;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{operation}.{kind} [%x9], [%x1], 256, [%x10];
    COMBINED: mbarrier.try_wait.parity.shared.b64 %q1, [bar], 1; @!%q1 bra COMBINED;
    """
            + READ_BACK.format(size=256)
        )
        source, found = bytes_of(512, 9), np.zeros(256, np.uint8)
        text = "@!%q0 mbarrier.init.shared.b64 [bar+8], 1; bar.sync 0;\n" + text
        launched(text, source, found)
        np.testing.assert_array_equal(found, reduction(operation, kind)(source[:256], source[256:]))


# ---- what is wrong ------------------------------------------------------------------------------------------------------------


def fault_of(text: str, kind: type[Fault]) -> Fault:
    with pytest.raises(kind) as caught:
        launched(text, bytes_of(256), np.zeros(256, np.uint8))
    return caught.value


def copy_in(destination: str = "[%x9]", source: str = "[%y0]", size: str = "64", barrier: str = "[%x10]") -> str:
    return (
        "mov.u32 %x5, bar; @%q0 bra AFTER; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;\n"
        f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {destination}, {source}, {size}, {barrier};\nAFTER:"
    )


def test_faults() -> None:
    assert fault_of(copy_in(size="24"), Undefined).message == "a bulk copy of 24 bytes, which is no multiple of 16"
    error = fault_of(copy_in(destination="[%x9+8]"), Misaligned)
    assert error.message == "write of 64 bytes at an address that is no multiple of 16"
    error = fault_of(copy_in(source="[%y0+8]"), Misaligned)
    assert error.message == "read of 64 bytes at an address that is no multiple of 16"
    error = fault_of(copy_in(source="[%y0+208]"), OutOfBounds)
    assert error.message == "read of 64 bytes of global memory"
    assert error.where.address.endswith("byte 208 of 'argument 0' (256 bytes)")
    error = fault_of(copy_in(destination="[%x9+8192]"), OutOfBounds)
    assert error.message == "write of 64 bytes of shared memory"
    error = fault_of(copy_in(barrier="[%x10+8]"), Undefined)
    assert error.message == "an mbarrier that was never initialised, or was invalidated or overwritten since"


REFUSED = [
    (
        "cp.async.bulk.shared::cta.shared::cta.mbarrier::complete_tx::bytes [%x9], [%x9], 16, [%x10];",
        "there is no bulk copy from .shared::cta to .shared::cta with .mbarrier::complete_tx::bytes",
    ),
    (
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%y1], [%x9], 16, %h0;",
        "the emulator does not know '.cp_mask' of cp",
    ),
    (
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [%x9], [%y0], 16, [%x10], %h0;",
        "only copies to .shared::cluster multicast",
    ),
    (
        "cp.async.bulk.global.shared::cta.bulk_group [%y1], [%x9], 16, %s0;",
        "a cache policy is given where there is .L2::cache_hint, and only there",
    ),
    (
        "cp.async.bulk.global.shared::cta.bulk_group [%y1], [%x9], 16, %s0, %s0;",
        "the number of operands is not what the modifiers ask for",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s64 [%y1], [%x9], 16;",
        ".add in .global memory has types u32, s32, u64, f16, bf16, f32, f64, not s64",
    ),
    (
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.f32 [%x9], [%x9], 16, [%x10];",
        ".add in .shared::cluster memory has types u32, s32, u64, not f32",
    ),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%y1], [%x9], 16;", ".add of .f16 needs .noftz"),
    (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.noftz.f16 [%y1], [%x9], 16;",
        ".noftz belongs to .add of .f16, .bf16 and .f32",
    ),
    (
        "cp.reduce.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%y1], [%x9], 16, [%x10];",
        "a reduction in .global memory is not complete by .mbarrier::complete_tx::bytes",
    ),
    ("cp.async.bulk.wait_group -1;", "cp.async.bulk.wait_group of -1 groups"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        launched(text, bytes_of(64), bytes_of(64))
    assert str(caught.value).startswith(f"PTX line {caught.value.line}: {message}\n")
