"""The race detector against its definition: sets of accesses instead of clocks, every pair compared, on random traces."""

from __future__ import annotations

import random
import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from weft.emulator.errors import Race
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.memory.order import Agent, NullOrder, Order
from weft.emulator.ptx.syntax import Instruction, Source

WARP = 32
BYTES = 16
"""Of shared memory that traces use."""


def instructions(proxies: bool = True) -> list[Instruction]:
    """Instruction i is line 10 + i of the PTX, from line 100 + i of k.cu; with ``proxies`` the last one is of the async proxy."""
    opcodes = ["st"] * 63 + ["wgmma" if proxies else "st"]
    return [Instruction(o, (), (), None, 10 + i, Source("k.cu", 100 + i), f"st {i}") for i, o in enumerate(opcodes)]


def detector(
    blocks: int = 1, warps: int = 2, granule: int = 4, proxies: bool = True
) -> tuple[Order, np.ndarray[Any, Any]]:
    contents = np.zeros((blocks, 256), np.uint8)
    threads = warps * WARP

    def coordinates(thread: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        return (thread // threads, 0, 0), (thread % threads, 0, 0)

    return Order(contents, threads, granule, instructions(proxies), coordinates, "test"), contents


def access(
    kind: Kind,
    threads: list[int],
    addresses: list[int],
    size: int = 4,
    site: int = 0,
    values: list[int] | None = None,
    strong: bool = False,
    proxy: Proxy = Proxy.GENERIC,
) -> AccessBatch:
    data = None if values is None else np.array(values, np.uint8)[:, None].repeat(size, axis=1)
    where = np.array(addresses, np.uint64)
    return AccessBatch(site, Space.SHARED, kind, np.array(threads), where, size, proxy, data, strong=strong)


def warps(*numbers: int) -> Any:
    return np.array(numbers, np.intp)


# ---- the definition ------------------------------------------------------------------------------------------------


@dataclass
class Past:
    """An access that was made."""

    number: int
    """Of the instruction and its agent."""
    thread: int
    agent: Hashable
    kind: Kind
    strong: bool
    generic: bool


@dataclass
class Operation:
    seen: set[int]
    fenced: set[int]
    owner: Hashable
    done: bool = False
    made: set[int] = field(default_factory=set[int])


class Definition:
    """What `Order` says it finds, with sets of the numbers of accesses: ``seen`` of each warp is all it has seen."""

    def __init__(self, blocks: int, warps: int, granule: int) -> None:
        self.warps = warps
        self.granule = granule
        self.seen: list[set[int]] = [set() for _ in range(blocks * warps)]
        self.fenced: list[set[int]] = [set() for _ in range(blocks * warps)]
        self.made: list[set[int]] = [set() for _ in range(blocks * warps)]
        self.keys: dict[Hashable, tuple[set[int], set[int]]] = {}
        self.history: dict[tuple[int, int], list[Past]] = {}
        self.contents: dict[tuple[int, int], bytes] = {}
        self.next = 1

    def all_of(self, warp: int) -> set[int]:
        return self.seen[warp] | self.made[warp]

    def block(self, warp: int) -> int:
        return warp // self.warps

    # An access -----------------------------------------------------------------------------------------------------

    def races(self, a: AccessBatch, operations: dict[int, Operation] | None) -> set[int]:
        """The threads of the accesses it races with; all are made after it."""
        found: set[int] = set()
        strong = a.strong or a.kind is Kind.ATOMIC
        writers: dict[tuple[int, int], dict[int, bytes | None]] = {}
        for thread, granule, data in self.entries(a):
            place = self.block(thread // WARP), granule
            operation = None if operations is None else operations[thread // WARP]
            for past in self.history.get(place, ()):
                if Kind.READ is a.kind is past.kind or (strong and past.strong):
                    continue
                if self.ordered(past, thread, operation, a.proxy):
                    continue
                wrote = a.kind is not Kind.READ and past.kind is not Kind.READ
                if wrote and data is not None and data == self.contents.get(place, bytes(self.granule)):
                    continue
                found.add(past.thread)
            if a.kind is Kind.WRITE and not strong and operations is None:
                writers.setdefault(place, {})[thread] = data
        for values in writers.values():
            if len(set(values.values())) > 1:
                found.update(values)
        return found

    def ordered(self, past: Past, thread: int, operation: Operation | None, proxy: Proxy) -> bool:
        if operation is None:
            mine = not isinstance(past.agent, int) and past.agent == ("thread", thread)
            return mine or past.number in self.seen[thread // WARP]
        if past.number in operation.made:
            return True
        needs_fence = proxy is Proxy.ASYNC and past.kind is not Kind.READ and past.generic and not past.strong
        return past.number in (operation.fenced if needs_fence else operation.seen)

    def entries(self, a: AccessBatch) -> list[tuple[int, int, bytes | None]]:
        found: list[tuple[int, int, bytes | None]] = []
        for i, thread in enumerate(a.threads.tolist()):
            for k in range(a.size // self.granule):
                data = None
                if a.values is not None:
                    data = a.values[i, k * self.granule : (k + 1) * self.granule].tobytes()
                found.append((thread, int(a.addresses[i]) // self.granule + k, data))
        return found

    def record(self, a: AccessBatch, operations: dict[int, Operation] | None) -> None:
        strong = a.strong or a.kind is Kind.ATOMIC
        last: dict[tuple[int, int], tuple[int, bytes | None]] = {}
        for thread, granule, data in self.entries(a):
            place = self.block(thread // WARP), granule
            if a.kind is Kind.WRITE and not strong:
                last[place] = thread, data
            else:
                self.add(place, thread, a, strong, operations)
        forgiven = {place for place, (_, data) in last.items() if data == self.contents.get(place, bytes(self.granule))}
        for place in forgiven:
            # A write of what is there takes the place of the plain writes before it.
            kept = self.history.get(place, [])
            self.history[place] = [p for p in kept if p.kind is Kind.READ or p.strong]
        for place, (thread, _) in last.items():
            self.add(place, thread, a, strong, operations)
        for thread, granule, data in self.entries(a):
            if a.kind is Kind.WRITE and data is not None:
                self.contents[self.block(thread // WARP), granule] = data
        self.next += 1

    def add(
        self, place: tuple[int, int], thread: int, a: AccessBatch, strong: bool, operations: dict[int, Operation] | None
    ) -> None:
        warp = thread // WARP
        if operations is None:
            agent: Hashable = ("thread", thread)
            number = self.next * 1000 + warp
            self.made[warp].add(number)
        else:
            agent = ("operation", id(operations[warp]))
            number = self.next * 1000 + 500 + warp
            operations[warp].made.add(number)
        past = Past(number, thread, agent, a.kind, strong, a.proxy is Proxy.GENERIC)
        self.history.setdefault(place, []).append(past)

    # Synchronisation -----------------------------------------------------------------------------------------------

    def barrier(self, arriving: list[int], leaving: list[int]) -> None:
        for block in {self.block(w) for w in leaving}:
            came = [w for w in arriving if self.block(w) == block]
            seen = set[int]().union(*(self.all_of(w) for w in came))
            fenced = set[int]().union(*(self.fenced[w] for w in came))
            for w in leaving:
                if self.block(w) == block:
                    self.seen[w] |= seen
                    self.fenced[w] |= fenced

    def synchronise(self, which: list[int]) -> None:
        for w in which:
            self.seen[w] |= self.made[w]

    def give(self, key: Hashable, seen: set[int], fenced: set[int]) -> None:
        old = self.keys.get(key, (set(), set()))
        self.keys[key] = old[0] | seen, old[1] | fenced

    def release(self, key: Hashable, which: list[int]) -> None:
        for w in which:
            self.give((self.block(w), key), self.all_of(w), self.fenced[w])

    def acquire(self, key: Hashable, which: list[int]) -> None:
        for w in which:
            seen, fenced = self.keys.get((self.block(w), key), (set[int](), set[int]()))
            self.seen[w] |= seen
            self.fenced[w] |= fenced

    def fence_async(self, which: list[int]) -> None:
        for w in which:
            self.fenced[w] |= self.all_of(w)

    def start(self, which: list[int], together: int, old: dict[int, Operation] | None) -> dict[int, Operation]:
        operations = dict(old or {})
        groups: dict[tuple[int, int], list[int]] = {}
        for w in which:
            groups.setdefault((self.block(w), w % self.warps // together), []).append(w)
        for members in groups.values():
            operation = operations.get(members[0])
            if operation is None or operation.done:
                operation = Operation(set(), set(), None)
            for w in members:
                operation.seen |= self.all_of(w)
                operation.fenced |= self.fenced[w]
                operations[w] = operation
        return operations

    def finish(self, operations: dict[int, Operation], key: Hashable, which: list[int] | None) -> None:
        for w in operations if which is None else which:
            operation = operations.get(w)
            if operation is None:
                continue
            operation.done = True
            seen = operation.seen | operation.made
            if key is not None:
                self.give((self.block(w), key), seen, operation.fenced)
            elif which is not None:
                self.seen[w] |= seen
                self.fenced[w] |= operation.fenced


# ---- traces --------------------------------------------------------------------------------------------------------


class Trace:
    """A random trace, given to both. An access that races is refused by both, and is as if it had not been made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.blocks, self.warps = self.random.choice([(1, 1), (1, 2), (2, 2), (1, 4), (2, 4)])
        self.granule = self.random.choice([1, 2, 4])
        self.proxies = self.random.random() < 0.7
        self.order, self.contents = detector(self.blocks, self.warps, self.granule, self.proxies)
        self.definition = Definition(self.blocks, self.warps, self.granule)
        self.agents: list[tuple[Agent, dict[int, Operation]]] = []
        self.races = 0
        self.accesses = 0
        self.last: AccessBatch | None = None

    def run(self, length: int) -> None:
        """So many events."""
        for _ in range(length):
            event = self.random.choices(
                [self.access, self.barrier, self.synchronise, self.key, self.fence, self.start, self.finish],
                [60, 6, 8, 10, 6, 8, 8],
            )[0]
            event()

    def some_warps(self) -> list[int]:
        everyone = range(self.blocks * self.warps)
        count = self.random.choice([1, 1, 2, len(everyone)])
        return sorted(self.random.sample(everyone, min(count, len(everyone))))

    def access(self) -> None:
        r = self.random
        kind = r.choices([Kind.READ, Kind.WRITE, Kind.ATOMIC], [5, 4, 1])[0]
        strong = kind is Kind.ATOMIC or r.random() < 0.1
        operations: dict[int, Operation] | None = None
        agent: Agent | None = None
        proxy = Proxy.GENERIC
        live = [(a, {w: o for w, o in ops.items() if not o.done}) for a, ops in self.agents]
        live = [(a, ops) for a, ops in live if ops]
        if live and kind is not Kind.ATOMIC and r.random() < 0.4:
            agent, operations = r.choice(live)
            if self.proxies and [a is agent for a, _ in self.agents].index(True) % 2:
                proxy = Proxy.ASYNC
            strong = False
        able = sorted(operations) if operations is not None else list(range(self.blocks * self.warps))
        count = r.choice([1, 1, 1, 2, 3])
        lanes = [r.choice(able) * WARP + r.randrange(3) for _ in range(count)]
        threads = sorted(set(lanes))
        size = r.choice([s for s in (1, 2, 4, 8) if s >= self.granule])
        addresses = [r.randrange(BYTES // size) * size for _ in threads]
        values = None
        if kind is Kind.WRITE:
            values = [r.randrange(2) for _ in threads]
        a = access(kind, threads, addresses, size, r.randrange(64), values, strong, proxy)
        if self.last is not None and agent is None and r.random() < 0.2:  # once more, as in a loop
            old = self.last
            threads, addresses, size = old.threads.tolist(), old.addresses.tolist(), old.size
            values = None if old.values is None else [r.randrange(2) for _ in threads]
            a = access(old.kind, threads, addresses, size, old.site, values, old.strong)
        if agent is None:
            self.last = a
        expected = self.definition.races(a, operations)
        self.accesses += 1
        if expected:
            self.races += 1
            with pytest.raises(Race) as caught:
                self.order.observe(a, agent)
            named = re.findall(r"thread \((\d+), 0, 0\)", str(caught.value).replace("threads", "thread"))
            more = re.findall(r"and \((\d+), 0, 0\)", str(caught.value))
            per_block = self.warps * WARP
            assert {int(n) for n in (*named, *more)} & {t % per_block for t in expected}
            return
        self.order.observe(a, agent)
        self.definition.record(a, operations)
        if a.values is not None:
            for thread, address, data in zip(threads, addresses, a.values, strict=True):
                self.contents[thread // WARP // self.warps, address : address + size] = data

    def barrier(self) -> None:
        r = self.random
        if r.random() < 0.6:
            blocks = [b for b in range(self.blocks) if r.random() < 0.7]
            arriving = leaving = [w for w in range(self.blocks * self.warps) if w // self.warps in blocks]
        else:
            arriving = self.some_warps()
            leaving = [w for w in arriving if r.random() < 0.7]
        if arriving:
            self.order.barrier(warps(*arriving), warps(*leaving))
            self.definition.barrier(arriving, leaving)

    def synchronise(self) -> None:
        which = self.some_warps()
        self.order.synchronise(warps(*which))
        self.definition.synchronise(which)

    def key(self) -> None:
        which, key = self.some_warps(), self.random.randrange(3)
        if self.random.random() < 0.5:
            self.order.release(key, warps(*which))
            self.definition.release(key, which)
        else:
            self.order.acquire(key, warps(*which))
            self.definition.acquire(key, which)

    def fence(self) -> None:
        which = self.some_warps()
        self.order.fence_async(warps(*which))
        self.definition.fence_async(which)

    def start(self) -> None:
        r = self.random
        together = 2 if self.warps >= 2 and r.random() < 0.3 else 1
        which = self.some_warps()
        if together == 2:
            which = sorted({w // 2 * 2 + i for w in which for i in range(2)})
        if self.agents and together == 1 and r.random() < 0.3:
            i = r.randrange(len(self.agents))
            agent, operations = self.agents[i]
            if any(list(operations.values()).count(o) > 1 for o in operations.values()):
                return  # warpgroups' operations go on with whole warpgroups only
            self.order.start(warps(*which), 1, agent)
            self.agents[i] = agent, self.definition.start(which, 1, operations)
            return
        agent = self.order.start(warps(*which), together)
        self.agents.append((agent, self.definition.start(which, together, None)))

    def finish(self) -> None:
        if not self.agents:
            return
        r = self.random
        agent, operations = r.choice(self.agents)
        owners = sorted(operations)
        some = sorted(r.sample(owners, r.randint(1, len(owners))))
        key, which = r.choice([(None, some), (7, None), (7, some), (1, None)])
        self.order.finish(agent, key, None if which is None else warps(*which))
        self.definition.finish(operations, key, which)


@pytest.mark.parametrize("pending", [2, 64])
def test_random_traces_race_where_the_definition_says_so(pending: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.emulator.memory.shadow.PENDING", pending)
    races = accesses = 0
    for seed in range(1000 * pending, 1000 * pending + 30):
        trace = Trace(seed)
        trace.run(300)
        races += trace.races
        accesses += trace.accesses
    assert 0.2 < races / accesses < 0.8
    assert accesses > 4_000


# ---- what is said ----------------------------------------------------------------------------------------------------

X = 0x40
NEXT = "nothing orders them: a barrier is missing between"


def race(order: Order, a: AccessBatch, agent: Agent | None = None) -> str:
    with pytest.raises(Race) as caught:
        order.observe(a, agent)
    return caught.value.message


def test_a_read_after_another_warps_write() -> None:
    order, _ = detector(blocks=2)
    order.observe(access(Kind.WRITE, [64 + 3], [X], site=1, values=[1]))
    with pytest.raises(Race) as caught:
        order.observe(access(Kind.READ, [64 + 40], [X], site=2))
    assert str(caught.value) == (
        "race: thread (40, 0, 0) of block (1, 0, 0) reads shared 0x40..0x43, which thread (3, 0, 0) wrote at PTX line 11 "
        "(source k.cu:101); nothing orders them: a barrier is missing between\n"
        "  kernel test\n"
        "  source k.cu:102\n"
        "  PTX line 12: st 2\n"
        "  block (1, 0, 0), thread (40, 0, 0)\n"
        "  address 0x40 of the block's shared memory"
    )


def test_lanes_of_a_warp() -> None:
    order, _ = detector()
    order.observe(access(Kind.READ, [3, 4], [X, X], site=1))
    text = race(order, access(Kind.WRITE, [3], [X], site=1, values=[1]))
    assert text == (
        "thread (3, 0, 0) of block (0, 0, 0) writes shared 0x40..0x43, which thread (4, 0, 0) read with the same instruction "
        "before; nothing orders them: a bar.warp.sync or a barrier is missing between"
    )


def test_a_byte_and_an_atomic() -> None:
    order, _ = detector(granule=1)
    order.observe(access(Kind.ATOMIC, [0], [X], size=4, site=1))
    text = race(order, access(Kind.READ, [33], [X + 3], size=1, site=2))
    assert text == (
        "thread (33, 0, 0) of block (0, 0, 0) reads shared 0x43, which thread (0, 0, 0) updated at PTX line 11 "
        "(source k.cu:101); nothing orders them: a barrier is missing between"
    )
    order, _ = detector()
    order.observe(access(Kind.READ, [0], [X], site=1))
    assert race(order, access(Kind.ATOMIC, [33], [X], site=2)).startswith(
        "thread (33, 0, 0) of block (0, 0, 0) updates"
    )


def test_two_values_in_one_instruction() -> None:
    order, _ = detector()
    order.observe(access(Kind.WRITE, [1, 2, 3], [X, X, X], values=[5, 5, 5]))
    order, _ = detector()
    text = race(order, access(Kind.WRITE, [1, 2, 34], [X, X + 4, X], values=[5, 5, 6]))
    assert text == (
        "threads (1, 0, 0) and (34, 0, 0) of block (0, 0, 0) write different values to shared 0x40..0x43 in one instruction"
    )


def test_writing_what_is_there() -> None:
    order, contents = detector()
    order.observe(access(Kind.WRITE, [1], [X], values=[7]))
    contents[0, X : X + 4] = 7
    order.observe(access(Kind.WRITE, [40], [X], values=[7]))  # redundant
    assert race(order, access(Kind.WRITE, [1], [X], values=[8])).endswith(NEXT)
    order, _ = detector()
    order.observe(access(Kind.READ, [1], [X]))  # reads what is there: a later write races with it all the same
    assert race(order, access(Kind.WRITE, [40], [X], values=[0])).endswith(NEXT)


def test_a_copy_that_nobody_waits_for() -> None:
    order, _ = detector()
    copy = order.start(warps(0))
    order.observe(access(Kind.WRITE, [0], [X], site=1, values=[1]), copy)
    text = race(order, access(Kind.READ, [0], [X], site=2))
    assert text == (
        "thread (0, 0, 0) of block (0, 0, 0) reads shared 0x40..0x43, which an asynchronous operation of thread (0, 0, 0) "
        "wrote at PTX line 11 (source k.cu:101); nothing orders them: its completion is not waited for"
    )
    order, _ = detector()
    copy = order.start(warps(0))
    order.observe(access(Kind.WRITE, [0], [X], site=1, values=[1]), copy)
    order.finish(copy, warps=warps(0))
    order.observe(access(Kind.READ, [0], [X], site=2))
    assert race(order, access(Kind.READ, [32], [X], site=2)).endswith("its completion is not waited for")


def test_a_missing_proxy_fence() -> None:
    order, _ = detector()
    order.observe(access(Kind.WRITE, [0], [X], site=1, values=[1]))
    order.barrier(warps(0, 1), warps(0, 1))
    copy = order.start(warps(1))
    text = race(order, access(Kind.READ, [32], [X], site=2, proxy=Proxy.ASYNC), copy)
    assert text == (
        "an asynchronous operation of thread (32, 0, 0) of block (0, 0, 0) reads shared 0x40..0x43, which thread (0, 0, 0) "
        "wrote at PTX line 11 (source k.cu:101): a generic write that no fence.proxy.async follows"
    )
    # Without a barrier it is an ordinary race, whatever the proxy.
    order, _ = detector()
    order.observe(access(Kind.WRITE, [0], [X], site=1, values=[1]))
    order.fence_async(warps(0))
    copy = order.start(warps(1))
    assert race(order, access(Kind.READ, [32], [X], site=2, proxy=Proxy.ASYNC), copy).endswith(NEXT)


@pytest.mark.parametrize("fencing", [0, 1])
def test_the_writer_fences_or_whoever_has_seen_the_write(fencing: int) -> None:
    order, _ = detector()
    order.observe(access(Kind.WRITE, [0], [X], values=[1]))
    if fencing == 0:
        order.fence_async(warps(0))
    order.barrier(warps(0, 1), warps(0, 1))
    if fencing == 1:
        order.fence_async(warps(1))
    order.observe(access(Kind.READ, [32], [X], proxy=Proxy.ASYNC), order.start(warps(1)))


def test_what_cp_async_wrote_needs_a_fence_too() -> None:
    order, _ = detector()
    copy = order.start(warps(0))
    order.observe(access(Kind.WRITE, [0], [X], site=1, values=[1]), copy)  # cp.async is of the generic proxy
    order.finish(copy, warps=warps(0))
    text = race(order, access(Kind.READ, [0], [X], proxy=Proxy.ASYNC), order.start(warps(0)))
    assert text.endswith(
        "which an asynchronous operation of thread (0, 0, 0) wrote at PTX line 11 (source k.cu:101): "
        "a generic write that no fence.proxy.async follows"
    )


@pytest.mark.parametrize("again", [False, True])
def test_a_fence_before_a_copy_is_complete_does_not_fence_it(again: bool) -> None:
    order, _ = detector()
    copy = order.start(warps(0))
    order.observe(access(Kind.WRITE, [0], [X], site=1, values=[1]), copy)  # cp.async
    order.fence_async(warps(0, 1))
    order.finish(copy, warps=warps(0))
    order.barrier(warps(0, 1), warps(0, 1))
    if again:  # another copy in the same column, under way
        order.start(warps(0))
        order.barrier(warps(0, 1), warps(0, 1))
    text = race(order, access(Kind.READ, [32], [X], proxy=Proxy.ASYNC), order.start(warps(1)))
    assert text.endswith("a generic write that no fence.proxy.async follows")


def test_blocks_share_nothing() -> None:
    order, _ = detector(blocks=2)
    order.observe(access(Kind.WRITE, [0], [X], values=[1]))
    order.observe(access(Kind.READ, [64], [X]))
    order.release("key", warps(0))
    order.acquire("key", warps(3))  # the key of block 1, which has not been released
    order.observe(access(Kind.WRITE, [65], [X + 4], values=[1]))
    assert race(order, access(Kind.READ, [96], [X + 4])).endswith(NEXT)


def test_other_blocks_start_anew() -> None:
    order, _ = detector(blocks=2)
    order.observe(access(Kind.WRITE, [0], [X], values=[1]))
    order.reset(1)
    order.observe(access(Kind.READ, [40], [X]))
    order.barrier(warps(0, 1), warps(0, 1))
    order.observe(access(Kind.WRITE, [0], [X], values=[1]))
    assert race(order, access(Kind.READ, [40], [X])).endswith(NEXT)


def test_a_forgotten_key_orders_nothing() -> None:
    order, _ = detector()
    order.observe(access(Kind.WRITE, [0], [X], values=[1]))
    order.release("key", warps(0))
    order.forget("key")
    order.forget("never used")
    order.acquire("key", warps(1))
    assert race(order, access(Kind.READ, [40], [X])).endswith(NEXT)


def test_an_operation_that_goes_on_has_seen_more() -> None:
    order, _ = detector()
    group = order.start(warps(0))
    order.observe(access(Kind.WRITE, [0], [X], values=[1]))
    order.start(warps(0), agent=group)
    order.observe(access(Kind.READ, [0], [X]), group)
    order, _ = detector()
    group = order.start(warps(0))
    order.observe(access(Kind.WRITE, [0], [X], values=[1]))
    assert race(order, access(Kind.READ, [0], [X]), group).endswith(NEXT)


def test_columns_are_used_again() -> None:
    order, _ = detector(blocks=3, warps=4)
    everyone = np.arange(12)
    for _ in range(50):
        copy = order.start(everyone)
        order.finish(copy, warps=everyone)
    assert order.clocks.columns <= 4 + 8
    # Without waits there are more and more of them, up to a limit that the error names.
    with pytest.raises(
        ValueError, match="more than 2048 asynchronous operations of a block that no thread has waited for"
    ):
        for _ in range(600):
            order.start(everyone)


def test_an_operation_waited_for_twice() -> None:
    order, _ = detector()
    first = order.start(warps(0))
    order.observe(access(Kind.WRITE, [0], [X], values=[1]), first)
    order.finish(first, warps=warps(0))
    second = order.start(warps(0))  # in the same column
    order.observe(access(Kind.WRITE, [0], [X + 4], values=[1]), second)
    order.finish(first, "key")
    order.acquire("key", warps(1))
    order.observe(access(Kind.READ, [40], [X]))
    assert race(order, access(Kind.READ, [40], [X + 4])).endswith("its completion is not waited for")


def test_too_many_threads() -> None:
    with pytest.raises(ValueError, match="2097152 resident threads: races are checked for 1048576 at most"):
        Order(np.zeros((2048, 256), np.uint8), 1024, 4, [], lambda _: ((0, 0, 0), (0, 0, 0)))


def test_without_checks_nothing_is_seen() -> None:
    order = NullOrder()
    agent = order.start(warps(0))
    a = access(Kind.WRITE, [0], [X], values=[1])
    order.observe(a)
    order.observe(access(Kind.READ, [40], [X]), agent)
    order.barrier(warps(0), warps(0))
    order.synchronise(warps(0))
    order.release("key", warps(0))
    order.acquire("key", warps(0))
    order.forget("key")
    order.communicate(a, "acq_rel")
    order.fence(warps(0))
    order.fence_async(warps(0))
    order.finish(agent, "key")
    order.reset()
    assert not order.active
    methods = {name for name in vars(Order) if not name.startswith("_")}
    assert methods <= {name for name in vars(NullOrder) if not name.startswith("_")} | {"clocks", "made", "tick"}
