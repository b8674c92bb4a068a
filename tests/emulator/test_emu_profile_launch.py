"""Counters of launches, against numbers derived by hand in a comment: divergence, guards, partial warps, loops, each space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.emulator import Checks, Module, Scratch
from weft.emulator.profile import Profile

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .pred %p<4>;"


def launched(
    body: str, block: int | tuple[int, ...] = 32, grid: int = 1, size: int = 1024, shared: int = 0, more: str = ""
) -> Profile:
    """A kernel whose %rd1 is an array of ``size`` zeros and whose %r1 is %tid.x."""
    start = "ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;"
    text = f"{HEAD}{more}.visible .entry k(.param .u64 p) {{\n{REGISTERS}\n{start}\n{body}\nret;\n}}\n"
    return Module(text).launch("k", grid, block, [np.zeros(size, np.uint32)], shared=shared)


def of(profile: Profile, text: str) -> Any:
    """The row of an instruction, by how it begins."""
    (row,) = [row for row in profile.instructions if row.text.startswith(text)]
    return row


def counts(profile: Profile, text: str) -> tuple[int, int]:
    row = of(profile, text)
    return row["executions"], row["threads"]


# ---- executions and threads -----------------------------------------------------------------------------------------------


def test_partial_warps():
    """Blocks of 40 threads are two warps, of which the second has 8 lanes."""
    profile = launched("add.u32 %r2, %r1, 1;", block=40, grid=3)
    assert counts(profile, "add") == (2 * 3, 40 * 3)
    assert profile.lane_efficiency == 40 / 64


def test_both_sides_of_a_branch():
    """Lanes 0 to 9 go one way, the others the other; a whole warp goes one way only. All meet again."""
    profile = launched(
        """
        setp.lt.u32 %p1, %r1, 10;
        @%p1 bra THEN;
        add.u32 %r2, %r1, 1;
        bra JOIN;
        THEN: sub.u32 %r2, %r1, 1;
        JOIN: xor.b32 %r3, %r2, 5;
        """,
        block=64,
    )
    assert counts(profile, "add") == (2, 22 + 32)
    assert counts(profile, "sub") == (1, 10)
    assert counts(profile, "xor") == (2, 64)
    assert counts(profile, "setp") == (2, 64)


def test_guards_are_executed_by_their_warps_and_done_by_the_threads_they_let_through():
    profile = launched("setp.lt.u32 %p1, %r1, 10;\n@%p1 add.u32 %r2, %r1, 1;\n@!%p1 sub.u32 %r3, %r1, 1;", block=64)
    assert counts(profile, "@%p1 add") == (2, 10)
    assert counts(profile, "@!%p1 sub") == (2, 54)


def test_loops_of_different_lengths():
    """Lane i goes round i + 1 times: the warp 32 times, with one lane less each time."""
    profile = launched(
        """
        mov.u32 %r2, 0;
        LOOP: add.u32 %r2, %r2, 1;
        setp.le.u32 %p1, %r2, %r1;
        @%p1 bra LOOP;
        xor.b32 %r3, %r2, 5;
        """
    )
    assert counts(profile, "add") == (32, 32 * 33 // 2)
    assert counts(profile, "xor") == (1, 32)


def test_batches_of_blocks_add_up():
    """More blocks than are executed at once."""
    one = launched("add.u32 %r2, %r1, 1;", block=256, grid=1)
    many = launched("add.u32 %r2, %r1, 1;", block=256, grid=200)
    assert {name: 200 * n for name, n in one.totals.counts.items()} == dict(many.totals.counts)


def test_what_never_ran_is_listed_with_nothing():
    profile = launched("setp.gt.u32 %p1, %r1, 99;\n@%p1 bra FAR;\nret;\nFAR: add.u32 %r2, %r1, 1;")
    assert of(profile, "add").counts == {}


# ---- memory -----------------------------------------------------------------------------------------------------------------

SHARED = ".shared .align 16 .b8 tile[8192];\n"


@pytest.mark.parametrize(
    ("stride", "access", "wavefronts", "ideal"),
    [
        (4, "u32", 1, 1),
        (8, "u32", 2, 1),  # 32 words, every other bank
        (128, "u32", 32, 1),
        (132, "u32", 1, 1),
        (0, "u32", 1, 1),
        (2, "u16", 1, 1),  # 16 words
        (64, "u16", 16, 1),  # words 16 i: banks 0 and 16
        (8, "u64", 2, 2),
        (16, "u64", 4, 2),  # in each half 16 vectors on 8 pairs of banks
        (16, "v4.u32", 4, 4),
        (32, "v4.u32", 8, 4),  # in each quarter 8 vectors on 4 groups of banks
        (128, "v2.u32", 32, 2),
    ],
)
def test_shared_stores(stride: int, access: str, wavefronts: int, ideal: int):
    value = {"u16": "%h", "u64": "%rd2", "v4.u32": "{%r1, %r1, %r1, %r1}", "v2.u32": "{%r1, %r1}"}.get(access, "%r1")
    body = f"""
        .reg .b16 %h; cvt.u16.u32 %h, 7; mov.u64 %rd2, 7; mov.u32 %r1, 7;
        mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r2, {stride}, tile;
        st.shared.{access} [%r3], {value};
    """
    row = of(launched(body, more=SHARED), "st.shared")
    bytes_ = {"u16": 2, "u64": 8, "v4.u32": 16, "v2.u32": 8}.get(access, 4) * 32
    assert row.counts == {
        "executions": 1,
        "threads": 32,
        "shared_store_requests": 1,
        "shared_store_bytes": bytes_,
        "shared_store_wavefronts": wavefronts,
        "shared_store_ideal_wavefronts": ideal,
    }


@pytest.mark.parametrize(("stride", "offset", "sectors"), [(4, 0, 4), (4, 4, 5), (8, 0, 8), (32, 0, 32), (0, 0, 1)])
def test_global_loads(stride: int, offset: int, sectors: int):
    body = f"mul.wide.u32 %rd2, %r1, {stride}; add.u64 %rd3, %rd1, %rd2; ld.global.u32 %r2, [%rd3+{offset}];"
    row = of(launched(body), "ld.global")
    assert row["global_load_sectors"] == sectors
    assert row["global_load_ideal_sectors"] == (4 if stride else 1)
    assert row["global_load_bytes"] == 128


def test_a_generic_load_counts_for_the_space_it_reaches():
    """Even lanes read shared memory, odd ones global memory: one request each, at half the lanes."""
    body = """
        cvta.shared.u64 %rd2, tile;
        st.shared.u32 [tile], %r1;
        bar.sync 0;
        and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
        selp.b64 %rd3, %rd2, %rd1, %p1;
        ld.u32 %r3, [%rd3];
    """
    module = Module(
        f"{HEAD}{SHARED}.visible .entry k(.param .u64 p) {{ {REGISTERS} ld.param.u64 %rd1, [p]; mov.u32 %r1, 7;"
        f" mov.u32 %r4, %tid.x; {body.replace('and.b32 %r2, %r1', 'and.b32 %r2, %r4')} ret; }}"
    )
    row = of(module.launch("k", 1, 32, [np.zeros(8, np.uint32)]), "ld.u32")
    assert row["shared_load_requests"] == row["global_load_requests"] == 1
    assert row["shared_load_bytes"] == row["global_load_bytes"] == 64
    assert (row["shared_load_wavefronts"], row["global_load_sectors"]) == (1, 1)


def test_local_memory():
    """Lane i indexes its array by i: 32 words, each of another row of the warp's memory: 32 sectors, where 4 would do."""
    body = """
        .local .align 4 .b8 mine[128];
        mov.u64 %rd2, mine; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd2, %rd3;
        st.local.u32 [mine+8], %r1;
        st.local.u32 [%rd4], %r1;
    """
    profile = launched(body)
    same, own = of(profile, "st.local.u32 [mine"), of(profile, "st.local.u32 [%rd4")
    assert (same["local_store_sectors"], same["local_store_ideal_sectors"]) == (4, 4)
    assert (own["local_store_sectors"], own["local_store_ideal_sectors"]) == (32, 4)


