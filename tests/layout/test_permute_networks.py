"""Networks of byte permutes: small ones literally, random ones executed on bytes and compared with the movement of elements."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from weft.layout.planning import networks
from weft.layout.planning.check import run
from weft.layout.planning.choose import plan_conversion
from weft.layout.planning.machine import HOPPER
from weft.layout.planning.networks import Network, Permute, build
from weft.layout.planning.permutes import count, move
from weft.layout.planning.steps import Move, walk


def xor_of(columns: tuple[int, ...], index: int) -> int:
    result = 0
    for bit, column in enumerate(columns):
        if index >> bit & 1:
            result ^= column
    return result


def prmt(a: bytes, b: bytes, selector: int) -> bytes:
    """PTX ``prmt.b32``, without its modes."""
    both = a + b
    return bytes(both[selector >> 4 * place & 15] for place in range(4))


def execute(network: Network, held: bytes, thread: int) -> bytes:
    """The words that a thread has after the network, for the bytes it holds before."""
    values = [held[4 * word : 4 * word + 4].ljust(4, b"\xff") for word in range(network.sources)]
    for permute in network.permutes:
        values.append(prmt(values[permute.a], values[permute.b], permute.selector(thread)))
    return b"".join(values[output] for output in network.outputs)


def moved(registers: tuple[int, ...], chosen: tuple[int, ...], bits: int, held: bytes, thread: int) -> bytes:
    """The same by copying elements one by one."""
    size = bits // 8
    places = [xor_of(registers, r) ^ xor_of(chosen, thread) for r in range(1 << len(registers))]
    return b"".join(held[place * size : (place + 1) * size] for place in places)


def check_network(registers: tuple[int, ...], chosen: tuple[int, ...], bits: int, source_bits: int) -> Network:
    network = build(registers, chosen, bits)
    assert network is not None
    held = random.Random(1).randbytes((bits // 8) << source_bits)
    for thread in range(1 << len(chosen)):
        expected = moved(registers, chosen, bits, held, thread)
        found = execute(network, held, thread)
        assert found[: len(expected)] == expected, (registers, chosen, bits, thread)
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
    network = check_network((4, 8, 1, 2), (), 8, 4)
    assert len(network.permutes) == 8
    uses = Counter(value for permute in network.permutes for value in (permute.a, permute.b))
    assert [uses[value] for value in range(4, 8)] == [2, 2, 2, 2]


def test_elements_below_a_byte_are_moved_in_whole_words() -> None:
    assert build((1, 2, 4, 16, 8), (), 4) == Network(4, (), (0, 2, 1, 3))
    assert build((1, 2, 4, 16), (8,), 4) == build((2,), (1,), 32)
    assert build((2, 1, 4, 8), (), 4) is None
    # Three instructions a word: shift, mask, merge.
    assert move((2, 1, 4, 8), (), (), 4).permutes == 6


def test_columns_of_several_bits_are_refused() -> None:
    with pytest.raises(ValueError) as error:
        build((1, 3), (), 8)
    assert str(error.value) == "permutes: columns (1, 3) and (), expected powers of two and zeros"


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_random_networks_move_every_byte(bits: int) -> None:
    """Any choice of source bits for register and thread bits; threads may also flip a bit that registers have."""
    rng = random.Random(bits)
    seen: Counter[str] = Counter()
    for _ in range(400):
        source_bits, register_bits = rng.randint(0, 6), rng.randint(0, 6)
        units = rng.sample([1 << bit for bit in range(source_bits)] + [0] * 6, 6)
        registers = tuple(units[:register_bits])
        left = [unit for unit in (1 << bit for bit in range(source_bits)) if unit not in registers]
        flips = [rng.choice(registers)] if registers and rng.random() < 0.3 else []
        chosen = tuple(rng.sample((left + flips + [0] * 3), 3))
        network = check_network(registers, chosen, bits, source_bits)
        counted = count(registers, chosen, (), bits)
        step = move(registers, chosen, (), bits)
        assert len(network.permutes) == step.permutes <= counted, (registers, chosen)
        seen["fewer" if step.permutes < counted else "equal"] += 1
        seen["chosen"] += any(permute.thread_bits for permute in network.permutes)
        seen["shared"] += len(network.permutes) > len(set(network.outputs))
    assert seen["equal"] > 300, seen
    assert seen["chosen"] > 50, seen
    assert seen["shared"] > 10, seen


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
def test_the_networks_of_plans(gpu_pair: Any, held: Any, bits: int) -> None:
    """Registers alone, before and after exchanges and of halves: `ConversionPlan.simulate` executes their networks."""
    rng = random.Random(bits)
    seen: Counter[str] = Counter()
    for _ in range(150):
        source, destination = gpu_pair(rng, 5, rng.randint(0, 2), rng.randint(2, 5))
        plan = plan_conversion(source, destination, bits, HOPPER)
        assert np.array_equal(plan.simulate(held(source)), held(destination)), (source, destination)
        for step in walk(plan.steps):
            if isinstance(step, Move) and step.network is not None:
                assert len(step.network.permutes) == step.permutes
                seen[plan.kind] += step.permutes > 0
    # Wider elements are renamed around exchanges, narrower ones move within words.
    assert bits not in (8, 16) or min(seen["registers"], seen["warp"]) > 2, seen


LABELS = np.arange(2 * 4 * 16).reshape(2, 4, 16)
STEP = move((4, 8, 1), (2, 0), (8,), 8)
"""Bytes; lane bit 0 and the warp choose."""


def wrong(step: Move, change: int) -> list[Move]:
    """The step with one selector changed, for each permute, selector and nibble."""
    network = step.network
    assert network is not None
    found: list[Move] = []
    for number, permute in enumerate(network.permutes):
        for place in range(len(permute.selectors)):
            for nibble in range(4):
                selectors = list(permute.selectors)
                selectors[place] ^= change << 4 * nibble
                permutes = list(network.permutes)
                permutes[number] = replace(permute, selectors=tuple(selectors))
                other = replace(step)
                vars(other)["network"] = replace(network, permutes=tuple(permutes))
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


def test_bytes_of_several_elements_are_noticed() -> None:
    """Halves of 16 bits, of which the lowest byte is exchanged for the other one."""
    step = move((2, 1), (), (), 16)
    with pytest.raises(RuntimeError) as error:
        run([wrong(step, 1)[0]], LABELS[:1, :1])
    assert str(error.value) == "registers permuted, 2 permutes: the bytes of an element come from several"


def test_moves_that_pack_for_memory_have_no_network() -> None:
    assert Move((1,), (), (), 8, 2, packs=True).network is None
    assert networks.length((2, 1, 4, 8), (), 4) is None
