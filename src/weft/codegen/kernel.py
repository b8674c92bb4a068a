"""What compiling gives: position-independent of the process that made it, so that it can be kept on disk.

The entry point's C signature is the whole interface between generated code and the runtime::

    int32 symbol(int64 *args, char *scratch, int64 *next, int64 total, int64 chunk,
                 int32 nx, int32 ny, int32 nz, int64 *fault)

``args`` holds one 8-byte slot per run-time argument, in order: addresses of pointers, integers sign- or zero-extended,
floats as the bits of their type in the low bytes, bools as 0 or 1. A checked kernel finds two more slots per pointer argument
behind them, in order: its first byte and the one past its last. Every calling thread claims ``chunk`` programs at a time
by an atomic add on ``*next`` until ``total = nx * ny * nz`` is reached; program p has the ids ``p % nx``, ``p / nx % ny``,
``p / nx / ny``. ``scratch`` is `CompiledKernel.scratch` bytes of this thread's own, aligned to 64.

The result is 0, or 1 when a checked access failed; then ``fault`` (8 zeroed int64 before the launch) holds 1, the index into
`CompiledKernel.sites`, the three program ids and the address. Only the first failure is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.location import Position


@dataclass(frozen=True)
class AccessSite:
    """One memory access of a checked kernel: what it does, through which argument (None: unknown), and where it stands."""

    operation: str
    argument: str | None
    itemsize: int
    positions: tuple[Position, ...]


@dataclass(frozen=True)
class CompileOptions:
    """What changes the code besides signature and target.

    ``checked`` tests every access against the argument arrays. ``disjoint`` promises that the arrays passed do not overlap,
    so that a load may move past a store to another argument.
    """

    checked: bool = False
    disjoint: bool = False


@dataclass(frozen=True)
class CompiledKernel:
    """A relocatable object with its entry point, the scratch bytes each thread needs, and the checked accesses."""

    object: bytes
    symbol: str
    scratch: int
    sites: tuple[AccessSite, ...] = ()
