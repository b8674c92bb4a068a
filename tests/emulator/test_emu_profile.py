"""The profile: sums over lines and kernels, look-ups, JSON, classes of instructions; on counts made by hand."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from emulator_profiles import HEADER, KERNEL, instruction, made
from weft.emulator.profile import METRICS, Profile
from weft.emulator.profile.counters import Counters
from weft.emulator.profile.mix import CLASSES, class_of, flops_of


def test_totals():
    profile = made()
    assert profile.total("executions") == 20
    assert profile.total("threads") == 4 * 128 + 96
    assert profile.lane_efficiency == (4 * 128 + 96) / (20 * 32)
    assert profile.total("shared_wavefronts") == profile.total("shared_load_wavefronts") == 128
    assert profile.bank_conflicts == profile.total("bank_conflicts") == 124
    assert profile.total("global_sectors") == 96
    assert profile.excess_sectors == 84
    assert profile.total("wgmma") == 0


def test_operations_of_arithmetic_are_counted_by_thread():
    assert made().total("thread_flops") == 128  # a multiplication by each thread
    assert made().total("flops") == 128


def test_shuffles_votes_and_barriers_are_executions():
    texts = (
        "shfl.sync.idx.b32",
        "vote.sync.ballot.b32",
        "match.any.sync.b32",
        "bar.sync 0",
        "barrier.cta.arrive 1, 64",
    )
    counters = Counters(len(texts) + 1)
    for site in range(len(texts)):
        counters.executed(site, 4 + site, 32)
    rows = [instruction(text, line) for line, text in enumerate((*texts, "shfl.sync.up.b32"), 1)]
    profile = Profile.of(made().launch, rows, ["k"] * len(rows), counters)
    assert [profile.total(name) for name in ("shuffles", "votes", "barriers")] == [4, 5 + 6, 7 + 8]
    assert profile.ptx_line(6).counts == {}


def test_rows_are_those_of_the_functions_that_ran():
    """Neither the other function's, nor the end of a function that no thread came to."""
    assert [row.line for row in made().instructions] == [10, 11, 12, 13, 14]


def test_source_lines_are_sums_of_instructions():
    profile = made()
    assert [row.name for row in profile.lines] == ["square.h:3", "kernel.cu:3", "kernel.cu:4"]
    line = profile["kernel.cu:3"]
    assert [row.line for row in line.instructions] == [10, 11]
    assert (line["executions"], line["bank_conflicts"], line["global_sectors"]) == (8, 124, 0)
    assert profile.files == (HEADER, KERNEL)


def test_lines_are_found_by_the_end_of_their_path():
    profile = made()
    assert profile.line(4) is profile["kernel.cu:4"]
    assert profile.line(4) is profile[f"{KERNEL}:4"]
    assert profile.line(3, "include/square.h")["thread_flops"] == 128


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("kernel.cu:9", "kernel.cu:9 has no instruction; lines that have: square.h:3, kernel.cu:3, kernel.cu:4"),
        ("nel.cu:3", "nel.cu:3 has no instruction; lines that have: square.h:3, kernel.cu:3, kernel.cu:4"),
        ("kernel.cu", "'kernel.cu' is no source line, expected file:line"),
        ("kernel.cu:x", "'kernel.cu:x' is no source line, expected file:line"),
    ],
)
def test_lines_that_are_not_there(place: str, message: str):
    with pytest.raises(KeyError) as caught:
        made()[place]
    assert caught.value.args == (message,)


def test_lines_that_several_files_have():
    with pytest.raises(KeyError) as caught:
        made().line(3)
    assert caught.value.args == (f"line 3 is in several files: {HEADER}, {KERNEL}; say which",)


def test_without_line_information():
    profile = made()
    bare = dataclasses.replace(
        profile, instructions=tuple(dataclasses.replace(row, file="", source_line=0) for row in profile.instructions)
    )
    assert bare.lines == ()
    assert [row.line for row in bare.hottest(2)] == [11, 13]
    with pytest.raises(KeyError) as caught:
        bare.line(3)
    message = "line 3 has no instruction; lines that have: none: the PTX has no .loc (compile with -lineinfo)"
    assert caught.value.args == (message,)


