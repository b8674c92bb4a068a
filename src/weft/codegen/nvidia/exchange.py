"""Spells out a conversion plan: each step of `weft.layout.planning.steps` in PTX instructions.

A thread holds words of 32 bits, in the order of its registers. A step takes the words and gives the next ones; loads from shared
memory fill words of their own, which a `Move` takes up. The docstrings of the steps say what each means for a thread.

    step           instructions
    Move           prmt and selp by its network; nothing where whole words are renamed
    LaneExchange   a network, one shfl a word and round, a network
    VectorAccess   st.shared or ld.shared, up to v4.b32
    MatrixAccess   stmatrix or ldmatrix
    Barrier        bar.sync or bar.warp.sync
    Parallel       the steps of one half, then those of the other
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from llvmlite import ir

from weft.codegen.emit.element import Element
from weft.codegen.llvm.types import I1, I32
from weft.codegen.nvidia import instructions
from weft.codegen.nvidia.files import WORD, File, element_type, from_words, of_scalars, words_of
from weft.codegen.nvidia.threads import LANE_BITS, Threads
from weft.layout.algebra import f2
from weft.layout.planning.accesses import Access, MatrixAccess, VectorAccess
from weft.layout.planning.permutes import FIRST_WORD, SECOND_WORD, Network, Permute
from weft.layout.planning.plan import ConversionPlan
from weft.layout.planning.steps import Barrier, LaneExchange, Move, Parallel, Step
from weft.transforms.nvidia.scratch import own_copies

Words = Sequence[ir.Value]


def convert(threads: Threads, plan: ConversionPlan, file: File, element: Element, registers: int, scratch: int) -> File:
    """The file of ``registers`` that a plan makes of a tile's file; its scratch starts at byte ``scratch``."""
    builder = threads.builder
    stored = tuple(element.to_storage(builder, chunk) for chunk in file)
    words = Exchange(threads, scratch).run(plan.steps, words_of(builder, stored))
    moved = from_words(builder, words, element_type(stored), registers)
    return tuple(element.from_storage(builder, chunk) for chunk in moved)


