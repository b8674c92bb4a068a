"""Clusters of several blocks: who is who, memory of other blocks, the cluster's barrier, multicasts, and what goes wrong."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from emulator_programs import program
from weft.emulator import (
    BarrierFault,
    Fault,
    LaunchError,
    Module,
    OutOfBounds,
    Profile,
    Race,
    Scratch,
    TensorMap,
    Undefined,
)

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"

SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"


def module(text: str, directives: str = "", declarations: str = "") -> Module:
    """A kernel of pointers out and x, with %r0 the thread, %r1 the block's rank, %r2 the blocks of a cluster, %r3 the thread over
    the grid, %rd2 the place of out for it, and %rd3 that of x; 64 words ``data`` and 4 mbarriers ``bar`` in shared memory."""
    return Module(f"""{HEAD}
.visible .entry k(.param .u64 out, .param .u64 x, .param .align 64 .b8 map[128]) {directives} {{
  .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .b16 %h<4>;
  .shared .align 128 .b32 data[64]; .shared .align 8 .b64 bar[4]; {declarations}
  mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %cluster_nctarank;
  mov.u32 %r4, %ntid.x; mov.u32 %r5, %ctaid.x; mad.lo.u32 %r3, %r5, %r4, %r0;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [x];
  mad.wide.u32 %rd2, %r3, 4, %rd0; mad.wide.u32 %rd3, %r3, 4, %rd1;
  {text}
  ret;
}}""")


def launch(
    kernel: Module, n: int, x: Any = 0, cluster: int | None = 2, block: int = 32, tensor: Any = b"\0" * 128
) -> Any:
    """What ``out`` is, of n blocks."""
    out = np.zeros(n * block, np.uint32)
    kernel.launch("k", n, block, [out, x, tensor], cluster=cluster)
    return out


# ---- who is who --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [
        ((4, 1, 1), (2, 1, 1)),
        ((4, 4, 2), (2, 2, 1)),
        ((2, 6, 4), (1, 3, 2)),
        ((3, 2, 1), (1, 1, 1)),
        ((16, 1, 1), (16, 1, 1)),
    ],
)
def test_special_registers(grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> None:
    """ISA 10: %ctaid = %clusterid * %cluster_nctaid + %cluster_ctaid, and %cluster_ctarank counts x first."""
    names = [
        f"%{name}.{axis}"
        for name in ("ctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
        for axis in "xyz"
    ]
    names += ["%cluster_ctarank", "%cluster_nctarank"]
    reads = "\n".join(f"mov.u32 %r, {name}; st.global.u32 [%rd2+{4 * i}], %r;" for i, name in enumerate(names))
    kernel = Module(f"""{HEAD}.entry k(.param .u64 out) {{ .reg .b32 %r<4>; .reg .b32 %r; .reg .b64 %rd<3>; .reg .pred %p;
      mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.x; mad.lo.u32 %r0, %r1, %r2, %r0;
      mov.u32 %r1, %ctaid.z; mov.u32 %r3, %nctaid.y; mul.lo.u32 %r2, %r2, %r3; mad.lo.u32 %r0, %r1, %r2, %r0;
      ld.param.u64 %rd0, [out]; mad.wide.u32 %rd2, %r0, 72, %rd0;
      {reads} mov.pred %p, %is_explicit_cluster; selp.u32 %r, 1, 0, %p; st.global.u32 [%rd2+68], %r; ret; }}""")
    found = np.full((grid[0] * grid[1] * grid[2], 18), 99, np.uint32)
    kernel.launch("k", grid, 1, [found], cluster=cluster)
    expected: list[list[int]] = []
    for z, y, x in itertools.product(*(range(n) for n in reversed(grid))):
        index = (x, y, z)
        parts = [divmod(i, c) for i, c in zip(index, cluster, strict=True)]
        of, within = [q for q, _ in parts], [r for _, r in parts]
        many = [g // c for g, c in zip(grid, cluster, strict=True)]
        rank = within[0] + cluster[0] * (within[1] + cluster[1] * within[2])
        expected.append([*index, *of, *many, *within, *cluster, rank, int(np.prod(cluster)), 1])
    assert found.tolist() == expected


def test_without_clusters() -> None:
    found = launch(module("mov.pred %p0, %is_explicit_cluster; selp.u32 %r5, 1, %r2, %p0; add.u32 %r5, %r5, %r1;"
                          "st.global.u32 [%rd2], %r5;"), 3, cluster=None)  # fmt: skip
    assert (found == 1).all()


@pytest.mark.parametrize(
    ("directives", "grid", "cluster", "message"),
    [
        (".reqnctapercluster 2", 3, None, "a grid of (3, 1, 1) blocks is not made of whole clusters of (2, 1, 1)"),
        (
            ".reqnctapercluster 2, 1, 1",
            4,
            4,
            "k requires clusters of (2, 1, 1) blocks (.reqnctapercluster), got (4, 1, 1)",
        ),
        ("", 17, 17, "a cluster of (17, 1, 1) has 17 blocks; it has at most 16 on sm_90"),
        (".maxclusterrank 4", 8, 8, "a cluster of (8, 1, 1) has 8 blocks; it has at most 4 (.maxclusterrank)"),
        (".explicitcluster", 8, None, "k needs clusters (.explicitcluster): give their shape, cluster="),
        ("", 8, 0, "cluster is 0, expected numbers from 1 on"),
    ],
)
def test_launches_that_cannot_be(directives: str, grid: int, cluster: int | None, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        launch(module("", directives), grid, cluster=cluster)
    assert str(caught.value) == message


def test_the_kernel_says_its_clusters() -> None:
    text = "st.global.u32 [%rd2], %r2;"
    assert (launch(module(text, ".explicitcluster .reqnctapercluster 4, 1"), 8, cluster=None) == 4).all()


def test_a_grid_that_is_given_in_clusters() -> None:
    kernel = module(
        "mov.u32 %r6, %nctaid.x; st.global.u32 [%rd2], %r6;", ".reqntid 32 .reqnctapercluster 4 .blocksareclusters"
    )
    out = np.zeros(4 * 3 * 32, np.uint32)
    kernel.launch("k", 3, 32, [out, 0, b"\0" * 128])
    assert (out == 12).all()


# ---- memory of other blocks --------------------------------------------------------------------------------------------

# Block r writes 1000 r + t, and reads what its neighbour wrote.
WRITE = "mov.u32 %r6, data; mad.lo.u32 %r7, %r0, 4, %r6; mad.lo.u32 %r8, %r1, 1000, %r0; st.shared.u32 [%r7], %r8;"
NEXT = "add.u32 %r9, %r1, 1; rem.u32 %r9, %r9, %r2;"
NARROW = "mapa.shared::cluster.u32 %r10, %r7, %r9; ld.shared::cluster.u32 %r11, [%r10];"
GENERIC = "cvt.u64.u32 %rd4, %r7; cvta.shared.u64 %rd4, %rd4; mapa.u64 %rd5, %rd4, %r9; ld.u32 %r11, [%rd5];"
SYMBOL = "mapa.shared::cluster.u32 %r10, data, %r9; mad.lo.u32 %r10, %r0, 4, %r10; ld.shared::cluster.u32 %r11, [%r10];"
OUT = "st.global.u32 [%rd2], %r11;"


def neighbours(n: int, size: int, block: int = 32) -> Any:
    rank = np.arange(n) // size * 0 + (np.arange(n) % size + 1) % size
    return (1000 * rank[:, None] + np.arange(block)).reshape(-1)


@pytest.mark.parametrize("read", [NARROW, GENERIC, SYMBOL], ids=["narrow", "generic", "symbol"])
@pytest.mark.parametrize(("n", "size"), [(2, 2), (6, 3), (16, 16), (8, 1)])
def test_reads(read: str, n: int, size: int) -> None:
    found = launch(module(WRITE + SYNC + NEXT + read + OUT + SYNC), n, cluster=size)
    assert np.array_equal(found, neighbours(n, size))


def test_more_clusters_than_are_resident() -> None:
    """39 blocks of 1,024 threads, of which 16 are resident, in clusters of 3: batches of whole clusters."""
    kernel = module(
        WRITE.replace("data", "wide") + SYNC + NEXT + NARROW + OUT + SYNC, declarations=".shared .b32 wide[1024];"
    )
    assert np.array_equal(launch(kernel, 39, cluster=3, block=1024), neighbours(39, 3, 1024))


@pytest.mark.parametrize(
    "atom", ["atom.shared::cluster.add.u32 %r12, [%r10], 1;", "red.shared::cluster.add.u32 [%r10], 1;"]
)
def test_atomics(atom: str) -> None:
    """All blocks of a cluster count in the word of rank 1."""
    text = f"setp.ne.u32 %p0, %r0, 0; @!%p0 st.shared.u32 [data], 5; {SYNC} mapa.shared::cluster.u32 %r10, data, 1; {atom} {SYNC}"
    found = launch(module(text + "ld.shared.u32 %r11, [data];" + OUT), 8, cluster=4).reshape(2, 4, 32)
    assert (found[:, 1] == 5 + 4 * 32).all() and (found[:, [0, 2, 3]] == 5).all()


def test_generic_atomics_and_stores() -> None:
    text = f"""{WRITE} cvt.u64.u32 %rd4, %r7; cvta.shared.u64 %rd4, %rd4; {NEXT} mapa.u64 %rd5, %rd4, %r9; {SYNC}
      atom.add.u32 %r11, [%rd5], 7; {SYNC} ld.shared.u32 %r12, [%r7]; st.u32 [%rd5], %r0; {SYNC} ld.shared.u32 %r13, [%r7];
      mad.lo.u32 %r11, %r13, 100000, %r12;"""
    # fences between a read and the next block's store: the barrier orders both.
    text = text.replace("ld.shared.u32 %r12, [%r7]; st.u32", f"ld.shared.u32 %r12, [%r7]; {SYNC} st.u32")
    found = launch(module(text + OUT), 3, cluster=3).reshape(3, 32)
    t = np.arange(32)
    assert np.array_equal(found, 100000 * t + 1000 * np.arange(3)[:, None] + t + 7)


def test_addresses() -> None:
    """Rank in bits 24 and up, of a block's own variables too; mapa changes it, getctarank tells it, isspacep asks it."""
    text = f"""mov.u32 %r6, data; add.u32 %r6, %r6, 20; {NEXT} mapa.shared::cluster.u32 %r7, %r6, %r9;
      getctarank.shared::cluster.u32 %r8, %r7; getctarank.shared::cluster.u32 %r10, %r6;
      cvt.u64.u32 %rd4, %r7; cvta.shared::cluster.u64 %rd4, %rd4; getctarank.u64 %r11, %rd4;
      cvt.u64.u32 %rd5, %r6; cvta.shared.u64 %rd5, %rd5; mapa.u64 %rd6, %rd5, %r9; setp.eq.u64 %p0, %rd6, %rd4;
      selp.u32 %r12, 1, 0, %p0; isspacep.shared::cta %p1, %rd4; isspacep.shared::cluster %p2, %rd4;
      isspacep.shared %p3, %rd5; isspacep.shared::cluster %p4, %rd1;
      selp.u32 %r13, 8, 0, %p1; selp.u32 %r14, 4, 0, %p2; selp.u32 %r15, 2, 0, %p3; selp.u32 %r16, 1, 0, %p4;
      add.u32 %r13, %r13, %r14; add.u32 %r15, %r15, %r16; add.u32 %r13, %r13, %r15;
      mad.wide.u32 %rd2, %r3, 28, %rd0;
      st.global.u32 [%rd2], %r6; st.global.u32 [%rd2+4], %r7; st.global.u32 [%rd2+8], %r8; st.global.u32 [%rd2+12], %r10;
      st.global.u32 [%rd2+16], %r11; st.global.u32 [%rd2+20], %r12; st.global.u32 [%rd2+24], %r13;"""
    out = np.zeros((4, 7), np.uint32)
    x = np.zeros(8, np.uint32)
    module(text).launch("k", 4, 1, [out, x, b"\0" * 128], cluster=2)
    first = int(out[0, 0])
    assert (
        out.tolist()
        == [
            [first, 1 << 24 | first, 1, 0, 1, 1, 0b0110],
            [1 << 24 | first, first, 0, 1, 0, 1, 0b0110],
        ]
        * 2
    )


