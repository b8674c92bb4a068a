"""st.async, red.async and st.bulk: what arrives, that the mbarrier says when, and that a read before that is a fault."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_harness import execute
from weft.emulator import BarrierFault, Fault, Misaligned, Module, OutOfBounds, PTXError, Race, Undefined

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


def test_generic_addresses() -> None:
    generic = RED.replace(".shared::cluster", "")
    text = (
        BEFORE.format(bytes=64 * 4)
        + f"""
        .reg .b64 %l<4>; @%q st.shared.u32 [%i1], 100; fence.proxy.async; bar.sync 0;
        cvt.u64.u32 %l0, %i1; cvta.shared.u64 %l1, %l0;
        cvt.u64.u32 %l0, %i2; cvta.shared.u64 %l2, %l0; {generic}.add.u32 [%l1], %x, [%l2]; {WAIT} ld.shared.u32 %y, [%i1];"""
    )
    out = execute(text, {"x": ("u32", np.arange(64, dtype=np.uint32))}, {"y": "u32"})
    assert set(out["y"].tolist()) == {sum(range(64)) + 100}


FLAG = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag, .param .u64 out) {{
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;
  ld.param.u64 %rd0, [data]; ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out];
  mov.u32 %r0, %ctaid.x; setp.ne.u32 %p, %r0, 0; @%p bra AGAIN;
  st.global.u32 [%rd0], 77; {release}; ret;
AGAIN:
  ld.acquire.gpu.global.{load}, [%rd1]; {narrow} setp.eq.u32 %p, %r1, 0; @%p bra AGAIN;
  ld.global.u32 %r2, [%rd0]; st.global.v2.u32 [%rd2], {{%r1, %r2}};
  ret;
}}"""


@pytest.mark.parametrize(
    ("release", "flag"),
    [
        ("mov.u32 %r3, 5; st.async.release.gpu.global.b32 [%rd1], %r3", 5),
        ("mov.u32 %r3, 6; st.async.mmio.release.sys.u32 [%rd1], %r3", 6),
        ("mov.u32 %r3, 7; red.async.release.gpu.global.add.u32 [%rd1], %r3", 7),
        ("mov.u32 %r3, 8; red.async.mmio.release.gpu.add.u32 [%rd1], %r3", 8),
        ("mov.u64 %rd3, 9; red.async.release.gpu.global.add.s64 [%rd1], %rd3", 9),
    ],
)
def test_releases_to_global_memory(release: str, flag: int) -> None:
    """Another block that acquires the flag may read what was stored before it; behind a store that does not release it races."""

    def launch(text: str) -> list[int]:
        out = np.zeros(2, np.uint32)
        load = "u64 %rd3" if "s64" in text else "u32 %r1"
        module = Module(FLAG.format(release=text, load=load, narrow="cvt.u32.u64 %r1, %rd3;" if "s64" in text else ""))
        module.launch("k", 2, 1, [np.zeros(1, np.uint32), np.zeros(2, np.uint32), out])
        return out.tolist()

    assert launch(release) == [flag, 77]
    with pytest.raises(Race):
        launch("mov.u32 %r3, 1; st.relaxed.gpu.global.u32 [%rd1], %r3")


