"""mbarrier objects: threads arrive, and bytes of copies are expected and completed (PTX ISA 9.7.15.16).

What an operation does to an object is `weft.emulator.arith.mbarrier_word`; this module says which threads do it, and what
other threads have seen afterwards. How threads wait is `weft.emulator.ops.mbarrier_wait`.

Order. An arrival with release semantics releases what its warp has done to the phase it arrives in, a completed copy releases its
writes, and a wait that is answered "complete" acquires. Relaxed ones do so with fences around them. The key of a phase is the
object's address and the phase's parity: when a phase begins, the one before the last is long acquired.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.mbarrier_word import (
    MOST,
    Counts,
    Object,
    Words,
    countable,
    initial,
    parity,
    pending,
    plural,
    valid,
)
from weft.emulator.errors import Fault, Undefined, Uninitialised
from weft.emulator.machine.active import Active, IndexArray, Mask
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.memory.order import Agent
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction, masked
from weft.emulator.ptx.syntax import Operand, Sink
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

U32: Final = TYPES["u32"]
U64: Final = TYPES["u64"]

LOCAL: Final = "? shared shared::cta"
"""The state spaces of objects of one's own block; none is a generic address."""

ANY: Final = LOCAL + " shared::cluster"
"""And those of objects of the cluster's blocks."""

SCOPE: Final = "? cta cluster"
LAYOUT: Final = "? layout::v0"

NO_OBJECT: Final = "an mbarrier that was never initialised, or was invalidated or overwritten since"

Locate = Callable[[IndexArray], NDArray[np.uint64]]
"""The shared-memory addresses of these threads' operand."""


@dataclass(frozen=True)
class Phase:
    """The phases that threads' objects are in."""

    addresses: NDArray[np.uint64]
    parity: Counts


def shared_address(b: Binding, operand: int | Operand, space: str) -> Locate:
    """How threads find an operand in shared memory: ``space`` is the instruction's modifier, "" for a generic address."""
    execution, site = b.execution, b.site
    if space:
        explicit = b.address(operand, Space.SHARED)
        return lambda threads: explicit()[threads]
    generic = b.address(operand)
    name = b.instruction.opcode

    def resolve(threads: IndexArray) -> NDArray[np.uint64]:
        addresses = generic()[threads]
        found = execution.memory.resolve(addresses)
        if len(found) == 1 and found[0][0] is Space.SHARED:
            return found[0][2]
        wrong, where, _ = next(entry for entry in found if entry[0] is not Space.SHARED)
        which = 0 if where is None else int(where[0])
        message = f"{name} of an address that is not in shared memory but in {wrong.value} memory"
        raise execution.fault(Undefined, message, site, int(threads[which]), f"0x{int(addresses[which]):x}")

    return resolve


def per_thread(values: NDArray[Any], threads: IndexArray) -> NDArray[np.int64]:
    """An operand's value for each of the threads: it is a register's array, or a constant."""
    if values.ndim == 0:
        return np.full(threads.size, int(values), np.int64)
    return values[threads].astype(np.int64)


def load(
    execution: Execution, site: int, threads: IndexArray, addresses: NDArray[np.uint64], kind: Kind
) -> tuple[IndexArray, Words]:
    """The threads' objects, checked to be some: where they are in the arena of shared memory, and their words."""
    access = AccessBatch(site, Space.SHARED, kind, threads, addresses, 8, strong=True)
    try:
        words: Words = execution.memory.load(access, 8)
    except Uninitialised as error:
        raise Undefined(NO_OBJECT, error.where) from None
    good = valid(words)
    if not good.all():
        raise fault(execution, NO_OBJECT, site, threads, addresses, int((~good).argmax()))
    flat = access.flat
    assert flat is not None
    return flat, words


def fault(
    execution: Execution, message: str, site: int, threads: IndexArray, addresses: NDArray[np.uint64], which: int
) -> Fault:
    """Undefined behaviour of one of the threads at its object."""
    address = execution.memory.describe(Space.SHARED, int(addresses[which]))
    return execution.fault(Undefined, message, site, int(threads[which]), address)