@pytest.mark.parametrize(
    ("text", "kind", "message", "address"),
    [
        (
            f"{WRITE}{SYNC}{NEXT} mapa.shared::cluster.u32 %r10, %r7, %r9; ld.shared.u32 %r11, [%r10]; {SYNC}",
            OutOfBounds,
            "read of 4 bytes of shared memory of another block of the cluster, by an instruction that has .shared::cta only",
            "0x0 of the shared memory of the cluster's block 1 (288 bytes)",
        ),
        (
            f"{WRITE}{SYNC}{NEXT} setp.eq.u32 %p0, %r1, 1; @%p0 ret; {NARROW}",
            Undefined,
            "read of 4 bytes of shared memory of another block of the cluster, which has ended",
            "0x0 of the shared memory of the cluster's block 1 (288 bytes)",
        ),
        (
            f"{WRITE}{SYNC}{NEXT} add.u32 %r7, %r7, 288; {NARROW}{SYNC}",
            OutOfBounds,
            "read of 4 bytes of shared memory",
            "0x120 of the shared memory of the cluster's block 1 (288 bytes)",
        ),
        (
            f"{WRITE}{SYNC}{NEXT} or.b32 %r10, %r7, 0x2000000; ld.shared::cluster.u32 %r11, [%r10]; {SYNC}",
            OutOfBounds,
            "read of 4 bytes of shared memory",
            "0x0 of the shared memory of the cluster's block 2 (288 bytes)",
        ),
        (
            f"{NEXT} mov.u64 %rd4, bar; cvta.shared.u64 %rd4, %rd4; mapa.u64 %rd5, %rd4, %r9; mbarrier.init.b64 [%rd5], 1;",
            OutOfBounds,
            "write of 8 bytes of shared memory of another block of the cluster, by an instruction that has .shared::cta only",
            "0x100 of the shared memory of the cluster's block 1 (288 bytes)",
        ),
        (
            "mov.u32 %r9, 2; mapa.shared::cluster.u32 %r10, data, %r9;",
            Undefined,
            "mapa of rank 2; the cluster has 2 blocks",
            "",
        ),
    ],
    ids=["own only", "ended", "beyond", "no rank", "init", "mapa"],
)
def test_faults(text: str, kind: type[Fault], message: str, address: str) -> None:
    with pytest.raises(kind) as caught:
        launch(module(text), 2)
    assert caught.value.message == message
    assert caught.value.where.address == address


