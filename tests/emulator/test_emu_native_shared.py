"""Native loads and stores of shared memory beside NumPy's, in clusters and without: values, counters, faults of random programs.

Each thread reads and writes places of its own block and, by ``mapa``, of another block of the cluster, between barriers of lanes,
of the block and of the cluster. Many programs have races: both ways must say the same of them.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from emulator_harness import execute
from weft.emulator import Checks, Fault, Race, ops
from weft.emulator.machine.launch import launch
from weft.emulator.machine.program import Program
from weft.emulator.memory.clocks import Clocks
from weft.emulator.native import code
from weft.emulator.native.quick import SharedMemory
from weft.emulator.native.shared import Site
from weft.emulator.ptx import parse

THREADS, BYTES = 80, 4096
"""The last warp of a block is not whole."""

KERNEL = f"""
.version 8.8
.target sm_90
.address_size 64
.visible .entry test(.param .u64 out)
{{{{
  .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .b16 %h; .reg .b32 %v<4>; .reg .b64 %w<2>;
  .shared .align 16 .b8 room[{BYTES}]; .shared .align 4 .b32 count;
  ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, {THREADS}, %r0;
  mul.wide.u32 %rd1, %r2, 8; add.u64 %rd0, %rd0, %rd1; mov.u32 %r8, 1; mov.u64 %w0, 0; mov.u64 %w1, 0; mov.u16 %h, 3;
  mov.u32 %v0, %r2; mov.u32 %v1, %r2; mov.u32 %v2, 5; mov.u32 %v3, 6; mov.u32 %r3, room; mov.u32 %r7, %cluster_ctarank;
  mad.lo.u32 %r4, %r0, 16, %r3;
  st.shared.v2.b64 [%r4], {{{{%w0, %w1}}}}; st.shared.v2.b64 [%r4+{16 * THREADS}], {{{{%w0, %w1}}}};
  setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [count], 0;
  barrier.cluster.arrive; barrier.cluster.wait;
  {{body}}
  add.u32 %v0, %v0, %v1; add.u32 %v0, %v0, %v2; cvt.u32.u16 %v1, %h; add.u32 %v0, %v0, %v1; cvt.u64.u32 %rd1, %v0;
  add.u64 %rd1, %rd1, %w0; st.global.u64 [%rd0], %rd1;
  ret;
}}}}
"""

ELEMENTS = {
    "u8": "%h",
    "u16": "%h",
    "u32": "%v0",
    "u64": "%w0",
    "v2.u32": "{%v0, %v1}",
    "v4.u32": "{%v0, %v1, %v2, %v3}",
}
WIDTHS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "v2.u32": 8, "v4.u32": 16}
MEET = ("bar.sync 0;", "barrier.cluster.arrive; barrier.cluster.wait;")


def step(source: random.Random, cluster: int) -> str:
    """An access of the lanes of a guard to places by thread: their own, a neighbour's, one for several; writes seldom so."""
    kind, loads = source.choice([*ELEMENTS]), source.random() < 0.5
    shared = (0, 15, 31, 127) if loads else (31, *[127] * 15)
    place = f"and.b32 %r5, %r0, {source.choice(shared)}; xor.b32 %r5, %r5, {source.choice((0, 0, 0, 1, 5))};"
    place += f"mad.lo.u32 %r5, %r5, {source.choice((WIDTHS[kind], 16))}, %r3;"
    space = "shared"
    if cluster > 1 and source.random() < 0.4:
        place += f"add.u32 %r6, %r7, {source.randrange(cluster)}; rem.u32 %r6, %r6, {cluster};"
        place += "mapa.shared::cluster.u32 %r5, %r5, %r6;"
        space = "shared::cluster" if source.random() < 0.95 else "shared::cta"
    guard = f"setp.{source.choice(('lt', 'ge'))}.u32 %p1, %r0, {source.choice((0, 20, 40, 64))};"
    element = ELEMENTS[kind]
    access = f"ld.{space}.{kind} {element}, [%r5];" if loads else f"st.{space}.{kind} [%r5], {element};"
    return f"{place} {guard} @%p1 {access}"


def program(source: random.Random, cluster: int) -> str:
    lines: list[str] = []
    for _ in range(source.randrange(4, 12)):
        lines.append(step(source, cluster))
        match source.randrange(12):
            case 0 | 1 | 2:
                lines.append(MEET[0])
            case 3 | 4 | 5 | 6 | 7 | 8 | 9:
                lines.append(MEET[1])
            case 10:
                lines.append(source.choice(("bar.warp.sync -1;", "atom.shared.add.u32 %r6, [count], 1;")))
            case _:
                pass
    return KERNEL.format(body="\n  ".join(lines))


def outcome(text: str, cluster: int) -> tuple[Any, bytes]:
    """Counters or the fault, and what the threads have stored."""
    out = np.zeros((2 * cluster * THREADS,), np.uint64)
    shape = (cluster, 1, 1)
    try:
        found = launch(
            Program(parse(text)), "test", (2 * cluster, 1, 1), (THREADS, 1, 1), [out], 0, Checks(), cluster=shape
        )
    except Fault as fault:
        return (type(fault), str(fault)), b""
    return found.counters.rows(), out.tobytes()


@pytest.fixture(autouse=True, scope="module")
def there() -> None:
    ops.load()
    if code.compiled() is None:
        pytest.skip("no LLVM here")


