"""What launches keep for the next ones, by kernel and by the shape of blocks: a launch must not get another's.

Each launch of a mixed sequence is compared with the same launch of a module that is read anew, with nothing kept: memory,
counters, what was printed, faults. Kernels of one name in two modules differ in all that is kept: the functions that they reach,
their variables, clocks, opcodes, calls, and the width of their accesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from weft.emulator import Fault, LaunchError, Module
from weft.emulator.machine import geometry
from weft.emulator.machine.geometry import LARGEST, kept

HEAD = """.version 8.7
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.extern .func (.param .b64 r) malloc(.param .b64 size);
"""

INDICES = (
    "tid.x", "tid.y", "tid.z", "laneid", "warpid", "smid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt",
    "lanemask_ge", "cluster_ctaid.x", "cluster_ctaid.y", "cluster_ctaid.z", "cluster_ctarank", "ctaid.x", "ctaid.y",
    "ntid.x", "nctaid.x", "nsmid", "cluster_nctarank", "dynamic_smem_size", "total_smem_size", "nclusterid.x",
)  # fmt: skip


def entry(name: str, body: str) -> str:
    """A kernel of a pointer out and a number n: %r0 is the thread's number in its block, %rd0 its place of 128 bytes in out."""
    return f"""
.visible .entry {name}(.param .u64 out, .param .u32 n) {{
  .reg .b32 %r<9>; .reg .b64 %rd<6>; .reg .b16 %h; .reg .pred %p<3>;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.y; mad.lo.u32 %r0, %r2, %r1, %r0;
  mov.u32 %r2, %ntid.y; mul.lo.u32 %r2, %r1, %r2; mov.u32 %r3, %tid.z; mad.lo.u32 %r0, %r3, %r2, %r0;
  mov.u32 %r3, %ntid.z; mul.lo.u32 %r2, %r2, %r3; mov.u32 %r1, %ctaid.y; mov.u32 %r3, %nctaid.x;
  mov.u32 %r4, %ctaid.x; mad.lo.u32 %r1, %r1, %r3, %r4; mad.lo.u32 %r1, %r1, %r2, %r0;
  ld.param.u64 %rd0, [out]; ld.param.u32 %r8, [n]; mul.wide.u32 %rd1, %r1, 128; add.u64 %rd0, %rd0, %rd1;
  {body}
  ret;
}}"""


WHO = "".join(f"mov.u32 %r7, %{name}; st.global.u32 [%rd0+{4 * i}], %r7;" for i, name in enumerate(INDICES))
WORDS = entry(
    "same", f"{WHO} shl.b32 %r5, %r0, 2; mov.u32 %r6, dynamic; add.u32 %r5, %r5, %r6; st.shared.u32 [%r5], %r0;"
)
"""A word of dynamic shared memory a thread: a fault where it is too small."""

BYTES = """
.func (.reg .b32 %z) twice(.reg .b32 %x) { .reg .b32 %y; .shared .b32 own; add.u32 %y, %x, %x;
  mov.u32 %z, %y; ret; }
""" + entry(
    "same",
    "mov.u32 %r6, dynamic; and.b32 %r5, %r0, 31; mad.lo.u32 %r6, %r5, 4, %r6; shr.u32 %r5, %r0, 5; add.u32 %r6, %r6, %r5;"
    "cvt.u16.u32 %h, %r0; st.shared.u8 [%r6], %h;"
    "call (%r4), twice, (%r8); st.global.u32 [%rd0], %r4; mov.u32 %r5, %clock; st.global.u32 [%rd0+4], %r5;"
    "mov.u32 %r5, %reserved_smem_offset_cap; st.global.u32 [%rd0+8], %r5;"
    "mov.u32 %r5, %total_smem_size; st.global.u32 [%rd0+12], %r5;",
)
"""A byte a thread, with a function, a clock and the system's part of shared memory. Warps have bytes of the same words: a race,
if their accesses were taken for words."""

RACE = entry("other", "mov.u32 %r6, dynamic; st.shared.u32 [%r6], %r0;")

HEAP = entry(
    "other",
    "{ .param .b64 a; .param .b64 r; st.param.b64 [a], 16; call.uni (r), malloc, (a); ld.param.b64 %rd2, [r]; }"
    "st.u64 [%rd2], %rd0; ld.u64 %rd3, [%rd2]; sub.u64 %rd3, %rd3, %rd0; st.global.u64 [%rd0], %rd3;"
    "alloca.u64 %rd4, 8; st.local.u32 [%rd4], %r0;",
)
"""Device malloc and a stack."""

FIRST, SECOND = HEAD + WORDS + HEAP, HEAD + BYTES + RACE
"""Two modules, both of which have kernels ``same`` and ``other``."""


@dataclass(frozen=True)
class Launch:
    text: str
    kernel: str
    grid: tuple[int, int]
    block: tuple[int, int, int]
    shared: int = 4096
    cluster: int | None = None
    n: int = 5