def test_mapa_without_clusters() -> None:
    with pytest.raises(Undefined) as caught:
        launch(module("mapa.shared::cluster.u32 %r10, data, 1;"), 2, cluster=None)
    assert caught.value.message == "mapa of rank 1; the cluster has 1 block"


# ---- what orders blocks of a cluster -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", ["", "bar.sync 0;", "membar.gl;"], ids=["nothing", "the block's barrier", "a fence"])
def test_without_the_clusters_barrier_it_is_a_race(sync: str) -> None:
    with pytest.raises(Race) as caught:
        launch(module(WRITE + sync + NEXT + NARROW + OUT + SYNC), 2)
    assert caught.value.message == (
        "thread (0, 0, 0) of block (0, 0, 0) reads shared 0x0..0x3, which thread (0, 0, 0) of block (1, 0, 0) wrote at PTX "
        "line 12; nothing orders them: a barrier is missing between"
    )
    assert caught.value.where.address == "0x0 of the cluster's block 1's shared memory"


def test_a_barrier_of_one_block_orders_no_other() -> None:
    """Warp 0 writes and arrives, warp 1 waits for it, in each block: what it may read is its own block's."""
    meet = """setp.lt.u32 %p0, %r0, 32; @%p0 st.shared.u32 [%r7], %r8; @%p0 bar.arrive 1, 64; @!%p0 bar.sync 1, 64;
      sub.u32 %r12, %r7, 128;"""
    write = WRITE.replace("st.shared.u32 [%r7], %r8;", meet)
    launch(module(f"{write} @!%p0 ld.shared.u32 %r11, [%r12]; {SYNC}"), 2, block=64)
    away = NARROW.replace("%r7", "%r12").replace("ld.", "@!%p0 ld.")
    with pytest.raises(Race):
        launch(module(f"{write} {NEXT} {away} {SYNC}"), 2, block=64)


