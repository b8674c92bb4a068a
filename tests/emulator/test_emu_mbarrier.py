"""mbarrier instructions: against a model in Python integers, in programs of producers and consumers, and where they are wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator_harness import execute, kernel, run
from weft.emulator import BarrierFault, Checks, Fault, Misaligned, OutOfBounds, PTXError, Race, Undefined

DECLARATIONS = """.shared .align 8 .b64 bar[8]; .shared .align 16 .b8 data[1024];
  .reg .b64 %s<16>; .reg .pred %q<8>; .reg .b32 %x<16>; .reg .b64 %y<8>;"""


def device(text: str, block: int = 32, outputs: dict[str, str] | None = None, **inputs: Any) -> dict[str, Any]:
    """Runs the text with the declarations above; each input is (type, values), each output a type."""
    given = inputs or {"unused": ("u32", np.zeros(block, np.uint32))}
    return execute(text, given, outputs or {}, DECLARATIONS, block)


def one(text: str, setup: str = "mbarrier.init.shared.b64 [bar], 4;") -> str:
    """A text that thread 0 alone executes, with a barrier of four arrivals."""
    return f"mov.u32 %x0, %tid.x; setp.ne.u32 %q0, %x0, 0; @%q0 bra OUT;\n{setup}\n{text}\nOUT:"


def fault_of(text: str, kind: type[Fault], block: int = 32, checks: Checks | None = None) -> Fault:
    """The fault that a text ends in."""
    with pytest.raises(kind) as caught:
        run(kernel(text, {}, {}, DECLARATIONS), [], block=block, checks=checks)
    assert type(caught.value) is kind
    return caught.value


# ---- the state machine ------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """One object, one operation after the other, as the ISA's text has it."""

    expected: int
    pending: int
    tx: int = 0
    phase: int = 0

    def settle(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 9),
    st.lists(
        st.tuples(
            st.sampled_from(["arrive", "count", "expect", "drop", "expect_tx", "complete_tx"]), st.integers(1, 4)
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_sequences_of_operations(count: int, operations: list[tuple[str, int]]) -> None:
    """After each operation: the pending count its token has, and whether each parity's phase, and the token's, is complete."""
    model = Model(count, count)
    lines = [f"mbarrier.init.shared.b64 [bar], {count};", "ld.param.u64 %y0, [p_d]; mov.u32 %x15, 7;"]
    expected: list[int] = []
    for name, wanted in operations:
        amount = wanted
        before = model.phase
        pending = model.pending
        match name:
            case "arrive" | "count" | "expect":
                amount = 1 if name != "count" else min(amount, model.pending)
                if model.pending < 1:
                    continue
                if name == "expect":
                    model.tx += 16 * wanted
                    lines.append(f"mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %s0, [bar], {16 * wanted};")
                elif name == "count":
                    lines.append(f"mbarrier.arrive.shared.b64 %s0, [bar], {amount};")
                else:
                    lines.append("mbarrier.arrive.relaxed.cluster.shared::cta.b64 %s0, [bar];")
                model.pending -= amount
            case "drop":
                amount = min(amount, model.pending, model.expected - 1)
                if amount < 1:
                    continue
                lines.append(f"mbarrier.arrive_drop.shared.b64 %s0, [bar], {amount};")
                model.pending -= amount
                model.expected -= amount
            case _:
                model.tx += 16 * amount if name == "expect_tx" else -16 * amount
                lines.append(f"mbarrier.{name}.relaxed.cta.shared::cta.b64 [bar], {16 * amount};")
                lines.append("mov.b64 %s0, 0;")
        model.settle()
        state = name not in ("expect_tx", "complete_tx")
        lines.append("mbarrier.pending_count.b64 %x1, %s0; st.global.u32 [%y0], %x1;")
        tests = [
            "mbarrier.test_wait.parity.shared.b64 %q1, [bar], 0;",
            "mbarrier.test_wait.parity.shared.b64 %q1, [bar], %x15;",
        ]
        if state:
            tests.append("mbarrier.test_wait.acquire.cta.shared::cta.b64 %q1, [bar], %s0;")
        expected += [pending if state else 0, model.phase % 2 != 0, model.phase % 2 != 1]
        if state:
            expected.append(model.phase > before)
        for i, test in enumerate(tests):
            lines.append(f"{test} selp.u32 %x2, 1, 0, %q1; st.global.u32 [%y0+{4 * i + 4}], %x2;")
        lines.append(f"add.u64 %y0, %y0, {4 * (len(tests) + 1)};")
    results = np.zeros(64, np.uint32)
    ptx = kernel(one("\n".join(lines), ""), {}, {"d": "u32"}, DECLARATIONS).replace("st.global.b32 [%at2], %d;", "")
    run(ptx, [results])
    assert results[: len(expected)].tolist() == expected


def test_lanes_of_one_instruction_arrive_one_after_the_other() -> None:
    text = """
    mov.u32 %x0, %tid.x; and.b32 %x1, %x0, 3; shl.b32 %x2, %x1, 3; mov.u32 %x3, bar; add.u32 %x3, %x3, %x2;
    setp.lt.u32 %q0, %x0, 4;
    @%q0 mbarrier.init.shared.b64 [%x3], 8;
    bar.warp.sync -1;
    mbarrier.arrive.shared.b64 %s0, [%x3];
    mbarrier.pending_count.b64 %d, %s0;
    mbarrier.test_wait.shared.b64 %p, [%x3], %s0;
    """
    found = device(text, outputs={"d": "u32", "p": "pred"})
    # Lane i is number i // 4 of the eight that share barrier i % 4, and finds 8 - i // 4 arrivals pending.
    assert found["d"].tolist() == [8 - i // 4 for i in range(32)]
    assert found["p"].all()


def test_a_count_per_lane_and_expected_bytes() -> None:
    text = """
    mov.u32 %x0, %tid.x; setp.eq.u32 %q0, %x0, 0;
    @%q0 mbarrier.init.shared.b64 [bar], 528;
    @%q0 mbarrier.init.shared.b64 [bar+8], 32;
    bar.warp.sync -1;
    add.u32 %x1, %x0, 1;
    mbarrier.arrive.shared.b64 %s0, [bar], %x1;
    mbarrier.pending_count.b64 %d, %s0;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar+8], %x1;
    mbarrier.test_wait.parity.shared.b64 %p, [bar+8], 0;
    bar.warp.sync -1;
    mbarrier.complete_tx.shared.b64 [bar+8], %x1;
    mbarrier.test_wait.parity.shared.b64 %e, [bar+8], 0;
    """
    found = device(text, outputs={"d": "u32", "p": "pred", "e": "pred"})
    # 1 + 2 + ... + 32 = 528 arrivals; lane i comes after 1 + ... + i.
    assert found["d"].tolist() == [528 - i * (i + 1) // 2 for i in range(32)]
    assert not found["p"].any()
    assert found["e"].all()


def test_generic_addresses_and_sinks() -> None:
    text = one("""
    mov.u64 %y1, bar; cvta.shared.u64 %y1, %y1; mov.u32 %x2, bar;
    mbarrier.arrive.noComplete.release.cta.b64 %s1, [%y1], 3;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%x2];
    mbarrier.try_wait.parity.b64 %q1, [%y1], 0, 1000;
    selp.u32 %d, 1, 0, %q1;
    mbarrier.inval.b64 [%y1];
    mbarrier.init.b64 [%y1], 1;
    """)
    assert device(text, outputs={"d": "u32"})["d"][0] == 1


# ---- waiting ------------------------------------------------------------------------------------------------------------

PIPELINE = """
    // Warp 0 produces eight values of 32 lanes in two stages, warp 1 adds them up. full: bar, bar+8; empty: bar+16, bar+24.
    mov.u32 %x0, %tid.x; setp.ne.u32 %q0, %x0, 0; @%q0 bra READY;
    mbarrier.init.shared.b64 [bar], 32; mbarrier.init.shared.b64 [bar+8], 32;
    mbarrier.init.shared.b64 [bar+16], 32; mbarrier.init.shared.b64 [bar+24], 32;
    READY: bar.sync 0;
    mov.u32 %x1, 0; mov.u32 %d, 0; mov.u32 %x9, bar; mov.u32 %x10, data;
    and.b32 %x2, %x0, 31;
    setp.ge.u32 %q1, %x0, 32;
    LOOP:
    and.b32 %x3, %x1, 1; shr.u32 %x4, %x1, 1; and.b32 %x4, %x4, 1;      // stage, parity of its phase
    shl.b32 %x5, %x3, 3; add.u32 %x5, %x5, %x9;
    shl.b32 %x6, %x3, 7; shl.b32 %x7, %x2, 2; add.u32 %x6, %x6, %x7; add.u32 %x6, %x6, %x10;
    @%q1 bra CONSUME;
    xor.b32 %x8, %x4, 1;
    W0: mbarrier.try_wait.parity.{wait}shared::cta.b64 %q2, [%x5+16], %x8; @!%q2 bra W0;
    mad.lo.u32 %x8, %x1, 100, %x2; st.shared.u32 [%x6], %x8;
    mbarrier.arrive.{arrive}shared.b64 _, [%x5];
    bra NEXT;
    CONSUME:
    W1: mbarrier.{op}.parity.{wait}shared::cta.b64 %q2, [%x5], %x4; @!%q2 bra W1;
    ld.shared.u32 %x8, [%x6]; add.u32 %d, %d, %x8;
    mbarrier.arrive.shared.b64 _, [%x5+16];
    NEXT:
    add.u32 %x1, %x1, 1; setp.lt.u32 %q3, %x1, 8; @%q3 bra LOOP;
"""


def pipeline(op: str = "try_wait", wait: str = "", arrive: str = "") -> str:
    return PIPELINE.replace("{op}", op).replace("{wait}", wait).replace("{arrive}", arrive)


@pytest.mark.parametrize("op", ["try_wait", "test_wait"])
def test_producers_and_consumers(op: str) -> None:
    found = device(pipeline(op), 64, {"d": "u32"})["d"]
    assert found[:32].tolist() == [0] * 32
    assert found[32:].tolist() == [2800 + 8 * lane for lane in range(32)]


def test_many_blocks_wait_for_their_own() -> None:
    unused = np.zeros(64 * 5, np.uint32)
    found = execute(pipeline(), {"unused": ("u32", unused)}, {"d": "u32"}, DECLARATIONS, 64)["d"].reshape(5, 64)
    assert (found[:, 32:] == 2800 + 8 * np.arange(32)).all()


def test_blocks_in_different_phases() -> None:
    """Block i sends 4 + 3 i values from warp to warp; all blocks are resident, and their barriers have the same addresses."""
    text = pipeline().replace("mov.u32 %x1, 0;", "mov.u32 %x1, 0; mov.u32 %x11, %ctaid.x; mad.lo.u32 %x11, %x11, 3, 4;")
    text = text.replace("setp.lt.u32 %q3, %x1, 8", "setp.lt.u32 %q3, %x1, %x11")
    found = execute(text, {"unused": ("u32", np.zeros(64 * 6, np.uint32))}, {"d": "u32"}, DECLARATIONS, 64)["d"]
    rounds = 4 + 3 * np.arange(6)[:, None]
    expected = 100 * (rounds * (rounds - 1) // 2) + rounds * np.arange(32)
    np.testing.assert_array_equal(found.reshape(6, 2, 32)[:, 1], expected)


def test_objects_that_come_and_go() -> None:
    """One place is an object of 64 arrivals, of 32, and of 64 again: each begins with phase 0."""
    text = """
    mov.u32 %x0, %tid.x; mov.u32 %x1, 0; setp.eq.u32 %q0, %x0, 0; mov.u32 %d, 0;
    AGAIN:
    and.b32 %x2, %x1, 1; shr.u32 %x3, 64, %x2;
    @%q0 mbarrier.init.shared.b64 [bar], %x3;
    bar.sync 0;
    setp.lt.u32 %q1, %x0, %x3;
    @%q1 mbarrier.arrive.shared.b64 %s0, [bar];
    WAIT: mbarrier.try_wait.parity.shared.b64 %q2, [bar], 0; @!%q2 bra WAIT;
    bar.sync 0;
    @%q0 mbarrier.inval.shared.b64 [bar];
    add.u32 %d, %d, %x3; add.u32 %x1, %x1, 1; setp.lt.u32 %q3, %x1, 3; @%q3 bra AGAIN;
    """
    assert device(text, 64, {"d": "u32"})["d"].tolist() == [160] * 64


@pytest.mark.parametrize("changed", [{"wait": "relaxed.cta."}, {"arrive": "relaxed.cta."}])
def test_a_relaxed_barrier_orders_nothing(changed: dict[str, str]) -> None:
    with pytest.raises(Race):
        device(pipeline(**changed), 64, {"d": "u32"})


def test_relaxed_barriers_order_what_is_between_fences() -> None:
    """A fence and a relaxed arrival are a release, a relaxed wait and a fence an acquire; each fence is needed."""
    fence, lines = "fence.acq_rel.cta;", pipeline(wait="relaxed.cta.", arrive="relaxed.cta.").splitlines()

    def fenced(arrivals: str, waits: str) -> str:
        return "\n".join(
            arrivals + line if "mbarrier.arrive" in line else line + waits if "@!%q2 bra" in line else line
            for line in lines
        )

    assert device(fenced(fence, fence), 64, {"d": "u32"})["d"][63] == 2800 + 8 * 31
    for text in (fenced("", fence), fenced(fence, "")):
        with pytest.raises(Race):
            device(text, 64, {"d": "u32"})


def test_some_lanes_wait_and_others_need_not() -> None:
    """Odd lanes' object has completed its phase already; even lanes are behind thread 32, which comes later."""
    text = """
    mov.u32 %x0, %tid.x; setp.eq.u32 %q0, %x0, 0; setp.eq.u32 %q1, %x0, 32; and.b32 %x1, %x0, 1;
    @%q0 mbarrier.init.shared.b64 [bar], 1; @%q0 mbarrier.init.shared.b64 [bar+8], 1;
    @%q0 mbarrier.arrive.shared.b64 _, [bar+8];
    bar.sync 0;
    @%q1 bra LATE;
    shl.b32 %x2, %x1, 3; mov.u32 %x3, bar; add.u32 %x2, %x2, %x3; mov.u32 %x4, 5;
    mbarrier.try_wait.parity.shared.b64 %p, [%x2], 0;
    setp.eq.u32 %q2, %x1, 0;
    @%q2 ld.shared.u32 %x4, [data];
    mov.u32 %d, %x4;
    bra END;
    LATE: mov.u32 %x4, 9; st.shared.u32 [data], %x4; mbarrier.arrive.shared.b64 _, [bar]; mov.u32 %d, 0; setp.eq.u32 %p, 0, 0;
    END:
    """
    found = device(text, 64, {"d": "u32", "p": "pred"})
    assert found["p"].all()
    assert found["d"].tolist() == [0 if i == 32 else 5 if i % 2 else 9 for i in range(64)]


def test_a_wait_that_never_ends() -> None:
    text = """
    mov.u32 %x0, %tid.x; setp.ne.u32 %q0, %x0, 0; @%q0 bra READY;
    mbarrier.init.shared.b64 [bar+16], 2;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar+16], 4096;
    READY: bar.warp.sync -1;
    WAIT: mbarrier.try_wait.parity.shared.b64 %q1, [bar+16], 0;
    @!%q1 bra WAIT;
    """
    error = fault_of(text, BarrierFault)
    assert error.message == (
        "threads wait for what will never come:\n    mbarrier at shared 0x10: phase 0 lacks 1 arrival and 4096 bytes"
    )
    assert error.where.thread == (0, 0, 0)
    assert error.where.instruction is not None
    assert error.where.instruction.text == "mbarrier.try_wait.parity.shared.b64 %q1, [bar+16], 0"


def test_waits_that_never_end_for_several_barriers() -> None:
    text = """
    mov.u32 %x0, %tid.x; setp.ne.u32 %q0, %x0, 0; @%q0 bra READY;
    mbarrier.init.shared.b64 [bar], 1; mbarrier.init.shared.b64 [bar+8], 3;
    mbarrier.arrive.shared.b64 _, [bar];
    mbarrier.complete_tx.shared.b64 [bar], 64;
    mbarrier.arrive.shared.b64 _, [bar];
    READY: bar.warp.sync -1;
    and.b32 %x1, %x0, 1; shl.b32 %x2, %x1, 3; mov.u32 %x3, bar; add.u32 %x2, %x2, %x3; xor.b32 %x1, %x1, 1;
    mbarrier.try_wait.parity.shared.b64 %q1, [%x2], %x1;
    """
    assert fault_of(text, BarrierFault).message == (
        "threads wait for what will never come:\n"
        "    mbarrier at shared 0x0: phase 1 lacks an expect_tx of 64 bytes that came already\n"
        "    mbarrier at shared 0x8: phase 0 lacks 3 arrivals"
    )


def test_phases_are_counted_from_the_last_initialisation() -> None:
    text = """
    mbarrier.arrive.shared.b64 _, [bar], 4; mbarrier.arrive.shared.b64 _, [bar], 4;
    mbarrier.inval.shared.b64 [bar]; mbarrier.init.shared.b64 [bar], 2;
    {more} mbarrier.try_wait.parity.shared.b64 %q1, [bar], {parity};
    """
    for more, parity, phase in (("", 0, 0), ("mbarrier.arrive.shared.b64 _, [bar], 2;", 1, 1)):
        error = fault_of(one(text.format(more=more, parity=parity)), BarrierFault)
        assert error.message == (
            f"threads wait for what will never come:\n    mbarrier at shared 0x0: phase {phase} lacks 2 arrivals"
        )


def test_a_spin_that_never_ends() -> None:
    error = fault_of(one("WAIT: mbarrier.test_wait.parity.shared.b64 %q1, [bar], 0; @!%q1 bra WAIT;"), BarrierFault)
    assert error.message.startswith("1 threads repeat a loop that waits for another thread")


def test_who_waited_is_woken_even_if_the_next_phase_completes_first() -> None:
    """In three blocks, at once: thread 0 completes two phases while the others wait for the first."""
    text = """
    mov.u32 %x0, %tid.x; setp.eq.u32 %q0, %x0, 0;
    @%q0 mbarrier.init.shared.b64 [bar], 1;
    bar.warp.sync -1;
    @%q0 bra ARRIVE;
    mbarrier.try_wait.parity.shared.b64 %q1, [bar], 0;
    bra DONE;
    ARRIVE:
    mbarrier.arrive.shared.b64 _, [bar]; mbarrier.arrive.shared.b64 _, [bar];
    DONE:
    """
    execute(text, {"unused": ("u32", np.zeros(96, np.uint32))}, {}, DECLARATIONS, 32)


# ---- what is wrong ------------------------------------------------------------------------------------------------------

NO_OBJECT = "an mbarrier that was never initialised, or was invalidated or overwritten since"

WRONG = [
    ("mbarrier.arrive.shared.b64 _, [bar+8];", NO_OBJECT),
    ("mbarrier.inval.shared.b64 [bar]; mbarrier.expect_tx.shared.b64 [bar], 16;", NO_OBJECT),
    ("mov.b64 %s1, 5; st.shared.b64 [bar], %s1; mbarrier.test_wait.parity.shared.b64 %q1, [bar], 0;", NO_OBJECT),
    ("mbarrier.inval.shared.b64 [bar+8];", NO_OBJECT),
    ("mbarrier.arrive.shared.b64 _, [bar], 5;", "5 arrivals in a phase that waits for 4 arrivals"),
    ("mbarrier.arrive.shared.b64 _, [bar], 0;", "0 arrivals at once; there may be 1 to 1048575"),
    ("mbarrier.init.shared.b64 [bar+8], 0;", "an mbarrier that expects 0 arrivals; it may expect 1 to 1048575"),
    (
        "mbarrier.init.shared.b64 [bar+8], 1048576;",
        "an mbarrier that expects 1048576 arrivals; it may expect 1 to 1048575",
    ),
    (
        "mbarrier.arrive_drop.shared.b64 _, [bar], 4;",
        "4 arrivals dropped of 4 expected: none would be left to expect",
    ),
    (
        "mbarrier.arrive.noComplete.shared.b64 _, [bar], 4;",
        "mbarrier.arrive.noComplete.shared.b64 completes the phase, which .noComplete says it does not",
    ),
    (
        "mbarrier.expect_tx.shared.b64 [bar], 1048575; mbarrier.expect_tx.shared.b64 [bar], 1;",
        "a tx-count of 1048576 bytes; it may be -1048575 to 1048575",
    ),
    (
        "mov.b64 %s1, 5; mbarrier.test_wait.shared.b64 %q1, [bar], %s1;",
        "a state that no arrival at an mbarrier has given",
    ),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_undefined_behaviour(text: str, message: str) -> None:
    error = fault_of(one(text), Undefined)
    assert error.message == message
    assert error.where.thread == (0, 0, 0)
    assert error.where.address.endswith("of the block's shared memory (1088 bytes)")


def test_an_object_that_is_none_without_the_check_of_uninitialised_reads() -> None:
    checks = Checks(uninitialised=False)
    assert fault_of(one("mbarrier.arrive.shared.b64 _, [bar+8];"), Undefined, checks=checks).message == NO_OBJECT


def test_more_lanes_arrive_than_are_pending() -> None:
    text = """
    mov.u32 %x0, %tid.x; setp.eq.u32 %q0, %x0, 0;
    @%q0 mbarrier.init.shared.b64 [bar], 16;
    bar.warp.sync -1;
    mbarrier.arrive.shared.b64 _, [bar];
    """
    assert fault_of(text, Undefined).message == "32 arrivals in a phase that waits for 16 arrivals"


def test_addresses_of_no_object() -> None:
    error = fault_of(one("mov.u32 %x1, bar; add.u32 %x1, %x1, 4; mbarrier.arrive.shared.b64 _, [%x1];"), Misaligned)
    assert error.message == "atomic access of 8 bytes at an address that is no multiple of 8"
    error = fault_of(one("mov.u32 %x1, 0x40000; mbarrier.arrive.shared.b64 _, [%x1];"), OutOfBounds)
    assert error.message == "atomic access of 8 bytes of shared memory"
    error = fault_of(one("mov.u64 %y1, 0x1000000000; mbarrier.arrive.b64 _, [%y1];"), Undefined)
    assert error.message == "mbarrier of an address that is not in shared memory but in global memory"


def test_an_object_that_others_use_unordered() -> None:
    """Initialised by thread 0 and used by the others without a barrier between."""
    text = """
    mov.u32 %x0, %tid.x; setp.eq.u32 %q0, %x0, 0;
    @%q0 mbarrier.init.shared.b64 [bar], 32;
    mbarrier.arrive.shared.b64 _, [bar];
    """
    error = fault_of(text, Race)
    assert error.message == (
        "thread (1, 0, 0) of block (0, 0, 0) updates shared 0x0..0x3, which thread (0, 0, 0) wrote at PTX line 14; "
        "nothing orders them: a bar.warp.sync or a barrier is missing between"
    )


REFUSED = [
    ("mbarrier.init.layout::v1.shared.b64 [bar], 1;", "the emulator does not know '.layout::v1' of mbarrier"),
    (
        "mbarrier.arrive.shared::cluster.b64 %s1, [bar];",
        "an arrival at .shared::cluster has no state; its first operand must be _",
    ),
    ("mbarrier.arrive.noComplete.shared.b64 %s1, [bar];", "mbarrier has 2 operands, expected 3"),
    (
        "mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [bar], 1;",
        "the emulator does not know '.multicast::cluster::32b' of mbarrier",
    ),
    ("mbarrier.try_wait.parity.shared.b64 %q1, [bar];", "mbarrier has 2 operands, expected 3 or 4"),
    (
        "mbarrier.test_wait.parity.shared::cluster.b64 %q1, [bar], 0;",
        "the emulator does not know '.shared::cluster' of mbarrier",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        run(kernel(one(text), {}, {}, DECLARATIONS), [])
    assert str(caught.value).startswith(f"PTX line {caught.value.line}: {message}\n")
