"""Races on shared memory: which threads have seen which accesses.

Two accesses *conflict* if they touch a common byte of a block's shared memory, at least one writes, they are not both strong
(volatile, relaxed, acquire, release, atomic), and neither happens before the other. A write of the bytes that are there already
does not conflict with the writes before it: redundant lanes do that, and it takes their place as the last write. The detector is
precise on the schedule it sees (Flanagan and Freund, FastTrack, 2009): no alarm without two such accesses, and the first
conflict of a run is found, whether or not the order in which the emulator happens to execute would have made it visible.

What happens before what:

- A thread's own accesses are ordered.
- Lanes of one warp are ordered by a bar.warp.sync whose mask has both, and by whatever orders warps; not by being lanes of one
  warp, and not by shfl, vote, match, redux, elect or ldmatrix, which exchange registers and promise nothing about memory.
  Accesses of several lanes in one instruction are not ordered: two values for one byte is a race.
- Warps are ordered by barriers, by mbarriers (arrive releases, a successful wait acquires), by release and acquire on flags. To
  these a warp is one: what one lane releases, all have done, and what one acquires, all have seen. (Hence a lane that arrives
  for others without a bar.warp.sync before is not caught.)
- An asynchronous operation has seen what its warps had seen when they began it; a thread that waits for its completion has seen
  its accesses, which are not ordered among themselves.
- Proxies: an operation of the async proxy (wgmma, bulk copies) that meets a plain write of the generic one (st, stmatrix,
  cp.async) needs a fence.proxy.async between, executed by the writer after the write, or by a thread that has seen it since. The
  completion of an operation of the async proxy is such a fence by itself.

    st.shared [x] (warp 0);  bar.sync;  ld.shared [x] (warp 1)                  ordered
    st.shared [x] (warp 0);  ld.shared [x] (warp 1)                             race
    st.shared [x];  bar.sync;  wgmma reads [x]                                  race: no fence.proxy.async
    st.shared [x];  fence.proxy.async;  bar.sync;  wgmma reads [x]              ordered
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Race, Where
from weft.emulator.machine.active import ALL_LANES, WARP, Active, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy
from weft.emulator.memory.clocks import ALL, FENCED, Agent, Clocks, Times
from weft.emulator.memory.flags import Flags
from weft.emulator.memory.shadow import (
    ASYNC,
    COLUMN,
    COLUMNS,
    LINE,
    LOW,
    THREADS,
    TIME,
    Entries,
    History,
    LastWrites,
    Marks,
    Who,
    unseen_writes,
)
from weft.emulator.memory.tensor_clocks import TensorClocks
from weft.emulator.ptx.syntax import Instruction

__all__ = ["Agent", "NullOrder", "Order"]

Index3: TypeAlias = tuple[int, int, int]

Coordinates: TypeAlias = Callable[[int], tuple[Index3, Index3]]
"""Block and thread index of a resident thread."""


class NullOrder:
    """Sees nothing and orders nothing: what a program has whose races are not checked. `Order` has the same methods.

    Warps are numbers over all resident blocks (thread // 32), ascending and each once. One call may serve warps of many blocks:
    each block is on its own, and a key stands for an object of each block (two blocks that use one key share nothing).
    """

    active = False
    """Whether there is anything to tell: an instruction may save itself the work of describing what it does."""

    @property
    def shared(self) -> Order | None:
        """The detector for shared memory, if there is one."""
        return None

    def reset(self, blocks: int | None = None) -> None:
        """Other blocks take the place of the resident ones: ``blocks`` of them, if not as many as there is room for."""

    def observe(self, access: AccessBatch, agent: Agent | None = None) -> None:
        """Checks an access against those before it, and records it; before its values are written.
        ``agent``: who accesses, if not the threads themselves (each access is its thread's warp's operation of the agent).

        Raises: Race."""

    def barrier(self, arriving: IndexArray, leaving: IndexArray) -> None:
        """In each block, the leaving warps have seen what the arriving ones did (and their lanes each other)."""

    def synchronise(self, warps: IndexArray, mask: int = ALL_LANES) -> None:
        """The lanes of each warp that are in the mask have seen each other's accesses (bar.warp.sync)."""

    def release(self, key: Hashable, warps: IndexArray) -> None:
        """What these warps have seen and done is added to the key, for those who acquire it."""

    def release_fenced(self, key: Hashable, warps: IndexArray) -> None:
        """What these warps had seen and done at their last fence is added to the key."""

    def acquire(self, key: Hashable, warps: IndexArray) -> None:
        """These warps have seen whatever was released to the key in their block."""

    def note(self, key: Hashable, warps: IndexArray) -> None:
        """These warps will have seen, from their next fence on, whatever was released to the key in their block."""

    def forget(self, key: Hashable) -> None:
        """The key is not used any more (the phase of an mbarrier two phases ago)."""

    def communicate(self, access: AccessBatch, semantics: str = "relaxed") -> None:
        """Strong accesses to flags, in shared or global memory: ``semantics`` relaxed (volatile too), acquire, release or
        acq_rel. A release write and an acquire read of one address order what is around them; so do relaxed ones with fences."""

    def fence(self, warps: IndexArray, wide: bool = True) -> None:
        """membar, fence: relaxed accesses after it release, those before it acquire. ``wide``: between blocks, too."""

    def fence_shared(self, warps: IndexArray) -> None:
        """As `fence`, of accesses to shared memory alone."""

    def fence_async(self, warps: IndexArray) -> None:
        """fence.proxy.async: what these warps did and have seen, the async proxy may see."""

    def start(self, warps: IndexArray, together: int = 1, agent: Agent | None = None) -> Agent:
        """These warps begin asynchronous operations: each warp one of its own (cp.async, bulk copies), or with ``together`` 4
        each warpgroup one (wgmma). An operation has seen what its warps have seen.

        ``agent``: operations under way, which go on (a cp.async group of several instructions): those warps that have one in it
        continue it, having seen what they have seen now; others begin one."""
        return Agent()

    def finish(self, agent: Agent, key: Hashable = None, warps: IndexArray | None = None) -> None:
        """The accesses of operations are complete. ``key``: for whoever acquires the key; without it, for those of ``warps``
        that began them (wait_group). Only the operations of ``warps``, if given. May be said again, to others."""


class Order(NullOrder):
    """The happens-before detector for the shared memory of the resident blocks."""

    active = True

    def __init__(
        self,
        contents: NDArray[np.uint8],
        block_threads: int,
        granule: int,
        instructions: Sequence[Instruction],
        coordinates: Coordinates,
        kernel: str = "",
        parts: int = 1,
    ) -> None:
        """``contents`` (blocks, bytes) is the shared memory itself, bytes a multiple of 16; ``block_threads`` a multiple of 32,
        padding included; ``granule`` the size of the smallest access to shared memory in the program: 1, 2 or 4. The program,
        ``coordinates`` and the kernel's name are for messages. A cluster counts as a block here, with ``parts`` blocks in it."""
        blocks, self.stride = contents.shape
        self._granule = granule
        self.shift = granule.bit_length() - 1
        self._contents = contents.reshape(-1, granule)
        self._instructions = instructions
        self._coordinates = coordinates
        self._kernel = kernel
        self.clocks = Clocks(blocks, block_threads // WARP, parts)
        self.tensor: TensorClocks | None = None
        """Of a kernel that has tcgen05."""
        if any(i.opcode == "tcgen05" for i in instructions):
            self.tensor = TensorClocks(blocks, block_threads // WARP, parts)
        self._all: list[Clocks] = [self.clocks, *([self.tensor] if self.tensor else [])]
        self._flags = [Flags(clocks) for clocks in self._all]
        if blocks * block_threads > THREADS:
            raise ValueError(f"{blocks * block_threads} resident threads: races are checked for {THREADS} at most")
        threads: IndexArray = np.arange(blocks * block_threads, dtype=np.intp)
        self._warp: IndexArray = threads // WARP
        self._block: IndexArray = threads // block_threads
        self.low: Marks = (self.clocks.column_of[self._warp] << COLUMN) | threads
        self._counting: IndexArray = np.arange(max(threads.size, self._contents.shape[0]), dtype=np.intp)
        self._owner: IndexArray = np.zeros(self._contents.shape[0], np.intp)
        self._proxies = any(i.opcode == "wgmma" or "bulk" in i.modifiers for i in instructions)
        self.owned = False
        """Whether tables have owners from the next `reset` on."""
        self.reset()

    @property
    def shared(self) -> Order | None:
        return self

    def reset(self, blocks: int | None = None) -> None:
        for clocks in self._all:
            clocks.reset(blocks)
        self.writes = LastWrites(self._contents.shape[0], self.shift, self._proxies, self.owned)
        self.reads = History(self._contents.shape[0], self.shift, self.clocks.blocks, self.owned)
        self.strong_reads: History | None = None
        self.strong_writes: History | None = None
        self._sites: list[int] = [0]
        self._kinds: list[Kind] = [Kind.READ]
        for flags in self._flags:
            flags.reset()

    def _history(self) -> History:
        return History(self._contents.shape[0], self.shift, self.clocks.blocks)

    def made(self, access: AccessBatch, active: Active, flat: IndexArray) -> None:
        """Records plain accesses of active threads that were found clean (`weft.emulator.native.shared`); ``flat`` are their
        first bytes."""
        clocks = self.clocks
        clocks.now += 1
        self._sites.append(access.site)
        self._kinds.append(access.kind)
        low = self.low if active.full else self.low[active.index]
        table = self.reads if access.kind is Kind.READ else self.writes
        table.remember(Entries(access, None, flat, low, self.shift), clocks.now, clocks.common)

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def observe(self, access: AccessBatch, agent: Agent | None = None) -> None:
        if not access.threads.size:
            return
        clocks = self.clocks
        clocks.now += 1
        self._sites.append(access.site)
        self._kinds.append(access.kind)
        made = self._entries(access, agent)
        strong = access.strong or access.kind is Kind.ATOMIC
        self._check_writes(made)
        if self.strong_writes is not None and not strong:
            self._check_history(self.strong_writes, made)
        if access.kind is not Kind.READ:
            self._check_history(self.reads, made)
        if access.kind is Kind.READ or strong:
            self._note(made, strong)
            return
        if self.strong_reads is not None:
            self._check_history(self.strong_reads, made)
        if agent is None:
            self._check_values(made)
        self.writes.note(made, clocks.now, clocks.common)
        self.reads.written(made, clocks.now)

    def _entries(self, access: AccessBatch, agent: Agent | None) -> Entries:
        threads = access.threads
        flat = access.flat
        if flat is None:
            flat = self._block[threads] * self.stride + access.addresses.astype(np.intp)
        low = self.low[threads] if agent is None else (agent.columns[self._warp[threads]] << COLUMN) | threads
        return Entries(access, agent, flat, low, self.shift)

    def _who(self, made: Entries, entries: IndexArray) -> Who:
        of = made.of(entries)
        low, agent = made.low[of], made.agent
        bases = self.clocks.bases() if agent is None else self.clocks.operation_bases(agent)
        return Who(low, low >> COLUMN, bases[self._warp[made.access.threads[of]]], agent is not None)

    def _check_writes(self, made: Entries) -> None:
        """Against the last plain write."""
        writes, lines, known = self.writes, made.lines, self._least(made)
        fenced = made.agent is not None and made.access.proxy is Proxy.ASYNC
        seen = int(writes.latest.take(lines).max()) <= known[ALL]
        if seen and not (fenced and int(writes.generic.take(lines).max()) > known[FENCED]):
            return
        if writes.is_own(made, known[ALL]):
            return
        marks = writes.marks(made.granules)
        late = marks >> TIME > self._floors(made, ALL)
        if fenced:
            late |= (marks & ASYNC == 0) & (marks >> TIME > self._floors(made, FENCED))
        elif made.agent is None:  # a thread has seen its own
            late &= (marks ^ made.lows) & LOW != 0
        if (entries := late.nonzero()[0]).size:
            missed = unseen_writes(marks[entries], self._who(made, entries), self.clocks, not fenced)
            self._report(made, entries[missed], marks[entries[missed]])

    def _least(self, made: Entries) -> tuple[int, ...]:
        return self.clocks.least if made.agent is None else made.agent.least

    def _floors(self, made: Entries, row: int) -> Times:
        """What its agent is sure to have seen, of each entry."""
        known = (self.clocks.floors if made.agent is None else made.agent.floors)[row]
        if self.clocks.blocks == 1:
            return known
        floors = known[self._block[made.access.threads]]
        return floors if made.each == 1 else floors.repeat(made.each)

    def _check_history(self, history: History, made: Entries) -> None:
        floor = self._least(made)[history.floor]
        if int(history.latest.take(made.lines).max()) <= floor or history.is_own(made, floor):
            return
        entries = (history.since(made) > self._floors(made, history.floor)).nonzero()[0]
        if entries.size:
            found = history.unseen(made.granules[entries], self._who(made, entries), self.clocks)
            late = found.nonzero()[0]
            self._report(made, entries[late], found[late])

    def _note(self, made: Entries, strong: bool) -> None:
        if not strong:
            history = self.reads
        elif made.access.kind is Kind.READ:
            history = self.strong_reads = self.strong_reads or self._history()
        else:
            history = self.strong_writes = self.strong_writes or self._history()
        history.note(made, self.clocks.now, self.clocks.common)

    # ---- verdicts ----------------------------------------------------------------------------------------------------

    def _bytes(self, access: AccessBatch, entries: IndexArray) -> NDArray[np.uint8] | None:
        """What a write writes to the granules of some entries."""
        if access.values is None:
            return None
        return np.ascontiguousarray(access.values).reshape(-1, self._granule)[entries]

    def _check_values(self, made: Entries) -> None:
        """If several threads write a granule at once, the values must agree."""
        access, size = made.access, made.access.size
        whole = made.aligned and size & (size - 1) == 0 and size <= 1 << LINE
        places = made.flat >> (size.bit_length() - 1) if whole else made.granules
        if (places[1:] > places[:-1]).all():
            return
        everything = self._counting[: places.size]
        self._owner[places] = everything
        last = self._owner.take(places)
        lost = (last != everything).nonzero()[0]
        if not lost.size:
            return
        # Entries of a place, whole accesses or single granules, against those of the one that stays.
        each = made.each if whole else 1
        mine = (lost[:, None] * each + np.arange(each)).reshape(-1)
        theirs = (last[lost][:, None] * each + np.arange(each)).reshape(-1)
        one, other = access.threads[made.of(mine)], access.threads[made.of(theirs)]
        values = None if access.values is None else np.ascontiguousarray(access.values).reshape(-1, self._granule)
        differ = one != other
        if values is not None:
            differ &= (values[mine] != values[theirs]).any(axis=1)
        if differ.any():
            which = int(differ.argmax())
            granule = int(made.granules[mine[which]])
            first, second = sorted((int(one[which]), int(other[which])))
            text = (
                f"threads {self._thread(first)} and {self._thread(second)} of block {self._block_name(first)} "
                f"write different values to {self._range(granule)} in one instruction"
            )
            self._raise(text, access, second, granule)

    def _report(self, made: Entries, entries: IndexArray, marks: Marks) -> None:
        """Raises for the first entry that races with the access its mark stands for, if any does."""
        if made.access.kind is not Kind.READ and entries.size:
            # What is written is there already: forgiven, if the other is a write.
            values = self._bytes(made.access, entries)
            if values is not None:
                same = (values == self._contents[made.granules[entries]]).all(axis=1)
                wrote = np.array([self._kinds[int(mark) >> TIME] is not Kind.READ for mark in marks], np.bool_)
                entries, marks = entries[~(same & wrote)], marks[~(same & wrote)]
        if not entries.size:
            return
        thread, granule = int(made.access.threads[made.of(entries[:1])[0]]), int(made.granules[entries[0]])
        self._raise(self._message(made, thread, granule, int(marks[0])), made.access, thread, granule)

    def _message(self, made: Entries, thread: int, granule: int, mark: int) -> str:
        access, agent = made.access, made.agent
        time, column, other = mark >> TIME, (mark >> COLUMN) & (COLUMNS - 1), mark & (THREADS - 1)
        warps = self.clocks.warps
        operation = "an asynchronous operation of " if agent is not None else ""
        earlier = "an asynchronous operation of " if column >= warps else ""
        verb = {Kind.READ: "reads", Kind.WRITE: "writes", Kind.ATOMIC: "updates"}[access.kind]
        past = {Kind.READ: "read", Kind.WRITE: "wrote", Kind.ATOMIC: "updated"}[self._kinds[time]]
        site = self._sites[time]
        at = "with the same instruction before" if site == access.site else f"at {self._line(site)}"
        theirs = self._block_name(other)
        whose = "" if theirs == self._block_name(thread) else f" of block {theirs}"
        text = (
            f"{operation}thread {self._thread(thread)} of block {self._block_name(thread)} {verb} "
            f"{self._range(granule)}, which {earlier}thread {self._thread(other)}{whose} {past} {at}"
        )
        if (
            agent is not None
            and access.proxy is Proxy.ASYNC
            and not mark & ASYNC
            and self._kinds[time] is not Kind.READ
        ):
            base = int(self.clocks.operation_bases(agent)[thread // WARP])
            if time <= int(self.clocks.seen.reshape(-1)[base + column]):
                return f"{text}: a generic write that no fence.proxy.async follows"
        if column >= warps:
            return f"{text}; nothing orders them: its completion is not waited for"
        if agent is None and other // WARP == thread // WARP:
            return f"{text}; nothing orders them: a bar.warp.sync or a barrier is missing between"
        return f"{text}; nothing orders them: a barrier is missing between"

    def _raise(self, text: str, access: AccessBatch, thread: int, granule: int) -> NoReturn:
        block, within = self._coordinates(thread)
        address = f"0x{self._address(granule):x} of {self._owner_name(granule)} shared memory"
        raise Race(text, Where(self._kernel, self._instructions[access.site], block, within, address))

    def _address(self, granule: int) -> int:
        return (granule << self.shift) % (self.stride // self.clocks.parts)

    def _owner_name(self, granule: int) -> str:
        """Whose shared memory a granule is in: of the block, or of which block of a cluster."""
        if self.clocks.parts == 1:
            return "the block's"
        rank = (granule << self.shift) % self.stride // (self.stride // self.clocks.parts)
        return f"the cluster's block {rank}'s"

    def _range(self, granule: int) -> str:
        first = self._address(granule)
        return f"shared 0x{first:x}" + (f"..0x{first + self._granule - 1:x}" if self._granule > 1 else "")

    def _thread(self, thread: int) -> str:
        return str(self._coordinates(thread)[1])

    def _block_name(self, thread: int) -> str:
        return str(self._coordinates(thread)[0])

    def _line(self, site: int) -> str:
        instruction = self._instructions[site]
        source = f" (source {instruction.source})" if instruction.source is not None else ""
        return f"PTX line {instruction.line}{source}"

    # ---- synchronisation ---------------------------------------------------------------------------------------------

    def barrier(self, arriving: IndexArray, leaving: IndexArray) -> None:
        for clocks in self._all:
            clocks.meet(arriving, leaving)

    def synchronise(self, warps: IndexArray, mask: int = ALL_LANES) -> None:
        self.clocks.synchronise(warps, mask)

    def release(self, key: Hashable, warps: IndexArray) -> None:
        for clocks in self._all:
            clocks.release(key, warps)

    def release_fenced(self, key: Hashable, warps: IndexArray) -> None:
        for clocks in self._all:
            clocks.release_fenced(key, warps)

    def acquire(self, key: Hashable, warps: IndexArray) -> None:
        for clocks in self._all:
            clocks.acquire(key, warps)

    def note(self, key: Hashable, warps: IndexArray) -> None:
        for clocks in self._all:
            clocks.note(key, warps)

    def forget(self, key: Hashable) -> None:
        for clocks in self._all:
            clocks.forget(key)

    def communicate(self, access: AccessBatch, semantics: str = "relaxed") -> None:
        for flags in self._flags:
            flags.communicate(access, self._warp[access.threads], semantics)

    def fence(self, warps: IndexArray, wide: bool = True) -> None:
        for clocks in self._all:
            clocks.fence(warps)

    def fence_shared(self, warps: IndexArray) -> None:
        self.clocks.fence(warps)

    def fence_async(self, warps: IndexArray) -> None:
        self.clocks.fence_async(warps)

    def start(self, warps: IndexArray, together: int = 1, agent: Agent | None = None) -> Agent:
        agent = self.clocks.start(warps, together, agent)
        if self.clocks.columns > COLUMNS:
            raise ValueError(f"more than {COLUMNS} asynchronous operations of a block that no thread has waited for")
        return agent

    def finish(self, agent: Agent, key: Hashable = None, warps: IndexArray | None = None) -> None:
        self.clocks.finish(agent, key, warps)
