"""Loops that do not end: a launch takes so many steps and no more, and the fault says where it is, word for word. (Both ways of
executing must say the same: `conftest.py`.)"""

from __future__ import annotations

import numpy as np
import pytest

from weft.emulator import Checks, Endless, Module

HEAD = """.version 8.0
.target sm_90
.address_size 64
.file 1 "spin.cu"
.visible .entry spin(.param .u64 x)
{
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
"""


def launch(body: str, grid: int = 1, block: int = 32, steps: int | None = 5_000) -> np.ndarray:
    x = np.zeros(4096, np.uint32)
    Module(HEAD + body + "\n}\n").launch("spin", grid, block, [x], checks=Checks(steps=steps))
    return x


ALONE = """  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
AGAIN:
  add.u32 %r2, %r2, 3;
  setp.ne.u32 %p1, %r1, 5;
  @%p1 bra DONE;
  xor.b32 %r2, %r2, 1;
  bra AGAIN;
DONE:
  ret;"""


def test_one_lane_in_a_loop_of_arithmetic() -> None:
    with pytest.raises(Endless) as raised:
        launch(ALONE, block=64)
    assert str(raised.value) == (
        "endless loop: after 5,000 steps 1 thread is still in PTX lines 11 to 15; Checks(steps=...) allows more\n"
        "    block (0, 0, 0), warp 0: lanes 0x00000020\n"
        "  kernel spin\n"
        "  PTX line 15: bra AGAIN\n"
        "  block (0, 0, 0), thread (5, 0, 0)"
    )


MEMORY = """  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
AGAIN:
  .loc 1 7 0
  ld.global.u32 %r2, [%rd1];
  .loc 1 8 0
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra AGAIN;
  ret;"""


def test_many_warps_and_lines_of_the_source() -> None:
    with pytest.raises(Endless) as raised:
        launch(MEMORY, grid=3, block=64)
    assert str(raised.value) == (
        "endless loop: after 5,000 steps 192 threads are still in PTX lines 12, 14 to 15 (spin.cu:7, spin.cu:8); "
        "Checks(steps=...) allows more\n"
        "    block (0, 0, 0), warp 0: lanes 0xffffffff\n"
        "    block (0, 0, 0), warp 1: lanes 0xffffffff\n"
        "    block (1, 0, 0), warp 0: lanes 0xffffffff\n"
        "    block (1, 0, 0), warp 1: lanes 0xffffffff\n"
        "    and 2 warps more\n"
        "  kernel spin\n"
        "  source spin.cu:8\n"
        "  PTX line 15: @%p1 bra AGAIN\n"
        "  block (0, 0, 0), thread (0, 0, 0)"
    )


COUNTED = """  ld.param.u64 %rd1, [x];
  mov.u32 %r2, 0;
AGAIN:
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 4000;
  @%p1 bra AGAIN;
  st.global.u32 [%rd1], %r2;
  ret;"""


def test_a_loop_that_ends() -> None:
    """12,000 steps of the loop and four others: enough are enough, and those of a window behind the last are, too."""
    for steps in (12_004, 12_000, None, Checks().steps):
        assert launch(COUNTED, steps=steps)[0] == 4000
    with pytest.raises(Endless):
        launch(COUNTED, steps=5_000)


def test_each_batch_of_blocks_has_its_own_steps() -> None:
    """Blocks of 1,024 threads, 16 at once."""
    assert launch(COUNTED, grid=33, block=1024, steps=12_004)[0] == 4000


def test_off_with_all_others() -> None:
    assert Checks.none().steps is None and not Checks.none().switches["steps"]
    assert Checks().switches == dict.fromkeys(
        ("bounds", "alignment", "uninitialised", "races", "global_races", "steps"), True
    )
