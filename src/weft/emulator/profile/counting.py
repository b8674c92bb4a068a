"""How many transactions a warp's access to memory takes: the counting rules, as functions of addresses.

A profiler reads hardware counters; here the same numbers follow from the addresses of the 32 lanes, by rules that NVIDIA
documents and its profiler confirms. Each rule is a function of (warps, 32) addresses and of which lanes are active, and
returns one number a warp. Addresses are multiples of the access's size, as hardware requires; sizes are powers of two.

Shared memory (CUDA C++ Programming Guide, "Shared Memory", compute capability 5.x and later): 32 banks of 4 bytes, word
``a // 4`` in bank ``a // 4 % 32``. A request is served in *phases* of as many lanes as fill 128 bytes: all 32 for up to 4 bytes
a lane, two halves of 16 for 8, four quarters of 8 for 16. A phase takes as many *wavefronts* as the most distinct words that
one bank has to serve. Lanes that want the same word share it, in loads (broadcast) and in stores (one of them wins). A phase
without active lanes takes none.

    ld.shared.b32, lane i at 4 i      32 words in 32 banks: 1 wavefront
    ld.shared.b32, lane i at 128 i    32 words in bank 0: 32 wavefronts
    ld.shared.b32, lane i at 132 i    32 words, bank i: 1 wavefront; a row of padding
    ld.shared.b32, all lanes at 64    1 word: 1 wavefront
    ld.shared.v4.b32, lane i at 16 i  4 phases of 32 words: 4 wavefronts

The *ideal* is what the bytes need: ``ceil(distinct words / 32)`` of each phase that has active lanes, and that is one, for a
phase fills at most 128 bytes. Wavefronts beyond the ideal are bank conflicts.

Global memory (Programming Guide, "Device Memory Accesses"; Nsight Compute's Profiling Guide, "Metrics Decoder"): memory is
sectors of 32 aligned bytes, and a warp's request asks for each sector it touches once. The ideal is
``ceil(distinct bytes / 32)`` of the warp: as if the same bytes lay side by side and aligned.

Local memory (Programming Guide, "Device Memory Accesses", local memory): consecutive 32-bit words belong to consecutive
lanes of the warp, so word w of lane i lies at word ``32 w + i``, and lanes that access the same place of their own memory touch
as few sectors as can be.

What the rules do not know: hardware may serve two phases at once where their lanes want few words, and atomics on shared
memory may be split further; caches, and so what becomes of a sector, are not modelled at all.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import WARP, Mask

BANKS: Final = 32
"""Banks of shared memory."""

WORD: Final = 4
"""Bytes that a bank serves at once."""

ROW: Final = BANKS * WORD
"""Bytes that all banks serve at once."""

SECTOR: Final = 32
"""Bytes of a sector of global memory."""

Addresses: TypeAlias = NDArray[np.int64]
"""(warps, 32), of each lane; whatever inactive lanes hold is ignored."""

Counts: TypeAlias = NDArray[np.int64]
"""(warps,)."""


def wavefronts(addresses: Addresses, size: int, active: Mask | None = None) -> tuple[Counts, Counts]:
    """Wavefronts of a shared-memory request of each warp, and the ideal number.

    ``size`` bytes a lane; ``active`` (warps, 32), None for all lanes. An access of more than a word is one to a bank
    *group*: aligned vectors coincide or have no word in common, and a vector's place modulo ``ROW`` says which banks serve it.
    """
    vector = max(size, WORD)
    lanes = ROW // vector
    vectors = (addresses >> _log2(vector)).reshape(-1, lanes)
    if active is None:
        degrees, busy = _degrees(vectors, lanes), np.ones(len(vectors), np.int64)
    else:
        vectors, busy = _filled(vectors, active.reshape(-1, lanes))
        degrees = _degrees(vectors, lanes) * busy
    if lanes == WARP:
        return degrees, busy
    return degrees.reshape(-1, WARP // lanes).sum(axis=1), busy.reshape(-1, WARP // lanes).sum(axis=1)


def sectors(addresses: Addresses, size: int, active: Mask | None = None) -> tuple[Counts, Counts]:
    """Sectors of a global-memory request of each warp, and the ideal number."""
    busy: Any = 1
    if active is not None:
        addresses, busy = _filled(addresses, active)
    ordered = _ordered(addresses)
    places = ordered >> 5
    touched = 1 + (places[:, 1:] != places[:, :-1]).sum(axis=1)
    if size > SECTOR:
        touched = touched * (size // SECTOR)
    distinct = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1)
    ideal: Counts = -(-distinct * size // SECTOR)
    return touched * busy, ideal * busy


def local_sectors(addresses: Addresses, size: int, active: Mask | None = None) -> tuple[Counts, Counts]:
    """Sectors of a local-memory request of each warp, and the ideal number: whole words of as many lanes.

    ``addresses`` are within each thread's local memory. A vector of k words touches k sectors for each distinct (place of the
    vector, group of eight lanes).
    """
    vector = max(size, WORD)
    places = (addresses >> _log2(vector)) * (WARP * WORD // SECTOR) + np.arange(WARP) // (SECTOR // WORD)
    touched = sectors(places * SECTOR, WORD, active)[0]
    count: Counts = np.full(len(addresses), WARP) if active is None else active.sum(axis=1)
    return touched * (vector // WORD), -(-count * vector // SECTOR)


def collisions(addresses: Addresses, active: Mask | None = None) -> Counts:
    """Lanes of each warp's atomic that wait for another lane: active lanes less distinct addresses."""
    ordered = _ordered(addresses if active is None else _filled(addresses, active)[0])
    same = (ordered[:, 1:] == ordered[:, :-1]).sum(axis=1)
    if active is None:
        return same
    count = active.sum(axis=1)
    return np.where(count > 0, same - (WARP - count), 0)


def _degrees(vectors: NDArray[np.int64], lanes: int) -> Counts:
    """The most distinct vectors that a bank group serves, for each phase (row)."""
    phases = len(vectors)
    groups = (vectors & (lanes - 1)) + np.arange(0, phases * lanes, lanes)[:, None]
    if np.bincount(groups.ravel(), minlength=phases * lanes).max(initial=0) <= 1:
        return np.ones(phases, np.int64)
    if (vectors == vectors[:, :1]).all():
        return np.ones(phases, np.int64)
    ordered = np.sort(vectors, axis=1)
    fresh = np.empty(ordered.shape, np.bool_)
    fresh[:, 0] = True
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=fresh[:, 1:])
    groups = (ordered & (lanes - 1)) + np.arange(0, phases * lanes, lanes)[:, None]
    return np.bincount(groups[fresh], minlength=phases * lanes).reshape(phases, lanes).max(axis=1)


def _filled(values: NDArray[np.int64], active: Mask) -> tuple[NDArray[np.int64], Counts]:
    """Rows with inactive entries replaced by an active one, which adds nothing distinct; and which rows have one."""
    least = np.iinfo(np.int64).min
    some = np.where(active, values, least).max(axis=1, keepdims=True)
    busy: Counts = np.any(active, axis=1).astype(np.int64)
    return np.where(active, values, some), busy


def _ordered(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows in ascending order; they often are."""
    if (values[:, 1:] >= values[:, :-1]).all():
        return values
    return np.sort(values, axis=1)


def _log2(power: int) -> int:
    return power.bit_length() - 1