@pytest.mark.parametrize(("start", "size"), [(0, 2048), (16, 32), (8, 24), (24, 8), (40, 0)])
@pytest.mark.parametrize("space", ["", ".shared::cta"])
def test_zeros_in_bulk(start: int, size: int, space: str) -> None:
    """Ones, of which some become zeros; what is not reached stays."""
    text = f"""
    .shared .align 16 .b8 room[2048]; .reg .b32 %i<4>; .reg .b64 %l<4>; .reg .pred %q;
    mov.u32 %i0, %tid.x; mov.u32 %i1, room; mad.lo.u32 %i2, %i0, 8, %i1; mov.u64 %l0, -1; st.shared.u64 [%i2], %l0; bar.sync 0;
    setp.ne.u32 %q, %i0, 3; @%q bra PAST;
    add.u32 %i3, %i1, {start}; cvt.u64.u32 %l1, %i3; {"" if space else "cvta.shared.u64 %l1, %l1;"}
    mov.u64 %l2, {size}; st.bulk.weak{space} [%l1], %l2, 0;
    PAST: bar.sync 0; ld.shared.u64 %y, [%i2];"""
    out = execute(text, {"x": ("u32", np.zeros(256, np.uint32))}, {"y": "u64"})["y"]
    expected = np.full(256, 2**64 - 1, np.uint64)
    expected[start // 8 : (start + size) // 8] = 0
    assert out.tolist() == expected.tolist()


def test_zeros_in_bulk_of_several_threads() -> None:
    """Thread i stores 8 i bytes at 64 i."""
    text = """
    .shared .align 16 .b8 room[256]; .reg .b32 %i<4>; .reg .b64 %l<3>; mov.u32 %i0, %tid.x; mov.u32 %i1, room;
    mad.lo.u32 %i2, %i0, 64, %i1; mov.u64 %l0, -1;
    st.shared.v2.u64 [%i2], {%l0, %l0}; st.shared.v2.u64 [%i2+16], {%l0, %l0}; bar.sync 0;
    mul.lo.u32 %i3, %i0, 8; cvt.u64.u32 %l1, %i3; cvt.u64.u32 %l2, %i2; st.bulk.shared::cta [%l2], %l1, 0; bar.sync 0;
    ld.shared.v2.u64 {%a, %b}, [%i2]; ld.shared.v2.u64 {%c, %d}, [%i2+16];"""
    out = execute(text, {"x": ("u32", np.zeros(4, np.uint32))}, dict.fromkeys("abcd", "u64"))
    found = np.stack([out[name] for name in "abcd"], axis=1) == 0
    assert found.tolist() == [[k < i for k in range(4)] for i in range(4)]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("st.bulk.shared::cta [%i1], 12, 0;", Undefined, "st.bulk of 12 bytes, which is no multiple of 8"),
        ("st.bulk.shared::cta [%i1+4], 8, 0;", Misaligned, "write of 8 bytes at an address that is no multiple of 8"),
        ("st.bulk.shared::cta [%i1+2040], 16, 0;", OutOfBounds, "write of 8 bytes of shared memory"),
    ],
)
def test_faults_of_zeros_in_bulk(text: str, kind: type[Fault], message: str) -> None:
    with pytest.raises(kind) as caught:
        execute(".shared .align 16 .b8 room[2048]; .reg .b32 %i1; mov.u32 %i1, room;" + text, {}, {}, block=1)
    assert caught.value.message == message


def test_zeros_in_bulk_race_like_stores() -> None:
    text = """.shared .align 16 .b8 room[64]; .reg .b32 %i<3>; .reg .pred %q; mov.u32 %i0, %tid.x; mov.u32 %i1, room;
    setp.eq.u32 %q, %i0, 0; @%q st.bulk.shared::cta [%i1], 64, 0; setp.eq.u32 %q, %i0, 40; @%q st.shared.u32 [%i1+32], 1;"""
    with pytest.raises(Race):
        execute(text, {"x": ("u32", np.zeros(64, np.uint32))}, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("st.bulk.shared::cta [%i1], 8, 1", "st.bulk stores 0, not 1"),
        (
            "st.async.release.gpu.shared::cluster.u32 [%i1], %i1",
            "st.async.release is of global memory, not .shared::cluster",
        ),
        ("red.async.release.gpu.shared.add.u32 [%i1], %i1", "red.async.release is of global memory, not .shared"),
    ],
)
def test_what_is_refused_of_these(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(".shared .align 16 .b8 room[64]; .reg .b32 %i1; mov.u32 %i1, room;" + text + ";", {}, {})
    assert str(caught.value).partition(": ")[2].partition("\n")[0] == message
