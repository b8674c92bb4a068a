"""What wgmma refuses, and what it finds wrong."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_wgmma import Kernel, Operand, launch
from weft.emulator import Checks, Fault, PTXError

SIZE = 8192
A, B = Operand("f16", 0), Operand("f16", 4096 + 2048)
NAME = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
PRODUCT = f"{NAME} {{d}}, %da, %db, 1, 1, 1, 0, 0;"
PAIR = (A.descriptor, B.descriptor)


def go(kernel: Kernel, pairs: list[tuple[int, int]] | None = None, checks: Checks | None = None) -> None:
    count = kernel.groups * kernel.blocks
    zeros = [np.zeros((64, kernel.n))] * count
    launch(kernel, np.zeros((kernel.blocks, kernel.size), np.uint8), pairs or [PAIR] * count, zeros, checks=checks)


FOUR, TWO = "{%d0, %d1, %d2, %d3}", "{%d0, %d1}"
REGISTERS = "{%a0, %a1, %a2, %a3}"
REFUSED = [
    (
        f"wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {FOUR}, %da, %db, 1, 1, 1, 0, 0",
        "wgmma.mma_async of shape .m64n12k16 does not exist with types .f32.f16.f16",
    ),
    (
        f"wgmma.mma_async.sync.aligned.m64n8k8.f32.f16.f16 {FOUR}, %da, %db, 1, 1, 1, 0, 0",
        "wgmma.mma_async of shape .m64n8k8 does not exist with types .f32.f16.f16",
    ),
    (
        f"wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 {FOUR}, %da, %db, 1",
        "wgmma.mma_async of shape .m64n40k32 does not exist with types .s32.s8.s8",
    ),
    (
        f"wgmma.mma_async.sync.aligned.m64n8k16.f16.bf16.bf16 {TWO}, %da, %db, 1, 1, 1, 0, 0",
        "wgmma.mma_async of shape .m64n8k16 does not exist with types .f16.bf16.bf16",
    ),
    (
        f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.bf16 {FOUR}, %da, %db, 1, 1, 1, 0, 0",
        "wgmma.mma_async of shape .m64n8k16 does not exist with types .f32.f16.bf16",
    ),
    (
        f"wgmma.mma_async.sync.aligned.m64n8k16 {FOUR}, %da, %db, 1, 1, 1, 0, 0",
        "wgmma.mma_async of shape .m64n8k16 does not exist with types unnamed",
    ),
    (
        f"wgmma.mma_async.sync.aligned.f32.f16.f16 {FOUR}, %da, %db, 1, 1, 1, 0, 0",
        "wgmma.mma_async.sync.aligned.f32.f16.f16 has 0 shapes, expected one",
    ),
    (
        f"wgmma.mma_async.sync.m64n8k16.f32.f16.f16 {FOUR}, %da, %db, 1, 1, 1, 0, 0",
        "wgmma.mma_async.sync.m64n8k16.f32.f16.f16 has no '.aligned'",
    ),
    (
        f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16.satfinite {FOUR}, %da, %db, 1, 1, 1, 0, 0",
        "'.satfinite' is for integer types only",
    ),
    (
        f"wgmma.mma_async.sync.aligned.m64n8k32.s32.u8.u8.and.popc {FOUR}, %da, %db, 1",
        "'.and.popc' is for type .b1 only",
    ),
    (
        f"wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1 {FOUR}, %da, %db, 1",
        "wgmma.mma_async of bits needs '.and.popc'",
    ),
    (
        f"wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.xor.popc {FOUR}, %da, %db, 1",
        "the emulator does not know '.xor' of wgmma.mma_async",
    ),
    (f"{NAME} {TWO}, %da, %db, 1, 1, 1, 0, 0", f"{NAME} has 2 registers in a vector result, expected 4"),
    (f"{NAME} {FOUR}, {TWO}, %db, 1, 1, 1, 0", f"{NAME} has 2 registers in a vector operand, expected 4"),
    (f"{NAME} {FOUR}, %da, %db, 1, 1, 1", "wgmma has 6 operands, expected 8"),
    (f"{NAME} {FOUR}, {REGISTERS}, %db, 1, 1, 1, 0, 0", "wgmma has 8 operands, expected 7"),
    (
        f"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {FOUR}, %da, %db, 1, 1, 1, 0, 0",
        "wgmma has 8 operands, expected 6",
    ),
    (f"{NAME} {FOUR}, %da, %db, 2, 1, 1, 0, 0", "scale-d must be a predicate, 0 or 1"),
    (f"{NAME} {FOUR}, %da, %db, 1, 0, 1, 0, 0", "imm-scale-a and imm-scale-b must be -1 or 1"),
    (f"{NAME} {FOUR}, %da, %db, 1, 1, 2, 0, 0", "imm-scale-a and imm-scale-b must be -1 or 1"),
    (f"{NAME} {FOUR}, %da, %db, 1, 1, 1, 2, 0", "imm-trans-a and imm-trans-b must be 0 or 1"),
    (f"{NAME} {FOUR}, %da, %db, 1, %t0, 1, 0, 0", "an operand of wgmma must be an integer constant"),
    ("wgmma.fence.aligned", "wgmma.fence.aligned has no '.sync'"),
    ("wgmma.commit_group.sync.aligned.f32", "the emulator does not know '.f32' of wgmma.commit_group"),
    ("wgmma.wait_group.sync.aligned", "wgmma has 0 operands, expected 1"),
    ("wgmma.wait_group.sync.aligned -1", "wgmma.wait_group waits for all but -1 groups, expected 0 or more"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_refusals(text: str, message: str) -> None:
    kernel = Kernel(8, "f32", text.replace("{", "{{").replace("}", "}}") + ";", SIZE)
    with pytest.raises(PTXError) as caught:
        go(kernel)
    line = next(i for i, found in enumerate(kernel.ptx.splitlines(), 1) if text in found)
    assert str(caught.value) == f"PTX line {line}: {message}\n    {text}"


def fault(
    body: str, after: str = "", before: str | None = None, groups: int = 1, pairs: list[tuple[int, int]] | None = None
) -> tuple[str, Fault]:
    kernel = Kernel(8, "f32", body, SIZE, groups=groups, after=after)
    if before is not None:
        kernel.before = before
    with pytest.raises(Fault) as caught:
        go(kernel, pairs)
    return f"{caught.value.kind}: {caught.value.message}", caught.value


def test_descriptors_that_differ() -> None:
    change = "setp.eq.u32 %p, %t0, 77; @%p add.s64 {}, {}, 1;"
    for register, letter in (("%da", "A"), ("%db", "B")):
        message, found = fault(change.format(register, register) + PRODUCT)
        assert message == (
            f"undefined behaviour: the matrix descriptor of {letter} must be the same in all threads of a warpgroup; "
            "this thread's differs from its first's"
        )
        assert found.where.thread == (77, 0, 0)


def test_scale_d_that_differs() -> None:
    message, found = fault("setp.ne.u32 %s, %t0, 130;" + PRODUCT.replace("%db, 1,", "%db, %s,"), groups=2)
    assert message == (
        "undefined behaviour: scale-d must be the same in all threads of a warpgroup; "
        "this thread's differs from its first's"
    )
    assert found.where.thread == (130, 0, 0)


def test_an_operand_outside_shared_memory() -> None:
    # The last of A's 8 tiles begins at 7168 + 1024 = 8192.
    message, found = fault(PRODUCT, pairs=[(Operand("f16", 1024).descriptor, B.descriptor)])
    assert message == "out of bounds: read of 16 bytes of shared memory"
    assert found.where.address == "0x2000 of the block's shared memory (8192 bytes)"
    assert found.where.instruction is not None
    assert found.where.instruction.name == NAME


def test_an_operand_that_nobody_has_written() -> None:
    kernel = Kernel(8, "f32", PRODUCT, SIZE)
    text = kernel.ptx.replace(f"memory[{SIZE}]", f"memory[{2 * SIZE}]")
    written = Operand("f16", 1024)
    kernel_type = type("Larger", (Kernel,), {"ptx": text})
    with pytest.raises(Fault) as caught:
        go(kernel_type(8, "f32", PRODUCT, SIZE), [(written.descriptor, B.descriptor)])
    assert f"{caught.value.kind}: {caught.value.message}" == (
        "uninitialised read: read of 16 bytes of shared memory that has not been written"
    )
    assert caught.value.where.address == "0x2000 of the block's shared memory (16384 bytes)"


def test_half_a_warpgroup_waits_for_ever() -> None:
    message, found = fault(f"setp.lt.u32 %p, %t0, 64; @%p {PRODUCT}")
    assert message == (
        "barrier: threads wait for what will never come:\n"
        f"    warps 0, 1 of a block wait at {NAME} for all 128 threads of their warpgroup"
    )
    assert found.where.thread == (0, 0, 0)


def test_one_lane_that_is_missing() -> None:
    message, _ = fault(f"setp.eq.u32 %p, %t0, 200; @%p bra away; {PRODUCT}", after="away:", groups=2)
    assert message == (
        "barrier: threads wait for what will never come:\n"
        f"    warps 4, 5, 6, 7 of a block wait at {NAME} for all 128 threads of their warpgroup"
    )


# ---- who has seen what --------------------------------------------------------------------------------------------------------

OVERWRITE = "st.shared.b32 [%t2], %t0;"
WAIT = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned {};"
"""A's first word, by thread 0 alone."""
FIRST = "setp.eq.u32 %p, %t0, 0; @%p "


