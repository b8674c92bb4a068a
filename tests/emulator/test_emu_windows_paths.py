"""Source files named as on Windows: by profiles, pages and snapshots, on every system."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from emulator_profiles import HEADER, KERNEL, SOURCE, made
from weft.emulator import Module
from weft.emulator.profile import Profile
from weft.emulator.profile.sources import Sources, ends, parts
from weft.testing.snapshots import snapshot

HERE, THERE = r"C:\Users\me\new code\kernel.cu", r"D:\lib\kernel.cu"

PTX = r"""
.version 7.1
.target sm_80
.address_size 64
.file 1 "C:\\Users\\me\\new code\\kernel.cu"
.file 2 "/home/me/kernel.cu"
.visible .entry k(.param .u64 k_param_0) {
  .reg .b32 %r<3>;
  .loc 1 4 0
  mov.u32 %r1, 1;
  .loc 2 5 0
  mov.u32 %r2, 2;
  ret;
}
"""


def named(**names: str) -> Profile:
    """A profile whose source files are called otherwise."""
    profile = made()
    new = {KERNEL: names["kernel"], HEADER: names["header"]}
    rows = tuple(dataclasses.replace(r, file=new.get(r.file, r.file)) for r in profile.instructions)
    return dataclasses.replace(profile, instructions=rows)


def test_doubled_backslashes_are_one() -> None:
    profile = Module(PTX).launch("k", grid=1, block=32, args=[np.zeros(4, np.float32)])
    assert set(profile.files) == {HERE, "/home/me/kernel.cu"}
    assert sorted(line.name for line in profile.lines) == ["kernel.cu:4", "kernel.cu:5"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (HERE, ["C:", "Users", "me", "new code", "kernel.cu"]),
        ("/home/me/kernel.cu", ["", "home", "me", "kernel.cu"]),
        (r"C:\src/kernel.cu", ["C:", "src", "kernel.cu"]),
        ("kernel.cu", ["kernel.cu"]),
    ],
)
def test_parts(path: str, expected: list[str]) -> None:
    assert parts(path) == expected


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("kernel.cu", True),
        ("new code/kernel.cu", True),
        (r"new code\kernel.cu", True),
        (HERE, True),
        ("code/kernel.cu", False),
        ("nel.cu", False),
    ],
)
def test_ends_are_whole_parts(end: str, expected: bool) -> None:
    assert ends(HERE, end) == expected


def test_lines_and_texts_are_found_by_the_end_of_a_path(tmp_path: Path) -> None:
    profile = named(kernel=HERE, header=THERE.replace("kernel.cu", "square.h"))
    assert profile.line(4, "kernel.cu").file == HERE
    assert profile.line(4, "new code/kernel.cu").name == "kernel.cu:4"
    assert Sources.of(profile, {"kernel.cu": SOURCE}).lines(HERE) == SOURCE.splitlines()
    Path(tmp_path, "kernel.cu").write_text(SOURCE, encoding="utf-8")
    assert Sources.of(profile, tmp_path).lines(HERE) == SOURCE.splitlines()


def test_a_page_has_names_without_folders() -> None:
    page = named(kernel=HERE, header=THERE).html({HERE: SOURCE})
    assert "<h2>kernel.cu</h2>" in page
    assert "source text not found: kernel.cu<" in page
    assert "Users" not in page


def test_a_snapshot_has_the_shortest_ends() -> None:
    lines = snapshot(named(kernel=HERE, header=THERE))["lines"]
    assert {place.rpartition(":")[0] for place in lines} == {"new code/kernel.cu", "lib/kernel.cu"}