@pytest.mark.parametrize("cluster", [1, 2, 3])
def test_random_programs(cluster: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {(away, native): 0 for away in (False, True) for native in (False, True)}
    access = SharedMemory.access

    def record(self: SharedMemory, site: Any, active: Any) -> bool:
        done = access(self, site, active)
        made[bool(site.words[Site.REACHES]), done] += 1
        return done

    monkeypatch.setattr(SharedMemory, "access", record)
    source, faults = random.Random(cluster), set[str]()
    clean = 0
    for _ in range(60):
        text = program(source, cluster)
        found = outcome(text, cluster)
        with code.only_numpy():
            assert outcome(text, cluster) == found, text
        if found[1]:
            clean += 1
        else:
            faults.add(found[0][0].__name__)
    assert clean > 10
    assert faults == ({"Race", "OutOfBounds"} if cluster > 1 else {"Race"})
    assert made[False, True] > 5 * made[False, False]
    assert cluster == 1 or made[True, True] > made[True, False]


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (
            "setp.eq.u32 %p0, %r7, 1; @%p0 exit; mov.u32 %r6, 20000; SPIN: sub.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0;"
            "@%p1 bra SPIN; mov.u32 %r6, 1; mapa.shared::cluster.u32 %r5, %r3, %r6; ld.shared::cluster.u32 %v0, [%r5];",
            "Undefined",
            "read of 4 bytes of shared memory of another block of the cluster, which has ended",
        ),
        (
            "or.b32 %r5, %r3, 0x02000000; ld.shared::cluster.u32 %v0, [%r5];",
            "OutOfBounds",
            "read of 4 bytes of shared memory",
        ),
        (
            "or.b32 %r5, %r3, 0x01000000; setp.eq.u32 %p0, %r7, 0; @%p0 st.shared::cta.u32 [%r5], %v0;",
            "OutOfBounds",
            "write of 4 bytes of shared memory of another block of the cluster, by an instruction that has .shared::cta only",
        ),
        (
            f"add.u32 %r5, %r4, {BYTES}; ld.shared.u32 %v0, [%r5];",
            "OutOfBounds",
            "read of 4 bytes of shared memory",
        ),
    ],
)  # fmt: skip
def test_addresses_of_a_cluster(body: str, kind: str, message: str) -> None:
    """What is no place of a block that is there, natively as on NumPy."""
    text = KERNEL.format(body=body)
    found, _ = outcome(text, 2)
    with code.only_numpy():
        assert outcome(text, 2)[0] == found
    assert found[0].__name__ == kind
    assert message in found[1].splitlines()[0]


@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize(
    ("meeting", "reader"),
    [
        ("setp.ge.u32 %p0, %r0, 32; @%p0 bar.sync 1, 64;", 0),
        ("shr.u32 %r5, %r0, 5; setp.ne.u32 %p0, %r5, 1; @%p0 bar.sync 1, 64;", 32),
        ("bar.sync 1;", None),
    ],
)
def test_a_write_after_reads_of_two_warps(meeting: str, reader: int | None, cluster: int) -> None:
    """Threads 0 and 32 have read what thread 64 writes: it has to have seen both, not the last one alone."""
    steps = [f"setp.eq.u32 %p0, %r0, {thread}; @%p0 ld.shared.u32 %v0, [%r3];" for thread in (0, 32)]
    text = KERNEL.format(body=" ".join([*steps, meeting, "setp.eq.u32 %p0, %r0, 64; @%p0 st.shared.u32 [%r3], 7;"]))
    found, stored = outcome(text, cluster)
    with code.only_numpy():
        assert outcome(text, cluster) == (found, stored)
    if reader is None:
        assert stored
    else:
        assert (
            f"thread (64, 0, 0) of block (0, 0, 0) writes shared 0x0..0x3, which thread ({reader}, 0, 0) read"
            in found[1]
        )


def test_blocks_that_come_later() -> None:
    """The clocks begin anew: where the last blocks leave a barrier out, what earlier ones had seen is nothing to them."""
    text = """
    mov.u32 %t, %tid.x; mad.lo.u32 %w, %t, 4, words; st.shared.u32 [%w], %t; mov.u32 %b, %ctaid.x; setp.lt.u32 %p, %b, {last};
    @%p bar.sync 0; xor.b32 %w, %t, 32; mad.lo.u32 %w, %w, 4, words; ld.shared.u32 %d, [%w];
    """
    declarations = ".reg .b32 %t, %w, %b; .reg .pred %p; .shared .align 4 .b32 words[64];"
    threads = {"unused": ("u32", np.zeros(64 * 300, np.uint32))}
    found = execute(text.replace("{last}", "300"), threads, {"d": "u32"}, declarations, block=64)["d"]
    assert (found.reshape(300, 64) == np.arange(64) ^ 32).all()
    with pytest.raises(
        Race, match=r"thread \(0, 0, 0\) of block \(290, 0, 0\) reads .*, which thread \(32, 0, 0\) wrote"
    ):
        execute(text.replace("{last}", "290"), threads, {"d": "u32"}, declarations, block=64)


def test_barriers_of_all_blocks_at_once() -> None:
    """All warps of clusters of three blocks meet, each block on its own: one by one, and at once."""
    rng = np.random.default_rng(3)
    one, other = (Clocks(2, 6, 3) for _ in range(2))
    everyone = np.arange(12)
    for round in range(20):
        one.now = other.now = 10 * round + 9
        seen = rng.integers(0, one.now, one.seen.shape)
        for clocks in (one, other):
            clocks.seen[...] = seen
        one.meet(everyone, everyone)
        for came, left in other.by_part(everyone, everyone):
            other.barrier(came, left)
        np.testing.assert_array_equal(one.seen, other.seen)
        some = np.sort(rng.choice(12, 5, replace=False))
        for clocks in (one, other):
            clocks.release("key", some)
            clocks.acquire("key", everyone[round % 12 :])
        np.testing.assert_array_equal(one.seen, other.seen)
