"""Networks of byte permutes: small ones literally, random ones executed on bytes and compared with the movement of elements."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sampling import some
from weft.layout import LinearLayout
from weft.layout.planning import networks
from weft.layout.planning.access import plan_access
from weft.layout.planning.accesses import Access
from weft.layout.planning.check import run
from weft.layout.planning.choose import plan_conversion, plan_memory
from weft.layout.planning.exchange_networks import made_words
from weft.layout.planning.machine import HOPPER
from weft.layout.planning.networks import length
from weft.layout.planning.permutes import Network, Permute, Words, digit_bits, word_bits
from weft.layout.planning.steps import LaneExchange, Move, Step, walk


def xor_of(columns: tuple[int, ...], index: int) -> int:
    result = 0
    for bit, column in enumerate(columns):
        if index >> bit & 1:
            result ^= column
    return result


def build(registers: tuple[int, ...], chosen: tuple[int, ...], bits: int) -> Network:
    return networks.build(registers, chosen, Words.packed(bits), Words.packed(bits))


def permuted(a: int, b: int, selector: int, parts: int) -> int:
    """PTX ``prmt.b32``, without its modes, on words as integers; with other ``parts`` the same for these."""
    size, digit = 32 // parts, digit_bits(parts)
    both = a | b << 32
    result = 0
    for place in range(parts):
        part = selector >> digit * place & ((1 << digit) - 1)
        result |= (both >> part * size & ((1 << size) - 1)) << place * size
    return result


def execute(network: Network, held: list[int], thread: int) -> list[int]:
    """The words that a thread has after the network, for the words it holds before."""
    values = (held + [0xDEADBEEF] * network.sources)[: network.sources]
    for permute in network.permutes:
        values.append(permuted(values[permute.a], values[permute.b], permute.selector(thread), network.parts))
    return [values[output] for output in network.outputs]


def position(words: Words, register: int) -> int:
    """The first bit of a register in a row of words, by the definition of `Words`."""
    low = register & ((1 << words.inside) - 1)
    dense = low & ((1 << words.unit) - 1)
    slot = low if not words.gap else dense | (low >> words.unit) << words.unit + words.gap
    return (register >> words.inside) * max(32, words.bits) + slot * words.bits


def in_words(elements: list[int], words: Words) -> list[int]:
    every = 0
    for register, element in enumerate(elements):
        every |= element << position(words, register)
    return [
        every >> 32 * word & 0xFFFFFFFF
        for word in range((position(words, len(elements) - 1) + words.bits - 1) // 32 + 1)
    ]


def from_words(values: list[int], words: Words, registers: int) -> list[int]:
    every = sum(value << 32 * word for word, value in enumerate(values))
    return [every >> position(words, register) & ((1 << words.bits) - 1) for register in range(registers)]


def check_network(
    registers: tuple[int, ...], chosen: tuple[int, ...], source_bits: int, taken: Words, made: Words
) -> Network:
    """Executes the network on random elements, against the XOR of columns, element by element."""
    network = networks.build(registers, chosen, taken, made)
    assert network.instructions == length(registers, chosen, taken, made)
    rng = random.Random(1)
    elements = [rng.getrandbits(taken.bits) for _ in range(1 << source_bits)]
    for thread in range(1 << len(chosen)):
        expected = [elements[xor_of(registers, r) ^ xor_of(chosen, thread)] for r in range(1 << len(registers))]
        found = execute(network, in_words(elements, taken), thread)
        assert from_words(found, made, len(expected)) == expected, (registers, chosen, taken, made, thread)
    return network


def test_halves_transposed() -> None:
    """Words a = (0, 1) and b = (2, 3) of 16 bits; wanted are (0, 2) and (1, 3). Element 0 is bytes 0 and 1 of a, element 2
    bytes 0 and 1 of b, which count 4 and 5: from the low byte on 0, 1, 4, 5, written 0x5410. Likewise 2, 3, 6, 7."""
    assert build((2, 1), (), 16) == Network(2, (Permute(0, 1, (0x5410,)), Permute(0, 1, (0x7632,))), (2, 3))


def test_even_and_odd_bytes() -> None:
    """Bytes 0 to 3 and 4 to 7; wanted are the even ones 0, 2, 4, 6 and the odd ones. All selectors are constants."""
    assert build((2, 4, 1), (), 8) == Network(2, (Permute(0, 1, (0x6420,)), Permute(0, 1, (0x7531,))), (2, 3))


def test_bytes_within_a_word() -> None:
    """Byte pairs 1 and 2 change places in both words: 0, 2, 1, 3 of the word alone."""
    assert build((2, 1, 4), (), 8) == Network(2, (Permute(0, 0, (0x3120,)), Permute(1, 1, (0x3120,))), (2, 3))


def test_whole_words_are_renamed() -> None:
    """Words 0 to 3 as 0, 2, 1, 3; a copy of each: no instruction."""
    assert build((1, 4, 2), (), 16) == Network(4, (), (0, 2, 1, 3))
    assert build((1, 0, 2), (), 16) == Network(2, (), (0, 0, 1, 1))
    assert build((2, 1), (), 64) == Network(8, (), (0, 1, 4, 5, 2, 3, 6, 7))


def test_a_lane_chooses_a_word_or_a_byte() -> None:
    """Thread bit 0 tells which of two words: a select. Thread bit 1 flips the halves of a word: 0x3210 becomes 0x1032."""
    assert build((), (1,), 32) == Network(2, (Permute(0, 1, (0x3210, 0x7654), (0,)),), (2,))
    assert Permute(0, 1, (0x3210, 0x7654), (0,)).selects
    flipped = build((1,), (0, 1), 16)
    assert flipped is not None
    assert flipped == Network(1, (Permute(0, 0, (0x3210, 0x1032), (1,)),), (1,))
    assert not flipped.permutes[0].selects
    assert [flipped.permutes[0].selector(thread) for thread in range(4)] == [0x3210, 0x3210, 0x1032, 0x1032]


def test_results_between_are_shared() -> None:
    """A 4x4 matrix of bytes: each of 4 words has bytes of 4 others. Alone a word takes 3 permutes, together 8."""
    network = check_network((4, 8, 1, 2), (), 4, Words.packed(8), Words.packed(8))
    assert len(network.permutes) == 8
    uses = Counter(value for permute in network.permutes for value in (permute.a, permute.b))
    assert [uses[value] for value in range(4, 8)] == [2, 2, 2, 2]


def test_elements_below_a_byte() -> None:
    """Whole words are renamed or selected like any; within words parts are elements, three instructions each."""
    assert build((1, 2, 4, 16, 8), (), 4) == Network(4, (), (0, 2, 1, 3))
    assert build((1, 2, 4, 16), (8,), 4) == build((2,), (1,), 32)
    # Nibbles 1 and 2 of each group of four change places.
    assert build((2, 1, 4, 8), (), 4) == Network(
        2, (Permute(0, 0, (0x75643120,)), Permute(1, 1, (0x75643120,))), (2, 3), parts=8
    )
    assert Move.packed((2, 1, 4, 8), (), (), 4).permutes == 6


def test_narrow_loads_are_joined_and_narrow_stores_taken_apart() -> None:
    """Four bytes, each in the lowest byte of a word: two permutes make pairs, one joins these. Of a word of bytes, each takes
    a word of its own."""
    alone, packed = Words(8, 0), Words.packed(8)
    joined = check_network((1, 2), (), 2, alone, packed)
    assert [(p.a, p.b) for p in joined.permutes] == [(0, 1), (2, 3), (4, 5)] or len(joined.permutes) == 3
    apart = check_network((1, 2), (), 2, packed, alone)
    assert [p.selectors[0] & 0xF for p in apart.permutes] == [0, 1, 2, 3]


def test_units_of_less_than_a_byte_have_gaps() -> None:
    """Four elements of a bit, each in a byte of its own: bits 0, 8, 16, 24 of one word."""
    spread = Words(1, 2, unit=0, gap=3)
    assert [int(first) for (first,) in spread.cells(4)] == [0, 8, 16, 24]
    check_network((1, 2), (), 2, Words.packed(1), spread)
    check_network((2, 1), (), 2, spread, Words.packed(1))


def some_words(rng: random.Random, bits: int) -> Words:
    """Packed words, or narrower parts of words, or elements of less than a byte with gaps."""
    kind = rng.random()
    if kind < 0.5:
        return Words.packed(bits)
    if kind < 0.8 or bits >= 8:
        return Words(bits, rng.randint(0, word_bits(bits)))
    byte = {1: 3, 2: 2, 4: 1}[bits]
    gap = rng.randint(1, byte)
    return Words(bits, rng.randint(byte - gap, word_bits(bits) - gap), byte - gap, gap)


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32, 64])
def test_random_networks_move_every_element(bits: int) -> None:
    """Any choice of source bits for register and thread bits, in any words; threads may also flip bits that registers have."""
    rng = random.Random(bits)
    seen: Counter[str] = Counter()
    for _ in range(300):
        source_bits, register_bits = rng.randint(0, 6), rng.randint(0, 6)
        units = rng.sample([1 << bit for bit in range(source_bits)] + [0] * 6, 6)
        registers = tuple(units[:register_bits])
        left = [unit for unit in (1 << bit for bit in range(source_bits)) if unit not in registers]
        flips = rng.sample(registers, min(len(registers), 2)) if rng.random() < 0.4 else []
        chosen = tuple(rng.sample((left + flips + [0] * 3), 3))
        network = check_network(registers, chosen, source_bits, some_words(rng, bits), some_words(rng, bits))
        seen["permuted"] += bool(network.permutes)
        seen["chosen"] += any(permute.thread_bits for permute in network.permutes)
        seen["shared"] += len(network.permutes) > len(set(network.outputs))
    assert min(seen["permuted"], seen["chosen"]) > 100, seen
    assert seen["shared"] > 10, seen


@pytest.mark.parametrize("bits", [2, 8, 16, 64])
def test_columns_of_several_bits_are_made_word_by_word(bits: int) -> None:
    rng = random.Random(bits)
    for _ in range(100):
        source_bits = rng.randint(1, 5)
        columns = [rng.randrange(1 << source_bits) for _ in range(rng.randint(1, 5))]
        chosen = tuple(rng.randrange(1 << source_bits) for _ in range(2))
        check_network(tuple(columns), chosen, source_bits, some_words(rng, bits), some_words(rng, bits))


def test_a_tree() -> None:
    """Bytes 0 to 3 and 4 to 7; the second word of the result is the other one, its pairs exchanged: 6, 7, 4, 5."""
    assert build((1, 2, 6), (), 8).permutes == (Permute(0, 0, (0x3210,)), Permute(1, 1, (0x1032,)))


# Networks in plans


@pytest.mark.parametrize("bits", some([4, 8, 16, 32], 4, 32))
def test_the_networks_of_plans(gpu_pair: Any, held: Any, bits: int) -> None:
    """Registers alone, before and after exchanges and of halves: `ConversionPlan.simulate` executes their networks."""
    rng = random.Random(bits)
    seen: Counter[str] = Counter()
    for _ in range(150):
        source, destination = gpu_pair(rng, 5, rng.randint(0, 2), rng.randint(2, 5))
        plan = plan_conversion(source, destination, bits, HOPPER)
        assert np.array_equal(plan.simulate(held(source)), held(destination)), (source, destination)
        for step in walk(plan.steps):
            if isinstance(step, Move):
                assert step.network.instructions == step.permutes
                seen[plan.kind] += step.permutes > 0
            elif isinstance(step, LaneExchange):
                assert step.networks.instructions == step.permutes
                seen[made_words(*step.columns)] += 1
    # Wider elements are renamed around exchanges, narrower ones move within words.
    assert bits not in (8, 16) or min(seen["registers"], seen["memory"]) > 2, seen
    assert min(seen["all"], seen["moved"]) > 0, seen
    assert bits > 16 or seen["none"] > 1, seen


@pytest.mark.parametrize("bits", [1, 8, 16, 32])
def test_the_networks_of_plans_through_memory(gpu_pair: Any, held: Any, bits: int) -> None:
    rng = random.Random(bits)
    seen: Counter[bool] = Counter()
    for _ in range(100):
        source, destination = gpu_pair(rng, 5, rng.randint(0, 2), rng.randint(0, 5))
        plan = plan_memory(source, destination, bits, HOPPER)
        assert np.array_equal(plan.simulate(held(source)), held(destination)), (source, destination)
        before, access, after = plan.steps[0], plan.steps[1], plan.steps[-1]
        assert isinstance(before, Move)
        assert isinstance(access, Access)
        assert isinstance(after, Move)
        assert before.made == access.words
        assert before.taken == after.made == Words.packed(bits)
        assert before.network.instructions == before.permutes
        assert after.network.instructions == after.permutes
        seen[before.permutes + after.permutes > 0] += 1
    assert min(seen.values()) > 5, seen


def test_the_networks_of_accesses() -> None:
    """A given memory whose columns are XORs of several register bits, by `AccessPlan.network`."""
    distributed = LinearLayout.parse("{register: [1,2,4], lane: [8,16,32,64,128], warp: []} -> [dim0: 256]")
    memory = LinearLayout.parse("{offset: [2,5,1,8,16,32,64,128]} -> [dim0: 256]")
    elements = list(range(100, 108))
    for stores in (True, False):
        plan = plan_access(distributed, memory, 8, HOPPER, stores=stores, way="vector")
        assert plan.cost.permutes == plan.network.instructions
        order = [xor_of((*plan.inside, *plan.across), place) for place in range(8)]
        accessed = [elements[register] for register in order]
        if stores:
            found = execute(plan.network, in_words(elements, Words.packed(8)), 0)
            assert from_words(found, plan.words, 8) == accessed
        else:
            found = execute(plan.network, in_words(accessed, plan.words), 0)
            assert from_words(found, Words.packed(8), 8) == elements


LABELS = np.arange(2 * 4 * 16).reshape(2, 4, 16)
STEP = Move.packed((4, 8, 1), (2, 0), (8,), 8)
"""Bytes; lane bit 0 and the warp choose."""


def wrong_networks(network: Network, change: int) -> list[Network]:
    """The network with one digit of a selector changed, for each permute, selector and digit."""
    found: list[Network] = []
    for number, permute in enumerate(network.permutes):
        for place in range(len(permute.selectors)):
            for digit in range(network.parts):
                selectors = list(permute.selectors)
                selectors[place] ^= change << digit_bits(network.parts) * digit
                permutes = list(network.permutes)
                permutes[number] = replace(permute, selectors=tuple(selectors))
                found.append(replace(network, permutes=tuple(permutes)))
    return found


def wrong(step: Move, change: int) -> list[Move]:
    """The step with each of `wrong_networks`."""
    found: list[Move] = []
    for network in wrong_networks(step.network, change):
        other = replace(step)
        vars(other)["network"] = network
        found.append(other)
    return found


def test_the_simulator_executes_selectors() -> None:
    expected = run([STEP], LABELS)
    flipped = run([replace(STEP, warp_flip=1)], LABELS)
    for warp in range(2):
        for lane in range(4):
            places = [xor_of((4, 8, 1), r) ^ xor_of((2, 0), lane) ^ 8 * warp for r in range(8)]
            assert expected[warp, lane].tolist() == LABELS[warp, lane, places].tolist()
            places = [place ^ 8 for place in places]
            assert flipped[warp, lane].tolist() == LABELS[warp, lane, places].tolist()


@pytest.mark.parametrize("change", [1, 2, 4])
def test_any_wrong_selector_gives_wrong_labels(change: int) -> None:
    expected = run([STEP], LABELS)
    steps = wrong(STEP, change)
    assert len(steps) > 8
    for step in steps:
        assert not np.array_equal(run([step], LABELS), expected)


def test_any_wrong_selector_of_an_exchange_is_noticed() -> None:
    """Bytes and halves, 8 registers and 4 lanes: register bit 0 with lane bit 0, or bits 1 and 2 with both lane bits."""
    for bits, registers, lanes in ((16, (8, 2, 4), (1, 16)), (8, (8, 2, 4), (1, 16)), (32, (1, 8, 16), (2, 4))):
        a = LinearLayout.from_columns({"register": (1, 2, 4), "lane": (8, 16), "warp": ()}, (("dim0", 5),))
        b = LinearLayout.from_columns({"register": registers, "lane": lanes, "warp": ()}, (("dim0", 5),))
        machine = replace(HOPPER, lanes=4, ldmatrix=False, stmatrix=False)
        (step,) = (s for s in plan_conversion(a, b, bits, machine).steps if isinstance(s, LaneExchange))
        labels = np.arange(32).reshape(1, 4, 8)
        expected = run([step], labels)
        networks_of = step.networks
        tried = 0
        for name in ("offer", "receive"):
            for network in wrong_networks(getattr(networks_of, name), 4):
                other = replace(step)
                vars(other)["networks"] = replace(networks_of, **{name: network})
                tried += 1
                assert noticed(other, labels, expected), (bits, name)
        assert tried >= 8, (bits, tried)


def noticed(step: Step, labels: Any, expected: Any) -> bool:
    try:
        return not np.array_equal(run([step], labels), expected)
    except RuntimeError:
        return True


def test_parts_of_several_elements_are_noticed() -> None:
    """Halves of 16 bits, of which the lowest byte is exchanged for the other one."""
    step = Move.packed((2, 1), (), (), 16)
    with pytest.raises(RuntimeError) as error:
        run([wrong(step, 1)[0]], LABELS[:1, :1])
    assert str(error.value) == "registers permuted, 2 permutes: the parts of an element come from several"
