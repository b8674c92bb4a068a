"""The detector of races in global memory against its definition: sets of accesses instead of clocks, every pair compared.

Random traces of accesses, barriers, flags and fences of a few warps, in several batches of blocks. Most accesses that would race
are left out, so that traces are long; the first that is not ends its trace, and the report must name a pair that races.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pytest

from sampling import every
from weft.emulator.errors import Race
from weft.emulator.memory import between
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.memory.arena import Heap, layout
from weft.emulator.memory.global_order import GlobalOrder
from weft.emulator.memory.order import NullOrder
from weft.emulator.ptx.syntax import Instruction

WARP = 32
BYTES = 32
"""Of each of the two allocations."""

Seen: TypeAlias = frozenset[tuple[int, int]]
"""Accesses: the number of the event, and the warp."""

NOTHING: Seen = frozenset()


@dataclass(frozen=True)
class Past:
    """An access of a thread to a granule. Threads and warps are numbered over all batches."""

    event: int
    thread: int
    kind: Kind
    strong: bool
    wide: bool
    element: int


@dataclass
class Flag:
    """What an acquire of a flag's value learns: in the block of the last releaser, and in others. ``own`` is the part that this
    releaser released itself, by a release or fence before this write or an earlier one."""

    near: Seen = NOTHING
    wide: Seen = NOTHING
    warp: int = -1
    own: tuple[Seen, Seen] = NOTHING, NOTHING


@dataclass
class Definition:
    """What each warp has seen, and all accesses to each granule."""

    warps: int
    """Of a block."""
    seen: dict[int, Seen] = field(default_factory=dict[int, Seen])
    made: dict[int, Seen] = field(default_factory=dict[int, Seen])
    fenced: dict[int, tuple[Seen, Seen]] = field(default_factory=dict[int, tuple[Seen, Seen]])
    noted: dict[int, tuple[Seen, Seen]] = field(default_factory=dict[int, tuple[Seen, Seen]])
    flags: dict[int, Flag] = field(default_factory=dict[int, Flag])
    history: dict[int, list[Past]] = field(default_factory=dict[int, list[Past]])
    contents: dict[int, int] = field(default_factory=dict[int, int])

    def all_of(self, warp: int) -> Seen:
        return self.seen.get(warp, NOTHING) | self.made.get(warp, NOTHING)

    def learn(self, warp: int, what: Seen) -> None:
        self.seen[warp] = self.seen.get(warp, NOTHING) | what

    def block(self, thread: int) -> int:
        return thread // WARP // self.warps

    def conflict(self, one: Past, two: Past) -> bool:
        """Whether two accesses to a granule race, unless something orders them."""
        if one.thread == two.thread or one.kind is two.kind is Kind.READ:
            return False
        reach = (one.wide and two.wide) or self.block(one.thread) == self.block(two.thread)
        return not (one.strong and two.strong and one.element == two.element and reach)

    def races(self, made: list[tuple[int, Past, int | None]]) -> set[tuple[int, int, int]]:
        """Granule, thread and other thread of each race of an instruction: with those before it, and in itself."""
        found: set[tuple[int, int, int]] = set()
        for granule, now, value in made:
            seen = self.seen.get(now.thread // WARP, NOTHING)
            for past in self.history.get(granule, ()):
                ordered = (past.event, past.thread // WARP) in seen or not self.conflict(now, past)
                both_write = Kind.READ not in (now.kind, past.kind)
                forgiven = both_write and value is not None and value == self.contents.get(granule, 0)
                if not (ordered or forgiven):
                    found.add((granule, now.thread, past.thread))
            for other, two, theirs in made:
                weak = not now.strong and (value is None or value == theirs)
                if other == granule and self.conflict(now, two) and not weak:
                    found.add((granule, now.thread, two.thread))
        return found

    def record(self, made: list[tuple[int, Past, int | None]]) -> None:
        for granule, now, value in made:
            kept = self.history.setdefault(granule, [])
            if now.kind is Kind.WRITE and not now.strong and value == self.contents.get(granule, 0):
                # A write of what is there takes the place of the writes before it.
                kept[:] = [past for past in kept if past.event == now.event or past.kind is Kind.READ]
            kept.append(now)
            warp = now.thread // WARP
            self.made[warp] = self.made.get(warp, NOTHING) | {(now.event, warp)}
        for granule, now, value in made:
            if now.kind is Kind.WRITE and value is not None:
                self.contents[granule] = value

    def barrier(self, arriving: list[int], leaving: list[int]) -> None:
        for warp in leaving:
            came = [w for w in arriving if w // self.warps == warp // self.warps]
            self.learn(warp, NOTHING.union(*(self.all_of(w) for w in came)))

    def fence(self, warp: int, wide: bool) -> None:
        near, far = self.noted.get(warp, (NOTHING, NOTHING))
        self.learn(warp, near | (far if wide else NOTHING))
        everything = self.all_of(warp)
        self.fenced[warp] = everything, everything if wide else self.fenced.get(warp, (NOTHING, NOTHING))[1]

    def strong(self, place: int, warp: int, kind: Kind, semantics: str, wide: bool) -> None:
        flag = self.flags.setdefault(place, Flag())
        same_block = flag.warp >= 0 and flag.warp // self.warps == warp // self.warps
        if kind is not Kind.WRITE:
            near, far = flag.near if same_block else NOTHING, NOTHING if same_block or not wide else flag.wide
            if semantics in ("acquire", "acq_rel"):
                self.learn(warp, near | far)
            else:
                old = self.noted.get(warp, (NOTHING, NOTHING))
                self.noted[warp] = old[0] | near, old[1] | far
        if kind is Kind.READ:
            return
        releases = semantics in ("release", "acq_rel")
        own = flag.own if flag.warp == warp else (NOTHING, NOTHING)
        if not releases and warp not in self.fenced:  # it releases nothing by itself
            if kind is Kind.WRITE:
                self.flags[place] = Flag(*own, warp, own) if flag.warp == warp else Flag()
            return
        near, far = (self.all_of(warp),) * 2 if releases else self.fenced[warp]
        own = near | own[0], (far if wide else NOTHING) | own[1]
        near, far = own
        if kind is Kind.ATOMIC:
            near, far = near | (flag.near if same_block else flag.wide), far | flag.wide
        self.flags[place] = Flag(near, far, warp, own)


class Trace:
    """A random trace, given to both."""

    def __init__(self, seed: int) -> None:
        self.random = r = random.Random(seed)
        self.blocks, self.warps = r.choice([(1, 2), (2, 1), (2, 2), (3, 2), (4, 1)])
        self.granule = r.choice([1, 2, 4])
        self.valued = r.random() < 0.5
        """Whether writes have values; then units are granules from the beginning."""
        aligned = seed % 2 == 0
        self.heap = Heap(1 << 36, layout([("a", BYTES, 0), ("b", BYTES, 0 if aligned else 8)]), track=False)
        instructions = [Instruction("st", (), (), None, i, None, "") for i in range(500)]
        threads = self.warps * WARP
        self.order = GlobalOrder(
            self.heap,
            NullOrder(),
            self.blocks,
            threads,
            aligned,
            instructions,
            lambda thread: ((thread // threads + self.first_block, 0, 0), (thread % threads, 0, 0)),
        )
        self.definition = Definition(self.warps)
        self.first_block = -self.blocks
        self.events = 0
        self.sites: dict[tuple[Any, ...], int] = {}
        """Instructions: what each does is always the same."""
        self.checked = 0
        self.batch()
        if self.valued:
            self.access([0], [self.heap.allocations[0].start], 1, Kind.READ, False, True)
            self.access([0], [self.heap.allocations[1].start], 1, Kind.READ, False, True)

    @property
    def base(self) -> int:
        """The first warp of this batch."""
        return self.first_block * self.warps

    def batch(self) -> None:
        self.first_block += self.blocks
        self.order.reset(self.blocks)

    def some_warps(self) -> list[int]:
        everyone = range(self.blocks * self.warps)
        return sorted(self.random.sample(everyone, self.random.choice([1, 1, len(everyone)])))

    def run(self, length: int) -> bool:
        """Whether a race was reported, as it had to be."""
        for _ in range(length):
            name = self.random.choices(
                ["access", "flag", "barrier", "lanes", "fence", "batch"], [60, 25, 6, 4, 5, 0.7]
            )[0]
            match name:
                case "access":
                    if self.any_access():
                        return True
                case "flag":
                    if self.flag():
                        return True
                case "barrier":
                    self.barrier()
                case "lanes":
                    chosen = self.some_warps()
                    self.order.synchronise(np.array(chosen))
                    for w in chosen:
                        self.definition.learn(self.base + w, self.definition.made.get(self.base + w, NOTHING))
                case "fence":
                    chosen, wide = self.some_warps(), self.random.random() < 0.7
                    self.order.fence(np.array(chosen), wide)
                    for w in chosen:
                        self.definition.fence(self.base + w, wide)
                case _:
                    self.batch()
        return False

    def barrier(self) -> None:
        """Of whole blocks, or of some warps that arrive and others that leave."""
        arriving = leaving = list(range(self.blocks * self.warps))
        if self.random.random() < 0.3:
            arriving, leaving = self.some_warps(), self.some_warps()
        self.order.barrier(np.array(arriving), np.array(leaving))
        self.definition.barrier([self.base + w for w in arriving], [self.base + w for w in leaving])

    def any_access(self) -> bool:
        r = self.random
        kind = r.choices([Kind.READ, Kind.WRITE, Kind.ATOMIC], [5, 4, 2])[0]
        strong = kind is Kind.ATOMIC or r.random() < 0.1
        vector = r.choice([1, 1, 1, 2, 4])
        threads = sorted({r.choice(self.some_warps()) * WARP + r.randrange(2) for _ in range(r.choice([1, 1, 2, 3]))})
        size = self.granule * vector
        start = self.heap.allocations[r.random() < 0.2].start
        places = [start + size * r.randrange(16 // size) for _ in threads]
        return self.access(threads, places, vector, kind, strong, r.random() < 0.7)

    def flag(self) -> bool:
        r = self.random
        kind = r.choice([Kind.READ, Kind.WRITE, Kind.ATOMIC])
        orders = {
            Kind.READ: ["relaxed", "acquire", "acquire"],
            Kind.WRITE: ["relaxed", "release", "release"],
            Kind.ATOMIC: ["relaxed", "acquire", "release", "acq_rel", "acq_rel"],
        }
        threads = [w * WARP for w in self.some_warps()]
        place = self.heap.allocations[1].start + 16 + self.granule * r.randrange(2)
        semantics = r.choice(orders[kind])
        return self.access(threads, [place] * len(threads), 1, kind, True, r.random() < 0.8, semantics)

    def access(
        self,
        threads: list[int],
        places: list[int],
        vector: int,
        kind: Kind,
        strong: bool,
        wide: bool,
        semantics: str | None = None,
    ) -> bool:
        """Makes an access, unless it is one of most that race. Whether it raced."""
        r, granule, size = self.random, self.granule, self.granule * vector
        self.events += 1
        element = granule * (r.choice([1, 1, vector]) if strong else 1)
        numbers = [r.randrange(1, 4) for _ in threads]
        valued = self.valued and kind is Kind.WRITE
        made = [
            (
                place // granule + k,
                Past(self.events, self.base * WARP + t, kind, strong, wide, element),
                n if valued else None,
            )
            for t, place, n in zip(threads, places, numbers, strict=True)
            for k in range(vector)
        ]
        racing = self.definition.races(made)
        if racing and r.random() < 0.97:
            return False
        self.checked += 1
        flat = np.array(places)
        values = np.repeat(np.array(numbers, np.uint8)[:, None], size, axis=1) if valued else None
        access = AccessBatch(
            self.sites.setdefault((kind, strong, wide, size, element, r.randrange(2)), len(self.sites)),
            Space.GLOBAL,
            kind,
            np.array(threads),
            flat.astype(np.uint64) + np.uint64(self.heap.base),
            size,
            values=values,
            strong=strong,
            wide=wide,
            element=element,
            flat=flat,
        )
        if racing:
            self.expect(access, racing)
            return True
        self.order.observe(access)
        self.definition.record(made)
        if values is not None:
            self.heap.scatter(flat, 1, values)
        if semantics is not None:
            self.order.communicate(access, semantics)
            last = dict(zip(places, threads, strict=True)).items()  # of plain writes to one place one stays
            pairs = ((t, place) for place, t in last) if kind is Kind.WRITE else zip(threads, places, strict=True)
            for t, place in pairs:
                self.definition.strong(place, self.base + t // WARP, kind, semantics, wide)
        return False

    def expect(self, access: AccessBatch, racing: set[tuple[int, int, int]]) -> None:
        """The report is of a race that there is."""
        with pytest.raises(Race) as caught:
            self.order.observe(access)
        text = caught.value.message
        who = [
            int(block) * self.warps * WARP + int(t)
            for t, block in re.findall(r"thread \((-?\d+), 0, 0\) of block \((-?\d+)", text)
        ]
        byte, name = re.findall(r"bytes? (\d+).* of '(\w)'", text)[0]
        first = next(a.start for a in self.heap.allocations if a.name == name) + int(byte)
        named = {(g, one, two) for g, one, two in racing if {one, two} == set(who)}
        assert any(g * self.granule >= first for g, _, _ in named), (text, sorted(racing))


@pytest.mark.parametrize("seed", [1317, 513, 2982])
def test_traces_that_once_disagreed(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1317 the definition was wrong: an atomic handed a release on, and a store behind it was taken to do so too. Of the
    others the detector was: it took a thread's number for the same thread in the next batch, and found a write behind which the
    same was written again."""
    monkeypatch.setattr(between, "RECORDS", 4)
    Trace(seed).run(150)


@pytest.mark.parametrize("first", every(8, range(0, 400, 25)))
def test_races_are_those_of_the_definition(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(between, "RECORDS", 4)
    races = sum(Trace(seed).run(150) for seed in range(first, first + 25))
    assert races > 10
