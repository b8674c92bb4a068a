"""prmt against the ISA's tables, written as it prints them: the byte for d's highest byte first."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_harness import execute
from emulator_integers import array, check, samples
from weft.emulator import PTXError
from weft.emulator.arith import permute

TABLES = {
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


def byte(a: int, b: int, selector: int) -> int:
    """A byte of {b, a}, or its sign eight times."""
    value = (b << 32 | a) >> (8 * (selector & 7)) & 0xFF
    return (0xFF if value & 0x80 else 0) if selector & 8 else value


def generic(a: int, b: int, c: int) -> int:
    return sum(byte(a, b, c >> (4 * i) & 15) << (8 * i) for i in range(4))


def test_any_selectors() -> None:
    a, b, c = samples("u32", "u32", "u32")
    check("prmt.b32 %d, %a, %b, %c;", ("u32",) * 3, "u32", generic, [a, b, c])
    rng = np.random.default_rng(3)
    a, b, c = (rng.integers(0, 1 << 32, 2048, dtype=np.uint32) for _ in range(3))
    check("prmt.b32 %d, %a, %b, %c;", ("u32",) * 3, "u32", generic, [a, b, c])


@pytest.mark.parametrize("mode", TABLES)
def test_modes(mode: str) -> None:
    def model(a: int, b: int, c: int) -> int:
        return generic(a, b, int(TABLES[mode][c & 3], 16))

    a, b, _ = samples("u32", "u32", "u32", seed=1)
    c = array([i % 4 + (i % 7) * 16 for i in range(a.size)], "u32")
    check(f"prmt.b32.{mode} %d, %a, %b, %c;", ("u32",) * 3, "u32", model, [a, b, c])


def test_constant_selectors() -> None:
    """Those without signs become shifts and masks: one byte from everywhere to everywhere, and patterns compilers write."""
    controls = [s << (4 * place) for s in range(16) for place in range(4)]
    controls += [0x5410, 0x7632, 0x3276, 0x0123, 0x7531, 0x6420, 0x3340, 0x4440, 0x8888, 0xBA98, 0x10325, 0xFFFF7610]
    controls += np.random.default_rng(5).integers(0, 1 << 16, 40).tolist()
    a, b = (x[:256] for x in samples("u32", "u32"))
    for c in controls:
        got = execute(f"prmt.b32 %d, %a, %b, {c};", {"a": ("u32", a), "b": ("u32", b)}, {"d": "u32"})["d"]
        assert got.tolist() == [generic(x, y, c) for x, y in zip(a.tolist(), b.tolist(), strict=True)], hex(c)


def test_a_choice_as_shifts() -> None:
    """0x5410: a's lower half stays (bytes 0, 1), b's lower half (4, 5) moves up by 16 bits."""
    assert permute.runs((0, 1, 4, 5)) == [(0, 0, 0x0000FFFF), (1, 16, 0xFFFF0000)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prmt.b32.f4f %d, %a, %a, %a", "the emulator does not know '.f4f' of prmt"),
        ("prmt.u32 %d, %a, %a, %a", "the emulator does not know '.u32' of prmt"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(PTXError) as caught:
        execute(f"{text};", {"a": ("b32", np.zeros(32, np.uint32))}, {"d": "b32"})
    assert str(caught.value).split(": ", 1)[1] == f"{message}\n    {text}"
