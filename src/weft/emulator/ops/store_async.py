"""st.async, red.async and st.bulk: stores that a thread does not wait for (PTX ISA 9.7.9.12, 9.7.9.13, 9.7.13.8).

Those into shared memory that an mbarrier counts are bulk copies of a register: done when issued, seen by the threads that wait
for the phase of the mbarrier whose bytes they complete. Their addresses are of the cluster. Those with ``.release``, to global
memory, are a st.release and a red.release: done when issued. st.bulk stores zeros, as its thread would with many stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weft.emulator.arith.bulk_reduce import SHARED, reduction
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.ops.atomic import reduce
from weft.emulator.ops.bulk import COMPLETE, Transfer
from weft.emulator.ops.forms import form
from weft.emulator.ops.load_store import store
from weft.emulator.ops.mbarrier import per_thread, shared_address
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.types import STORAGE, TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

_SPACE: Final = "shared::cluster"


@instruction("st.async")
def _store(b: Binding) -> Step:
    if "release" in b.modifiers:
        _of_global(b)
        return store(b, "async")
    f = form(
        b,
        how="async",
        semantics="? weak",
        space=_SPACE,
        completion=COMPLETE,
        vector="? v2 v4",
        type="b32 b64 u32 u64 s32 s64 f32 f64",
    )
    b.count(3)
    kind = b.type()
    parts = b.elements(1)
    count = {"": 1, "v2": 2, "v4": 4}[f["vector"]]
    b.require(len(parts) == count, f"{len(parts)} values, expected {count}")
    size = kind.bytes * count
    b.require(size <= 16, f"a store of {size} bytes; at most 16 can be stored at once")
    sources = [b.read(part, kind) for part in parts]
    to, barrier = shared_address(b, 0, _SPACE), shared_address(b, 2, _SPACE)

    def step(active: Active) -> None:
        for stores in Transfer.begin(b, active, barrier):
            threads = stores.threads
            words = np.empty((threads.size, count), STORAGE[kind.bits])
            for i, source in enumerate(sources):
                words[:, i] = np.broadcast_to(source.view(words.dtype), (b.execution.threads,))[threads]
            access = stores.access(Space.SHARED, Kind.WRITE, slice(None), to(threads), size, alignment=size)
            stores.write(access, words.view(np.uint8))
            stores.complete(size)

    return step


@instruction("red.async")
def _reduce(b: Binding) -> Step:
    if "release" in b.modifiers:
        _of_global(b)
        return reduce(b, how="async", mmio="? mmio")
    f = form(
        b,
        how="async",
        semantics="? relaxed",
        scope="? cluster",
        space=f"? {_SPACE}",
        completion=COMPLETE,
        operation=" ".join(SHARED),
        type="b32 u32 s32 u64",
    )
    b.count(3)
    operation, kind = f["operation"], b.type()
    known = [name for name in SHARED[operation] if name in ("b32", "u32", "s32", "u64")]
    b.require(kind.name in known, f".{operation} has types {', '.join(known)}, not {kind.name}")
    how = reduction(operation, kind.name)
    source = b.read(1, kind).view(STORAGE[kind.bits])
    to, barrier = shared_address(b, 0, f["space"]), shared_address(b, 2, f["space"])

    def step(active: Active) -> None:
        for stores in Transfer.begin(b, active, barrier):
            threads = stores.threads
            values = np.broadcast_to(source, (b.execution.threads,))[threads][:, None]
            access = stores.access(
                Space.SHARED, Kind.ATOMIC, slice(None), to(threads), kind.bytes, alignment=kind.bytes
            )
            stores.reduce(access, np.ascontiguousarray(values).view(np.uint8), how)
            stores.complete(kind.bytes)

    return step


def _of_global(b: Binding) -> None:
    for space in ("shared", "shared::cta", "shared::cluster"):
        b.require(space not in b.modifiers, f"{b.instruction.opcode}.async.release is of global memory, not .{space}")


_ZEROS: Final = 16
"""Bytes that a step of st.bulk stores."""


@instruction("st.bulk")
def _bulk(b: Binding) -> Step:
    """``st.bulk [a], size, 0``: zeros from a on, a multiple of 8 bytes of shared memory."""
    f = form(b, how="bulk", semantics="? weak", space="? shared::cta")
    b.count(3)
    b.require(b.constant(2) == 0, f"st.bulk stores 0, not {b.constant(2)}")
    at, sizes = shared_address(b, 0, f["space"]), b.read(1, TYPES["u64"])
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        threads = active.index
        addresses, given = at(threads), per_thread(sizes, threads)
        if (bad := given % 8 != 0).any():
            which = int(bad.argmax())
            message = f"st.bulk of {given[which]} bytes, which is no multiple of 8"
            raise execution.fault(Undefined, message, site, int(threads[which]))
        aligned = bool((addresses % _ZEROS == 0).all()) and bool((given % _ZEROS == 0).all())
        width = _ZEROS if aligned else 8
        for offset in range(0, int(given.max(initial=0)), width):
            some = given > offset
            access = AccessBatch(
                site, Space.SHARED, Kind.WRITE, threads[some], addresses[some] + np.uint64(offset), width, element=8
            )
            zeros = np.zeros((int(some.sum()), width // 8), np.uint64)
            execution.memory.store(access, 8, zeros if width > 8 else zeros[:, 0])
            execution.counters.access(access)

    return step
