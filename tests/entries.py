"""Entry points: a kernel's native one, called as the runtime does, with pauses between programs where a test wants them; and
Python functions that follow the same interface."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from weft.codegen import kernel as abi
from weft.runtime import executor
from weft.runtime.shares import claims
from weft.runtime.workspace import HEAD, Workspace


def enter(
    handle: Any,
    arrays: tuple[Any, ...],
    grid: tuple[int, int, int],
    chunk: int,
    *,
    pauses: bool = False,
    paused: Callable[[], None] = lambda: None,
    space: Workspace | None = None,
    shares: int = 0,
    share: int = 0,
) -> int:
    """Runs all programs of a compiled kernel of pointers, perhaps checked, in this thread, ``chunk`` of them a claim; how often
    it paused. ``paused`` is called when it returns, ``space`` may be that of an earlier launch. Of so many ``shares``, ``share``
    is the thread's."""
    space = Workspace() if space is None else space
    executable = handle.executable
    programs = grid[0] * grid[1] * grid[2]
    artifact = executable.artifact
    extents = [(x.ctypes.data, x.ctypes.data + x.nbytes) for x in arrays]
    ends: list[Any] = [end for both in extents for end in both] if executable.checked else executable.measures(extents)
    scratch = space.scratch(artifact.scratch + artifact.copies)
    words = scratch, programs, chunk, *grid, *(x.ctypes.data for x in arrays), *ends
    struct.pack_into(f"{HEAD}{len(arrays) + len(ends)}Q", space.block, space.offset, *words)
    space.share_out(shares, claims() if shares > 1 else 0)
    space.begin_at(share)
    entry, count, status = executor.ENTRY(executable.address), 0, abi.PAUSED
    while status == abi.PAUSED:
        if pauses:
            space.pause()
        status = entry(space.launch, space.thread)
        count += status == abi.PAUSED
        paused()
    assert status == abi.DONE
    return count


def entry_of(program: Callable[[int], int], seen: list[tuple[int, int]] | None = None) -> executor.Entry:
    """An entry point that claims programs as the ABI says and calls ``program`` for each; ``seen`` gets its
    arguments."""
    lock = threading.Lock()

    def entry(launch: int, thread: int) -> int:
        if seen is not None:
            seen.append((launch, thread))
        words = (ctypes.c_int64 * abi.SLOTS).from_address(launch)
        total, chunk = words[abi.TOTAL], words[abi.CHUNK]
        while True:
            with lock:
                first = words[abi.NEXT]
                words[abi.NEXT] = first + chunk
            if first >= total:
                return 0
            for p in range(first, min(first + chunk, total)):
                if status := program(p):
                    return status

    return entry


def at_once(works: Sequence[Callable[[], object]]) -> None:
    """Calls each in a thread of its own, and raises what one of them raised."""
    with ThreadPoolExecutor(len(works)) as threads:
        for future in [threads.submit(work) for work in works]:
            future.result()
