"""Kernels whose programs synchronise, each with its launch and what NumPy says it computes.

Programs come in groups that do the same thing with memory of their own, so that one launch is many runs.
"""

# pyright: reportUnnecessaryComparison=false, reportIndexIssue=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
import weft.language as tl

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A kernel, its arguments and results for a number of programs (a power of two), and its constants."""

    kernel: weft.JITFunction
    arguments: Callable[[int], Arrays]
    expected: Callable[[Arrays], Arrays]
    constants: dict[str, Any]


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).integers(-100, 100, shape).astype(np.int32)


# ---- the last program of a group adds up what all have stored --------------------------------------------------------


@weft.jit
def last_block(x: Any, partial: Any, count: Any, out: Any, N: tl.constexpr, GROUP: tl.constexpr) -> None:
    pid = tl.program_id(0)
    group = pid // GROUP
    i = tl.arange(0, N)
    tl.store(partial + pid * N + i, tl.load(x + pid * N + i) * 2)
    if tl.atomic_add(count + group, 1, sem="acq_rel") == GROUP - 1:
        all_of_them = (group * GROUP + tl.arange(0, GROUP))[:, None] * N + i[None, :]
        tl.store(out + group * N + i, tl.sum(tl.load(partial + all_of_them), axis=0))


LAST_BLOCK = Case(
    last_block,
    lambda programs: {
        "x": numbers(programs * 64),
        "partial": np.zeros(programs * 64, np.int32),
        "count": np.zeros(programs // 4, np.int32),
        "out": np.zeros(programs // 4 * 64, np.int32),
    },
    lambda before: {"out": 2 * before["x"].reshape(-1, 4, 64).sum(1).reshape(-1)},
    {"N": 64, "GROUP": 4},
)


# ---- a spin lock around plain accesses: the backward pass of Triton's layer norm ------------------------------------


@weft.jit
def spin_lock(x: Any, total: Any, count: Any, lock: Any, N: tl.constexpr, GROUP: tl.constexpr) -> None:
    pid = tl.program_id(0)
    group = pid // GROUP
    i = tl.arange(0, N)
    value = tl.load(x + pid * N + i)
    while tl.atomic_cas(lock + group, 0, 1) == 1:
        pass
    seen = tl.load(count + group)
    if seen == 0:
        tl.atomic_xchg(count + group, 1)
    else:
        value += tl.load(total + group * N + i)
    tl.store(total + group * N + i, value)
    tl.debug_barrier()
    tl.atomic_xchg(lock + group, 0)


SPIN_LOCK = Case(
    spin_lock,
    lambda programs: {
        "x": numbers(programs * 64),
        "total": np.full(programs // 8 * 64, -1, np.int32),
        "count": np.zeros(programs // 8, np.int32),
        "lock": np.zeros(programs // 8, np.int32),
    },
    lambda before: {
        "total": before["x"].reshape(-1, 8, 64).sum(1).reshape(-1),
        "lock": np.zeros_like(before["lock"]),
        "count": np.ones_like(before["count"]),
    },
    {"N": 64, "GROUP": 8},
)


# ---- a ticket lock: served in the order of the tickets, handed on by a plain store -----------------------------------


@weft.jit
def ticket(x: Any, total: Any, order: Any, tickets: Any, serving: Any, N: tl.constexpr, GROUP: tl.constexpr) -> None:
    pid = tl.program_id(0)
    group = pid // GROUP
    i = tl.arange(0, N)
    mine = tl.atomic_add(tickets + group, 1, sem="relaxed")
    while tl.load(serving + group, volatile=True) != mine:
        pass
    value = tl.load(x + pid * N + i)
    tl.store(total + group * N + i, tl.load(total + group * N + i) * 3 + value)
    tl.store(order + group * GROUP + mine, pid)
    tl.store(serving + group, mine + 1)


def served_in_order(before: Arrays) -> Arrays:
    """Which program gets which ticket is open, so ``order`` says it; what follows from it is not."""
    order: Any = before["order"]
    assert (np.sort(order.reshape(-1, 8), 1).reshape(-1) == np.arange(len(order))).all(), order
    order = order.reshape(-1, 8)
    total = np.zeros((len(order), 64), np.int32)
    rows = before["x"].reshape(-1, 64)
    for position in range(8):
        total = total * 3 + rows[order[:, position]]
    return {"total": total.reshape(-1), "serving": np.full(len(order), 8, np.int32)}


TICKET = Case(
    ticket,
    lambda programs: {
        "x": numbers(programs * 64),
        "total": np.zeros(programs // 8 * 64, np.int32),
        "order": np.full(programs, -1, np.int32),
        "tickets": np.zeros(programs // 8, np.int32),
        "serving": np.zeros(programs // 8, np.int32),
    },
    served_in_order,
    {"N": 64, "GROUP": 8},
)


# ---- a scan of all programs' sums with decoupled look-back (Merrill and Garland, 2016) ------------------------------


@weft.jit
def look_back(x: Any, aggregate: Any, inclusive: Any, status: Any, out: Any, N: tl.constexpr) -> None:
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    value = tl.load(x + pid * N + i)
    own = tl.sum(value, axis=0)
    tl.store(aggregate + pid, own)
    tl.atomic_xchg(status + pid, 1, sem="release")
    prefix = 0
    before = pid - 1
    while before >= 0:
        state = tl.load(status + before, volatile=True)
        while state == 0:
            state = tl.load(status + before, volatile=True)
        if state == 2:
            prefix += tl.load(inclusive + before)
            before = -1
        else:
            prefix += tl.load(aggregate + before)
            before -= 1
    tl.store(inclusive + pid, prefix + own)
    tl.atomic_xchg(status + pid, 2, sem="release")
    tl.store(out + pid * N + i, prefix + value)


@weft.jit
def look_back_at_tiles(
    x: Any, aggregate: Any, inclusive: Any, status: Any, out: Any, N: tl.constexpr, WIDTH: tl.constexpr
) -> None:
    """The same, looking at many programs at once."""
    pid = tl.program_id(0)
    i, j = tl.arange(0, N), tl.arange(0, WIDTH)
    value = tl.load(x + pid * N + i)
    own = tl.sum(value, axis=0)
    tl.store(aggregate + pid, own)
    tl.atomic_xchg(status + pid, 1, sem="release")
    prefix = 0
    end = pid
    while end > 0:
        at = end - 1 - j
        state = tl.load(status + at, mask=at >= 0, other=2, volatile=True)
        while tl.min(state, axis=0) == 0:
            state = tl.load(status + at, mask=at >= 0, other=2, volatile=True)
        nearest = tl.min(tl.where(state == 2, j, WIDTH), axis=0)
        sums = tl.load(aggregate + at, mask=(at >= 0) & (j < nearest), other=0)
        sums += tl.load(inclusive + at, mask=(at >= 0) & (j == nearest), other=0)
        prefix += tl.sum(sums, axis=0)
        end = tl.where(nearest < WIDTH, 0, end - WIDTH)
    tl.store(inclusive + pid, prefix + own)
    tl.atomic_xchg(status + pid, 2, sem="release")
    tl.store(out + pid * N + i, prefix + value)


def look_back_arguments(programs: int) -> Arrays:
    return {
        "x": numbers(programs * 32),
        "aggregate": np.zeros(programs, np.int32),
        "inclusive": np.zeros(programs, np.int32),
        "status": np.zeros(programs, np.int32),
        "out": np.zeros(programs * 32, np.int32),
    }


def scanned(before: Arrays) -> Arrays:
    rows = before["x"].reshape(-1, 32)
    inclusive = np.cumsum(rows.sum(1)).astype(np.int32)
    return {
        "inclusive": inclusive,
        "out": (rows + (inclusive - rows.sum(1))[:, None]).astype(np.int32).reshape(-1),
        "status": np.full(len(rows), 2, np.int32),
    }


LOOK_BACK = Case(look_back, look_back_arguments, scanned, {"N": 32})
LOOK_BACK_AT_TILES = Case(look_back_at_tiles, look_back_arguments, scanned, {"N": 32, "WIDTH": 8})


# ---- a chain: each program waits for the flag of the one before, and raises its own by a plain store ---------------


@weft.jit
def chain(data: Any, flags: Any, N: tl.constexpr) -> None:
    pid = tl.program_id(0)
    i = tl.arange(0, N)
    while tl.load(flags + pid, volatile=True) == 0:
        pass
    tl.store(data + (pid + 1) * N + i, tl.load(data + pid * N + i) + i)
    tl.store(flags + pid + 1, 1)


def chain_arguments(programs: int) -> Arrays:
    flags = np.zeros(programs + 1, np.int32)
    flags[0] = 1
    data = np.zeros((programs + 1) * 128, np.int32)
    data[:128] = numbers(128)
    return {"data": data, "flags": flags}


def linked(before: Arrays) -> Arrays:
    links = len(before["flags"])
    steps = np.arange(links)[:, None] * np.arange(128)[None, :]
    return {"data": (before["data"][:128] + steps).astype(np.int32).reshape(-1), "flags": np.ones(links, np.int32)}


CHAIN = Case(chain, chain_arguments, linked, {"N": 128})

CASES = {case.kernel.name: case for case in (LAST_BLOCK, SPIN_LOCK, TICKET, LOOK_BACK, LOOK_BACK_AT_TILES, CHAIN)}
