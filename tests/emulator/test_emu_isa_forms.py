"""PTX ISA 9.0 as a list: all that ptxas takes is read; what is recorded as executed binds; a refusal has the line."""

from __future__ import annotations

import itertools
import re
import shutil
from collections import Counter
from collections.abc import Iterable

import pytest

from emulator_directives import Shown
from emulator_directives import ask as ask_module
from emulator_directives import recorded as directives
from emulator_isa_forms import Pattern, ask, binds, expanded, recorded, together
from sampling import every
from weft.emulator import PTXError
from weft.emulator.ptx import parse

PATTERNS = recorded().patterns
TARGETS = sorted({pattern.target for pattern in PATTERNS})
PARTS = 12
DIRECTIVES = directives()


def of(target: str, bits: str) -> list[str]:
    """The forms of a target that a verdict is for."""
    patterns = [p for p in PATTERNS if p.target == target]
    return [form for p in patterns for i, form in enumerate(p.forms) if getattr(p, bits) >> i & 1]


def test_the_notation() -> None:
    assert list(expanded("add(|.sat).(s32|u64) T0, (T1|7)")) == [
        "add.s32 r0, r1",
        "add.s32 r0, 7",
        "add.u64 l0, l1",
        "add.u64 l0, 7",
        "add.sat.s32 r0, r1",
        "add.sat.s32 r0, 7",
        "add.sat.u64 l0, l1",
        "add.sat.u64 l0, 7",
    ]
    assert list(expanded("cvt.wide.u16.s32 W0, U1, T2, {r3:2}")) == ["cvt.wide.u16.s32 l0, h1, r2, {r3, r4, r5}"]
    assert list(expanded("mov.u64 l0, (1<<4)+3")) == ["mov.u64 l0, (1<<4)+3"]
    assert list(expanded("x.(compare)")) == ["x.eq", "x.ne", "x.lt", "x.le", "x.gt", "x.ge"]


def test_each_instruction_is_there_once() -> None:
    assert len(PATTERNS) > 500
    assert max(Counter((p.target, p.text) for p in PATTERNS).values()) == 1
    names = list(dict.fromkeys(p.instruction for p in PATTERNS))
    assert names == _runs(p.instruction for p in PATTERNS)
    words = {form.split(" ")[0].split(".")[0] for p in PATTERNS for form in p.forms}
    assert words == {name.split(".")[0] for name in names}


def _runs(names: Iterable[str]) -> list[str]:
    return [name for name, _ in itertools.groupby(names)]


@pytest.mark.parametrize("target", TARGETS)
def test_all_that_ptxas_takes_is_read(target: str) -> None:
    forms = of(target, "taken")
    module = parse(together(forms, target))
    texts = [instruction.text for instruction in module.functions["test"].instructions]
    assert texts == [" ".join(f"@p9 {form}".split()) for form in forms] + ["ret"]


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_executed(target: str) -> None:
    assert binds(of(target, "bound"), target) == ""


@pytest.mark.parametrize("pattern", [p for p in PATTERNS if p.taken & ~p.bound], ids=lambda p: p.text.partition(" ")[0])
def test_refusals_name_the_instruction_and_its_line(pattern: Pattern) -> None:
    """What has come since the verdicts were recorded binds, and is no refusal."""
    refused = [form for i, form in enumerate(pattern.forms) if (pattern.taken & ~pattern.bound) >> i & 1]
    said = binds(refused[:1], pattern.target)
    if said:
        opcode = pattern.text.partition(".")[0].partition(" ")[0]
        head, _, text = said.partition("\n")
        assert re.match(rf"PTX line \d+: the emulator does not know .*\b{opcode}\b", head)
        assert text.strip() == f"@p9 {refused[0]}"


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas on this machine")
@pytest.mark.parametrize("part", every(PARTS, range(PARTS)))
def test_the_record_is_ptxas_verdict(part: int) -> None:
    for target in TARGETS:
        patterns = [p for p in PATTERNS if p.target == target][part::PARTS]
        taken = iter(ask([form for p in patterns for form in p.forms], target))
        for p in patterns:
            assert [next(taken) for _ in p.forms] == [bool(p.taken >> i & 1) for i in range(len(p.forms))], p.text


@pytest.mark.parametrize("shown", [s for s in DIRECTIVES if s.taken], ids=lambda s: s.name)
def test_directives_that_ptxas_takes_are_read(shown: Shown) -> None:
    parse(shown.module)


def test_directives_are_told_apart() -> None:
    assert len({s.name for s in DIRECTIVES}) == len(DIRECTIVES) > 100
    refused = [s for s in DIRECTIVES if not s.taken]
    told = 0
    for shown in refused:
        try:
            parse(shown.module)
        except PTXError:
            told += 1
    assert told >= 15


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="there is no ptxas on this machine")
@pytest.mark.parametrize("part", every(PARTS, range(PARTS)))
def test_the_record_of_directives_is_ptxas_verdict(part: int) -> None:
    for shown in DIRECTIVES[part::PARTS]:
        assert (ask_module(shown) == "") == shown.taken, shown.name
