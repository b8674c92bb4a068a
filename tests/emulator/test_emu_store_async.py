"""st.async and red.async: what arrives, that the mbarrier says when, and that a read before that is a fault."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_harness import execute
from weft.emulator import BarrierFault, PTXError, Race

BEFORE = """
    .shared .align 16 .b8 room[2048]; .shared .align 8 .b64 bar; .reg .pred %q; .reg .b32 %i<9>;
    mov.u32 %i0, %tid.x; mov.u32 %i1, room; mov.u32 %i2, bar; setp.eq.u32 %q, %i0, 0;
    @%q mbarrier.init.shared.b64 [%i2], 1; bar.sync 0;
    @%q mbarrier.arrive.expect_tx.shared.b64 _, [%i2], {bytes}; bar.sync 0;
"""
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %q, [%i2], 0; @!%q bra W;"
ST = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
RED = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"


def test_each_thread_stores_into_its_neighbour_s_place() -> None:
    x = np.arange(64, dtype=np.uint32) * 7
    text = (
        BEFORE.format(bytes=64 * 4)
        + f"""
        xor.b32 %i3, %i0, 63; mad.lo.u32 %i3, %i3, 4, %i1; {ST}.u32 [%i3], %x, [%i2]; {WAIT}
        mad.lo.u32 %i3, %i0, 4, %i1; ld.shared.u32 %y, [%i3];"""
    )
    out = execute(text, {"x": ("u32", x)}, {"y": "u32"})
    np.testing.assert_array_equal(out["y"], x[::-1])


def test_vectors() -> None:
    x = np.random.default_rng(1).integers(0, 1 << 63, 32).astype(np.uint64)
    text = (
        BEFORE.format(bytes=32 * 16)
        + f"""
        mad.lo.u32 %i3, %i0, 16, %i1; {ST}.v2.b64 [%i3], {{%x, 5}}, [%i2]; {WAIT}
        ld.shared.v2.u64 {{%y, %z}}, [%i3];"""
    )
    out = execute(text, {"x": ("u64", x)}, {"y": "u64", "z": "u64"})
    np.testing.assert_array_equal(out["y"], x)
    assert set(out["z"].tolist()) == {5}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("add.u32", sum(range(64)) + 100),
        ("max.s32", 100),
        ("min.u32", 0),
        ("xor.b32", 100),  # the xor of 0 to 63 is 0
        ("or.b32", 127),  # 0b1100100 | 0b111111
        ("inc.u32", 63),  # 100 >= 0 wraps to 0; then t - 1 < t counts on
    ],
)
def test_reductions_of_all_threads_into_one_place(operation: str, expected: int) -> None:
    """The place starts at 100, threads come in ascending order."""
    x = np.arange(64, dtype=np.uint32)
    text = (
        BEFORE.format(bytes=64 * 4)
        + f"""
        @%q st.shared.u32 [%i1], 100; fence.proxy.async; bar.sync 0;
        {RED}.{operation} [%i1], %x, [%i2]; {WAIT} ld.shared.u32 %y, [%i1];"""
    )
    out = execute(text, {"x": ("u32", x)}, {"y": "u32"})
    assert set(out["y"].tolist()) == {expected}


def test_looking_before_the_mbarrier_says_so() -> None:
    text = (
        BEFORE.format(bytes=128)
        + f"""
        mad.lo.u32 %i3, %i0, 4, %i1; {ST}.u32 [%i3], %x, [%i2]; bar.sync 0; ld.shared.u32 %y, [%i3];"""
    )
    with pytest.raises(Race):
        execute(text, {"x": ("u32", np.zeros(32, np.uint32))}, {"y": "u32"})


def test_fewer_bytes_than_expected() -> None:
    text = (
        BEFORE.format(bytes=132)
        + f"""
        mad.lo.u32 %i3, %i0, 4, %i1; {ST}.u32 [%i3], %x, [%i2]; {WAIT} mov.u32 %y, 0;"""
    )
    with pytest.raises(BarrierFault) as caught:
        execute(text, {"x": ("u32", np.zeros(32, np.uint32))}, {"y": "u32"})
    assert "4 bytes" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{ST}.v4.b64 [%i1], {{%x, %x, %x, %x}}, [%i2];", "a store of 32 bytes; at most 16 can be stored at once"),
        (f"{ST}.v2.b64 [%i1], %x, [%i2];", "1 values, expected 2"),
        (f"{ST}.f16 [%i1], %x, [%i2];", "the emulator does not know '.f16' of st"),
        (f"{RED}.add.s64 [%i1], %x, [%i2];", "the emulator does not know '.s64' of red"),
        (f"{RED}.and.u32 [%i1], %x, [%i2];", ".and has types b32, not u32"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(BEFORE.format(bytes=8) + text, {"x": ("u64", np.zeros(32, np.uint64))}, {})
    assert message in str(caught.value)
