"""Cooperative launches: a barrier of the whole grid in a workspace that the launch gives; and the system's shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from weft.emulator import LaunchError, Module, OutOfBounds, Race, Trap

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

# Thread 0 of each block arrives by an atomic that releases, and waits until the top bit of the word has changed: block 0 adds
# 2**31 less the other blocks. The workspace's second word is the barrier.
GRID_SYNC = """
  mov.u32 %r10, %envreg1; mov.u32 %r11, %envreg2; mov.b64 %rd10, {%r11, %r10};
  setp.ne.s64 %p1, %rd10, 0;
  @!%p1 trap;
  barrier.sync 0;
  setp.ne.u32 %p2, %tid, 0;
  @%p2 bra MET;
  mov.u32 %r12, %nctaid.x; mov.u32 %r13, %ctaid.x; setp.eq.u32 %p3, %r13, 0;
  sub.u32 %r14, 0x80000001, %r12; selp.b32 %r14, %r14, 1, %p3;
  atom.add.release.gpu.u32 %r15, [%rd10+4], %r14;
AGAIN:
  ld.acquire.gpu.u32 %r16, [%rd10+4]; xor.b32 %r17, %r16, %r15; setp.ge.s32 %p4, %r17, 0;
  @%p4 bra AGAIN;
MET:
  barrier.sync 0;
""".replace("setp.ne.u32 %p2, %tid, 0;", "mov.u32 %r18, %tid.x; setp.ne.u32 %p2, %r18, 0;")


def kernel(meet: str) -> Module:
    """x[i] = i; meet; out[i] = x[(i + 37) % n]."""
    return Module(f"""{HEAD}
