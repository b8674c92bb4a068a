"""shfl against the ISA's pseudo code, lane by lane; and what it says is undefined, as faults."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from emulator_harness import execute
from weft.emulator import BarrierFault, PTXError, Undefined

MODES = ("up", "down", "bfly", "idx")


def shuffle(mode: str, a: Sequence[int], b: Sequence[int], c: Sequence[int]) -> tuple[list[int], list[bool]]:
    """A warp's results and predicates."""
    results: list[int] = []
    valid: list[bool] = []
    for lane in range(32):
        bval, cval, mask = b[lane] & 31, c[lane] & 31, c[lane] >> 8 & 31
        most = (lane & mask) | (cval & ~mask)
        least = lane & mask
        match mode:
            case "up":
                j = lane - bval
                ok = j >= most
            case "down":
                j = lane + bval
                ok = j <= most
            case "bfly":
                j = lane ^ bval
                ok = j <= most
            case _:
                j = least | (bval & ~mask)
                ok = j <= most
        results.append(a[j if ok else lane])
        valid.append(ok)
    return results, valid


def warps(mode: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[list[int], list[bool]]:
    results: list[int] = []
    valid: list[bool] = []
    for w in range(0, a.size, 32):
        found = shuffle(mode, *(x[w : w + 32].tolist() for x in (a, b, c)))
        results += found[0]
        valid += found[1]
    return results, valid


WORDS = np.random.default_rng(1).integers(0, 1 << 32, 128, dtype=np.uint32)


@pytest.mark.parametrize("sync", (True, False))
@pytest.mark.parametrize("mode", MODES)
def test_constant_operands(mode: str, sync: bool) -> None:
    """Every offset for segments of every width."""
    name, members = (f"shfl.sync.{mode}", ", -1") if sync else (f"shfl.{mode}", "")
    for width in (1, 2, 4, 8, 16, 32):
        control = (32 - width) << 8 | (0 if mode == "up" else 31)
        offsets = (0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33)
        text = "".join(f"{name}.b32 %d{b}|%p{b}, %a, {b}, {control}{members};" for b in offsets)
        outputs = {f"d{b}": "u32" for b in offsets} | {f"p{b}": "pred" for b in offsets}
        got = execute(text, {"a": ("u32", WORDS)}, outputs)
        for b in offsets:
            want = warps(mode, WORDS, np.full(128, b), np.full(128, control))
            assert (got[f"d{b}"].tolist(), got[f"p{b}"].tolist()) == want


@pytest.mark.parametrize("mode", MODES)
def test_operands_of_each_lane(mode: str) -> None:
    """Any bits, also those that mean nothing; the result in the register read from; without a predicate."""
    rng = np.random.default_rng(2)
    b, c = (rng.integers(0, 1 << 32, 128, dtype=np.uint32) for _ in range(2))
    inputs = {"a": ("u32", WORDS), "b": ("u32", b), "c": ("u32", c)}
    text = (
        f"shfl.sync.{mode}.b32 %d|%p, %a, %b, %c, -1; shfl.sync.{mode}.b32 %a, %a, %b, %c, 0xFFFFFFFF; mov.b32 %e, %a;"
    )
    got = execute(text, inputs, {"d": "u32", "p": "pred", "e": "u32"})
    want, valid = warps(mode, WORDS, b, c)
    assert got["d"].tolist() == want
    assert got["p"].tolist() == valid
    assert got["e"].tolist() == want


def test_a_constant_shuffled_is_the_constant() -> None:
    got = execute("shfl.sync.bfly.b32 %d, 7, 1, 31, -1;", {"a": ("u32", WORDS)}, {"d": "u32"})
    assert got["d"].tolist() == [7] * 128


def test_half_a_warp_alone() -> None:
    """Lanes that skip the text are not waited for when the mask does not name them."""
    some = np.arange(64) % 32 < 16
    a = WORDS[:64]
    got = execute("shfl.sync.bfly.b32 %d, %a, 8, 31, 0xFFFF;", {"a": ("u32", a)}, {"d": "u32"}, active=some)
    assert got["d"].tolist() == [int(a[i ^ 8]) if some[i] else 0 for i in range(64)]


def test_groups_with_masks_of_their_own() -> None:
    """Even and odd lanes, at one instruction."""
    even = np.where(np.arange(64) % 2 == 0, 0x55555555, 0xAAAAAAAA).astype(np.uint32)
    inputs = {"a": ("u32", WORDS[:64]), "m": ("u32", even)}
    got = execute("shfl.sync.bfly.b32 %d, %a, 2, 31, %m;", inputs, {"d": "u32"})
    assert got["d"].tolist() == [int(WORDS[i ^ 2]) for i in range(64)]


def test_a_block_that_fills_its_last_warp_in_part() -> None:
    got = execute("shfl.sync.bfly.b32 %d, %a, 1, 31, -1;", {"a": ("u32", WORDS[:40])}, {"d": "u32"}, block=40)
    assert got["d"].tolist() == [int(WORDS[i ^ 1]) for i in range(40)]


LATE = """
    mov.u32 %n, 0;
    mov.u32 %t, %tid.x;
    and.b32 %t, %t, 31;
    setp.lt.u32 %early, %t, 16;
    HEAD:
    shfl.sync.bfly.b32 %d, %a, 16, 31, -1;
    add.u32 %a, %a, %d;
    add.u32 %n, %n, 1;
    setp.eq.u32 %over, %n, 3;
    @%over bra END;
    @%early bra HEAD;
    add.u32 %a, %a, 5;
    bra HEAD;
    END:
"""


def test_lanes_wait_for_those_that_come_later() -> None:
    """Each time round, half of the lanes are back at the shuffle while the others still have something to do."""
    a = np.arange(64, dtype=np.uint32)
    declarations = ".reg .b32 %n, %t; .reg .pred %early, %over;"
    got = execute(LATE, {"a": ("u32", a)}, {"d": "u32"}, declarations)["d"]
    values = a.copy()
    taken = values
    for _ in range(3):
        taken = values[np.arange(64) ^ 16]
        values = values + taken
        values[np.arange(64) % 32 >= 16] += np.uint32(5)
    assert np.array_equal(got, taken)


def test_lanes_that_exit_are_waited_for_no_longer() -> None:
    """Half of the lanes are at the shuffle a second time when the others end."""
    text = """
        mov.u32 %t, %tid.x;
        setp.lt.u32 %early, %t, 16;
        HEAD:
        shfl.sync.bfly.b32 %d, %a, 8, 31, -1;
        add.u32 %a, %a, %d;
        setp.eq.u32 %over, %n, 1;
        @%over bra END;
        mov.u32 %n, 1;
        @%early bra HEAD;
        add.u32 %a, %a, 5;
        exit;
        END:
    """
    declarations = ".reg .b32 %n, %t; .reg .pred %early, %over;"
    a = WORDS[:32]
    got = execute(text, {"a": ("u32", a)}, {"d": "u32"}, declarations)["d"]
    twice = a + a[np.arange(32) ^ 8]
    want = np.where(np.arange(32) < 16, twice[np.arange(32) ^ 8], 0)
    assert np.array_equal(got, want)


def test_lanes_that_end_elsewhere_are_not_waited_for() -> None:
    """The mask names the lanes that skip the shuffle; when they have exited, the others go on."""
    some = np.arange(32) < 16
    a = WORDS[:32]
    got = execute("shfl.sync.bfly.b32 %d, %a, 1, 31, -1;", {"a": ("u32", a)}, {"d": "u32"}, active=some)
    assert got["d"].tolist() == [int(a[i ^ 1]) if some[i] else 0 for i in range(32)]


def test_lanes_that_never_come() -> None:
    """Two shuffles are two places: lanes at one are not lanes at the other."""
    text = """
        mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 16;
        @%p bra LOW;
        shfl.sync.up.b32 %d, %a, 1, 0, -1;
        bra END;
        LOW: shfl.sync.bfly.b32 %d, %a, 1, 31, -1;
        END:
    """
    with pytest.raises(BarrierFault) as caught:
        execute(text, {"a": ("u32", WORDS[:32])}, {"d": "u32"}, ".reg .b32 %t; .reg .pred %p;")
    assert sorted(caught.value.message.splitlines()[1:]) == [
        "    lanes 0x0000ffff of a warp wait at shfl.sync.bfly.b32 for lanes that its mask names and that never come",
        "    lanes 0xffff0000 of a warp wait at shfl.sync.up.b32 for lanes that its mask names and that never come",
    ]


@pytest.mark.parametrize(
    ("text", "count", "message"),
    [
        (
            "shfl.sync.bfly.b32 %d, %a, 1, 31, 0xFFFFFFFE",
            32,
            "lane 0 executes it with the mask 0xfffffffe, which does not name that lane",
        ),
        (
            "@%q shfl.sync.down.b32 %d, %a, 1, 31, 0x00000FFF",
            32,
            "lane 11 reads from lane 12, which its mask 0x00000fff does not name",
        ),
        ("shfl.sync.down.b32 %d, %a, 1, 31, -1", 8, "lane 7 reads from lane 8, which has exited"),
        ("@%q shfl.down.b32 %d, %a, 1, 31", 32, "lane 11 reads from lane 12, which does not execute it with it"),
        (
            "shfl.sync.idx.b32 %d, %a, 3, 31, %m",
            32,
            "lane 1 executes it with the mask 0xfffffffe, lane 2, which that names, with the mask 0xffffffff",
        ),
    ],
)
def test_what_is_undefined(text: str, count: int, message: str) -> None:
    before = "mov.u32 %t, %tid.x; setp.lt.u32 %q, %t, 12; and.b32 %t, %t, 1; sub.u32 %m, 0xFFFFFFFF, %t; bra.uni HERE; HERE: "
    with pytest.raises(Undefined) as caught:
        execute(
            f"{before}{text};", {"a": ("u32", WORDS[:count])}, {"d": "u32"}, ".reg .b32 %t, %m; .reg .pred %q;", count
        )
    assert caught.value.message == message
    assert caught.value.where.instruction is not None
    assert caught.value.where.instruction.text == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shfl.sync.left.b32 %d, %a, 1, 31, -1", "the emulator does not know '.left' of shfl"),
        ("shfl.sync.up.b64 %d, %a, 1, 31, -1", "the emulator does not know '.b64' of shfl"),
        ("shfl.sync.up.b32 %d, %a, 1, 31", "shfl has 4 operands, expected 5"),
        ("shfl.up.b32 %d, %a, 1, 31, -1", "shfl has 5 operands, expected 4"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(f"{text};", {"a": ("b32", WORDS[:32])}, {"d": "b32"})
    assert str(caught.value).split(": ", 1)[1] == f"{message}\n    {text}"