def test_atomics():
    """Two warps add to one counter: 31 lanes of each collide. Then lane i to counter i / 2."""
    body = """
        atom.global.add.u32 %r2, [%rd1], 1;
        shr.u32 %r3, %r1, 1; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd3, %rd1, %rd2;
        red.global.add.u32 [%rd3+256], 1;
    """
    profile = launched(body, block=64)
    one, pairs = of(profile, "atom"), of(profile, "red")
    assert (one["atomics"], one["atomic_collisions"], one["global_atomic_requests"]) == (64, 62, 2)
    assert (one["global_atomic_sectors"], one["global_atomic_bytes"]) == (2, 256)
    assert (pairs["atomics"], pairs["atomic_collisions"], pairs["global_atomic_sectors"]) == (64, 32, 4)


def test_constants_and_parameters():
    table = ".const .align 4 .b32 table[4] = {1, 2, 3, 4};\n"
    profile = launched("ld.const.u32 %r2, [table+4];", more=table, block=64)
    assert (profile.total("const_load_requests"), profile.total("const_load_bytes")) == (2, 256)
    assert counts(profile, "ld.param") == (2, 64)


def test_a_matrix_is_a_wavefront():
    """ldmatrix reads rows of 16 bytes. Rows side by side: one wavefront a matrix; 128 bytes apart: eight."""
    for stride, wavefronts in ((16, 4), (128, 32), (144, 4)):
        body = f"""
            st.shared.v4.u32 [tile], {{%r1, %r1, %r1, %r1}};
            mad.lo.u32 %r2, %r1, {stride}, tile;
            ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r2];
        """
        text = f"{HEAD}{SHARED}.visible .entry k() {{ {REGISTERS} mov.u32 %r1, %tid.x; {body} ret; }}"
        checks = Checks(uninitialised=False, races=False)
        row = of(Module(text).launch("k", 1, 32, [], checks=checks), "ldmatrix")
        assert (row["shared_load_wavefronts"], row["shared_load_ideal_wavefronts"]) == (wavefronts, 4)
        assert row["shared_load_bytes"] == 512


