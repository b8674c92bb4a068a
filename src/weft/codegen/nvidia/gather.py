"""Gathers: shuffles or accesses to shared memory, as a `GatherPlan` says.

The bits of an index, of a thread's number and of a register's each contribute an XOR to the place that is asked for. So the part
of the index is found by moving its bits (`xor_of_columns`), for a vector of indices at once.

    way        place                       instructions of a result
    shuffles   lane | register << 5        a shuffle for each register it may be in, selects by bits of the place
    memory     byte of scratch             one load; where the source is stored in rounds, one in each round that may have it

A place is always one of the line's: bits of an index that the axis does not have are ignored. So an index outside of the axis
reads another element, and no foreign memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from weft.codegen.emit.element import Element, element_of_value
from weft.codegen.llvm.types import I32, broadcast, integer_width, like, splat
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.buffers import address_columns, first_holder
from weft.codegen.nvidia.exchange import Exchange, store_words
from weft.codegen.nvidia.files import CHUNK, WORD, File, length, of_scalars, scalars, words_of
from weft.codegen.nvidia.threads import LANE_BITS, Threads, xor_of_columns
from weft.ir import tile
from weft.layout.algebra import f2
from weft.layout.planning.gather import GatherPlan, Where
from weft.layout.planning.gather_memory import GatherMemory
from weft.transforms.nvidia.scratch import gather_plan, scratch_of


def gather(threads: Threads, op: tile.GatherOp) -> None:
    """Emits a gather."""
    plan, element = gather_plan(op, threads.target.model), element_of_value(op.source)
    builder = threads.builder
    source = tuple(element.to_storage(builder, chunk) for chunk in threads.files[op.source])
    index = tuple(_narrowed(builder, chunk) for chunk in threads.files[op.index])
    stored = _results(threads, plan, source, index, element, scratch_of(op))
    threads.files[op.result] = tuple(element.from_storage(builder, chunk) for chunk in stored)


def _narrowed(builder: ir.IRBuilder, chunk: ir.Value) -> ir.Value:
    """Indices in 32 bits."""
    words = like(chunk, I32)
    if integer_width(chunk) > WORD:
        return builder.trunc(chunk, words)
    return chunk if chunk.type == words else builder.zext(chunk, words)


def _results(
    threads: Threads, plan: GatherPlan, source: File, index: File, element: Element, base: int
) -> Sequence[ir.Value]:
    if plan.memory is not None:
        return _Memory(threads, plan.memory, index, element, base).run(source)
    assert plan.where is not None, "a gather is by shuffles or through memory"
    return _by_shuffles(threads, plan.where, source, index, element)


def _places(
    threads: Threads, index: File, along: Sequence[int], thread: Sequence[int], registers: Sequence[int]
) -> list[ir.Value]:
    """For each index the XOR of the columns of its bits, of the thread's, and of its register's, vector by vector."""
    builder = threads.builder
    own = threads.linear(thread)
    found: list[ir.Value] = []
    for number, chunk in enumerate(index):
        lanes = length(chunk)
        value = xor_of_columns(builder, chunk, along)
        if any(thread):
            value = builder.xor(value, broadcast(builder, own, lanes))
        fixed = [f2.apply(registers, number * CHUNK + lane) for lane in range(lanes)]
        if any(fixed):
            value = builder.xor(value, ir.Constant(ir.VectorType(I32, lanes), [ir.Constant(I32, f) for f in fixed]))
        found.append(value)
    return found


# Shuffles


def _by_shuffles(threads: Threads, where: Where, source: File, index: File, element: Element) -> Sequence[ir.Value]:
    """The results' vectors."""
    builder = threads.builder
    words = _words_by_register(builder, source, 8 * element.size)

    def joined(parts: Sequence[tuple[int, int]]) -> list[int]:
        return [lane | register << LANE_BITS for lane, register in parts]

    lanes = [lane for lane, _ in where.register]
    places = _places(threads, index, joined(where.index), joined((*where.lane, *where.warp)), lanes)
    fixed = [register for _, register in where.register]
    results: list[list[ir.Value]] = []
    for number, place in enumerate(scalars(builder, tuple(places))):
        at = f2.apply(fixed, number)
        candidates = [
            [instructions.shuffle_idx(builder, word, place) for word in words[at ^ f2.apply(where.varying, mask)]]
            for mask in range(1 << len(where.varying))
        ]
        results.append(_selected(builder, candidates, where.varying, place))
    return _from_registers(builder, results, element)


def _selected(
    builder: ir.IRBuilder, candidates: list[list[ir.Value]], varying: f2.Matrix, place: ir.Value
) -> list[ir.Value]:
    """The candidate that is the place's. The highest bit of each vector of a reduced basis is in no other."""
    for vector in varying:
        own = builder.and_(place, ir.Constant(I32, 1 << vector.bit_length() - 1 + LANE_BITS))
        upper = builder.icmp_unsigned("!=", own, ir.Constant(I32, 0))
        pairs = zip(candidates[::2], candidates[1::2], strict=True)
        candidates = [[builder.select(upper, b, a) for a, b in zip(x, y, strict=True)] for x, y in pairs]
    return candidates[0]


