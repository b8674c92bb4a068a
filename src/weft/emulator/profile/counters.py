"""The counters of a launch: for each instruction of the program, how much of each metric.

Counting must not cost more than executing. The counts of an access depend only on its lanes' addresses *relative to each other*
(they are the same when all addresses move by a multiple of a word, for global memory of a sector), and loops repeat the same
pattern: so patterns are counted once and remembered, and a repeated one costs a look-up. Counts are Python ints, which do
not overflow.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import WARP, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.profile import counting
from weft.emulator.profile.metrics import COUNTED, METRICS, QUANTITIES, check_metric

REMEMBERED: Final = 32 << 20
"""Bytes of patterns that are remembered before all are forgotten."""


class Counted(NamedTuple):
    """What an access costs, over its warps."""

    requests: int
    transactions: int
    """Wavefronts or sectors; 0 for spaces that have neither."""
    ideal: int


_KINDS: Final = {Kind.READ: "load", Kind.WRITE: "store", Kind.ATOMIC: "atomic"}

_ROUND: Final = {Space.GLOBAL: ~np.uint64(counting.SECTOR - 1)}
"""Moving all addresses by a multiple of this changes no count."""

_ROUND_WORD: Final = ~np.uint64(counting.WORD - 1)


class Counters:
    """Counts for each of ``sites`` instructions."""

    def __init__(self, sites: int) -> None:
        self.sites = sites
        self._counts: dict[str, list[int]] = {}
        self._columns: dict[tuple[Space, Kind, Proxy], tuple[list[int], ...]] = {}
        self._known: dict[tuple[object, ...], Counted] = {}
        self._remembered = 0

    def add(self, site: int, metric: str, amount: int) -> None:
        """Adds to a metric that is counted; `ValueError` for any other name."""
        column = self._counts.get(metric)
        if column is None:
            column = self._column(metric)
        column[site] += amount

    def executed(self, site: int, warps: int, threads: int, times: int = 1) -> None:
        """An instruction was executed ``times`` times, each by so many warps with so many active threads in all."""
        self.add(site, "executions", warps * times)
        self.add(site, "threads", threads * times)

    def access(self, access: AccessBatch) -> None:
        """Counts an execution's access: of each thread at most one, threads ascending.

        Accesses of the asynchronous proxy are no requests of a warp: only their bytes are counted, by a metric of their own.
        Parameters are not counted: a kernel's lie in constant memory, a function's mostly in registers.
        """
        count = access.threads.size
        if not count or access.space is Space.PARAM:
            return
        key = (access.space, access.kind, access.proxy)
        columns = self._columns.get(key)
        if columns is None:
            columns = self._columns[key] = self._columns_of(*key)
        site = access.site
        columns[0][site] += count * access.size
        if access.proxy is Proxy.ASYNC:
            return
        counted = self.cost(access.space, access.threads, access.addresses, access.size)
        for column, amount in zip(columns[1:], counted, strict=False):
            column[site] += amount
        if access.kind is Kind.ATOMIC:
            self._atomic(access, count)

    def counted(self, space: Space, kind: Kind, site: int, amounts: tuple[int, int, int, int]) -> None:
        """Adds what an access of threads was found to cost: bytes, requests, transactions, and the ideal number of these."""
        key = (space, kind, Proxy.GENERIC)
        columns = self._columns.get(key)
        if columns is None:
            columns = self._columns[key] = self._columns_of(*key)
        for column, amount in zip(columns, amounts, strict=True):
            column[site] += amount

    def cost(self, space: Space, threads: IndexArray, addresses: NDArray[np.uint64], size: int) -> Counted:
        """What one access of each of these threads (ascending, at least one) costs."""
        first, last, count = int(threads[0]), int(threads[-1]), threads.size
        base = first & -WARP
        relative = addresses - (addresses[0] & _ROUND.get(space, _ROUND_WORD))
        pattern = relative.tobytes()
        # Threads without gaps are known by the first and how many they are.
        places = (first - base, count) if last - first == count - 1 else (threads - base).tobytes()
        key = (space, size, pattern, places)
        counted = self._known.get(key)
        if counted is None:
            counted = _count(space, threads - base, relative.view(np.int64), size)
            self._remembered += len(pattern) * 2
            if self._remembered > REMEMBERED:
                self._known.clear()
                self._remembered = len(pattern) * 2
            self._known[key] = counted
        return counted

    def _atomic(self, access: AccessBatch, count: int) -> None:
        self.add(access.site, "atomics", count)
        addresses = access.addresses.view(np.int64)
        self.add(access.site, "atomic_collisions", counting.collisions(access.threads, addresses))

    def value(self, site: int, metric: str) -> int:
        """A count that `add` counted."""
        column = self._counts.get(metric)
        if column is None:
            self._check(metric)
            return 0
        return column[site]

    def sites_run(self) -> list[int]:
        """The instructions that were executed."""
        return list(compress(range(self.sites), self._counts.get("executions", ())))

    def rows(self, sites: Iterable[int] | None = None) -> list[dict[str, int]]:
        """The counts of each instruction (of ``sites``, or all) that are not zero, in the order of the table of metrics."""
        columns = [(name, self._counts[name]) for name in COUNTED if name in self._counts]
        wanted = range(self.sites) if sites is None else sites
        return [{name: column[site] for name, column in columns if column[site]} for site in wanted]

    def _check(self, metric: str) -> None:
        if METRICS[check_metric(metric)].derived:
            raise ValueError(f"metric '{metric}' is derived from others; it cannot be counted")

    def _column(self, metric: str) -> list[int]:
        if metric not in self._counts:
            self._check(metric)
            self._counts[metric] = [0] * self.sites
        return self._counts[metric]

    def _columns_of(self, space: Space, kind: Kind, proxy: Proxy) -> tuple[list[int], ...]:
        """The columns an access adds to: bytes, and unless asynchronous what `Counted` has."""
        name = _KINDS[kind]
        if proxy is Proxy.ASYNC:
            name = "store" if kind is Kind.ATOMIC else name
            return (self._column(f"async_{space.value}_{name}_bytes"),)
        quantities = QUANTITIES[space.value]
        ordered = ("bytes", "requests", *quantities[2:])
        return tuple(self._column(f"{space.value}_{name}_{quantity}") for quantity in ordered)


def _count(space: Space, threads: IndexArray, addresses: NDArray[np.int64], size: int) -> Counted:
    rule = _RULES.get(space)
    return Counted(counting.requests(threads), *(rule(threads, addresses, size) if rule else (0, 0)))


_RULES: Final = {
    Space.SHARED: counting.wavefronts,
    Space.GLOBAL: counting.sectors,
    Space.LOCAL: counting.local_sectors,
}
