"""alloca, stacksave and stackrestore: memory of a thread's own, where it lies, and what a return gives back."""

from __future__ import annotations

import numpy as np
import pytest

from weft.emulator import Fault, Module, OutOfBounds, PTXError, Undefined, Uninitialised


def launch(body: str, threads: int = 4, functions: str = "", variables: str = "") -> list[list[int]]:
    """Two 32-bit words of each thread, %r1 and %r2; %r0 is the thread."""
    out = np.zeros((threads, 2), np.uint32)
    Module(f""".version 9.0
.target sm_90
.address_size 64
{functions}
.visible .entry k(.param .u64 out) {{
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p; {variables}
  mov.u32 %r0, %tid.x; mov.u32 %r1, 0; mov.u32 %r2, 0;
  {body}
  ld.param.u64 %rd8, [out]; mad.wide.u32 %rd8, %r0, 8, %rd8; st.global.v2.u32 [%rd8], {{%r1, %r2}};
  ret;
}}""").launch("k", 1, threads, [out])
    return out.tolist()


def test_each_thread_has_its_own_of_its_own_size() -> None:
    """Thread i stores i numbers and sums them; a variable before them keeps what it has."""
    body = """st.local.u32 [v], %r0; mad.lo.u32 %r3, %r0, 4, 4; cvt.u64.u32 %rd0, %r3; alloca.u64 %rd1, %rd0;
      mov.u32 %r4, 0;
      FILL: cvt.u64.u32 %rd2, %r4; mad.lo.u64 %rd2, %rd2, 4, %rd1; st.local.u32 [%rd2], %r4; add.u32 %r4, %r4, 1;
      setp.le.u32 %p, %r4, %r0; @%p bra FILL;
      SUM: sub.u32 %r4, %r4, 1; cvt.u64.u32 %rd2, %r4; mad.lo.u64 %rd2, %rd2, 4, %rd1; ld.local.u32 %r5, [%rd2];
      add.u32 %r1, %r1, %r5; setp.gt.u32 %p, %r4, 0; @%p bra SUM;
      ld.local.u32 %r2, [v];"""
    assert launch(body, 40, variables=".local .u32 v;") == [[i * (i + 1) // 2, i] for i in range(40)]


@pytest.mark.parametrize(("written", "alignment"), [("", 8), (", 8", 8), (", 64", 64), (", 1", 1)])
def test_alignment(written: str, alignment: int) -> None:
    """A second allocation follows the first, of 5 bytes, at the next multiple."""
    body = f"alloca.u32 %r3, 5, 1; alloca.u32 %r1, 12{written}; sub.u32 %r2, %r1, %r3;"
    ((first, distance),) = launch(body, 1, variables=".local .b8 v[3];")
    assert first % alignment == 0
    assert distance == -(-(first - distance + 5) // alignment) * alignment - (first - distance)


def test_generic_addresses() -> None:
    body = "alloca.u64 %rd0, 8; cvta.local.u64 %rd1, %rd0; st.u32 [%rd1+4], %r0; ld.local.u32 %r1, [%rd0+4];"
    assert launch(body) == [[i, 0] for i in range(4)]


def test_what_is_saved_comes_back() -> None:
    """Behind stackrestore an allocation lies where the first one lay, and holds nothing."""
    body = """stacksave.u64 %rd0; alloca.u64 %rd1, 32; st.local.u32 [%rd1], 7; stackrestore.u64 %rd0; alloca.u64 %rd2, 32;
      sub.u64 %rd3, %rd2, %rd1; cvt.u32.u64 %r1, %rd3;"""
    assert launch(body, 2) == [[0, 0], [0, 0]]
    with pytest.raises(Uninitialised):
        launch(body + "ld.local.u32 %r2, [%rd2];", 2)


FUNCTION = """.func (.reg .u32 r) f(.reg .u32 n) {
  .reg .b32 %a<3>; .reg .pred %p; .reg .u32 %m, %o;
  setp.eq.u32 %p, n, 0; mov.u32 r, 0; @%p ret;
  alloca.u32 %a0, 24; st.local.u32 [%a0], n; sub.u32 %m, n, 1;
  call (%o), f, (%m);
  ld.local.u32 %a1, [%a0]; add.u32 r, %o, %a1; ret;
}"""


def test_calls() -> None:
    """Each level of a recursion has an allocation of its own, and the returns give all back: thread i has the sum of 0 to i."""
    body = """stacksave.u32 %r3; { .reg .u32 t, u; mov.u32 t, %r0; call (u), f, (t); mov.u32 %r1, u; }
      stacksave.u32 %r4; sub.u32 %r2, %r4, %r3;"""
    assert launch(body, 33, FUNCTION) == [[i * (i + 1) // 2, 0] for i in range(33)]


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("alloca.u32 %r3, 8; alloca.u32 %r4, 16384;", OutOfBounds,
         "alloca of 16384 bytes, where 16376 of the thread's 16384 are left"),
        ("mov.u64 %rd0, -8; alloca.u64 %rd1, %rd0;", OutOfBounds,
         "alloca of -8 bytes, where 16384 of the thread's 16384 are left"),
        ("alloca.u32 %r3, 8; stackrestore.u32 16;", Undefined,
         "stackrestore of 16, which is no earlier stack pointer of the thread"),
    ],
)  # fmt: skip
def test_faults(body: str, kind: type[Fault], message: str) -> None:
    with pytest.raises(kind) as caught:
        launch(body, 1)
    assert caught.value.message == message


def test_an_alignment_that_is_none() -> None:
    with pytest.raises(PTXError, match="an alignment is a power of two, not 12"):
        launch("alloca.u32 %r3, 8, 12;")