def _words_by_register(builder: ir.IRBuilder, file: File, bits: int) -> list[list[ir.Value]]:
    """The words of each register; a narrow element is a word of its own."""
    if bits < WORD:
        whole = tuple(builder.bitcast(chunk, like(chunk, ir.IntType(bits))) for chunk in file)
        return [[builder.zext(value, I32)] for value in scalars(builder, whole)]
    words, each = words_of(builder, file), bits // WORD
    return [words[at : at + each] for at in range(0, len(words), each)]


def _from_registers(builder: ir.IRBuilder, registers: list[list[ir.Value]], element: Element) -> list[ir.Value]:
    """The vectors of registers that are given as words."""
    bits, type_ = 8 * element.size, element.storage_type(None)
    if bits < WORD:
        narrow = [builder.trunc(word, ir.IntType(bits)) for (word,) in registers]
        return [builder.bitcast(chunk, like(chunk, type_)) for chunk in of_scalars(builder, narrow)]
    each = bits // WORD
    found: list[ir.Value] = []
    for chunk in of_scalars(builder, [_wide(builder, words) for words in registers]):
        assert each in (1, 2), "elements have at most 64 bits"
        found.append(builder.bitcast(chunk, like(chunk, type_)))
    return found


def _wide(builder: ir.IRBuilder, words: Sequence[ir.Value]) -> ir.Value:
    """A word, or two as one integer."""
    if len(words) == 1:
        return words[0]
    return builder.bitcast(of_scalars(builder, words)[0], ir.IntType(WORD * len(words)))


# Memory


class _Memory:
    """A gather through shared memory; its scratch starts at byte ``base``."""

    def __init__(self, threads: Threads, plan: GatherMemory, index: File, element: Element, base: int):
        self._threads = threads
        self._plan = plan
        self._element = element
        self._base = base
        self._tile = (plan.bits // 8) << plan.tile
        size = plan.bits // 8
        register, lane, warp, _ = (tuple(column * size for column in columns) for columns in plan.base)
        along = tuple(column * size for column in plan.along)
        dynamic = 0
        for column in (*lane, *warp, *along):
            dynamic |= column
        self._dynamic = dynamic
        self._registers = register
        xors = [column & dynamic for column in register]
        self._places = _places(threads, index, along, (*lane, *warp), xors)

    def run(self, source: File) -> list[ir.Value]:
        """The results' vectors."""
        builder, plan = self._threads.builder, self._plan
        words = Exchange(self._threads, 0).permute(plan.store.network, words_of(builder, source))
        results: dict[int, ir.Value] = {}
        for number in range(plan.rounds):
            if number:
                instructions.barrier(builder, plan.scope)
            self._store(words, number)
            instructions.barrier(builder, plan.scope)
            self._load(results, number)
        return list(of_scalars(builder, [results[register] for register in range(len(results))]))

    def _store(self, words: Sequence[ir.Value], number: int) -> None:
        """Stores what of the source is in round ``number``."""
        threads, builder, plan = self._threads, self._threads.builder, self._plan.store
        columns = address_columns(plan)
        thread = threads.linear([column % self._tile for column in columns])
        high = [column // self._tile for column in columns]
        each = len(words) // plan.instructions
        for instruction in range(plan.instructions):
            xor, immediate = f2.apply(plan.xors, instruction), f2.apply(plan.immediates, instruction)
            wanted = (xor | immediate) // self._tile ^ number
            condition = first_holder(threads, plan)
            if any(high):
                inside = threads.entry.icmp_unsigned("==", threads.linear(high), ir.Constant(I32, wanted))
                condition = inside if condition is None else threads.entry.and_(condition, inside)
            elif wanted:
                continue
            xor, immediate = xor % self._tile, immediate % self._tile + self._base
            at = builder.xor(thread, ir.Constant(I32, xor)) if xor else thread
            some = words[instruction * each : (instruction + 1) * each]
            if plan.way != "vector":
                instructions.store_matrices(builder, threads.shared_address(at, 0), immediate, some, plan.way)
            elif condition is None:
                store_words(builder, some, threads.shared_address(at, immediate), plan.width)
            else:
                with builder.if_then(condition):
                    store_words(builder, some, threads.shared_address(at, immediate), plan.width)

    def _load(self, results: dict[int, ir.Value], number: int) -> None:
        """Loads the results that may be in round ``number``; those that are not keep what they have."""
        builder, element = self._threads.builder, self._element
        shift = self._tile.bit_length() - 1
        register = 0
        for places in self._places:
            low = builder.and_(places, splat(self._tile - 1, places.type)) if self._dynamic >> shift else places
            for place, at in zip(scalars(builder, (places,)), scalars(builder, (low,)), strict=True):
                own = f2.apply(self._registers, register) & ~self._dynamic
                wanted = own >> shift ^ number
                if wanted and not self._dynamic >> shift:
                    register += 1
                    continue
                pointer = self._threads.shared_address(at, own % self._tile + self._base)
                loaded = builder.load(pointer, typ=element.storage_type(None), align=element.size)
                if register in results:
                    round_ = builder.lshr(place, ir.Constant(I32, shift))
                    here = builder.icmp_unsigned("==", round_, ir.Constant(I32, wanted))
                    loaded = builder.select(here, loaded, results[register])
                results[register] = loaded
                register += 1
