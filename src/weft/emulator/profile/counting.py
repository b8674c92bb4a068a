"""How many transactions a warp's access to memory takes: the counting rules, as functions of addresses.

A profiler reads hardware counters; here the same numbers follow from the addresses of the lanes, by rules that NVIDIA
documents and its profiler confirms. Each rule takes the accesses of one execution: ``threads`` (N,) ascending, each at most once,
and ``addresses`` (N,), any number of warps at once; lanes that are not active do not appear. It returns sums over the warps.
Addresses are multiples of the access's size, as hardware requires; sizes are powers of two up to 32.

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

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import IndexArray

BANKS: Final = 32
"""Banks of shared memory."""

WORD: Final = 4
"""Bytes that a bank serves at once."""

ROW: Final = BANKS * WORD
"""Bytes that all banks serve at once."""

SECTOR: Final = 32
"""Bytes of a sector of global memory."""


def wavefronts(threads: IndexArray, addresses: NDArray[np.int64], size: int) -> tuple[int, int]:
    """Wavefronts of shared-memory requests of ``size`` bytes a lane, and the ideal number.

    An access of more than a word is one to a bank *group*: aligned vectors coincide or have no word in common, and a vector's
    place modulo ``ROW`` says which banks serve it.
    """
    vector = max(size, WORD)
    lanes = ROW // vector
    vectors = addresses >> _log2(vector)
    phases = threads >> _log2(lanes)
    ideal = _changes(phases)
    groups = phases * lanes + (vectors & (lanes - 1))
    if np.bincount(groups).max(initial=0) > 1:  # lanes share a bank group: those that want the same vector count once
        keys, bits = _distinct(phases, vectors)
        groups = (keys >> bits) * lanes + (keys & (lanes - 1))
        served = np.bincount(groups, minlength=(int(phases[-1]) + 1) * lanes)
        return int(served.reshape(-1, lanes).max(axis=1).sum()), ideal
    return ideal, ideal


def sectors(threads: IndexArray, addresses: NDArray[np.int64], size: int) -> tuple[int, int]:
    """Sectors of global-memory requests of ``size`` bytes a lane, and the ideal number."""
    keys, bits = _distinct(threads >> 5, addresses)
    needed = np.bincount(keys >> bits) * size
    return _changes(keys >> 5), int(((needed + SECTOR - 1) >> 5).sum())


def local_sectors(threads: IndexArray, addresses: NDArray[np.int64], size: int) -> tuple[int, int]:
    """Sectors of local-memory requests, and the ideal number: whole words of as many lanes.

    ``addresses`` are within each thread's local memory. A vector of k words touches k sectors for each distinct (place of the
    vector, group of eight lanes).
    """
    vector = max(size, WORD)
    groups = threads >> 3
    keys, _ = _distinct(groups, addresses >> _log2(vector))
    needed = np.bincount(threads >> 5) * vector
    return len(keys) * (vector // WORD), int(((needed + SECTOR - 1) >> 5).sum())


def collisions(threads: IndexArray, addresses: NDArray[np.int64]) -> int:
    """Lanes of atomics that wait for another lane of their warp: lanes less distinct addresses."""
    return len(threads) - len(_distinct(threads >> 5, addresses)[0])


def requests(threads: IndexArray) -> int:
    """Warps that have one of the threads."""
    return _changes(threads >> 5)


def _distinct(groups: IndexArray, places: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """The distinct (group, place), ascending, each as ``group << bits | place``, and the bits.

    Places are moved by a multiple of a sector, so that the lowest is small.
    """
    places = places - (int(places.min()) & -SECTOR)
    bits = int(places.max()).bit_length()
    if bits > 40:  # far apart: number the sectors instead, in their order
        numbers = np.unique(places >> 5, return_inverse=True)[1]
        places = numbers << 5 | places & SECTOR - 1
        bits = int(places.max()).bit_length()
    bits = max(bits, 5)
    keys = groups << bits | places
    keys.sort()
    fresh = np.empty(len(keys), np.bool_)
    fresh[0] = True
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:])
    return keys[fresh], bits


def _changes(ascending: NDArray[Any]) -> int:
    """How many different values there are."""
    return 1 + int(np.count_nonzero(ascending[1:] != ascending[:-1]))


def _log2(power: int) -> int:
    return power.bit_length() - 1