def test_instructions_are_found_by_their_line_in_the_ptx():
    assert made().ptx_line(13)["global_store_sectors"] == 96
    with pytest.raises(KeyError) as caught:
        made().ptx_line(20)
    assert caught.value.args == ("PTX line 20 has no instruction of a function that was executed",)


def test_the_mix():
    assert made().mix == {"move": 4, "float32": 4, "global": 4, "shared": 4, "control": 4}


def test_the_hottest_lines():
    profile = made()
    # executions + wavefronts + sectors: 8 + 128; 4 + 96; 4
    assert [(row.line, row.heat) for row in profile.hottest(9)] == [(3, 136), (4, 100), (3, 4)]
    assert len(profile.hottest(1)) == 1


def test_an_unknown_metric():
    message = "unknown metric 'bank_conflict'; did you mean 'bank_conflicts'?"
    for ask in (made().total, made().line(4).__getitem__):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            ask("bank_conflict")


def test_profiles_are_equal_if_everything_is():
    assert made() == made()
    assert made() != made(conflicts=30)
    assert made() != made(line=4)


def test_json_and_back():
    profile = made()
    data = json.loads(profile.to_json())
    assert data["totals"]["bank_conflicts"] == 124
    assert data["instructions"][1] == {
        "function": "k",
        "line": 11,
        "text": "ld.shared.f32 %f1, [%r2]",
        "kind": "shared",
        "file": KERNEL,
        "source_line": 3,
        "counts": {
            "executions": 4,
            "threads": 128,
            "shared_load_requests": 4,
            "shared_load_bytes": 512,
            "shared_load_wavefronts": 128,
            "shared_load_ideal_wavefronts": 4,
        },
    }
    back = Profile.from_json(profile.to_json())
    assert back == profile
    assert back.launch.dynamic_shared == 256
    assert back.totals == profile.totals
    assert list(back.totals.counts) == [name for name in METRICS if name in back.totals.counts]


@pytest.mark.parametrize("text", ["[]", "{}", '{"version": 99}'])
def test_json_of_something_else(text: str):
    with pytest.raises(ValueError, match="^this is no profile of version 1$"):
        Profile.from_json(text)


def test_a_profile_without_ptx_has_no_resources():
    profile = dataclasses.replace(made(), text="")
    assert profile.resources is None
    assert profile.no_resources == "the profile has no PTX"


@pytest.mark.parametrize(
    ("text", "kind", "flops"),
    [
        ("add.s32", "integer", 0),
        ("mad.wide.u32", "integer", 0),
        ("mul.wide.s16", "integer", 0),
        ("min.s16x2", "integer", 0),
        ("add.rn.ftz.f32", "float32", 1),
        ("fma.rn.f32", "float32", 2),
        ("fma.rn.f32x2", "float32", 4),
        ("fma.rn.bf16x2", "float16", 4),
        ("mul.f64", "float64", 1),
        ("neg.f32", "float32", 0),
        ("abs.f16x2", "float16", 0),
        ("max.f32", "float32", 0),
        ("sqrt.rn.f32", "special", 1),
        ("ex2.approx.ftz.f32", "special", 0),
        ("div.full.f32", "float32", 1),
        ("and.b32", "logic", 0),
        ("setp.lt.f32", "compare", 0),
        ("cvt.rn.f16.f32", "conversion", 0),
        ("ld.global.nc.v4.f32", "global", 0),
        ("ld.shared::cta.b32", "shared", 0),
        ("ld.param.u64", "constant", 0),
        ("ld.const.f32", "constant", 0),
        ("ld.volatile.f32", "generic", 0),
        ("st.local.f64", "local", 0),
        ("red.global.add.f32", "atomic", 0),
        ("cp.async.cg.shared.global", "copy", 0),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "matrix", 0),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "shared", 0),
        ("shfl.sync.bfly.b32", "warp", 0),
        ("bar.sync", "barrier", 0),
        ("mbarrier.try_wait.shared.b64", "barrier", 0),
        ("bra.uni", "control", 0),
        ("cvta.to.global.u64", "move", 0),
        ("unheard.of", "other", 0),
    ],
)
def test_classes_of_instructions(text: str, kind: str, flops: int):
    assert class_of(instruction(text, 1)) == kind
    assert kind in CLASSES
    assert flops_of(instruction(text, 1)) == flops