def test_a_relaxed_arrival_releases_nothing() -> None:
    relaxed = "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"
    with pytest.raises(Race):
        launch(module(WRITE + relaxed + NEXT + NARROW + OUT + SYNC), 2)
    found = launch(module(WRITE + "fence.acq_rel.cluster;" + relaxed + NEXT + NARROW + OUT + SYNC), 2)
    assert np.array_equal(found, neighbours(2, 2))


def test_the_barrier_orders_global_memory() -> None:
    text = "add.u32 %r11, %r3, 5; st.global.u32 [%rd2], %r11; {} xor.b32 %r12, %r5, 1; mad.lo.u32 %r12, %r12, %r4, %r0;"
    text += "mad.wide.u32 %rd4, %r12, 4, %rd0; ld.global.u32 %r13, [%rd4]; {} st.global.u32 [%rd2], %r13;"
    found = launch(module(text.replace("{}", SYNC)), 4)
    assert np.array_equal(found.reshape(4, 32), np.arange(128).reshape(4, 32)[[1, 0, 3, 2]] + 5)
    with pytest.raises(Race):
        launch(module(text.replace("{}", "bar.sync 0;")), 4)


def test_clusters_do_not_order_each_other() -> None:
    text = f"st.global.u32 [%rd2], %r3; {SYNC} xor.b32 %r12, %r5, 2; mad.lo.u32 %r12, %r12, %r4, %r0;"
    text += "mad.wide.u32 %rd4, %r12, 4, %rd0; ld.global.u32 %r13, [%rd4];"
    with pytest.raises(Race):
        launch(module(text), 4)


