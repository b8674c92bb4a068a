"""Orders of modifiers: the emulator takes those that ptxas takes, and no others, of every form of instruction.

The verdicts of ptxas are recorded (`emulator_spellings`); where there is a ptxas, it is asked once more.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from emulator_harness import execute
from emulator_spellings import TARGETS, Form, kernels, module, recorded, verdicts
from sampling import every
from weft.emulator import Checks, Module, PTXError, ops
from weft.emulator.machine.launch import launch
from weft.emulator.machine.program import Program
from weft.emulator.ops.registry import TABLE
from weft.emulator.ptx import parse
from weft.emulator.ptx.spelling import NAMES, spelled, well_named

FORMS = recorded()
PARTS = 8
"""Of what ptxas refuses: `make test` has one of them."""


def binds(lines: list[str], target: str) -> bool:
    """Whether the emulator takes these instructions; none is executed."""
    guarded = [f"@%pred_159 {line}" for line in lines]
    try:
        launch(
            Program(parse(module(guarded, target))), "test", (1, 1, 1), (128, 1, 1), [np.zeros(64)], 0, Checks.none()
        )
    except PTXError:
        return False
    return True


def taken(lines: list[str], target: str) -> list[bool]:
    """Each instruction's verdict. Those that all are taken are bound at once, others by halves."""
    if binds(lines, target):
        return [True] * len(lines)
    if len(lines) == 1:
        return [False]
    half = len(lines) // 2
    return taken(lines[:half], target) + taken(lines[half:], target)


def of(target: str, accepted: bool) -> list[tuple[Form, str]]:
    """The orders that ptxas takes, or does not, of a target's forms."""
    return [
        (form, line)
        for form in FORMS
        if form.target == target
        for place, line in enumerate(form.lines())
        if bool(form.accepted >> place & 1) == accepted
    ]


def test_what_is_recorded() -> None:
    orders = sum(len(form.lines()) for form in FORMS)
    assert (len(FORMS), orders, sum(form.accepted.bit_count() for form in FORMS)) == (587, 11664, 7035)


@pytest.mark.parametrize("target", TARGETS)
def test_all_that_ptxas_takes(target: str) -> None:
    ops.load()
    lines = [line for _, line in of(target, accepted=True)]
    verdict = taken(lines, target)
    assert [line for line, good in zip(lines, verdict, strict=True) if not good] == []


@pytest.mark.parametrize("part", every(PARTS, range(PARTS)))
def test_nothing_that_ptxas_refuses(part: int) -> None:
    ops.load()
    found: list[str] = []
    for target in TARGETS:
        lines = [line for _, line in of(target, accepted=False)][part::PARTS]
        program = Program(parse(kernels([f"@%pred_159 {line}" for line in lines], target)))
        for i, line in enumerate(lines):
            try:
                launch(program, f"k{i}", (1, 1, 1), (128, 1, 1), [np.zeros(64)], 0, Checks.none())
                found.append(line)
            except PTXError:
                pass
    assert found == []


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas, whose verdicts the record has, is not on the PATH")
def test_the_record_is_ptxas_verdict() -> None:
    assert verdicts(FORMS) == [form.accepted for form in FORMS]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("vote.ballot.sync.b32", "vote.sync.ballot.b32"),
        ("shfl.b32.bfly.sync", "shfl.sync.b32.bfly"),
        ("redux.add.u32.sync", "redux.sync.add.u32"),
        ("mad.lo.u32.cc", "mad.lo.cc.u32"),
        (
            "fence.cluster.acquire.sync_restrict::shared::cluster",
            "fence.acquire.sync_restrict::shared::cluster.cluster",
        ),
        ("fence.proxy.cluster.release.tensormap::generic", "fence.proxy.tensormap::generic.release.cluster"),
        ("mma.m16n8k16.sync.sp.aligned", "mma.sp.m16n8k16.sync.aligned"),
        ("ld.u32.global", "ld.u32.global"),
    ],
)
def test_the_order_of_the_isa(written: str, meant: str) -> None:
    opcode, *words = written.split(".")
    assert ".".join((opcode, *spelled(opcode, tuple(words)))) == meant


@pytest.mark.parametrize("name", NAMES)
def test_names_come_first(name: str) -> None:
    opcode, *words = name.split(".")
    assert well_named(name)
    assert not well_named(".".join((opcode, "u32", *words)))


def test_entries_of_the_table_are_well_named() -> None:
    ops.load()
    for name in TABLE:
        opcode, *words = name.split(".")
        assert well_named(name)
        assert spelled(opcode, tuple(words)) == tuple(words)


def test_values() -> None:
    """The instructions of a radix sort, spelled as CUDA 13's headers spell them."""
    x = np.arange(64, dtype=np.uint32) * 2654435761
    text = """
    setp.lt.u32 %p, %x, 0x80000000;
    vote.ballot.sync.b32 %ballot, %p, -1;
    vote.any.sync.pred %any, %p, -1;
    shfl.bfly.sync.b32 %other, %x, 1, 31, -1;
    redux.add.sync.u32 %sum, %x, -1;
    add.u32.cc %low, %x, %x;
    addc.u32 %carry, 0, 0;
    """
    outputs = {"ballot": "b32", "any": "pred", "other": "u32", "sum": "u32", "low": "u32", "carry": "u32"}
    found = execute(text, {"x": ("u32", x)}, outputs, ".reg .pred %p;")
    below = (x < 0x80000000).reshape(2, 32)
    ballots = [sum(1 << lane for lane in range(32) if row[lane]) for row in below]
    np.testing.assert_array_equal(found["ballot"], np.repeat(np.array(ballots, np.uint32), 32))
    np.testing.assert_array_equal(found["any"], np.repeat(below.any(axis=1), 32))
    np.testing.assert_array_equal(found["other"], x[np.arange(64) ^ 1])
    np.testing.assert_array_equal(found["sum"], np.repeat(x.reshape(2, 32).sum(axis=1, dtype=np.uint32), 32))
    np.testing.assert_array_equal(found["low"], x * np.uint32(2))
    np.testing.assert_array_equal(found["carry"], x >> 31)


def test_a_name_out_of_place_is_no_instruction() -> None:
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { .reg .b32 %r<3>; mul.u32.lo %r1, %r2, %r2; }"
    with pytest.raises(PTXError) as raised:
        Module(text).launch("k", 1, 32, [])
    assert str(raised.value) == (
        "PTX line 4: the emulator does not know the instruction 'mul.u32.lo'\n    mul.u32.lo %r1, %r2, %r2"
    )


def test_spaces_out_of_order() -> None:
    text = (
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 x) { .reg .b32 %r<3>; .reg .b64 %l; cp.async.ca.global.shared [%r1], [%l], 16; }"
    )
    with pytest.raises(PTXError) as raised:
        Module(text).launch("k", 1, 32, [np.zeros(4)])
    assert str(raised.value) == (
        "PTX line 4: cp has .global.shared, expected .shared.global\n    cp.async.ca.global.shared [%r1], [%l], 16"
    )
