"""What running random C functions in the emulator has found (``tests/oracles/emulator_fuzz.py``)."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_harness import execute
from weft.emulator import BarrierFault, Fault, Race, Undefined


def test_directive_and_type_without_a_space() -> None:
    """cuda_bf16.h declares ``.reg.f32 f;`` in its inline assembly."""
    text = "{ .reg.f32 f; mov.b32 f, {0, %h}; mov.b32 %d, f; }"
    h = np.array([0x3F80] * 32, np.uint16)
    assert execute(text, {"h": ("b16", h)}, {"d": "f32"})["d"].tolist() == [1.0] * 32


def test_section_with_a_dotted_name() -> None:
    module = ".section .nv.info.more { .b8 1, 2 }"
    assert execute("mov.u32 %d, 3;", {}, {"d": "u32"}, module=module)["d"].tolist() == [3] * 32


def test_lanes_that_wait_for_others_who_first_meet_among_themselves() -> None:
    """Lanes 8 to 31 wait for all lanes at the vote, where lanes 0 to 7 meet among themselves before (PTX ISA, vote.sync: a thread
    waits until all lanes its mask names have executed it with the same mask). What nvcc -G makes of a ballot in a loop is a
    function, one place for all ballots."""
    text = """
        mov.u32 %t, %tid.x;
        setp.eq.u32 %true, 0, 0;
        setp.lt.u32 %p, %t, 8;
        mov.u32 %d, 0;
        mov.u32 %m, -1;
        @%p mov.u32 %m, 0xff;
        AGAIN:
        vote.sync.ballot.b32 %v, %true, %m;
        mad.lo.u32 %d, %d, 2, %v;
        setp.ne.u32 %q, %m, -1;
        mov.u32 %m, -1;
        @%q bra AGAIN;
    """
    declarations = ".reg .b32 %t, %m, %v; .reg .pred %true, %p, %q;"
    both = (0xFF * 2 + 0xFFFFFFFF) % 2**32
    assert execute(text, {}, {"d": "u32"}, declarations)["d"].tolist() == [both] * 8 + [0xFFFFFFFF] * 24


def test_lanes_that_never_come_with_the_mask_they_are_named_by() -> None:
    """Lanes 8 to 31 name lanes 0 to 7, which come with a mask of their own, and go."""
    text = """
        mov.u32 %t, %tid.x;
        setp.eq.u32 %true, 0, 0;
        setp.lt.u32 %p, %t, 8;
        mov.u32 %m, -1;
        @%p mov.u32 %m, 0xff;
        vote.sync.ballot.b32 %d, %true, %m;
        @%p bar.sync 1;
    """
    with pytest.raises(BarrierFault) as caught:
        execute(text, {}, {"d": "u32"}, ".reg .b32 %t, %m; .reg .pred %true, %p;", block=32)
    assert (
        "lanes 0xffffff00 of a warp wait at vote.sync.ballot.b32 for lanes that its mask names and that never come"
        in caught.value.message
    )


@pytest.mark.parametrize("others", ("bar.warp.sync -1;", "bar.warp.sync %m;"))
def test_barrier_of_a_warp_opens_for_one_mask(others: str) -> None:
    """Lanes 0 to 7 meet at one barrier with the mask 0xff, write, and meet the others at another: whom lanes 8 to 31 wait for
    executes a barrier with their mask (PTX ISA, bar.warp.sync)."""
    text = f"""
        mov.u32 %t, %tid.x;
        setp.lt.u32 %p, %t, 8;
        mov.u32 %m, -1;
        @%p bra FIRST;
        {others}
        READ:
        ld.shared.u32 %d, [flag];
        bra END;
        FIRST:
        bar.warp.sync 0xff;
        setp.eq.u32 %q, %t, 0;
        @%q st.shared.u32 [flag], 77;
        bar.warp.sync -1;
        bra READ;
        END:
    """
    declarations = ".reg .b32 %t, %m; .reg .pred %p, %q; .shared .align 4 .b32 flag;"
    assert execute(text, {}, {"d": "u32"}, declarations)["d"].tolist() == [77] * 32


def test_carry_after_a_subtraction() -> None:
    """nvcc's division of 128-bit integers asks by ``addc r, 0, 0`` after subc.cc whether nothing was borrowed."""
    a, c = np.array([5, 5, 5, 0] * 8, np.uint32), np.array([4, 5, 6, 1] * 8, np.uint32)
    text = """
        sub.cc.u32 %d, %a, %c; addc.u32 %e, 0, 0;
        sub.cc.u32 %d, %a, %c; subc.cc.u32 %f, 1, 1; addc.u32 %f, 0, 0;
        sub.cc.u32 %d, %a, %c; subc.u32 %g, 0, 0;
        add.cc.u32 %d, %a, -5; subc.u32 %h, 0, 0;
        sub.cc.u32 %d, %a, %c; madc.lo.u32 %i, 3, 2, 10;
    """
    names = "defghi"
    got = execute(text, {"a": ("u32", a), "c": ("u32", c)}, dict.fromkeys(names, "u32"))
    assert {name: got[name][:4].tolist() for name in names} == {
        "d": [1, 0, 2**32 - 1, 2**32 - 1],
        "e": [1, 1, 0, 0],
        "f": [1, 1, 0, 0],
        "g": [0, 0, 2**32 - 1, 2**32 - 1],
        "h": [0, 0, 0, 2**32 - 1],  # 5 + (2**32 - 5) has a carry
        "i": [17, 17, 16, 16],
    }