def test_asynchronous_copies_of_threads_are_loads_and_stores():
    body = """
        mad.lo.u32 %r2, %r1, 16, tile; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd3, %rd1, %rd2;
        cp.async.cg.shared.global [%r2], [%rd3], 16;
        cp.async.wait_all;
    """
    row = of(launched(body, more=SHARED), "cp.async.cg")
    assert (row["global_load_sectors"], row["global_load_ideal_sectors"], row["global_load_bytes"]) == (16, 16, 512)
    assert (row["shared_store_wavefronts"], row["shared_store_bytes"]) == (4, 512)


def test_operations():
    profile = launched("fma.rn.f32 %f1, %f2, %f3, %f4; add.f32 %f5, %f1, %f1; sqrt.rn.f32 %f6, %f5; abs.f32 %f7, %f6;")
    assert profile.total("thread_flops") == 32 * (2 + 1 + 1)


# ---- programs ---------------------------------------------------------------------------------------------------------------

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize(("kernel", "each"), [("transpose_conflicts", 32), ("transpose_padded", 1)])
def test_a_transpose_line_by_line(kernel: str, each: int):
    """6 blocks of 8 warps, which each read 4 rows of 32 floats into shared memory and write 4 columns of it."""
    x, out = np.arange(64 * 96, dtype=np.float32).reshape(64, 96), np.zeros((96, 64), np.float32)
    module = Module((PROGRAMS / "transpose.ptx").read_text())
    profile = module.launch(kernel, (3, 2), (32, 8), [x, Scratch(out), 64, 96])
    np.testing.assert_array_equal(out, x.T)
    accesses = 6 * 8 * 4
    into, out_of = profile.line(8), profile.line(12)
    assert (into["shared_wavefronts"], into["global_load_sectors"]) == (accesses, 4 * accesses)
    assert (out_of["shared_wavefronts"], out_of["global_store_sectors"]) == (each * accesses, 4 * accesses)
    assert profile.bank_conflicts == (each - 1) * accesses
    assert profile.excess_sectors == 0
    assert profile.total("barriers") == 6 * 8
    assert profile.lane_efficiency == 1
    assert profile.launch.static_shared == 32 * (33 if each == 1 else 32) * 4