def test_a_missing_proxy_fence() -> None:
    message, found = fault(PRODUCT, before="bar.sync 0;")
    assert message.startswith("race: ")
    assert found.where.instruction is not None
    assert found.where.instruction.name == NAME


def test_a_missing_barrier() -> None:
    """Each of two warpgroups reads what both have written."""
    message, _ = fault(PRODUCT, before="fence.proxy.async;", groups=2)
    assert message.startswith("race: ")


def test_the_warps_of_a_warpgroup_count_as_one() -> None:
    """Each has written a part, and fenced it; thread 96 overwrites what all have read."""
    body = PRODUCT + WAIT.format(0) + FIRST.replace("%t0, 0", "%t0, 96") + OVERWRITE
    go(Kernel(8, "f32", body, SIZE, before="fence.proxy.async;"))


def test_an_operand_overwritten_too_early() -> None:
    message, found = fault(PRODUCT + FIRST + OVERWRITE)
    assert message.startswith("race: ")
    assert found.where.instruction is not None
    assert found.where.instruction.text == "@%p st.shared.b32 [%t2], %t0"


@pytest.mark.parametrize(
    ("between", "races"),
    [
        (WAIT.format(0), False),
        (WAIT.format(1), True),
        ("wgmma.wait_group.sync.aligned 0;", True),  # it was not committed
        (WAIT.format(1) + WAIT.format(1), False),  # the second group is empty; the first is older than one
        ("wgmma.commit_group.sync.aligned;", True),
    ],
)
def test_operands_may_be_overwritten_after_their_group(between: str, races: bool) -> None:
    kernel = Kernel(8, "f32", PRODUCT + between + FIRST + OVERWRITE, SIZE)
    if races:
        with pytest.raises(Fault) as caught:
            go(kernel)
        assert caught.value.kind == "race"
    else:
        go(kernel)


def test_another_warpgroup_needs_a_barrier_to_know_of_it() -> None:
    second = "setp.eq.u32 %p, %t0, 128; @%p "
    go(Kernel(8, "f32", PRODUCT + WAIT.format(0) + "bar.sync 0;" + second + OVERWRITE, SIZE, groups=2))
    message, _ = fault(PRODUCT + WAIT.format(0) + second + OVERWRITE, groups=2)
    assert message.startswith("race: ")


def test_without_checks_nothing_is_said() -> None:
    go(Kernel(8, "f32", PRODUCT + FIRST + OVERWRITE, SIZE, before=""), checks=Checks.none())
