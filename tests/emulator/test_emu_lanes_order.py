"""What a bar.warp.sync of some lanes orders: the lanes of its mask, and through them whom they have met.

Random programs of a warp, in which single lanes read and write words and groups of lanes meet, against a search for two
accesses without a path between them. What a few of them say is written out below.
"""

from __future__ import annotations

import random
from typing import Literal, NamedTuple

import numpy as np
import pytest

from emulator_harness import execute
from weft.emulator import Race


class Step(NamedTuple):
    what: Literal["read", "write", "meet"]
    who: int
    """The lane, or the mask of lanes that meet."""
    word: int = 0


LANES, WORDS = (0, 1, 5, 31), 2
INITIAL = {
    "shared": "setp.eq.u32 %p, %t, 0; @%p st.shared.b64 [words], 0; bar.sync 0;",
    "global": "",
}


def program(steps: list[Step], space: str) -> str:
    """Lines of the text are numbered from its first one. Each write has a value of its own: equal ones would not race."""
    lines = [f"mov.u32 %t, %tid.x; mov.u32 %d, 0; {INITIAL[space]}"]
    for number, (what, who, word) in enumerate(steps):
        place = f"[words+{4 * word}]"
        match what:
            case "meet":
                inside = f"shr.u32 %m, {who}, %t; and.b32 %m, %m, 1; setp.eq.u32 %p, %m, 0;"
                lines.append(f"{inside} @%p bra PAST{number}; bar.warp.sync {who}; PAST{number}:")
            case "read":
                lines.append(f"setp.eq.u32 %p, %t, {who}; @%p ld.{space}.u32 %d, {place};")
            case "write":
                lines.append(f"setp.eq.u32 %p, %t, {who}; @%p st.{space}.u32 {place}, {number + 1};")
    return "\n".join(lines)


def race(steps: list[Step], space: str) -> Race | None:
    """The race that is found."""
    registers, words = ".reg .b32 %t, %m; .reg .pred %p;", f".align 8 .b32 words[{WORDS}]"
    shared, module = (f".shared {words};", "") if space == "shared" else ("", f".global {words};")
    try:
        execute(program(steps, space), {}, {"d": "u32"}, registers + shared, module=module)
    except Race as found:
        return found
    return None


def races(steps: list[Step]) -> list[tuple[Step, Step]]:
    """The pairs of conflicting accesses without a path from one to the other, by what each lane has behind it."""
    past: dict[int, frozenset[int]] = {lane: frozenset() for lane in range(32)}
    found: list[tuple[Step, Step]] = []
    for number, step in enumerate(steps):
        if step.what == "meet":
            members = [lane for lane in past if step.who >> lane & 1]
            together = frozenset[int]().union(*(past[lane] for lane in members))
            past.update(dict.fromkeys(members, together))
            continue
        for other, earlier in enumerate(steps[:number]):
            conflict = earlier.what != "meet" and earlier.word == step.word and "write" in (earlier.what, step.what)
            if conflict and other not in past[step.who]:
                found.append((earlier, step))
        past[step.who] |= {number}
    return found


def readers(steps: list[Step]) -> int:
    """The most lanes that read a word between two writes of it."""
    most = 0
    for word in range(WORDS):
        lanes: set[int] = set()
        for step in steps:
            if step.what == "write" and step.word == word:
                lanes.clear()
            elif step.what == "read" and step.word == word:
                lanes.add(step.who)
            most = max(most, len(lanes))
    return most


def chosen(random: random.Random) -> list[Step]:
    """A program of which a half has races."""
    steps: list[Step] = []
    for _ in range(random.randrange(3, 12)):
        if random.random() < 0.55:
            some = random.sample(LANES, random.randrange(2, len(LANES) + 1))
            steps.append(Step("meet", 0xFFFFFFFF if len(some) == len(LANES) else sum(1 << lane for lane in some)))
        else:
            what = "read" if random.random() < 0.5 else "write"
            steps.append(Step(what, random.choice(LANES), random.randrange(WORDS)))
    return steps


@pytest.mark.parametrize("space", ["shared", "global"])
def test_random_meetings(space: str) -> None:
    """Of more than two lanes that read a word of shared memory the last two are remembered."""
    source, seen = random.Random(space), {True: 0, False: 0}
    for _ in range(150):
        steps = chosen(source)
        expected, found = races(steps), race(steps, space)
        assert found is None or expected, (steps, found)
        assert found is not None or not expected or (space == "shared" and readers(steps) > 2), steps
        seen[bool(expected)] += 1
    assert min(seen.values()) > 30, seen


