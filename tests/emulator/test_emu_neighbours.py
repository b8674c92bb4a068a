"""Accesses to shared memory that reach a neighbour of the variable that they are meant for, word for word; each beside one that
stays inside, at the last place where it does."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_harness import execute
from weft.emulator import Checks, Module, OutOfBounds

DECLARED = """.shared .align 4 .b8 left[64]; .shared .align 4 .b8 right[128];
.reg .b32 %a, %b, %c, %i, %t; .reg .b64 %w, %v; .reg .pred %p; .reg .b32 %q<4>;
"""
SET = "mov.u32 %t, %tid.x; mov.u32 %a, left; mov.u32 %b, right; "


def run(text: str) -> int:
    """What a single thread leaves in d."""
    return int(execute(SET + text, {"x": ("u32", np.ones(1, np.uint32))}, {"d": "u32"}, DECLARED)["d"][0])


WAYS = {
    "added": "add.u32 %c, %a, INDEX; st.shared.u32 [%c], %t; ld.shared.u32 %d, [%c];",
    "offset": "st.shared.u32 [left+INDEX], 7; ld.shared.u32 %d, [left+INDEX];",
    "offset of a register": "st.shared.u32 [%a+INDEX], 7; ld.shared.u32 %d, [%a+INDEX];",
    "an index": "mov.u32 %i, INDEX; shr.u32 %i, %i, 2; mad.lo.u32 %c, %i, 4, %a; st.shared.u32 [%c], 7; ld.shared.u32 %d, [%c];",
    "generic": "cvta.shared.u64 %w, left; add.u64 %w, %w, INDEX; st.u32 [%w], 7; ld.u32 %d, [%w];",
    "in a loop": "mov.u32 %c, %a; mov.u32 %i, 0; L: add.u32 %i, %i, 4; add.u32 %c, %c, 4; setp.lt.u32 %p, %i, INDEX; @%p bra L;"
    "st.shared.u32 [%c], 7; ld.shared.u32 %d, [%c];",
    "atomic": "add.u32 %c, %a, INDEX; st.shared.u32 [%a], 0; red.shared.add.u32 [%c], 1; mov.u32 %d, 0;",
}


@pytest.mark.parametrize("way", WAYS)
def test_one_step_too_far(way: str) -> None:
    one = WAYS[way].replace("[%c], %t", "[%c], 7")
    if way != "atomic":
        assert run(one.replace("INDEX", "60")) == 7
    with pytest.raises(OutOfBounds) as raised:
        run(one.replace("INDEX", "64"))
    verb = "atomic access" if way == "atomic" else "write"
    assert raised.value.message == f"{verb} of 4 bytes of shared memory outside 'left', from which its address comes"
    seen = raised.value.where.address
    assert seen.startswith("0x40 of the block's shared memory: 0 bytes past the end of 'left' (64 bytes)")


def test_both_variables_are_named() -> None:
    text = "st.shared.u32 [%b], 1; ld.shared.u32 %d, [%b]; add.u32 %c, %b, -8; st.shared.v2.u32 [%c], {%t, %t};"
    with pytest.raises(OutOfBounds) as raised:
        run(text + "st.shared.u32 [%a], 1;")
    assert raised.value.message == "write of 8 bytes of shared memory outside 'right', from which its address comes"
    assert raised.value.where.address == (
        "0x38 of the block's shared memory: 8 bytes before 'right' (128 bytes), byte 56 of 'left' (64 bytes)"
    )


def test_across_the_end() -> None:
    """16 bytes at byte 56 of 64, at an aligned place of the window."""
    text = SET + "st.shared.v4.u32 [%aOFFSET], {%t, %t, %t, %t}; st.shared.u32 [%b], 1; mov.u32 %d, 0;"
    declared = ".shared .align 16 .b8 first[8]; " + DECLARED
    given = {"x": ("u32", np.ones(1, np.uint32))}
    assert execute(text.replace("OFFSET", "+40"), given, {"d": "u32"}, declared)["d"] == 0
    with pytest.raises(OutOfBounds) as raised:
        execute(text.replace("OFFSET", "+56"), given, {"d": "u32"}, declared)
    assert raised.value.message == "write of 16 bytes of shared memory outside 'left', from which its address comes"
    assert raised.value.where.address == ("0x40 of the block's shared memory: byte 56 of 'left' (64 bytes)")


UNKNOWN = {
    "either of two": "setp.lt.u32 %p, %x, 16; selp.u32 %c, %a, %b, %p; st.shared.u32 [%c+64], 7; ld.shared.u32 %d, [%c+64];",
    "a distance": "sub.u32 %i, %b, %a; add.u32 %c, %a, %i; st.shared.u32 [%c], 7; ld.shared.u32 %d, [%c];",
    "a difference": "add.u32 %t, %a, 8; sub.u32 %i, %t, %a; add.u32 %c, %i, 92; st.shared.u32 [%b], 1; st.shared.u32 [%c], 7;"
    "ld.shared.u32 %d, [%c];",
    "a number": "mov.u32 %c, 100; st.shared.u32 [%b], 1; st.shared.u32 [%a], 1; st.shared.u32 [%c], 7; ld.shared.u32 %d, [%c];",
}


@pytest.mark.parametrize("way", UNKNOWN)
def test_where_nothing_is_known(way: str) -> None:
    """One of several variables, and addresses that come from none: only the window has bounds."""
    assert run(UNKNOWN[way]) == 7


def test_off_with_bounds() -> None:
    ptx = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n.reg .b32 %r<3>;\n"
        ".shared .align 4 .b8 left[64]; .shared .align 4 .b8 right[64];\nmov.u32 %r1, left;\n"
        "st.shared.u32 [%r1+64], 1;\nst.shared.u32 [right], 1;\nret;\n}\n"
    )
    Module(ptx).launch("k", 1, 1, [], checks=Checks(bounds=False))
    with pytest.raises(OutOfBounds):
        Module(ptx).launch("k", 1, 1, [])


def test_dynamic_memory_begins_behind_the_others() -> None:
    ptx = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 16 .b8 more[];\n.visible .entry k()\n{\n"
        ".reg .b32 %r<3>;\n.shared .align 4 .b8 left[64];\nmov.u32 %r1, more;\nst.shared.u32 [left], 1;\n"
        "st.shared.u32 [%r1+OFFSET], 1;\nret;\n}\n"
    )
    for offset in (0, 28):
        Module(ptx.replace("OFFSET", str(offset))).launch("k", 1, 1, [], shared=32)
    with pytest.raises(OutOfBounds) as raised:
        Module(ptx.replace("OFFSET", "-4")).launch("k", 1, 1, [], shared=32)
    assert str(raised.value) == (
        "out of bounds: write of 4 bytes of shared memory outside 'more', from which its address comes\n"
        "  kernel k\n"
        "  PTX line 11: st.shared.u32 [%r1+-4], 1\n"
        "  block (0, 0, 0), thread (0, 0, 0)\n"
        "  address 0x3c of the block's shared memory: 4 bytes before 'more' (32 bytes), byte 60 of 'left' (64 bytes)"
    )
