"""Exchanges by shuffles, executed on labels and compared with direct evaluation; their cost against the bounds."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from sampling import at_night, grid
from weft.layout import LinearLayout
from weft.layout.planning.check import run
from weft.layout.planning.machine import CDNA, HOPPER, MachineModel
from weft.layout.planning.needs import Places, least_shuffles, needs
from weft.layout.planning.price import clocks
from weft.layout.planning.steps import Cost, total
from weft.layout.planning.ways.lanes import Exchanger, rename, sequence, within_warps


def by_shuffles(cost: Cost) -> float:
    """A price that asks for the fewest shuffles, then the fewest permutes."""
    return cost.shuffles + cost.permutes / 1e6


def machine(lane_bits: int) -> MachineModel:
    return {5: HOPPER, 6: CDNA}.get(lane_bits) or MachineModel(f"{1 << lane_bits} lanes", lanes=1 << lane_bits)


def held(places: Places) -> Any:
    """What each warp, lane and register holds, from the columns one index at a time."""

    def at(columns: tuple[int, ...], index: int) -> int:
        return int(np.bitwise_xor.reduce([c for bit, c in enumerate(columns) if index >> bit & 1] or [0]))

    axes = [
        [at(columns, i) for i in range(1 << len(columns))] for columns in (places.warp, places.lane, places.register)
    ]
    return np.array([[[w ^ x ^ r for r in axes[2]] for x in axes[1]] for w in axes[0]])


def swaps(register_bits: int, exchanged: int) -> tuple[Places, Places]:
    """32 lanes; the highest register bits exchanged with the lowest lane bits, each with its own."""
    units = [1 << bit for bit in range(register_bits + 5)]
    moved = list(units)
    for i in range(exchanged):
        r, p = register_bits - 1 - i, register_bits + i
        moved[r], moved[p] = moved[p], moved[r]
    first, second = (Places(tuple(c[:register_bits]), tuple(c[register_bits:]), ()) for c in (units, moved))
    return first, second


@pytest.mark.parametrize(("bits", "lane_bits"), grid(4, [1, 2, 4, 8, 16, 32, 64], [2, 5, 6]))
def test_steps_do_what_the_layouts_say(gpu_pair: Any, bits: int, lane_bits: int) -> None:
    rng = random.Random(100 * bits + lane_bits)
    seen: Counter[str] = Counter()
    target = machine(lane_bits)
    for _ in range(100):
        source, destination = gpu_pair(rng, lane_bits, rng.randint(0, 4))
        a, b = Places.of(source), Places.of(destination)
        need = needs(a, b)
        seen[need] += 1
        price = rng.choice((by_shuffles, partial(clocks, machine=target, warps=1 << len(a.warp))))
        steps = within_warps(a, b, bits, target, price)
        if steps is None:
            assert need == "warps"
            continue
        state = held(a)
        for step in steps:
            state = run((step,), state)
        assert np.array_equal(state, held(b)), (source, destination)
        cost = total([step.cost for step in steps])
        assert (cost.shuffles == 0) == (need != "lanes")
        assert cost == Cost(shuffles=cost.shuffles, permutes=cost.permutes)
        if need == "lanes":
            assert cost.shuffles >= least_shuffles(a, b, bits, target.shuffle_bits)
    assert seen["lanes"] > 15, seen


def test_the_bound_is_met_where_words_are_full(gpu_pair: Any) -> None:
    """Proved in the module: with enough common bits to fill a word (or all registers in one), and no warp's number in place of a
    lane bit, one exchange takes 2^words, less 2^-k of them where k pairs are in place: the bound."""
    rng = random.Random(7)
    met = 0
    for _ in range(3000):
        bits = rng.choice((4, 8, 16, 32, 64))
        source, destination = gpu_pair(rng, 5, rng.randint(0, 2))
        a, b = Places.of(source).first_copies, Places.of(destination).first_copies
        if needs(a, b) != "lanes":
            continue
        into_warps = {y for x, y in zip(a.warp, b.warp, strict=True) if x != y}
        common = set(a.register) & set(b.register)
        full = bits << len(common) >= 32 or common == set(b.register)
        if full and into_warps.isdisjoint(a.lane):
            steps = sequence(a, b, bits, HOPPER, by_shuffles)
            assert steps is not None
            shuffles = sum(step.cost.shuffles for step in steps)
            assert shuffles == least_shuffles(a, b, bits, 32), (source, destination, bits)
            met += 1
    assert met > 500, met


def test_costs_are_counted_as_exchanges_have_them(gpu_pair: Any) -> None:
    rng = random.Random(3)
    forms: Counter[str] = Counter()
    for _ in range(1200 if at_night() else 200):
        bits = 1 << rng.randint(0, 6)
        source, destination = gpu_pair(rng, 5, rng.randint(0, 2))
        a, b = Places.of(source).first_copies, Places.of(destination).first_copies
        if needs(a, b) != "lanes":
            continue
        exchanger = Exchanger(a, b, bits, HOPPER)
        for spread in (False, True):
            step = exchanger.exchange(spread)
            assert step.cost == exchanger.cost(spread)
            assert np.array_equal(run((step,), held(a)), held(b))
            # The rounds that move nothing, and the form, by looking at every lane.
            reads = [step.reads.at(number)[:, :, 0] for number in range(1 << step.round_bits)]
            own = np.arange(32)
            assert sum(bool((lanes == own).all()) for lanes in reads) == step.stays
            constant = all(len(set((lanes ^ own).flat)) == 1 for lanes in reads)
            assert step.form == ("bfly" if constant and step.stays else "idx")
            forms[step.form] += 1
    assert min(forms["bfly"], forms["idx"]) > 20, forms


def test_the_modules_example() -> None:
    """One register bit with one lane bit: round 0 stays; in round 1 a lane offers what its neighbour is to have."""
    a, b = Places((1,), (2, 4), ()), Places((2,), (1, 4), ())
    step = Exchanger(a, b, 32, machine(2)).exchange()
    assert (step.round_bits, step.stays, step.form) == (1, 1, "bfly")
    assert step.offered.at(0)[0, :, 0].tolist() == [0, 1, 0, 1]
    assert step.offered.at(1)[0, :, 0].tolist() == [1, 0, 1, 0]
    assert step.reads.at(0)[0, :, 0].tolist() == [0, 1, 2, 3]
    assert step.reads.at(1)[0, :, 0].tolist() == [1, 0, 3, 2]
    assert step.into.at(1)[0, :, 0].tolist() == [1, 0, 1, 0]
    # Lane 0 held 0 1, lane 1 held 2 3: now 0 2 and 1 3.
    assert run((step,), held(a)).tolist() == [[[0, 2], [1, 3], [4, 6], [5, 7]]]
    # One select chooses the word to offer, one each what both registers get.
    assert step.cost == Cost(shuffles=1, permutes=3)
    assert str(step) == "1 shfl.bfly, 3 permutes"


def test_a_wrong_lane_gives_wrong_labels() -> None:
    a, b = swaps(2, 1)
    step = Exchanger(a, b, 32, HOPPER).exchange()
    assert np.array_equal(run((step,), held(a)), held(b))
    other = replace(step.reads, lane=(2, *step.reads.lane[1:]))
    assert not np.array_equal(run((replace(step, reads=other),), held(a)), held(b))


def test_a_register_that_gets_nothing_is_noticed() -> None:
    a, b = swaps(2, 1)
    step = Exchanger(a, b, 32, HOPPER).exchange()
    wrong = replace(step, into=replace(step.into, round=(0,) * step.round_bits))
    with pytest.raises(RuntimeError) as error:
        run((wrong,), held(a))
    # All four rounds are put where the lane alone says.
    assert str(error.value) == "shfl.bfly: neither rounds nor slots tell bit 0 of the registers apart"


@pytest.mark.parametrize(
    ("registers", "exchanged", "bits", "shuffles"),
    [
        # Words are full: one exchange of k pairs moves all but 2^-k of the words.
        (7, 1, 32, 64),
        (7, 2, 32, 96),
        (7, 5, 32, 124),
        (5, 1, 64, 32),
        (5, 2, 64, 48),
        # Two to a word, 16 words; one bit has to stay to pack them. All 5 bits are exchanged: 4 of them take 15/16 of 16 words,
        # and the last takes half: 15 + 8. (One step would take 31 halves of a word, one bit at a time 5 x 8.)
        (5, 5, 16, 23),
        (5, 4, 16, 15),
        # Four to a word, 8 words, two bits stay: 3 bits take 7, the other two 3/4 of 8.
        (5, 5, 8, 13),
        (5, 4, 8, 11),
        (5, 3, 8, 7),
        # Four elements of a word, all exchanged: two steps of half a word (one would take 3 bytes one by one).
        (2, 2, 8, 2),
    ],
)
def test_the_fewest_shuffles_of_exchanges_in_place(registers: int, exchanged: int, bits: int, shuffles: int) -> None:
    a, b = swaps(registers, exchanged)
    steps = sequence(a, b, bits, HOPPER, by_shuffles)
    assert steps is not None
    assert sequence(a, b, bits, HOPPER, by_shuffles, to_beat=shuffles - 1) is None
    assert sum(step.cost.shuffles for step in steps) == shuffles
    state = held(a)
    for step in steps:
        state = run((step,), state)
    assert np.array_equal(state, held(b))


def test_selects_are_shared_in_a_network() -> None:
    """4 words of 2 bits exchanged in one step: 2 stages of 4 selects before and after. One bit at a time: 2 steps of 2 pairs, a
    shuffle and 3 selects each."""
    a, b = swaps(2, 2)
    assert Exchanger(a, b, 32, HOPPER).cost() == Cost(shuffles=3, permutes=16)
    price = partial(clocks, machine=HOPPER, warps=1)
    steps = sequence(a, b, 32, HOPPER, price)
    assert steps is not None
    assert total([step.cost for step in steps]) == Cost(shuffles=4, permutes=12)
    assert [str(step) for step in steps] == ["2 shfl.bfly, 6 permutes"] * 2


def test_words_are_packed_and_put_back() -> None:
    """Bytes, 4 in a lane: the one bit that both sides have in registers is the higher one in A, the lower in B. A word to
    offer takes two bytes of one word: no permute but the one that puts them."""
    a = Places((1, 2), (4, 8), ())
    b = Places((2, 4), (1, 8), ())
    step = Exchanger(a, b, 8, machine(2)).exchange()
    assert step.word == 2
    # Both rounds' words come from the one word a lane has; the other round's is its own: one permute joins them.
    assert step.cost == Cost(shuffles=1, permutes=1)
    assert str(step) == "1 shfl.bfly of 2 x 8 bits, 1 permutes"


def test_a_bit_within_words_is_exchanged_by_byte_permutes() -> None:
    """8 bytes in two words X and Y; the lowest register bit is exchanged. Of X and Y a lane offers the two bytes each that it
    is not to keep, in one word: one byte permute. What it gets and X make the new X, and so for Y."""
    a, b = Places((1, 2, 4), (8, 16), ()), Places((8, 2, 4), (1, 16), ())
    step = Exchanger(a, b, 8, machine(2)).exchange()
    assert step.cost == Cost(shuffles=1, permutes=3)
    assert step.word == 4
    assert np.array_equal(run((step,), held(a)), held(b))


def test_copies_offer_a_half_each() -> None:
    """Two lanes hold both elements; elsewhere one each is wanted. Each copy offers another, so one shuffle serves all lanes."""
    a, b = Places((1,), (2, 0, 4), ()), Places((), (1, 2, 4), ())
    steps = sequence(a, b, 32, machine(3), by_shuffles)
    assert steps is not None
    assert [step.cost.shuffles for step in steps] == [1]
    assert np.array_equal(run((steps[0],), held(a)), held(b))


def test_leaving_for_copies() -> None:
    """Elements of two lanes are wanted by both: each sends its own to the other and selects, or both read both."""
    a, b = Places((), (1, 2), ()), Places((1,), (0, 2), ())
    exchanger = Exchanger(a, b, 32, machine(2))
    assert exchanger.cost(spread=False) == Cost(shuffles=2)
    assert exchanger.cost(spread=True) == Cost(shuffles=1, permutes=2)
    for spread in (False, True):
        assert run((exchanger.exchange(spread),), held(a)).tolist() == [[[0, 1], [0, 1], [2, 3], [2, 3]]]


# Registers


def test_renaming_words_is_free() -> None:
    a, b = Places((1, 2, 4), (8,), ()), Places((4, 0, 1, 2), (8,), ())
    for bits in (32, 64):
        step = rename(a, b, bits)
        assert step.cost == Cost()
        assert str(step) == "registers renamed"
        assert np.array_equal(run((step,), held(a)), held(b))


def test_permuting_bytes_costs_permutes() -> None:
    # A 4x4 matrix of bytes transposed within a thread: two stages of 4 byte permutes.
    a, b = Places((1, 2, 4, 8), (), ()), Places((4, 8, 1, 2), (), ())
    assert rename(a, b, 8).cost == Cost(permutes=8)
    # Of halves: the lowest bit comes from another word, so 8 words are made of two each.
    assert rename(a, b, 16).cost == Cost(permutes=8)
    # Within words alone: one each. Below bytes, three instructions for one.
    a, b = Places((1, 2, 4), (), ()), Places((2, 1, 4), (), ())
    assert rename(a, b, 8).cost == Cost(permutes=2)
    assert rename(a, b, 4).cost == Cost(permutes=3)
    assert str(rename(a, b, 8)) == "registers permuted, 2 permutes"


def test_selecting_a_share_is_a_tree() -> None:
    """16 lanes hold all of 16 words, each is to have its own: 8 + 4 + 2 + 1 selects; of 32, both halves."""
    lanes = (1, 2, 4, 8)
    a, b = Places(lanes, (0,) * 4, ()), Places((), lanes, ())
    step = rename(a, b, 32)
    assert step.cost == Cost(permutes=15)
    assert str(step) == "registers selected, 15 permutes"
    assert run((step,), held(a)).tolist() == [[[lane] for lane in range(16)]]
    assert rename(Places((*lanes, 16), (0,) * 4, ()), Places((16,), lanes, ()), 32).cost == Cost(permutes=30)
    assert rename(a, b, 64).cost == Cost(permutes=30)


def test_degenerate() -> None:
    nothing = Places((), (), ())
    assert within_warps(nothing, nothing, 32, machine(0), by_shuffles) == ()
    copies = Places((0,), (0,) * 5, (0,))
    steps = within_warps(copies, Places((), (0,) * 5, (0,)), 8, HOPPER, by_shuffles)
    assert steps is not None
    assert [str(step) for step in steps] == ["registers renamed"]


def test_the_example_of_a_layout_as_places() -> None:
    layout = LinearLayout.parse("{register: [1], lane: [2]} -> [dim0: 4]")
    assert Places.of(layout) == Places((1,), (2,), ())
    assert Places((0, 1, 0), (2,), (0,)).first_copies == Places((1,), (2,), (0,))