FIRST, SECOND, HALF = Step("write", 0), Step("read", 1), 0x0000FFFF


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize(
    ("between", "ordered"),
    [
        ([Step("meet", 0b11)], True),
        ([Step("meet", HALF)], True),
        ([Step("meet", 0b101), Step("meet", 0b110)], True),
        ([Step("meet", 0b110), Step("meet", 0b101)], False),
        ([Step("meet", 0b101)], False),
        ([Step("meet", HALF ^ 0xFFFFFFFF)], False),
        ([], False),
    ],
)
def test_meetings_of_some_lanes(between: list[Step], ordered: bool, space: str) -> None:
    found = race([FIRST, *between, SECOND], space)
    if ordered:
        assert found is None
        return
    assert found is not None
    name = "shared 0x0..0x3" if space == "shared" else "bytes 0 to 3 of 'global words'"
    writer = "thread (0, 0, 0) of block (0, 0, 0)" if space == "global" else "thread (0, 0, 0)"
    assert found.message.startswith(f"thread (1, 0, 0) of block (0, 0, 0) reads {name}, which {writer} wrote at ")
    assert found.message.endswith("nothing orders them: a bar.warp.sync or a barrier is missing between")


READERS = [Step("read", 0), Step("read", 1)]


@pytest.mark.parametrize("space", ["shared", "global"])
@pytest.mark.parametrize(
    ("steps", "ordered"),
    [
        ([*READERS, Step("meet", 0b100010), Step("write", 5)], False),
        ([*READERS, Step("meet", 0b100001), Step("write", 5)], False),
        ([*READERS, Step("meet", 0b100010), Step("meet", 0b100001), Step("write", 5)], True),
        ([*READERS, Step("meet", 0b000011), Step("write", 0)], True),
        ([READERS[0], Step("meet", 0xFFFFFFFF), READERS[1], Step("meet", 0b100010), Step("write", 5)], True),
    ],
)
def test_a_write_after_reads_of_two_lanes(steps: list[Step], ordered: bool, space: str) -> None:
    """Both must have met who writes, if it is neither."""
    assert (race(steps, space) is None) == ordered == (not races(steps))


INPUT = {"unused": ("u32", np.zeros(64, np.uint32))}


def test_warps_with_masks_of_their_own() -> None:
    """At one barrier: lanes 0 to 15 of warp 0 and lanes 0 and 1 of warp 1, in which lane 5 is none of them."""
    text = """
    mov.u32 %t, %tid.x; mad.lo.u32 %w, %t, 4, words; st.shared.u32 [%w], %t; mov.u32 %d, 0;
    shr.u32 %m, %t, 5; setp.eq.u32 %p, %m, 0; selp.b32 %m, 0xffff, 3, %p;
    and.b32 %t, %t, 31; shr.u32 %w, %m, %t; and.b32 %w, %w, 1; setp.eq.u32 %p, %w, 0;
    @%p bra PAST; bar.warp.sync %m; PAST:
    mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, {reader}; @%p ld.shared.u32 %d, [words+{word}];
    """
    declarations = ".reg .b32 %t, %m, %w; .reg .pred %p; .shared .align 4 .b32 words[64];"
    for reader, word in ((5, 0), (33, 32)):
        given = text.replace("{reader}", str(reader)).replace("{word}", str(4 * word))
        assert execute(given, INPUT, {"d": "u32"}, declarations)["d"][reader] == word
    with pytest.raises(Race, match=r"thread \(37, 0, 0\) of block .* which thread \(32, 0, 0\) wrote"):
        execute(text.replace("{reader}", "37").replace("{word}", "128"), INPUT, {"d": "u32"}, declarations)


def test_two_halves_of_a_warp() -> None:
    """Each half reverses its own 16 words, and a lane of the other half's would race: cooperative groups' tiles of 16."""
    text = """
    mov.u32 %t, %tid.x; mad.lo.u32 %m, %t, 4, words; st.shared.u32 [%m], %t;
    setp.lt.u32 %p, %t, 16;
    @%p bra LOW;
    bar.warp.sync 0xffff0000;
    bra MET;
    LOW: bar.warp.sync 0xffff;
    MET: xor.b32 %t, %t, {xor}; mad.lo.u32 %m, %t, 4, words; ld.shared.u32 %d, [%m];
    """
    declarations = ".reg .b32 %t, %m; .reg .pred %p; .shared .align 4 .b32 words[32];"
    out = execute(text.replace("{xor}", "15"), {}, {"d": "u32"}, declarations)["d"]
    assert out.tolist() == [lane ^ 15 for lane in range(32)]
    with pytest.raises(Race, match=r"thread \(0, 0, 0\) of block .* which thread \(31, 0, 0\) wrote"):
        execute(text.replace("{xor}", "31"), {}, {"d": "u32"}, declarations)


def test_lanes_that_have_ended() -> None:
    """A mask of the lanes that are left orders those."""
    text = """
    mov.u32 %t, %tid.x; mad.lo.u32 %m, %t, 4, words; st.shared.u32 [%m], %t;
    setp.lt.u32 %p, %t, 16; mov.u32 %d, 7;
    @!%p bra END;
    bar.warp.sync 0xffff; xor.b32 %t, %t, 15; mad.lo.u32 %m, %t, 4, words; ld.shared.u32 %d, [%m];
    END:
    """
    declarations = ".reg .b32 %t, %m; .reg .pred %p; .shared .align 4 .b32 words[32];"
    assert execute(text, {}, {"d": "u32"}, declarations)["d"].tolist() == [*range(15, -1, -1), *[7] * 16]