def test_some_never_arrive() -> None:
    """Half of block 1 loops past the barrier: it waits for an mbarrier that nobody completes."""
    text = f"""mbarrier.init.shared.b64 [bar], 1; setp.ne.u32 %p0, %r1, 1; setp.lt.or.u32 %p1, %r0, 16, %p0; @%p1 bra ON;
      W: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra W;
      ON: barrier.cluster.arrive; barrier.cluster.wait; {OUT}"""
    with pytest.raises(BarrierFault) as caught:
        launch(
            module(
                text.replace("mbarrier.init", "setp.eq.u32 %p3, %r0, 0; @%p3 mbarrier.init", 1).replace(
                    "[bar], 1;", "[bar], 1; bar.sync 0;", 1
                )
            ),
            4,
        )
    assert caught.value.message == (
        "threads wait for what will never come:\n    mbarrier at shared 0x100 of the cluster's block 1: phase 0 lacks 1 arrival\n"
        "    the 2 blocks from (0, 0, 0): 48 of 64 threads have arrived at the cluster's barrier, others wait at "
        "barrier.cluster.wait, PTX line 14"
    )


# ---- mbarriers and copies of other blocks ------------------------------------------------------------------------------

INIT = """setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared.b64 [bar], {count}; @%p0 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;"""
WAIT = "W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0; @!%p1 bra W;"


def test_arrivals_at_another_blocks_mbarrier() -> None:
    """Each thread stores to its neighbour and arrives there; the neighbour waits for 32 arrivals."""
    text = f"""{INIT.format(count=32)} {NEXT} mov.u32 %r6, data; mad.lo.u32 %r7, %r0, 4, %r6;
      mapa.shared::cluster.u32 %r10, %r7, %r9; mad.lo.u32 %r8, %r1, 1000, %r0; st.shared::cluster.u32 [%r10], %r8;
      mapa.shared::cluster.u32 %r11, bar, %r9; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];
      {WAIT} ld.shared.u32 %r11, [%r7]; {OUT} {SYNC}"""
    found = launch(module(text), 6, cluster=3).reshape(6, 32)
    assert np.array_equal(found, 1000 * np.array([2, 0, 1] * 2)[:, None] + np.arange(32))
    with pytest.raises(Race):
        launch(module(text.replace("arrive.release", "arrive.relaxed")), 6, cluster=3)
    with pytest.raises(Race):
        launch(module(text.replace("W: ", "bra OVER; W: ").replace("bra W;", "bra W; OVER:")), 6, cluster=3)


def test_without_the_fence_an_mbarrier_is_not_there_yet() -> None:
    text = f"{INIT.format(count=32)} {NEXT} mapa.shared::cluster.u32 %r11, bar, %r9;".replace(
        "@%p0 fence.mbarrier_init.release.cluster;", ""
    )
    text += f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11]; {WAIT} {SYNC}"
    with pytest.raises(Race):
        launch(module(text), 2)