def phases(execution: Execution) -> NDArray[np.int32]:
    """How many phases the object at each eight bytes of shared memory has completed since it was initialised."""
    return execution.extra("mbarrier phases", lambda: np.zeros(execution.memory.shared.bytes.size // 8, np.int32))


def update(
    execution: Execution,
    site: int,
    threads: IndexArray,
    addresses: NDArray[np.uint64],
    *,
    arrivals: NDArray[np.int64] | int = 0,
    drop: bool = False,
    transactions: NDArray[np.int64] | int = 0,
    release: bool | None = None,
    may_complete: bool = True,
) -> tuple[Words, Phase]:
    """Lanes arrive (and, with ``drop``, leave for good), and wait for more bytes (or fewer): one entry for each of ``threads``.
    ``release``: what they have done; if false what they had done at their last fence, if None nothing.

    Returns the words each found, and the phases they were in.
    """
    flat, words = load(execution, site, threads, addresses, Kind.ATOMIC)
    phase = Phase(addresses, parity(words))
    if release is not None and execution.order.active:
        tell = execution.order.release if release else execution.order.release_fenced
        for key, which in keys(phase):
            tell(key, np.unique(execution.warp[threads[which]]))
    order, starts = _by_object(flat)
    heads = order[starts]
    ends = np.append(starts[1:], order.size)
    arriving = _totals(arrivals, order, starts, ends)
    more = _totals(transactions, order, starts, ends)
    completed: list[int] = []
    after: list[int] = []
    for i, word in enumerate(words[heads].tolist()):
        was, leaving = Object.unpack(word), arriving[i] if drop else 0
        if problem := was.wrong(arriving[i], leaving, more[i]):
            raise fault(execution, problem, site, threads, addresses, int(heads[i]))
        now, done = was.after(arriving[i], leaving, more[i])
        after.append(now.pack())
        if done:
            completed.append(i)
    if completed:
        if execution.order.active:
            _settle(
                execution, threads[heads[completed]], Phase(addresses[heads[completed]], phase.parity[heads[completed]])
            )
        if not may_complete:
            name = execution.program.instructions[site].name
            message = f"{name} completes the phase, which .noComplete says it does not"
            raise fault(execution, message, site, threads, addresses, int(heads[completed[0]]))
        phases(execution)[flat[heads[completed]] // 8] += 1
        execution.stir()
    execution.memory.shared.scatter(flat[heads], 8, np.array(after, np.uint64))
    return words, phase


class Tracked:
    """The copies whose end is a phase of an mbarrier: those that a warp begins for one phase, one after the other, are one
    operation to the race detector, which ends when the phase does."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.copies: dict[Hashable, tuple[Agent, Mask]] = {}
        """By phase: the operations, and which warps have one that goes on."""

    @classmethod
    def of(cls, execution: Execution) -> Tracked:
        """Those of the resident blocks."""
        return execution.extra("tracked copies", lambda: cls(execution))

    def begin(self, threads: IndexArray, key: Hashable) -> Agent:
        """The threads begin copies that complete in the phases of their clusters that have this key."""
        warps = np.unique(self.execution.warp[threads])
        agent, going = self.copies.get(key) or (None, np.zeros(self.execution.warps, np.bool_))
        agent = self.execution.order.start(warps, agent=agent)
        going[warps] = True
        self.copies[key] = agent, going
        return agent

    def end(self, blocks: IndexArray, key: Hashable) -> None:
        """A phase of objects of these blocks' clusters is complete."""
        if (found := self.copies.get(key)) is None:
            return
        agent, going = found
        size = self.execution.grid.cluster_size
        ending = np.zeros((self.execution.blocks // size, size * self.execution.block_warps), np.bool_)
        ending[blocks // size] = True
        warps = (going & ending.reshape(-1)).nonzero()[0]
        if warps.size:
            self.execution.order.finish(agent, key, warps)
            going[warps] = False
            if not going.any():
                del self.copies[key]


def by_phase(
    execution: Execution, threads: IndexArray, addresses: NDArray[np.uint64]
) -> list[tuple[Hashable, IndexArray]]:
    """The phases that the objects at these addresses are in, as `keys`. Addresses of no object are for others to find."""
    memory = execution.memory
    words = memory.shared.gather(memory.shared_places(threads, addresses, 8), 8, 8)
    return keys(Phase(addresses, parity(words)))


def _settle(execution: Execution, threads: IndexArray, phase: Phase) -> None:
    """These threads' phases are complete, and so are the copies that they track."""
    tracked = Tracked.of(execution)
    if tracked.copies:
        for key, which in keys(phase):
            tracked.end(execution.block[threads[which]], key)


def keys(phase: Phase) -> list[tuple[Hashable, IndexArray]]:
    """The keys of the threads' phases, for `NullOrder`, and which of the threads each is of. Blocks share keys, not objects."""
    both = phase.addresses.astype(np.int64) * 2 + phase.parity
    order, starts = _by_object(both)
    parts = [order] if starts.size == 1 else [np.sort(part) for part in np.split(order, starts[1:])]
    return [(("mbarrier", *divmod(int(both[which[0]]), 2)), which) for which in parts]


def _by_object(places: NDArray[Any]) -> tuple[IndexArray, IndexArray]:
    """The lanes in the order of their places, at each place ascending; and where in that order each place begins."""
    if places.size == 1 or (places == places[0]).all():
        return np.arange(places.size), np.zeros(1, np.intp)
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    return order, np.concatenate(([0], (ordered[1:] != ordered[:-1]).nonzero()[0] + 1))


def _totals(values: NDArray[np.int64] | int, order: IndexArray, starts: IndexArray, ends: IndexArray) -> list[int]:
    """The sum of each place's values."""
    if isinstance(values, int):
        return (values * (ends - starts)).tolist()
    return np.add.reduceat(values[order], starts).tolist()


def _tokens(words: Words, places: NDArray[Any], arrivals: Counts) -> Words:
    """What each lane found, as if they had come one after the other: less the arrivals of those before it at its place."""
    order, starts = _by_object(places)
    mine = arrivals[order]
    running = np.cumsum(mine) - mine
    lanes = np.diff(np.append(starts, order.size))
    found = words.copy()
    found[order] -= (running - np.repeat(running[starts], lanes)).astype(np.uint64)
    return found


# ---- init, inval ----------------------------------------------------------------------------------------------------


@instruction("mbarrier.init")
def _init(b: Binding) -> Step:
    f = form(b, op="init", layout=LAYOUT, space=LOCAL, type="b64")
    b.count(2)
    locate, counts = shared_address(b, 0, f["space"]), b.read(1, U32)
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        threads = active.index
        addresses = locate(threads)
        count = per_thread(counts, threads)
        if (bad := ~countable(count)).any():
            which = int(bad.argmax())
            message = f"an mbarrier that expects {plural(count[which], 'arrival')}; it may expect 1 to {MOST}"
            raise fault(execution, message, site, threads, addresses, which)
        access = AccessBatch(site, Space.SHARED, Kind.WRITE, threads, addresses, 8)
        execution.memory.store(access, 8, initial(count))
        assert access.flat is not None
        phases(execution)[access.flat // 8] = 0

    return step


@instruction("mbarrier.inval")
def _inval(b: Binding) -> Step:
    """Strong, as what other threads do with the object is: cuda::pipeline invalidates after a match.sync of the warp whose other
    lanes have waited. Whoever uses the object later finds none, and plain accesses to its memory are ordered as ever."""
    f = form(b, op="inval", space=LOCAL, type="b64")
    b.count(1)
    locate = shared_address(b, 0, f["space"])
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        threads = active.index
        addresses = locate(threads)
        load(execution, site, threads, addresses, Kind.ATOMIC)
        access = AccessBatch(site, Space.SHARED, Kind.WRITE, threads, addresses, 8, strong=True)
        execution.memory.store(access, 8, np.zeros(threads.size, np.uint64))

    return step


# ---- arrivals and bytes ---------------------------------------------------------------------------------------------


@instruction("mbarrier.arrive", "mbarrier.arrive_drop")
def _arrive(b: Binding) -> Step:
    f = form(
        b,
        op="arrive arrive_drop",
        expect="? expect_tx",
        no_complete="? noComplete",
        semantics="? release relaxed",
        scope=SCOPE,
        space=ANY,
        type="b64",
    )
    expect, no_complete = bool(f["expect"]), bool(f["no_complete"])
    b.require(not (expect and no_complete), ".expect_tx and .noComplete exclude each other")
    given = b.count(3) if expect or no_complete else b.count(2, 3)
    cluster_sink = f["space"] != "shared::cluster" or isinstance(b.operand(0), Sink)
    b.require(cluster_sink, "an arrival at .shared::cluster has no state; its first operand must be _")
    locate = shared_address(b, 1, f["space"])
    amounts = b.read(2, U32) if given == 3 else np.array(1)
    tokens = None if isinstance(b.operand(0), Sink) else b.write(0, U64)
    drop, release = f["op"] == "arrive_drop", f["semantics"] != "relaxed"
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        threads = active.index
        addresses = locate(threads)
        amount = per_thread(amounts, threads)
        if not expect and (bad := ~countable(amount)).any():
            which = int(bad.argmax())
            message = f"{plural(amount[which], 'arrival')} at once; there may be 1 to {MOST}"
            raise fault(execution, message, site, threads, addresses, which)
        found, _ = update(
            execution,
            site,
            threads,
            addresses,
            arrivals=1 if expect else amount,
            drop=drop,
            transactions=amount if expect else 0,
            release=release,
            may_complete=not no_complete,
        )
        if tokens is not None:
            blocks = addresses.astype(np.int64) + (execution.block[threads] << 32)
            tokens[threads] = _tokens(found, blocks, np.ones_like(amount) if expect else amount)

    return step


@instruction("mbarrier.expect_tx", "mbarrier.complete_tx")
def _transactions(b: Binding) -> Step:
    f = form(b, op="expect_tx complete_tx", semantics="? relaxed", scope=SCOPE, space=ANY, type="b64")
    b.count(2)
    locate, amounts = shared_address(b, 0, f["space"]), b.read(1, U32)
    sign = 1 if f["op"] == "expect_tx" else -1
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        threads = active.index
        update(execution, site, threads, locate(threads), transactions=sign * per_thread(amounts, threads))

    return step


@instruction("mbarrier.pending_count")
def _pending_count(b: Binding) -> Step:
    form(b, op="pending_count", layout=LAYOUT, type="b64")
    b.count(2)
    counts, tokens = b.write(0, U32), np.broadcast_to(b.read(1, U64), (b.execution.threads,))

    def step(active: Active) -> None:
        masked(counts, pending(tokens), active)

    return step
