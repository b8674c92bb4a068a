"""What compiling gives: position-independent of the process that made it, so that it can be kept on disk.

The entry point's C signature is the whole interface between generated code and the runtime::

    int32 symbol(int64 *launch, int64 *thread)

A native call by Python's ctypes costs 40 ns for each argument, so what a launch says is in memory. ``launch`` is aligned to 64:

| word | holds |
|---|---|
| 0 to 63 (`NEXT`) | a counter for each share of the grid: how many of its programs threads have claimed, 0 before the launch |
| 64 to 71 (`RECORD`) | the record, below, zeroed before the launch |
| 72 (`SHARES`) | how many threads claim programs, at most `MOST_SHARES`; 0 for one. So many shares, if the next word is not 0 |
| 73 (`CLAIMS`) | the address of the function below, which claims where there are several shares; else 0 |
| 74 (`TOTAL`) | the number of programs, ``nx * ny * nz`` |
| 75 (`CHUNK`) | how many programs a thread claims at a time |
| 76, 77, 78 (`SIZES`) | ``nx``, ``ny``, ``nz`` |
| from 79 (`SLOTS`) | one 8-byte slot per run-time argument, in order |

Slots hold addresses of pointers, integers sign- or zero-extended, floats as the bits of their type in the low bytes, bools as 0
or 1. A checked kernel finds two more slots per pointer argument behind them, in order: its first byte and the one past its last.
So does any other kernel for each of `CompiledKernel.measured`: both are 0 where that is not known.

Program p has the ids ``p % nx``, ``p / nx % ny``, ``p / nx / ny``. A share is a range of programs that follow each other; two
shares differ by one program at most, and longer ones come first. Every calling thread claims programs by an atomic add on the
counter of its own share, until all of that are claimed, then on the others' in turn. So in each launch of a grid a thread runs
about the same programs, whose memory its core's caches hold. A kernel whose order is seen, by prints or atomics for example
(`weft.codegen.cpu.order`), has one share, whatever word 72 says; where its programs may wait for each other, a claim is one
program. Code that runs several programs at once (`weft.transforms.join_programs`) shares out, claims, counts and keeps groups of
programs in the same words.

Of several shares a thread claims by ``{int64, int64} claims(launch, thread, int64 total, int64 chunk)``
(`weft.runtime.shares`), which gives the first program, or group, that it runs, and the one past the last.

The counter of share s is word ``s % 8 * 8 + s / 8``: the first 8 have cache lines of their own.

The record is 8 int64:

| word | holds |
|---|---|
| 0 | 1 after a checked access failed; the words 1 to 5 describe the first failure only |
| 1 | the index into `CompiledKernel.sites` |
| 2, 3, 4 | the three program ids |
| 5 | the address |
| 6 (`STOP`) | not 0: the launch stops. Written by any thread at any time |
| 7 (`PRINTER`) | the address of the function below; only kernels that print read it |

A kernel prints by ``void printer(int32 number, int32 x, int32 y, int32 z, void *values)``: the index into
`CompiledKernel.prints`, the program's ids, and where the elements lie, each in its storage type.

``thread`` is 5 int64 of the calling thread; words 0, 1 and 2 are zeroed before its first call:

| word | holds |
|---|---|
| 0 (`PAUSE`) | not 0: return at the next program boundary. Written by any thread at any time; cleared on return |
| 1, 2 (`POSITION`, `LAST`) | claimed and not run: from word 1 to before word 2. The next call runs these programs first |
| 3 (`SCRATCH`) | the address of `CompiledKernel.scratch` bytes of this thread's own, aligned to 64 |
| 4 (`SHARE`) | the thread's own share; one that is not there means the first |

Where a claim is less than the grid (``CHUNK < TOTAL``), scratch memory has `CompiledKernel.copies` more bytes.

The result is one of the values below. After `PAUSED` the same thread calls again with the same arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.ir.location import Position
from weft.ir.printing import Print

DONE: Final = 0
"""The calling thread found no program left."""
FAULT: Final = 1
"""A checked access of this thread failed. Its program is left, and ``record`` tells the other threads to stop."""
STOPPED: Final = 2
"""The launch stops: this thread has left its program at a loop's back edge, or the grid at a program boundary."""
PAUSED: Final = 3
"""The thread was asked to return, and did so at a program boundary. Or it waits for another launch to let it enter a kernel with
atomics, and returns so that signals are handled."""

NEXT: Final = 0
RECORD: Final = 64
SHARES: Final = 72
CLAIMS: Final = 73
TOTAL: Final = 74
CHUNK: Final = 75
SIZES: Final = (76, 77, 78)
SLOTS: Final = 79
"""The words of ``launch``."""

MOST_SHARES: Final = 64
"""How many counters there are."""

CHUNKS_PER_THREAD: Final = 8
"""Claims a thread of a shared launch makes when programs take equally long (`weft.runtime.executor`)."""

STOP: Final = 6
PRINTER: Final = 7
"""Words of the record."""

PAUSE: Final = 0
POSITION: Final = 1
LAST: Final = 2
SCRATCH: Final = 3
SHARE: Final = 4
"""The words of ``thread``."""


@dataclass(frozen=True)
class AccessSite:
    """One memory access of a checked kernel: what it does, through which argument (None: unknown), and where it stands."""

    operation: str
    argument: str | None
    itemsize: int
    positions: tuple[Position, ...]


@dataclass(frozen=True)
class CompiledKernel:
    """A relocatable object with its entry point, the scratch bytes each thread needs, the checked accesses, the prints, and how
    many sums it adds up in parts (`weft.transforms.split_sums`), and in which order each. A thread of a launch that several share
    needs ``copies`` more bytes of scratch memory. ``measured`` are arguments whose arrays' bounds the launch states."""

    object: bytes
    symbol: str
    scratch: int
    sites: tuple[AccessSite, ...] = ()
    prints: tuple[Print, ...] = ()
    sums: int = 0
    order: str = ""
    copies: int = 0
    measured: tuple[int, ...] = ()


@dataclass(frozen=True)
class GpuKernel:
    """PTX with what a launch has to know: the entry's name, the threads of a block, and its bytes of dynamic shared memory.

    A block runs a program: the grid of blocks is the grid of programs. The parameters are the run-time arguments in order, each
    of its own type: addresses of 64 bits, integers, floats; a bool is a byte, 0 or 1.
    """

    ptx: str
    symbol: str
    threads: int
    shared: int