@pytest.mark.parametrize("drop", ["", "_drop"])
def test_other_operations_on_another_blocks_mbarrier(drop: str) -> None:
    """expect_tx and complete_tx there, and an arrival that leaves."""
    text = f"""{INIT.format(count=64)} {NEXT} mapa.shared::cluster.u32 %r11, bar, %r9; mbarrier.arrive.shared.b64 _, [bar];
      mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r11], 8;
      mbarrier.arrive{drop}.release.cluster.shared::cluster.b64 _, [%r11];
      mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r11], 8; {WAIT} mov.u32 %r11, 3; {OUT} {SYNC}"""
    assert (launch(module(text), 2) == 3).all()


STORES = {
    "st.async": "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %r8, [%r11];",
    "red.async": "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r10], %r8, [%r11];",
}


@pytest.mark.parametrize("name", STORES)
def test_asynchronous_stores(name: str) -> None:
    text = f"""mov.u32 %r6, data; mad.lo.u32 %r7, %r0, 4, %r6; st.shared.u32 [%r7], 0; fence.proxy.async; fence.acq_rel.cluster;
      {INIT.format(count=1)} {NEXT} @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128; bar.sync 0;
      mapa.shared::cluster.u32 %r10, %r7, %r9; mapa.shared::cluster.u32 %r11, bar, %r9; mad.lo.u32 %r8, %r1, 1000, %r0;
      {STORES[name]} {WAIT} ld.shared.u32 %r11, [%r7]; {OUT} {SYNC}"""
    found = launch(module(text), 4, cluster=2).reshape(4, 32)
    assert np.array_equal(found, 1000 * np.array([1, 0] * 2)[:, None] + np.arange(32))
    with pytest.raises(Race):
        launch(module(text.replace("W: ", "bra OVER; W: ").replace("bra W;", "bra W; OVER:")), 4)


def test_a_bulk_copy_to_another_block() -> None:
    text = f"""{WRITE} fence.proxy.async; {INIT.format(count=1)} {NEXT} @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
      bar.sync 0; mov.u32 %r10, data; add.u32 %r12, %r10, 128; mapa.shared::cluster.u32 %r12, %r12, %r9;
      mapa.shared::cluster.u32 %r11, bar, %r9;
      @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r12], [%r10], 128, [%r11];
      {WAIT} ld.shared.u32 %r11, [%r7+128]; {OUT} {SYNC}"""
    found = launch(module(text), 4, cluster=2).reshape(4, 32)
    assert np.array_equal(found, 1000 * np.array([1, 0] * 2)[:, None] + np.arange(32))


# ---- multicasts --------------------------------------------------------------------------------------------------------

# Rank 0 copies 128 bytes of x, those of its cluster, to the blocks of a mask; these wait for them.
MULTICAST = f"""{INIT.format(count=1)} mov.u32 %r6, data; mad.lo.u32 %r7, %r0, 4, %r6; mov.u32 %r20, %clusterid.x;
  mov.u16 %h0, {{mask}}; shr.u32 %r21, {{mask}}, %r1; and.b32 %r21, %r21, 1; setp.eq.u32 %p4, %r21, 1;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128; bar.sync 0;
  mad.wide.u32 %rd6, %r20, 128, %rd1; mov.u32 %r10, bar; setp.eq.and.u32 %p5, %r1, 0, %p0;
  {SYNC}
  @%p5 {{copy}}
  mov.u32 %r11, 77; @!%p4 bra OVER; {WAIT} ld.shared.u32 %r11, [%r7]; OVER: {OUT} {SYNC}"""
UNAWAITED = "bra W2; W: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0; @!%p1 bra W; W2:"
BULK = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r6], [%rd6], 128, [%r10], %h0;"
TENSOR = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
    " [%r6], [%rd7, {%r22, %r20}], [%r10], %h0;"
)


