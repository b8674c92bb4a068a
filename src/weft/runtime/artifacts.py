"""What a compilation leaves for the runtime, and keeps on disk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from weft.ir.printing import Print
from weft.runtime.errors import Site


class Artifact(NamedTuple):
    """For a CPU: a relocatable object, its entry point, bytes of scratch a thread needs, the memory accesses of a checked
    kernel, its prints, the parameters it may write through, how many sums it adds up in parts, and
    in which order each, how many bytes of scratch more a thread of a shared launch needs, and the arguments whose bounds launches
    state."""

    object: bytes
    symbol: str
    scratch: int
    written: tuple[str, ...]
    sites: tuple[Site, ...] = ()
    prints: tuple[Print, ...] = ()
    sums: int = 0
    order: str = ""
    copies: int = 0
    measured: tuple[int, ...] = ()


class GpuArtifact(NamedTuple):
    """For a GPU: PTX, its entry point, the threads of a block, its bytes of dynamic shared memory, and the parameters it may
    write through."""

    ptx: str
    symbol: str
    threads: int
    shared: int
    written: tuple[str, ...]


def refuse_read_only(kernel: str, written: Iterable[str], read_only: Iterable[str]) -> None:
    """Raises `ValueError` for the first read-only array that the kernel writes through."""
    for name in read_only:
        if name in written:
            raise ValueError(
                f"kernel '{kernel}': parameter '{name}': found a read-only array, but the kernel writes through it; pass a "
                "writable one"
            )
