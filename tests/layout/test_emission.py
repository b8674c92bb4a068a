"""Plans spelled out as a code generator would: threads with registers of 32 bits, shared memory of bytes, and nothing but what
the steps say. What each lane of each warp holds at the end is compared with the destination layout.

`ldmatrix` and `stmatrix` are executed by the PTX ISA's words: each lane gives the address of a row, and gets words of rows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from sampling import grid
from weft.layout import LinearLayout, blocked, nvidia_mma
from weft.layout.planning.accesses import Access, MatrixAccess, VectorAccess
from weft.layout.planning.choose import plan_conversion, plan_memory
from weft.layout.planning.machine import HOPPER, MachineModel
from weft.layout.planning.needs import Places
from weft.layout.planning.permutes import Network, Words
from weft.layout.planning.steps import Barrier, LaneExchange, Move, Parallel, Step
from weft.layout.planning.ways.halves import split

Thread = tuple[int, int]
"""(warp, lane)."""
Registers = dict[Thread, list[int]]
"""Words of 32 bits of each thread."""


def xor_of(columns: Sequence[int], index: int) -> int:
    result = 0
    for bit, column in enumerate(columns):
        if index >> bit & 1:
            result ^= column
    return result


def prmt(a: int, b: int, selector: int) -> int:
    both = (a | b << 32).to_bytes(8, "little")
    return int.from_bytes(bytes(both[selector >> 4 * place & 15] for place in range(4)), "little")


def run_network(network: Network, words: list[int], thread: int) -> list[int]:
    """All values of a network."""
    assert network.parts == 4
    values = words[: network.sources]
    for permute in network.permutes:
        values.append(prmt(values[permute.a], values[permute.b], permute.selector(thread)))
    return values


class Block:
    """The threads of a block and their shared memory."""

    def __init__(self, warps: int, lanes: int, scratch: int):
        self.warps, self.lanes = range(warps), range(lanes)
        self.threads = [(warp, lane) for warp in self.warps for lane in self.lanes]
        self.memory = bytearray(b"\xee" * scratch)

    def number(self, thread: Thread, flip: int = 0) -> int:
        """What thread bits of permutes count in."""
        warp, lane = thread
        return lane | (warp ^ flip) * len(self.lanes)

    def run(self, steps: Sequence[Step], registers: Registers, bits: int) -> Registers:
        loaded: Registers = {}
        for step in steps:
            if isinstance(step, Move):
                registers = self.move(step, loaded if step.loaded else registers)
                loaded = {} if step.loaded else loaded
            elif isinstance(step, LaneExchange):
                registers = self.exchange(step, registers)
            elif isinstance(step, Access):
                if not step.stores and not loaded:
                    count = max(1, (bits << len(step.addresses.registers) - step.inside) * (1 << step.inside) // 32)
                    most = max(count, (1 << len(step.addresses.registers)) >> step.words.inside)
                    loaded = {thread: [0xDDDDDDDD] * most * max(1, bits // 32) for thread in self.threads}
                self.access(step, registers if step.stores else loaded)
            elif isinstance(step, Parallel):
                assert all(len(words) > 1 for words in registers.values())
                low = {thread: words[: len(words) // 2] for thread, words in registers.items()}
                high = {thread: words[len(words) // 2 :] for thread, words in registers.items()}
                stays, moves = self.run(step.stays, low, bits), self.run(step.moves, high, bits)
                registers = {thread: stays[thread] + moves[thread] for thread in self.threads}
            else:
                assert isinstance(step, Barrier)
        return registers

    def move(self, step: Move, registers: Registers) -> Registers:
        found: Registers = {}
        for thread in self.threads:
            values = run_network(step.network, registers[thread], self.number(thread, step.warp_flip))
            found[thread] = [values[output] for output in step.network.outputs]
        return found

    def exchange(self, step: LaneExchange, registers: Registers) -> Registers:
        networks = step.networks
        values = {t: run_network(networks.offer, registers[t], self.number(t)) for t in self.threads}
        rounds = [number for number, moved in enumerate(step.rounds.moved) if moved]
        each = len(networks.offer.outputs) // max(1, len(rounds))
        received: Registers = {thread: [] for thread in self.threads}
        for at, output in enumerate(networks.offer.outputs):
            for warp, lane in self.threads:
                asked = xor_of(step.reads.lane, lane) ^ xor_of(step.reads.warp, warp)
                asked ^= xor_of(step.reads.round, rounds[at // each])
                received[warp, lane].append(values[warp, asked][output])
        found: Registers = {}
        for thread in self.threads:
            made = run_network(networks.receive, values[thread] + received[thread], self.number(thread))
            found[thread] = [made[output] for output in networks.receive.outputs]
        return found

    def address(self, step: Access, thread: Thread, number: int) -> int:
        warp, lane = thread
        base = xor_of(step.lane_columns, lane) ^ xor_of(step.warp_columns, warp ^ step.warp_flip)
        xor, immediate = step.steps(number)
        return (base ^ xor) + immediate

    def access(self, step: Access, registers: Registers) -> None:
        for warp in self.warps:
            if warp & step.idle_warps:
                continue
            for number in step.numbers:
                if isinstance(step, VectorAccess):
                    self.vectors(step, registers, warp, number)
                else:
                    assert isinstance(step, MatrixAccess)
                    self.matrices(step, registers, warp, number)

    def vectors(self, step: VectorAccess, registers: Registers, warp: int, number: int) -> None:
        size = step.vector_bits // 8
        first = (number << step.inside >> step.words.inside) * max(1, step.addresses.bits // 32)
        for lane in self.lanes:
            at = self.address(step, (warp, lane), number)
            outside = not step.addresses.base <= at < step.addresses.base + step.scratch
            if lane & step.idle_lanes or outside:
                assert step.guarded or not outside
                continue
            assert at % size == 0
            words = registers[warp, lane]
            for byte in range(size):
                word, shift = first + byte // 4, byte % 4 * 8
                if step.stores:
                    self.memory[at + byte] = words[word] >> shift & 0xFF
                else:
                    words[word] = words[word] & ~(0xFF << shift) | self.memory[at + byte] << shift

    def matrices(self, step: MatrixAccess, registers: Registers, warp: int, number: int) -> None:
        """PTX ISA, ldmatrix: a matrix has 8 rows of 16 bytes. Thread l has the bytes 4 (l % 4) and on of row l / 4; transposed,
        the halves l / 4 of rows 2 (l % 4) and the next."""
        assert step.kind in ("matrix", "transposed")
        rows = [self.address(step, (warp, lane), number) for lane in self.lanes]
        count = min(step.together, len(step.matrices) - step.matrices.index(number))
        for matrix in range(count):
            word = step.matrices[step.matrices.index(number) + matrix] << step.inside >> step.words.inside
            for lane in self.lanes:
                if step.kind == "matrix":
                    places = [rows[8 * matrix + lane // 4] + lane % 4 * 4 + byte for byte in range(4)]
                else:
                    places = [
                        rows[8 * matrix + lane % 4 * 2 + byte // 2] + lane // 4 * 2 + byte % 2 for byte in range(4)
                    ]
                if step.stores:
                    for byte, place in enumerate(places):
                        self.memory[place] = registers[warp, lane][word] >> 8 * byte & 0xFF
                else:
                    found = [self.memory[place] for place in places]
                    registers[warp, lane][word] = int.from_bytes(bytes(found), "little")


def in_words(elements: Sequence[int], bits: int) -> list[int]:
    every = sum(element << bits * at for at, element in enumerate(elements))
    return [every >> 32 * word & 0xFFFFFFFF for word in range(-(-len(elements) * bits // 32))]


def spelled(steps: Sequence[Step], scratch: int, source: Any, target: Any, bits: int) -> bool:
    """Whether the steps take a block from what it holds in the source to what it has to hold."""
    value = [random.Random(at).getrandbits(bits) for at in range(int(max(source.max(), target.max())) + 1)]
    block = Block(source.shape[0], source.shape[1], scratch)

    def held(elements: Any) -> Registers:
        return {thread: in_words([value[int(e)] for e in elements[thread]], bits) for thread in block.threads}

    found, wanted = block.run(steps, held(source), bits), held(target)
    mask = min(32, target.shape[2] * bits)
    return all(
        [word & ((1 << mask) - 1) for word in found[thread][: len(wanted[thread])]] == wanted[thread]
        for thread in block.threads
    )


@pytest.mark.parametrize(("bits", "scratch"), grid(2, [8, 16, 32, 64], [227 * 1024, 512]))
def test_random_plans(gpu_pair: Any, held: Any, bits: int, scratch: int) -> None:
    """Of all kinds, also in several rounds of a small scratch."""
    rng = random.Random(bits + scratch)
    machine = replace(HOPPER, scratch=scratch)
    seen: Counter[str] = Counter()
    for _ in range(40):
        source, destination = gpu_pair(rng, 5, rng.randint(0, 2), rng.randint(0, 4))
        for make in (plan_conversion, plan_memory):
            try:
                plan = make(source, destination, bits, machine)
            except ValueError:
                continue
            assert spelled(plan.steps, plan.cost.scratch, held(source), held(destination), bits), (source, destination)
            seen[plan.kind] += 1
    assert seen["memory"] > 20, seen
    assert seen["warp"] > 2, seen


def tile(size: int, bits: int) -> tuple[LinearLayout, LinearLayout]:
    vector = 128 // bits
    across = min(32, size // vector)
    row = blocked((size, size), (1, vector), (32 // across, across), (4, 1), (1, 0))
    return row, nvidia_mma((size, size), 2, (2, 2), (16, 8))


@pytest.mark.parametrize("machine", [HOPPER, replace(HOPPER, scratch=4096)], ids=["one round", "rounds"])
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_tiles_with_matrices(held: Any, machine: MachineModel, bits: int) -> None:
    """Rows of 128 bits and a result of mma, both ways: vectors with ldmatrix, stmatrix with vectors."""
    kinds: Counter[str] = Counter()
    for source, destination in (tile(64, bits), tile(64, bits)[::-1]):
        for make in (plan_memory, plan_conversion):
            plan = make(source, destination, bits, machine)
            kinds.update(step.kind for step in plan.steps if isinstance(step, MatrixAccess))
            assert spelled(plan.steps, plan.cost.scratch, held(source), held(destination), bits), str(plan)
    assert bits != 16 or kinds["matrix"] > 0, kinds


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_halves(held: Any, bits: int) -> None:
    """A register bit and a warp bit change places; in a second case another with a lane bit. The half that moves takes the
    addresses and registers of warp ``w ^ 1``."""
    units = [1 << bit for bit in range(13)]
    source = LinearLayout.from_columns(
        {"register": tuple(units[:6]), "lane": tuple(units[6:11]), "warp": tuple(units[11:])}, (("dim0", 13),)
    )
    kinds: Counter[str] = Counter()
    for swaps in (((5, 11),), ((5, 11), (4, 8)), ((5, 11), (4, 12))):
        columns = list(units)
        for first, second in swaps:
            columns[first], columns[second] = columns[second], columns[first]
        destination = LinearLayout.from_columns(
            {"register": tuple(columns[:6]), "lane": tuple(columns[6:11]), "warp": tuple(columns[11:])}, (("dim0", 13),)
        )
        plan = plan_conversion(source, destination, bits, HOPPER)
        kinds[plan.kind] += 1
        assert spelled(plan.steps, plan.cost.scratch, held(source), held(destination), bits), str(plan)
    assert kinds["halves"] >= 2, kinds


def test_halves_are_whole_words() -> None:
    """Of four elements each half has two: no word of bytes, one of 16 bits."""
    a, b = Places((1, 2), (4, 8, 16, 32, 64), (128,)), Places((1, 128), (4, 8, 16, 32, 64), (2,))
    assert split(a, b, 8) is None
    assert split(a, b, 16) is not None


def test_words_of_a_narrow_load_are_alone() -> None:
    """Bytes at a stride: one in the lowest part of each word."""
    source = LinearLayout.parse("{register: [1,2], lane: [4,8,16,32,64], warp: [128]} -> [dim0: 256]")
    destination = LinearLayout.parse("{register: [32,64], lane: [1,2,4,8,16], warp: [128]} -> [dim0: 256]")
    plan = plan_memory(source, destination, 8, replace(HOPPER, ldmatrix=False, stmatrix=False))
    store, load = (step for step in plan.steps if isinstance(step, Access))
    assert (store.words, load.words) == (Words(8, 2), Words(8, 0))
    assert (list(store.numbers), list(load.numbers)) == ([0], [0, 1, 2, 3])
    # The lanes read neighbours, the registers are 32 bytes apart: no lane has that bit, so both are immediates.
    assert load.lane_columns == (1, 2, 4, 8, 16)
    assert [load.steps(number) for number in range(4)] == [(0, 0), (0, 32), (0, 64), (0, 96)]