@pytest.mark.parametrize("mask", [0b0001, 0b1111, 0b1010])
@pytest.mark.parametrize("copy", [BULK, TENSOR], ids=["bulk", "tensor"])
def test_multicasts(mask: int, copy: str) -> None:
    x = np.arange(64, dtype=np.uint32).reshape(2, 32) + 1000
    text = "mov.b64 %rd7, map; cvta.param.u64 %rd7, %rd7; mov.u32 %r22, 0;" + MULTICAST.format(mask=mask, copy=copy)
    kernel = module(text)
    out = np.zeros((2, 4, 32), np.uint32)
    profile = kernel.launch("k", 8, 32, [out, x, TensorMap(x, box=(1, 32))], cluster=4)
    expected = np.where((mask >> np.arange(4) & 1)[None, :, None], x[:, None], 77)
    assert np.array_equal(out, expected)
    blocks = bin(mask).count("1")
    assert profile.total("async_global_load_bytes") == 2 * 128, "each is read once"
    assert profile.total("async_shared_store_bytes") == 2 * 128 * blocks
    with pytest.raises(Race):
        Module(kernel.ptx.replace(WAIT, UNAWAITED)).launch("k", 8, 32, [out, x, TensorMap(x, box=(1, 32))], cluster=4)


@pytest.mark.parametrize("odd", [0, 1])
def test_copies_that_the_other_block_of_a_pair_waits_for(odd: int) -> None:
    """With .cta_group::2 an mbarrier of the even blocks, or of the odd ones, tracks the copies to both blocks of a pair. Rank 0
    copies to ranks 0, 1 and 2 of four; rank 3 copies to itself and tells the mbarrier of its pair."""
    x = np.arange(64, dtype=np.uint32).reshape(2, 32) + 1000
    copy = "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    text = f"""{INIT.format(count=1)} mov.u32 %r6, data; mad.lo.u32 %r7, %r0, 4, %r6; mov.u32 %r20, %clusterid.x;
  mov.b64 %rd7, map; cvta.param.u64 %rd7, %rd7; mov.u32 %r22, 0; mov.u16 %h0, 0b111;
  and.b32 %r8, %r1, 1; setp.eq.u32 %p4, %r8, {odd};
  setp.eq.and.u32 %p5, %r0, 0, %p4;
  @%p5 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256; bar.sync 0;
  mov.u32 %r10, bar; mapa.shared::cluster.u32 %r11, %r10, {odd}; mapa.shared::cluster.u32 %r12, %r10, {2 + odd};
  setp.eq.and.u32 %p6, %r1, 0, %p0; setp.eq.and.u32 %p7, %r1, 3, %p0; {SYNC}
  @%p6 {copy}.multicast::cluster [%r6], [%rd7, {{%r22, %r20}}], [%r11], %h0;
  @%p7 {copy} [%r6], [%rd7, {{%r22, %r20}}], [%r12];
  @!%p4 bra OVER; {WAIT} OVER: {SYNC} ld.shared.u32 %r11, [%r7]; {OUT} {SYNC}"""
    out = np.zeros((2, 4, 32), np.uint32)
    arguments = [out, x, TensorMap(x, box=(1, 32))]
    kernel = module(text.replace("0b111", "7"))
    kernel.launch("k", 8, 32, arguments, cluster=4)
    assert np.array_equal(out, np.repeat(x[:, None], 4, axis=1))
    with pytest.raises(Race):
        Module(kernel.ptx.replace(WAIT, UNAWAITED)).launch("k", 8, 32, arguments, cluster=4)


def test_a_multicast_to_blocks_that_are_not_there() -> None:
    x = np.zeros(64, np.uint32)
    with pytest.raises(Undefined) as caught:
        launch(module(MULTICAST.format(mask=0b110, copy=BULK)), 2, x)
    words = "a multicast to blocks 0x6 of the cluster; it has blocks 0 to 1, which are mask 0x3"
    assert caught.value.message == words


# ---- programs that know nothing of it ----------------------------------------------------------------------------------


def test_wgmma_with_tensor_copies() -> None:
    """Blocks of every rank use their own memory: descriptors, tensor copies and mbarriers."""
    rng = np.random.default_rng(3)
    m, n, k = 128, 128, 128
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    results: list[Profile] = []
    for cluster in (None, (2, 2)):
        c = np.zeros((m, n), np.float32)
        maps = [TensorMap(a, box=(64, 64), swizzle="128B"), TensorMap(b, box=(64, 64), swizzle="128B")]
        shape = (n // 64, m // 64)
        module = program("hopper")
        results.append(
            module.launch("matmul_wgmma_tma", shape, 128, [*maps, Scratch(c), n, k], shared=4 * 8192, cluster=cluster)
        )
        assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    assert results[0].total("shared_wavefronts") == results[1].total("shared_wavefronts")