class Exchange:
    """A plan being carried out on one tile; its scratch starts at byte ``base``."""

    def __init__(self, threads: Threads, base: int):
        self._threads = threads
        self._base = base
        self._loaded: dict[int, ir.Value] = {}
        self._copy: ir.Value | None = None

    def run(self, steps: Sequence[Step], words: Words) -> Words:
        """What each thread holds after the steps of a plan."""
        mask, stride = own_copies(steps)
        if mask:
            bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
            columns = [1 << bits.index(bit) if bit in bits else 0 for bit in range(mask.bit_length())]
            number = self._threads.linear([0] * LANE_BITS + columns)
            self._copy = self._threads.entry.mul(number, ir.Constant(I32, stride))
        return self._steps(steps, words)

    def _steps(self, steps: Sequence[Step], words: Words) -> Words:
        for step in steps:
            words = _RUN[type(step)](self, step, words)
        return words

    # -- registers -------------------------------------------------------------------------------------------------------

    def move(self, step: Move, words: Words) -> Words:
        """Words renamed, permuted or selected; or those that loads have filled become the thread's."""
        if step.loaded:
            zero = ir.Constant(I32, 0)
            words = [self._loaded.get(word, zero) for word in range(max(self._loaded) + 1)]
            self._loaded = {}
        return self.permute(step.network, words, step.warp_flip << LANE_BITS)

    def permute(self, network: Network, words: Words, flip: int = 0) -> Words:
        """What a network makes of words; of a thread whose number is XORed with ``flip``."""
        values = self._permuted(_padded(words, network.sources), network.permutes, flip)
        return [values[output] for output in network.outputs]

    def _permuted(self, values: list[ir.Value], permutes: Sequence[Permute], flip: int = 0) -> list[ir.Value]:
        """The values, followed by the results of the permutes."""
        for permute in permutes:
            values.append(self._permute(permute, values[permute.a], values[permute.b], flip))
        return values

    def _permute(self, permute: Permute, a: ir.Value, b: ir.Value, flip: int) -> ir.Value:
        builder = self._threads.builder
        flipped = sum((flip >> bit & 1) << place for place, bit in enumerate(permute.thread_bits))
        selectors = [permute.selectors[number ^ flipped] for number in range(len(permute.selectors))]
        if len(set(selectors)) == 1:
            if selectors[0] in (FIRST_WORD, SECOND_WORD):
                return a if selectors[0] == FIRST_WORD else b
            return instructions.permute(builder, a, b, ir.Constant(I32, selectors[0]))
        if permute.selects:
            chosen = [ir.Constant(I1, int(selector == SECOND_WORD)) for selector in selectors]
            return builder.select(self._by_thread(permute.thread_bits, chosen), b, a)
        chosen = [ir.Constant(I32, selector) for selector in selectors]
        return instructions.permute(builder, a, b, self._by_thread(permute.thread_bits, chosen))

    def _by_thread(self, bits: Sequence[int], values: Sequence[ir.Constant]) -> ir.Value:
        """The value that the thread's ``bits`` number, the first of them lowest; computed at the function's start."""
        chosen: list[ir.Value] = list(values)
        for bit in bits:
            condition = self._threads.thread_bit(bit)
            pairs = zip(chosen[::2], chosen[1::2], strict=True)
            chosen = [self._threads.entry.select(condition, high, low) for low, high in pairs]
        return chosen[0]

    # -- lanes -----------------------------------------------------------------------------------------------------------

    def exchange(self, step: LaneExchange, words: Words) -> Words:
        """Words offered to other lanes, and put into registers."""
        builder, networks, rounds = self._threads.builder, step.networks, step.rounds
        values = self._permuted(_padded(words, networks.offer.sources), networks.offer.permutes)
        shuffled = [offset for offset, moved in zip(rounds.offsets, rounds.moved, strict=True) if moved]
        each = len(networks.offer.outputs) // max(1, len(shuffled))
        lane = None if step.form == "bfly" else self._threads.linear(rounds.reads)
        for at, output in enumerate(networks.offer.outputs):
            offset = shuffled[at // each]
            if lane is None:
                values.append(instructions.shuffle_bfly(builder, values[output], offset))
            else:
                source = builder.xor(lane, ir.Constant(I32, offset)) if offset else lane
                values.append(instructions.shuffle_idx(builder, values[output], source))
        values = self._permuted(values, networks.receive.permutes)
        return [values[output] for output in networks.receive.outputs]

    # -- shared memory ---------------------------------------------------------------------------------------------------

    def barrier(self, step: Barrier, words: Words) -> Words:
        """Threads wait for each other."""
        instructions.barrier(self._threads.builder, step.scope)
        return words

    def _thread_bytes(self, step: Access) -> ir.Value:
        """The thread's part of an address."""
        value = self._threads.linear([*step.lane_columns, *step.warp_columns])
        flipped = f2.apply(step.warp_columns, step.warp_flip)
        return self._threads.builder.xor(value, ir.Constant(I32, flipped)) if flipped else value

    def _address(self, step: Access, thread: ir.Value, number: int) -> tuple[ir.Value, int]:
        """The address that a thread gives to an instruction, as a pointer and an offset behind it."""
        builder = self._threads.builder
        xor, immediate = step.steps(number)
        at = builder.xor(thread, ir.Constant(I32, xor)) if xor else thread
        at = at if self._copy is None else builder.add(at, self._copy)
        return self._threads.shared_address(at, 0), immediate + self._base

    def _pointer(self, step: Access, thread: ir.Value, number: int) -> ir.Value:
        """The address that a thread gives to an instruction."""
        pointer, immediate = self._address(step, thread, number)
        return self._threads.behind(pointer, immediate)

    def _takes_part(self, step: Access, number: int, idle_lanes: int = 0) -> ir.Value | None:
        """Whether the thread takes part in an instruction; None where all threads do."""
        addresses, builder, threads = step.addresses, self._threads.builder, self._threads
        condition = threads.without(idle_lanes | step.idle_warps << LANE_BITS)
        if not step.guarded:
            return condition
        low, high = step.granules
        columns = [column >> addresses.tile for column in (*step.lane_offsets, *addresses.warps)]
        own = f2.apply(step.across, number) >> addresses.tile ^ f2.apply(columns, step.warp_flip << LANE_BITS)
        granule = builder.xor(threads.linear(columns), ir.Constant(I32, own))
        inside = builder.icmp_unsigned("<", builder.sub(granule, ir.Constant(I32, low)), ir.Constant(I32, high - low))
        return inside if condition is None else builder.and_(condition, inside)

    def vectors(self, step: VectorAccess, words: Words) -> Words:
        """Vectors to or from shared memory."""
        builder = self._threads.builder
        thread = self._thread_bytes(step)
        each = max(1, step.vector_bits // WORD)
        for number in step.numbers:
            condition = self._takes_part(step, number, step.idle_lanes)
            pointer = self._pointer(step, thread, number)
            places = range(number * each, (number + 1) * each)
            if step.stores:
                some = [words[place] for place in places]
                self._when(condition, lambda s=some, p=pointer: store_words(builder, s, p, step.vector_bits))
            else:
                loaded = self._load(condition, pointer, places, step.vector_bits)
                self._loaded.update(zip(places, loaded, strict=True))
        return words

    def _when(self, condition: ir.Value | None, emit: Callable[[], None]) -> None:
        if condition is None:
            emit()
            return
        with self._threads.builder.if_then(condition):
            emit()

    def _load(
        self, condition: ir.Value | None, pointer: ir.Value, places: Sequence[int], bits: int
    ) -> Sequence[ir.Value]:
        """The words of a vector load; where only some threads take part, the others keep what they have."""
        builder = self._threads.builder
        if condition is None:
            return load_words(builder, pointer, bits)
        before = builder.block
        with builder.if_then(condition):
            inner, within = load_words(builder, pointer, bits), builder.block
        zero = ir.Constant(I32, 0)
        merged: list[ir.Value] = []
        for place, word in zip(places, inner, strict=True):
            phi = builder.phi(I32)
            phi.add_incoming(self._loaded.get(place, zero), before)
            phi.add_incoming(word, within)
            merged.append(phi)
        return merged

    def matrices(self, step: MatrixAccess, words: Words) -> Words:
        """Matrices to or from shared memory."""
        builder = self._threads.builder
        thread = self._thread_bytes(step)
        each = (step.addresses.bits << step.inside) // WORD
        for first, number in zip(range(0, len(step.matrices), step.together), step.numbers, strict=True):
            group = step.matrices[first : first + step.together]
            places = [matrix * each + word for matrix in group for word in range(each)]
            pointer, immediate = self._address(step, thread, number)
            if step.stores:
                store = partial(instructions.store_matrices, builder, pointer, immediate, kind=step.kind)
                some = [words[place] for place in places]
                self._when(self._takes_part(step, number), partial(store, words=some))
            else:
                found = instructions.load_matrices(builder, pointer, immediate, len(group), step.kind)
                self._loaded.update(zip(places, found, strict=True))
        return words

    def parallel(self, step: Parallel, words: Words) -> Words:
        """Each half of the words by its own steps."""
        half = len(words) // 2
        return [*self._steps(step.stays, words[:half]), *self._steps(step.moves, words[half:])]


def _padded(words: Words, count: int) -> list[ir.Value]:
    """``count`` words, zeros behind those that there are: registers that no step reads."""
    return [*words[:count], *[ir.Constant(I32, 0)] * (count - len(words))]


def _memory_type(bits: int) -> ir.Type:
    """What memory instructions move: words, or one narrower integer."""
    return ir.IntType(bits) if bits <= WORD else ir.VectorType(I32, bits // WORD)


def store_words(builder: ir.IRBuilder, words: Words, pointer: ir.Value, bits: int) -> None:
    """Stores a vector to shared memory; one narrower than a word is the word's lowest bits."""
    value = of_scalars(builder, words)[0] if bits > WORD else builder.trunc(words[0], _memory_type(bits))
    builder.store(value, pointer, align=bits // 8)


def load_words(builder: ir.IRBuilder, pointer: ir.Value, bits: int) -> list[ir.Value]:
    """The words that a vector of shared memory fills; one narrower than a word is followed by zeros."""
    loaded = builder.load(pointer, typ=_memory_type(bits), align=bits // 8)
    if bits <= WORD:
        return [builder.zext(loaded, I32)]
    return [builder.extract_element(loaded, ir.Constant(I32, word)) for word in range(bits // WORD)]


_RUN: Final[Mapping[type[Step], Callable[[Exchange, Any, Words], Words]]] = {
    Move: Exchange.move,
    LaneExchange: Exchange.exchange,
    Barrier: Exchange.barrier,
    VectorAccess: Exchange.vectors,
    MatrixAccess: Exchange.matrices,
    Parallel: Exchange.parallel,
}