.visible .entry k(.param .u64 x, .param .u64 out) {{
  .reg .pred %p<5>; .reg .b32 %r<20>; .reg .b64 %rd<12>;
  ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mov.u32 %r4, %nctaid.x;
  mad.lo.u32 %r3, %r0, %r1, %r2; mul.lo.u32 %r5, %r1, %r4;
  mad.wide.u32 %rd2, %r3, 4, %rd0; mad.wide.u32 %rd3, %r3, 4, %rd1;
  st.global.u32 [%rd2], %r3;
  {meet}
  add.u32 %r6, %r3, 37; rem.u32 %r6, %r6, %r5; mad.wide.u32 %rd4, %r6, 4, %rd0;
  ld.global.u32 %r7, [%rd4]; st.global.u32 [%rd3], %r7;
  ret;
}}""")


@pytest.mark.parametrize(("blocks", "threads"), [(1, 32), (5, 64), (40, 1024)])
def test_all_blocks_meet(blocks: int, threads: int) -> None:
    """40 blocks of 1,024 threads are more than are resident otherwise."""
    n = blocks * threads
    x, out = np.zeros(n, np.uint32), np.zeros(n, np.uint32)
    kernel(GRID_SYNC).launch("k", blocks, threads, [x, out], cooperative=True)
    assert np.array_equal(out, (np.arange(n) + 37) % n)


@pytest.mark.parametrize(("cooperative", "scope"), [(True, 1), (True, 0), (True, 2), (False, 1)])
def test_the_handle_of_the_grid(cooperative: bool, scope: int) -> None:
    """It is the workspace that %envreg1 and %envreg2 name."""
    module = Module(f"""{HEAD}
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
.visible .entry k(.param .u64 out) {{
  .reg .b32 %r<3>; .reg .b64 %rd<4>;
  mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd1, {{%r2, %r1}};
  {{ .param .b32 s; .param .b64 h; st.param.b32 [s], {scope};
    call.uni (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %rd2, [h]; }}
  ld.param.u64 %rd0, [out]; st.global.v2.b64 [%rd0], {{%rd1, %rd2}};
  ret;
}}""")
    out = np.zeros(2, np.uint64)
    module.launch("k", 1, 1, [out], cooperative=cooperative)
    assert (out[0] != 0) == cooperative
    assert out[1] == (out[0] if scope == 1 else 0)


def test_without_the_barrier_it_is_a_race() -> None:
    with pytest.raises(Race):
        kernel("").launch("k", 5, 64, [np.zeros(320, np.uint32), np.zeros(320, np.uint32)], cooperative=True)


def test_without_release_and_acquire_it_is_a_race() -> None:
    weak = GRID_SYNC.replace("release", "relaxed").replace("acquire", "relaxed")
    with pytest.raises(Race):
        kernel(weak).launch("k", 5, 64, [np.zeros(320, np.uint32), np.zeros(320, np.uint32)], cooperative=True)


def test_a_launch_that_is_not_cooperative() -> None:
    x, out = np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    with pytest.raises(Trap) as caught:
        kernel(GRID_SYNC).launch("k", 2, 32, [x, out])
    hint = "it reads %envreg1: grid.sync() needs a launch with cooperative=True"
    assert caught.value.message == f"the program executes trap, as do 63 more threads; {hint}"


def test_too_many_blocks() -> None:
    with pytest.raises(LaunchError) as caught:
        kernel(GRID_SYNC).launch("k", 257, 1024, [0, 0], cooperative=True)
    assert str(caught.value) == (
        "a cooperative launch of 257 blocks of 1024 threads: all blocks are resident at once, and at most 262144 threads can be"
    )


def test_the_workspace_has_bounds() -> None:
    beyond = (
        "mov.u32 %r10, %envreg1; mov.u32 %r11, %envreg2; mov.b64 %rd10, {%r11, %r10}; ld.global.u32 %r12, [%rd10+8];"
    )
    with pytest.raises(OutOfBounds, match="0 bytes past the end of 'the grid's workspace' \\(8 bytes\\)"):
        kernel(beyond).launch("k", 1, 32, [np.zeros(32, np.uint32), np.zeros(32, np.uint32)], cooperative=True)


# ---- the system's part of shared memory ------------------------------------------------------------------------------

NAMES = ("%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap", "%reserved_smem_offset_0",
         "%reserved_smem_offset_1", "%total_smem_size", "%dynamic_smem_size", "%aggr_smem_size")  # fmt: skip


def test_where_it_is() -> None:
    """1,024 bytes before the program's own, which count neither as its own nor against the limit of 227 KiB."""
    reads = "\n".join(f"mov.u32 %r, {name}; st.global.u32 [%rd+{4 * i}], %r;" for i, name in enumerate(NAMES))
    module = Module(f"""{HEAD}
.extern .shared .align 16 .b8 dynamic[];
.entry k(.param .u64 out) {{
  .reg .b64 %rd; .reg .b32 %r; .shared .align 4 .b8 own[20];
  ld.param.u64 %rd, [out];
  {reads}
  mov.u32 %r, own; st.global.u32 [%rd+32], %r; mov.u32 %r, dynamic; st.global.u32 [%rd+36], %r;
  ret;
}}""")
    out = np.zeros(10, np.uint32)
    profile = module.launch("k", 1, 1, [out], shared=64)
    assert out.tolist() == [0, 1024, 1024, 0, 512, 32 + 64, 64, 1024 + 32 + 64, 1024, 1024 + 32]
    assert profile.launch.static_shared == 20
    module.launch("k", 1, 1, [out], shared=(227 << 10) - 32)
    with pytest.raises(LaunchError) as caught:
        module.launch("k", 1, 1, [out], shared=(227 << 10) - 16)
    assert str(caught.value) == "k needs 232464 bytes of shared memory a block, more than the 232448 there are"


def test_it_holds_something() -> None:
    """Programs clear its bits by atomics, in every block of every batch; what it held is the system's."""
    module = Module(f"""{HEAD}
.entry k(.param .u64 out) {{
  .reg .b64 %rd; .reg .b32 %r<4>;
  ld.param.u64 %rd, [out]; mov.u32 %r0, %ctaid.x; mad.wide.u32 %rd, %r0, 4, %rd;
  mov.u32 %r1, %reserved_smem_offset_1;
  red.shared.and.b32 [%r1], 0; red.shared.add.u32 [%r1], 5; bar.sync 0; ld.shared.u32 %r2, [%r1]; st.global.u32 [%rd], %r2;
  ret;
}}""")
    out = np.zeros(40, np.uint32)
    module.launch("k", 40, 1024, [out], shared=48)
    assert (out > 0).all() and (out % 5 == 0).all()


def test_a_program_that_does_not_ask_has_none() -> None:
    module = Module(
        f"{HEAD}.entry k(.param .u64 out) {{ .reg .b64 %rd; .reg .b32 %r; .shared .b32 own;"
        " ld.param.u64 %rd, [out]; mov.u32 %r, own; st.global.u32 [%rd], %r; ret; }"
    )
    out = np.ones(1, np.uint32)
    module.launch("k", 1, 1, [out])
    assert out[0] == 0
