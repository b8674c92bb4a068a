"""Faults seeded into the compiler that leave out what orders accesses to global memory: the emulator finds each as a race.

The same kernels run clean as the compiler is. No result would show these faults: the emulator runs threads in one order, and
programs one after the other or in turns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from sampling import every, some
from synchronised import CASES
from weft.codegen.nvidia import instructions
from weft.emulator import Race
from weft.transforms.nvidia import barriers

pytestmark = pytest.mark.jit

BARRIER = "a barrier is missing between"
LANES = "a bar.warp.sync or a barrier is missing between"
BLOCKS = "blocks are ordered by a release and an acquire at .gpu scope"
SCOPE = "the scope .cta does not reach another block"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel of a compiler with faults is left behind, and none is found."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))


def reversed_through_memory(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))
    tl.store(out + i, tl.load(out + (N - 1 - i)) * 2)


def rotated(x: Any, out: Any, N: tl.constexpr, TIMES: tl.constexpr) -> None:
    i = tl.arange(0, N)
    for _ in range(TIMES):
        value = tl.load(out + (i + 1) % N)
        tl.store(out + i, value + tl.load(x + i))


def counted(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, i)
    tl.atomic_add(out + tl.load(x + i), 1, sem="relaxed")


def launch(name: str, target: str) -> None:
    """A kernel, compiled anew, on an emulated GPU."""
    if name in CASES:
        case = CASES[name]
        fresh, arrays, constants, programs = weft.jit(case.kernel.fn), case.arguments(8), case.constants, 8
    else:
        function = {f.__name__: f for f in (reversed_through_memory, rotated, counted)}[name]
        fresh, programs = weft.jit(function), 1
        arrays = {"x": np.arange(128, dtype=np.int32)[::-1].copy(), "out": np.zeros(128, np.int32)}
        constants = {"N": 128, **({"TIMES": 3} if name == "rotated" else {})}
    fresh.on(target)[(programs,)](**arrays, **constants)


def without_barrier(reason: str) -> Callable[[pytest.MonkeyPatch], None]:
    """No barrier is placed for this reason."""

    def seed(monkeypatch: pytest.MonkeyPatch) -> None:
        walk: Any = barriers._Walk  # pyright: ignore[reportPrivateUsage]
        hazard = walk._hazard

        def blind(self: Any, op: Any, since: Any) -> str | None:
            found = hazard(self, op, since)
            return None if found == reason else found

        monkeypatch.setattr(walk, "_hazard", blind)

    return seed


def spelled(pattern: str, to: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Instructions that are written as text are written otherwise."""

    def seed(monkeypatch: pytest.MonkeyPatch) -> None:
        assembly = instructions.assembly

        def other(builder: Any, type_: Any, text: str, *rest: Any, **more: Any) -> Any:
            return assembly(builder, type_, re.sub(pattern, to, text), *rest, **more)

        monkeypatch.setattr(instructions, "assembly", other)

    return seed


FAULTS = [
    ("reversed_through_memory", without_barrier("one address, different threads"), BARRIER),
    ("rotated", without_barrier("one address, different threads"), BARRIER),
    ("counted", without_barrier("one address, different threads"), BARRIER),
    ("last_block", without_barrier("before an access that releases"), BLOCKS),
    ("spin_lock", without_barrier("before an access that releases"), LANES),
    ("chain", without_barrier("before an access that releases"), BLOCKS),
    ("last_block", spelled(r"acq_rel", "relaxed"), BLOCKS),
    ("last_block", spelled(r"acq_rel", "acquire"), BLOCKS),
    ("last_block", spelled(r"acq_rel", "release"), BLOCKS),
    ("spin_lock", spelled(r"acq_rel", "acquire"), BLOCKS),
    ("spin_lock", spelled(r"acq_rel\.gpu", "acq_rel.cta"), SCOPE),
    ("last_block", spelled(r"acq_rel\.gpu", "acq_rel.cta"), SCOPE),
    ("look_back", spelled(r"atom\.release", "atom.relaxed"), BLOCKS),
    ("look_back", spelled(r"ld\.acquire", "ld.relaxed"), BLOCKS),
    ("look_back_at_tiles", spelled(r"ld\.acquire", "ld.relaxed"), BLOCKS),
    ("ticket", spelled(r"st\.release", "st.relaxed"), BLOCKS),
    ("chain", spelled(r"st\.release\.sys", "st"), BLOCKS),
]


NAMES = list(dict.fromkeys(name for name, _, _ in FAULTS))


@pytest.mark.parametrize("target", some(["sm_90", "sm_80"], "sm_80"))
@pytest.mark.parametrize("name", some(NAMES, *CASES.keys() & NAMES))
def test_the_compiler_as_it_is_orders_them(name: str, target: str) -> None:
    launch(name, target)


@pytest.mark.parametrize("fault", every(2, range(len(FAULTS))))
def test_a_fault_of_the_compiler_is_a_race(fault: int, monkeypatch: pytest.MonkeyPatch) -> None:
    name, seed, message = FAULTS[fault]
    seed(monkeypatch)
    with pytest.raises(Race) as caught:
        launch(name, "sm_90")
    assert caught.value.message.endswith(message)
