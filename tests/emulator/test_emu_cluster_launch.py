"""clusterlaunchcontrol: every cluster's work is done once, by itself or by one that has taken its place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.emulator import Module, Race, Undefined

CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
QUERY = "clusterlaunchcontrol.query_cancel"
WAIT = "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], %parity; @!%p1 bra W;"
FIRST = f"{QUERY}.get_first_ctaid.v4.b32.b128 {{%x, %y, %z, _}}, %answer;"
EACH = "".join(f"{QUERY}.get_first_ctaid::{axis}.b32.b128 %{axis}, %answer;" for axis in "xyz")


def kernel(first: str = FIRST, wait: str = WAIT, size: int = 1) -> str:
    """Thread 0 of each block counts its work, asks for more, and goes on while there is some. ``size``: blocks of a cluster,
    along x, of which rank 0 asks for all."""
    multicast = ".multicast::cluster::all" if size > 1 else ""
    ask = f"@%p3 {CANCEL}{multicast}.b128 [answer], [bar];"
    sync = "barrier.cluster.arrive; barrier.cluster.wait;" if size > 1 else ""
    return f""".version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 done, .param .u64 begun) .reqnctapercluster {size}, 1, 1 {{
  .reg .b128 %answer; .reg .b32 %x, %y, %z, %nx, %ny, %r<8>, %parity, %rank; .reg .b64 %rd<8>; .reg .pred %p<4>;
  .shared .align 16 .b8 answer[16]; .shared .align 8 .b64 bar;
  ld.param.u64 %rd0, [done]; ld.param.u64 %rd1, [begun];
  mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z; mov.u32 %nx, %nctaid.x; mov.u32 %ny, %nctaid.y;
  mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %p3, %rank, 0;
  mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0;
  mov.b32 %parity, 0;
  @%p0 bra OUT;
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  red.global.add.u32 [%rd1], 1;
AGAIN:
  {sync}
  mad.lo.u32 %r1, %z, %ny, %y;
  mad.lo.u32 %r1, %r1, %nx, %x;
  mad.wide.u32 %rd2, %r1, 4, %rd0;
  red.global.add.u32 [%rd2], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  {sync}
  {ask}
  {wait}
  xor.b32 %parity, %parity, 1;
  ld.shared.b128 %answer, [answer];
  fence.proxy.async.shared::cta;
  {QUERY}.is_canceled.pred.b128 %p2, %answer;
  @!%p2 bra END;
  {first}
  add.u32 %x, %x, %rank;
  bra AGAIN;
END:
  {sync}
OUT:
  ret;
}}
"""


def launch(text: str, grid: tuple[int, int, int]) -> tuple[NDArray[np.uint32], int]:
    x, y, z = grid
    done, begun = np.zeros((z, y, x), np.uint32), np.zeros(1, np.uint32)
    Module(text).launch("k", grid, 32, [done, begun])
    return done, int(begun[0])


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("first", [FIRST, EACH], ids=["v4", "each"])
@pytest.mark.parametrize("grid", [(4, 1, 1), (6, 5, 2), (2, 1, 1)])
def test_every_block_s_work_is_done_once(grid: tuple[int, int, int], first: str, size: int) -> None:
    done, begun = launch(kernel(first, size=size), grid)
    assert (done == 1).all()
    assert begun == min(4 * size, done.size), "of the others the launch is cancelled"


def test_the_answer_is_waited_for() -> None:
    with pytest.raises(Race) as raised:
        launch(kernel(wait=""), (8, 1, 1))
    assert "its completion is not waited for" in raised.value.message


@pytest.mark.parametrize(("first", "name"), [(FIRST, "get_first_ctaid.v4"), (EACH, "get_first_ctaid::x")])
def test_the_first_block_of_no_cluster(first: str, name: str) -> None:
    text = kernel(first).replace("@!%p2 bra END;", "")
    with pytest.raises(Undefined) as raised:
        launch(text, (1, 1, 1))
    assert raised.value.message == f"{QUERY}.{name}.b32.b128 of a request that has cancelled no cluster"


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas on this machine")
@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("first", [FIRST, EACH], ids=["v4", "each"])
def test_ptxas_takes_the_kernel(first: str, size: int, tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"
    source.write_text(kernel(first, size=size))
    command = ["ptxas", "-arch=sm_100a", "-o", str(tmp_path / "k.cubin"), str(source)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