LAUNCHES = (
    Launch(FIRST, "same", (4, 1), (64, 1, 1)),
    Launch(SECOND, "same", (4, 1), (64, 1, 1)),
    Launch(FIRST, "same", (4, 1), (64, 1, 1), cluster=2),
    Launch(FIRST, "same", (4, 1), (8, 4, 2)),
    Launch(FIRST, "same", (4, 1), (8, 4, 2), cluster=4),
    Launch(FIRST, "other", (2, 1), (33, 1, 1)),
    Launch(SECOND, "other", (2, 1), (33, 1, 1)),
    Launch(FIRST, "same", (2, 1), (33, 1, 1)),
    Launch(FIRST, "same", (3, 2), (33, 1, 1), 8192),
    Launch(FIRST, "same", (3, 2), (33, 1, 1), 64),
    Launch(SECOND, "same", (3, 2), (33, 1, 1), 128, n=7),
    Launch(SECOND, "same", (3, 2), (33, 1, 1), 8),
    Launch(SECOND, "same", (1, 1), (1024, 1, 1), 300000),
    Launch(FIRST, "same", (1, 1), (1024, 1, 1)),
)


def found(module: Module, launch: Launch) -> tuple[object, ...]:
    """All that a launch leaves behind."""
    x, y, z = launch.block
    out = np.zeros((launch.grid[0] * launch.grid[1] * x * y * z, 32), np.uint32)
    try:
        profile = module.launch(
            launch.kernel, launch.grid, launch.block, [out, launch.n], shared=launch.shared, cluster=launch.cluster
        )
    except (Fault, LaunchError) as fault:
        return type(fault), str(fault), out.tobytes()
    return profile, out.tobytes()


def alone(launch: Launch) -> tuple[object, ...]:
    """The launch by itself, of a module read anew, with nothing kept."""
    kept.cache_clear()
    return found(Module(launch.text), launch)


def test_launches_in_any_order_are_what_each_is_alone() -> None:
    expected = [alone(launch) for launch in LAUNCHES]
    assert sum(len(each) == 3 for each in expected) == 4, "a race, too little and too much shared memory"
    modules = {text: Module(text) for text in (FIRST, SECOND)}
    order = [*range(len(LAUNCHES)), *np.random.default_rng(16).permutation(len(LAUNCHES)).tolist()]
    for number in order:
        launch = LAUNCHES[number]
        if launch.kernel == "other":
            modules[launch.text].symbols.reset()
        assert found(modules[launch.text], launch) == expected[number], launch


@pytest.mark.parametrize("threads", [LARGEST, LARGEST + 32])
def test_shapes_that_are_kept(threads: int) -> None:
    """Of so many threads at most; and what is kept cannot be written."""
    kept.cache_clear()
    blocks = threads // 32
    one = geometry.geometry((32, 1, 1), blocks, (1, 1, 1))
    assert (geometry.geometry((32, 1, 1), blocks, (1, 1, 1)) is one) == (threads <= LARGEST)
    arrays: list[Any] = [one.lane, one.warp, one.block, one.real, *one.special.values()]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(("block", "blocks", "cluster"), [((5, 3, 2), 4, (2, 1, 2)), ((32, 2, 1), 3, (1, 1, 1))])
def test_the_arrays_of_a_shape(block: tuple[int, int, int], blocks: int, cluster: tuple[int, int, int]) -> None:
    """Each thread's numbers, counted one by one."""
    shape = geometry.geometry(block, blocks, cluster)
    nx, ny, nz = block
    places = -(-nx * ny * nz // 32) * 32
    size = cluster[0] * cluster[1] * cluster[2]
    assert shape.real.tolist() == [i < nx * ny * nz for i in range(places)]
    for thread in range(blocks * places):
        number, place = divmod(thread, places)
        lane, rank = place % 32, number % size
        expected = {
            "%tid.x": place % nx, "%tid.y": place // nx % ny, "%tid.z": place // nx // ny,
            "%laneid": lane, "%warpid": place // 32, "%smid": number,
            "%lanemask_eq": 1 << lane, "%lanemask_lt": (1 << lane) - 1, "%lanemask_le": (2 << lane) - 1,
            "%lanemask_gt": 0xFFFFFFFF - (2 << lane) + 1, "%lanemask_ge": 0xFFFFFFFF - (1 << lane) + 1,
            "%cluster_ctarank": rank, "%cluster_ctaid.x": rank % cluster[0],
            "%cluster_ctaid.y": rank // cluster[0] % cluster[1], "%cluster_ctaid.z": rank // cluster[0] // cluster[1],
        }  # fmt: skip
        assert {name: int(values[thread]) for name, values in shape.special.items()} == expected
        assert (shape.lane[thread], shape.warp[thread], shape.block[thread]) == (lane, thread // 32, number)


def test_registers_of_the_next_batch_are_new() -> None:
    """Whose value is read without having been written: 0 in all blocks, also where others were resident before."""
    module, out = (
        Module(HEAD + entry("k", "add.u32 %r7, %r7, %r8; st.global.u32 [%rd0], %r7;")),
        np.zeros((17 * 1024, 32), "u4"),
    )
    module.launch("k", 17, 1024, [out, 3])
    assert (out[:, 0] == 3).all()
