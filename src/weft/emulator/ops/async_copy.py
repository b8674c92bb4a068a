"""cp.async: copies from global to shared memory, thread by thread, and the groups they are waited for in (PTX ISA 9.7.10.28.3).

The copy is done when the instruction is executed. The result is the same as on hardware if every thread waits before it reads,
and the race detector checks that it does. To the detector a copy is an operation of its own, and the thread has seen its end
only after it has waited. A program that does not wait therefore ends with a fault, although it would compute the right numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.ops.async_groups import Groups
from weft.emulator.ops.forms import form
from weft.emulator.ops.mbarrier import LOCAL, U32, Locate, keys, shared_address, update
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.syntax import Not
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

KIND: Final = "cp.async"

HINTS: Final = {"hint": "? L2::cache_hint", "prefetch": "? L2::64B L2::128B L2::256B"}
"""Modifiers of copies that change nothing but speed."""


POLICY: Final = "a cache policy is given where there is .L2::cache_hint, and only there"
OPERANDS: Final = "the number of operands is not what the modifiers ask for"


def check_policy(b: Binding, hint: str, operand: int) -> None:
    """A cache policy is a 64-bit operand, there exactly where ``.L2::cache_hint`` is; it changes nothing. It is the last operand,
    number ``operand``."""
    b.require(
        len(b.operands) == operand + bool(hint), POLICY if len(b.operands) in (operand, operand + 1) else OPERANDS
    )
    if hint:
        b.read(operand, TYPES["b64"])


@instruction("cp.async")
def _copy(b: Binding) -> Step:
    f = form(b, op="async", cache="ca cg", to="shared shared::cta", source="global", **HINTS)
    given = min(max(b.count(3, 4, 5) - bool(f["hint"]), 3), 4)
    check_policy(b, f["hint"], given)
    size = b.constant(2)
    sizes = (16,) if f["cache"] == "cg" else (4, 8, 16)
    b.require(size in sizes, f"cp.async.{f['cache']} copies {' or '.join(map(str, sizes))} bytes, not {size}")
    to, source = shared_address(b, 0, f["to"]), b.address(1, Space.GLOBAL)
    bytes_of = _source_sizes(b, size) if given == 4 else None
    execution, site = b.execution, b.site
    width = min(size, 8)

    def step(active: Active) -> None:
        threads = active.index
        addresses = source()[threads]
        sizes = None if bytes_of is None else bytes_of(threads)
        if sizes is None or int(sizes.min()) == size:
            read = AccessBatch(site, Space.GLOBAL, Kind.READ, threads, addresses, size)
            values: NDArray[Any] = execution.memory.load(read, width)
            execution.counters.access(read)
        else:
            values = _partly(b, threads, addresses, sizes, size).view(f"u{width}")
        access = AccessBatch(site, Space.SHARED, Kind.WRITE, threads, to(threads), size)
        if execution.order.active:
            access.agent = Groups.of(execution, KIND).begin(active)
        execution.memory.store(access, width, values)
        execution.counters.access(access)

    return step


def _source_sizes(b: Binding, size: int) -> Callable[[IndexArray], NDArray[np.int64]]:
    """How many bytes each thread reads: the operand src-size, or none where the predicate ignore-src holds."""
    execution, site = b.execution, b.site
    kind = b.register_type(3)
    if isinstance(b.operand(3), Not) or (kind is not None and kind.kind == "pred"):
        ignored = b.predicate(3)

        def kept(threads: IndexArray) -> NDArray[np.int64]:
            return np.where(ignored()[threads], 0, size)

        return kept
    sizes = b.read(3, U32)

    def checked(threads: IndexArray) -> NDArray[np.int64]:
        given = np.broadcast_to(sizes, (execution.threads,))[threads].astype(np.int64)
        if (bad := given > size).any():
            which = int(bad.argmax())
            message = f"cp.async of {size} bytes with a src-size of {given[which]}"
            raise execution.fault(Undefined, message, site, int(threads[which]))
        return given

    return checked


def _partly(
    b: Binding, threads: IndexArray, addresses: NDArray[np.uint64], sizes: NDArray[np.int64], size: int
) -> NDArray[np.uint8]:
    """The bytes copied where threads read so many of them: the others are zero, and are not read."""
    values = np.zeros((threads.size, size), np.uint8)
    for length in np.unique(sizes).tolist():
        if length:
            of = (sizes == length).nonzero()[0]
            read = AccessBatch(b.site, Space.GLOBAL, Kind.READ, threads[of], addresses[of], length, alignment=size)
            values[of, :length] = b.execution.memory.read(read)
            b.execution.counters.access(read)
    return values


@instruction("cp.async.commit_group")
def _commit(b: Binding) -> Step:
    form(b, op="async", what="commit_group")
    b.count(0)
    execution = b.execution
    return lambda active: Groups.of(execution, KIND).commit(active) if execution.order.active else None


@instruction("cp.async.wait_group")
def _wait(b: Binding) -> Step:
    form(b, op="async", what="wait_group")
    b.count(1)
    pending, execution = b.constant(0), b.execution
    b.require(pending >= 0, f"cp.async.wait_group of {pending} groups")
    return lambda active: Groups.of(execution, KIND).wait(active, pending) if execution.order.active else None


@instruction("cp.async.wait_all")
def _wait_all(b: Binding) -> Step:
    form(b, op="async", what="wait_all")
    b.count(0)
    execution = b.execution

    def step(active: Active) -> None:
        if execution.order.active:
            groups = Groups.of(execution, KIND)
            groups.commit(active)
            groups.wait(active, 0)

    return step


@instruction("cp.async.mbarrier.arrive")
def _arrive(b: Binding) -> Step:
    """The copies are complete, so the arrival is now. Without ``.noinc`` the phase waits for one arrival more, which this is."""
    f = form(b, op="async", what="mbarrier", how="arrive", increment="? noinc", space=LOCAL, type="b64")
    b.count(1)
    locate: Locate = shared_address(b, 0, f["space"])
    arrivals = 1 if f["increment"] else 0
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        threads = active.index
        _, phase = update(execution, site, threads, locate(threads), arrivals=arrivals)
        if execution.order.active:
            groups = Groups.of(execution, KIND)
            for key, which in keys(phase):
                groups.signal(threads[which], key)

    return step
