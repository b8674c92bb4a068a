"""`assert_profile`: what may be expected, and every message."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from emulator_profiles import made
from weft.emulator.profile import Profile
from weft.testing import assert_profile


def failure(profile: Profile, **expected: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_profile(profile, **expected)
    return str(caught.value)


def small(number: int) -> bool:
    return number < 10


def test_what_is_as_expected_passes():
    assert_profile(made(), bank_conflicts=124, shared_wavefronts=(100, 128), global_sectors=small_or_96, wgmma=0)
    assert_profile(made(), lane_efficiency=(0.9, 1))
    assert_profile(made(conflicts=0), bank_conflicts=0)


def small_or_96(number: int) -> bool:
    return small(number) or number == 96


def test_every_counter_that_differs_is_listed_with_its_lines():
    assert failure(made(), bank_conflicts=0, global_sectors=(0, 12), executions=21, flops=128) == (
        "profile of k: 3 counters are not as expected\n"
        "  bank_conflicts is 124, expected 0\n"
        "      kernel.cu:3  124\n"
        "  global_sectors is 96, expected 0 to 12\n"
        "      kernel.cu:4  96\n"
        "  executions is 20, expected 21\n"
        "      kernel.cu:3  8\n"
        "      square.h:3  4\n"
        "      kernel.cu:4  4"
    )


def test_one_counter():
    assert failure(made(), shuffles=2) == (
        "profile of k: 1 counter is not as expected\n  shuffles is 0, expected 2\n      no line has any"
    )


def test_functions():
    assert failure(made(), global_sectors=small) == (
        "profile of k: 1 counter is not as expected\n"
        "  global_sectors is 96, expected what small accepts\n"
        "      kernel.cu:4  96"
    )


def test_bounds_are_inclusive():
    assert_profile(made(), global_sectors=(96, 96))
    assert "global_sectors is 96, expected 97 to 200" in failure(made(), global_sectors=(97, 200))
    assert "global_sectors is 96, expected 0 to 95" in failure(made(), global_sectors=(0, 95))


def test_idle_lanes():
    assert failure(made(), lane_efficiency=1.0) == (
        "profile of k: 1 counter is not as expected\n"
        "  lane_efficiency is 0.95, expected 1\n"
        "      kernel.cu:4  32 idle lanes"
    )


def test_a_source_line():
    assert_profile(made(), at="kernel.cu:4", bank_conflicts=0, excess_sectors=84)
    assert failure(made(), at="kernel.cu:3", executions=4) == (
        "profile of k at kernel.cu:3: 1 counter is not as expected\n"
        "  executions is 8, expected 4\n"
        "      PTX 10: mov.u32 %r1, %tid.x  4\n"
        "      PTX 11: ld.shared.f32 %f1, [%r2]  4"
    )


def test_without_line_information_the_ptx_is_named():
    rows = tuple(dataclasses.replace(row, file="", source_line=0) for row in made().instructions)
    bare = dataclasses.replace(made(), instructions=rows)
    assert failure(bare, bank_conflicts=0).endswith("      PTX 11: ld.shared.f32 %f1, [%r2]  124")


def test_no_more_than_five_lines_are_listed():
    row = made().ptx_line(11)
    rows = tuple(dataclasses.replace(row, source_line=n) for n in range(1, 8))
    text = failure(dataclasses.replace(made(), instructions=rows), bank_conflicts=0)
    assert text.splitlines()[2:] == [*(f"      kernel.cu:{n}  124" for n in range(1, 6)), "      and 2 more"]


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({}, "assert_profile: nothing is expected; name counters, such as bank_conflicts=0"),
        ({"bank_conflict": 0}, "unknown metric 'bank_conflict'; did you mean 'bank_conflicts'?"),
        ({"executions": "20"}, "assert_profile: executions='20' is no number, (least, most) or function"),
        ({"executions": True}, "assert_profile: executions=True is no number, (least, most) or function"),
        ({"executions": (1, 2, 3)}, "assert_profile: executions=(1, 2, 3) is no number, (least, most) or function"),
        ({"executions": (1, "2")}, "assert_profile: executions=(1, '2') is no number, (least, most) or function"),
    ],
)
def test_what_cannot_be_expected(expected: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        assert_profile(made(), **expected)