@pytest.mark.parametrize(
    "counting",
    (
        "fence.acq_rel.cta; atom.shared.acquire.cta.add.u32 %v, [count], 1;",
        "atom.shared.acq_rel.cta.add.u32 %v, [count], 1;",
        "membar.cta; atom.shared.add.u32 %v, [count], 1; membar.cta;",
    ),
)
def test_the_last_warp_has_seen_the_others(counting: str) -> None:
    """Whoever finds that all others have counted themselves goes on alone: as cuda::pipeline does at its end. The warps come to
    the atomic together, and are served in turn."""
    text = f"""
        mov.u32 %t, %tid.x;
        setp.eq.u32 %q, %t, 0;
        @%q st.shared.u32 [count], 0;
        bar.sync 0;
        and.b32 %x, %t, 31;
        setp.ne.u32 %p, %x, 0;
        mov.u32 %d, 0;
        @%p bra END;
        shr.u32 %x, %t, 3;
        mov.u32 %a, slots;
        add.u32 %x, %x, %a;
        st.shared.u32 [%x], %t;
        {counting}
        setp.ne.u32 %p, %v, 3;
        @%p bra END;
        ld.shared.v4.u32 {{%x, %y, %z, %w}}, [slots];
        add.u32 %x, %x, %y; add.u32 %z, %z, %w; add.u32 %d, %x, %z;
        END:
    """
    declarations = """.reg .b32 %t, %v, %x, %y, %z, %w, %a; .reg .pred %p, %q;
        .shared .align 4 .b32 count; .shared .align 16 .b32 slots[4];"""
    inputs = {"i": ("u32", np.zeros(128, np.uint32))}
    assert execute(text, inputs, {"d": "u32"}, declarations, 128)["d"].sum() == 0 + 32 + 64 + 96


def test_an_atomic_that_does_not_release_orders_nothing() -> None:
    """The same without a fence before the atomic: a race."""
    text = """
        mov.u32 %t, %tid.x;
        setp.eq.u32 %q, %t, 0;
        @%q st.shared.u32 [count], 0;
        bar.sync 0;
        and.b32 %x, %t, 31;
        setp.ne.u32 %p, %x, 0;
        @%p bra END;
        @%q st.shared.u32 [slot], 7;
        atom.shared.acquire.cta.add.u32 %v, [count], 1;
        setp.ne.u32 %p, %v, 3;
        @%p bra END;
        ld.shared.u32 %x, [slot];
        END:
    """
    declarations = ".reg .b32 %t, %v, %x; .reg .pred %p, %q; .shared .align 4 .b32 count; .shared .align 4 .b32 slot;"
    with pytest.raises(Race):
        execute(text, {"i": ("u32", np.zeros(128, np.uint32))}, {}, declarations, 128)


INVALIDATED = """
    mov.u32 %t, %tid.x;
    setp.eq.u32 %p, %t, 0;
    setp.eq.u32 %q, %t, 31;
    @%p mbarrier.init.shared.b64 [bar], 32;
    bar.warp.sync -1;
    mbarrier.arrive.shared.b64 %s, [bar];
    WAIT:
    mbarrier.test_wait.shared.b64 %r, [bar], %s;
    @!%r bra WAIT;
    match.any.sync.b32 %d, 5, -1;
    @%p mbarrier.inval.shared.b64 [bar];
    AFTER
"""
INVALIDATED_DECLARATIONS = ".reg .b32 %t; .reg .b64 %s; .reg .pred %p, %q, %r; .shared .align 8 .b64 bar;"


def test_invalidating_what_other_lanes_have_waited_for() -> None:
    """The end of a cuda::pipeline: no bar.warp.sync between the lanes' waits and the invalidation by one of them."""
    text = INVALIDATED.replace("AFTER", "")
    assert execute(text, {}, {"d": "u32"}, INVALIDATED_DECLARATIONS)["d"].tolist() == [0xFFFFFFFF] * 32


@pytest.mark.parametrize(
    ("after", "fault"),
    (("@%q mbarrier.arrive.shared.b64 %s, [bar];", Undefined), ("@%q st.shared.u64 [bar], 3;", Race)),
)
def test_memory_of_an_invalidated_mbarrier(after: str, fault: type[Fault]) -> None:
    with pytest.raises(fault):
        execute(INVALIDATED.replace("AFTER", after), {}, {"d": "u32"}, INVALIDATED_DECLARATIONS)
