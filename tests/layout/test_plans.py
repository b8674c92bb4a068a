"""Plans for a GPU, executed on labels and compared with direct evaluation; what they choose, cost and say."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sampling import grid
from weft.layout import LinearLayout, blocked, nvidia_mma, nvidia_mma_operand, sliced
from weft.layout.planning.accesses import Addresses, VectorAccess
from weft.layout.planning.check import run
from weft.layout.planning.choose import plan_conversion, plan_memory
from weft.layout.planning.machine import AMPERE, CDNA, HOPPER, MachineModel
from weft.layout.planning.price import clocks
from weft.layout.planning.steps import Barrier, Cost, Move, Parallel


def layout(
    register: Sequence[int], lane: Sequence[int], warp: Sequence[int] = (), block: Sequence[int] | None = None
) -> LinearLayout:
    """A layout of a one-dimensional tensor that has all these bits."""
    dims = {"register": register, "lane": lane, "warp": warp, **({} if block is None else {"block": block})}
    size = 1 << sum(1 for bases in dims.values() for basis in bases if basis)
    return LinearLayout({dim: [(basis,) for basis in bases] for dim, bases in dims.items()}, {"dim0": size})


def swapped(
    places: Sequence[tuple[str, int, str, int]], register_bits: int = 6, warp_bits: int = 2
) -> tuple[LinearLayout, LinearLayout]:
    """A layout of 32 lanes without copies, and one with these places exchanged."""
    sizes = {"register": register_bits, "lane": 5, "warp": warp_bits}
    units = iter(range(13 + register_bits))
    dims = {dim: [1 << next(units) for _ in range(bits)] for dim, bits in sizes.items()}
    first = layout(**dims)
    for dim, i, other, j in places:
        dims[dim][i], dims[other][j] = dims[other][j], dims[dim][i]
    return first, layout(**dims)


# Correctness


@pytest.mark.parametrize(
    ("bits", "machine"),
    grid(4, [1, 2, 4, 8, 16, 32, 64], [HOPPER, AMPERE, CDNA]),
    ids=lambda value: value.name if isinstance(value, MachineModel) else str(value),
)
def test_plans_do_what_the_layouts_say(gpu_pair: Any, held: Any, bits: int, machine: MachineModel) -> None:
    lane_bits = machine.lanes.bit_length() - 1
    rng = random.Random(bits * 1000 + sum(map(ord, machine.name)))
    seen: Counter[str] = Counter()
    for _ in range(60):
        source, destination = gpu_pair(rng, lane_bits, rng.randint(0, 4), rng.randint(0, 4))
        plan = plan_conversion(source, destination, bits, machine)
        assert np.array_equal(plan.simulate(held(source)), held(destination)), (source, destination)
        seen[plan.kind] += 1
        for count, least in plan.lower_bound.__dict__.items():
            assert getattr(plan.cost, count) >= least, (source, destination, count)
        assert plan.reason
    assert min(seen[kind] for kind in ("nothing", "registers", "warp", "memory")) > 0, seen


def test_halves_do_what_the_layouts_say(gpu_pair: Any, held: Any) -> None:
    """Pairs in which a register bit and a warp bit change places, among other changes."""
    rng = random.Random(11)
    seen: Counter[str] = Counter()
    for _ in range(150):
        source, _ = gpu_pair(rng, 5, rng.randint(1, 3), 4)
        columns = {dim: list(source.columns(dim)) for dim in source.in_dims}
        for _ in range(rng.randint(1, 3)):
            r, w = rng.randrange(4), rng.randrange(len(columns["warp"]))
            columns["register"][r], columns["warp"][w] = columns["warp"][w], columns["register"][r]
        if rng.random() < 0.5:
            i, j = rng.randrange(4), rng.randrange(5)
            columns["register"][i], columns["lane"][j] = columns["lane"][j], columns["register"][i]
        destination = source.with_columns({dim: tuple(bases) for dim, bases in columns.items()})
        bits = rng.choice((8, 16, 32, 64))
        plan = plan_conversion(source, destination, bits, HOPPER)
        assert np.array_equal(plan.simulate(held(source)), held(destination)), (source, destination)
        for count, least in plan.lower_bound.__dict__.items():
            assert getattr(plan.cost, count) >= least, (source, destination, count)
        seen[plan.kind] += 1
    assert seen["halves"] > 10, seen


# Kinds


def test_nothing_to_do() -> None:
    source = blocked((64, 64), (1, 4), (8, 4), (4, 1), (1, 0))
    plan = plan_conversion(source, source, 16, HOPPER)
    assert (plan.kind, plan.steps, plan.cost) == ("nothing", (), Cost())
    assert plan.reason == "no data moves: the layouts are equal"
    assert str(plan) == "nothing"
    # f16 results of wgmma are its operand: the same layout under another name.
    result, operand = nvidia_mma((64, 64), 3, (4, 1), (16, 64)), nvidia_mma_operand((64, 64), 0, 2, 3, (4, 1), (16, 64))
    assert plan_conversion(result, operand, 16, HOPPER).kind == "nothing"


def test_registers_are_renamed_or_selected() -> None:
    lanes = (4, 8, 16, 32, 64)
    plan = plan_conversion(layout((1, 2), lanes), layout((2, 0, 1), lanes), 32, HOPPER)
    assert (plan.kind, plan.cost, str(plan)) == ("registers", Cost(), "registers renamed")
    assert plan.reason == "each thread has what it needs: its registers are renamed"
    # All lanes hold two elements; the odd ones are to have the second.
    plan = plan_conversion(layout((1,), (0, 4, 8, 16, 2)), layout((), (1, 4, 8, 16, 2)), 32, HOPPER)
    assert (plan.kind, plan.cost, str(plan)) == ("registers", Cost(permutes=1), "registers selected, 1 permute")
    assert plan.reason == (
        "each thread has what it needs: its registers are chosen by its lane and warp; 0 clocks, memory at least 30"
    )


def test_shuffles() -> None:
    """64 f32 a thread, one bit exchanged: 32 shuffles of 4 warps at a clock, 96 permutes of 4 warps at half a clock. A shuffle
    takes 24 until its word is there. Memory would store 256 lines of 128 bytes and load them, and wait: 4 for a barrier, 24 for
    a load."""
    source, destination = swapped([("register", 5, "lane", 0)])
    plan = plan_conversion(source, destination, 32, HOPPER)
    assert (plan.kind, str(plan)) == ("warp", "32 shfl.bfly, 96 permutes")
    assert (plan.cost, plan.lower_bound) == (Cost(shuffles=32, permutes=96), Cost(shuffles=32))
    assert plan.reason == (
        "it stays within warps: 32 shuffles (the least is 32) and 96 permutes a thread; 216 clocks, memory at least 540"
    )


def test_memory_where_it_is_cheaper() -> None:
    """Five bits exchanged: 32 shuffles and 96 selects for each, or 16 loads and stores of 128 bits."""
    places = [("register", 5 - i, "lane", i) for i in range(4)]
    source, destination = swapped(places)
    plan = plan_conversion(source, destination, 32, HOPPER)
    memory = plan_memory(source, destination, 32, HOPPER)
    assert (plan.kind, plan.steps) == ("memory", memory.steps)
    # 512 wavefronts, 4 for the barrier of a warp, 24 for the loads; four exchanges of 192, each waited for.
    assert (memory.price, clocks(memory.cost, HOPPER, 4)) == (540, 512)
    assert plan.reason == f"{memory.reason}; 540 clocks, shuffles 864"


def test_half_of_the_data_stays_in_its_warp() -> None:
    """A register bit and a warp bit change places: of 64 words 32 stay, 32 move by 8 stores and loads of 128 bits."""
    source, destination = swapped([("register", 5, "warp", 0)])
    plan = plan_conversion(source, destination, 32, HOPPER)
    memory = plan_memory(source, destination, 32, HOPPER)
    assert (memory.cost.stores, memory.cost.loads, memory.cost.wavefronts) == (16, 16, 512)
    assert plan.kind == "halves"
    assert plan.cost == Cost(permutes=128, stores=8, loads=8, wavefronts=256, barriers=1, scratch=16384)
    assert str(plan) == (
        "registers selected, 64 permutes; half stays (nothing), half moves "
        "(store 8 x 128 bits; barrier; load 8 x 128 bits); registers selected, 64 permutes"
    )
    assert plan.reason == (
        "half of what each thread needs is in its warp (no data moves: the layouts are equal), half moves through memory; "
        "300 clocks, memory 556"
    )


def test_the_half_that_stays_may_be_shuffled(held: Any) -> None:
    source, destination = swapped([("register", 5, "warp", 0), ("register", 4, "lane", 2)])
    plan = plan_conversion(source, destination, 64, HOPPER)
    assert np.array_equal(plan.simulate(held(source)), held(destination))
    assert plan.kind == "halves"
    halves = plan.steps[1]
    assert isinstance(halves, Parallel)
    assert "; ".join(map(str, halves.stays)) == "32 shfl.bfly, 96 permutes"
    assert (halves.cost.shuffles, halves.cost.stores) == (32, 16)


def test_halves_of_halves(held: Any) -> None:
    source, destination = swapped([("register", 5, "warp", 0), ("register", 4, "warp", 1)])
    plan = plan_conversion(source, destination, 32, HOPPER)
    assert np.array_equal(plan.simulate(held(source)), held(destination))
    assert plan.kind == "halves"
    halves = plan.steps[1]
    assert isinstance(halves, Parallel)
    assert any(isinstance(step, Parallel) for step in halves.stays)
    # Half, then half of the rest: 8 + 4 of 16, with a barrier each.
    assert (plan.cost.stores, plan.cost.loads, plan.cost.barriers) == (12, 12, 2)


def test_all_moves_where_no_half_stays() -> None:
    """Warp bits change places with each other: only warps whose bits agree keep theirs."""
    source, destination = swapped([("warp", 0, "warp", 1)])
    plan = plan_conversion(source, destination, 32, HOPPER)
    assert plan == plan_memory(source, destination, 32, HOPPER)


def test_what_moves_waits_for_all_warps() -> None:
    """The half that moves is planned as a conversion within warps, but another warp reads it: its barrier is the block's."""
    source, destination = swapped([("register", 5, "warp", 0)])
    halves = plan_conversion(source, destination, 32, HOPPER).steps[1]
    assert isinstance(halves, Parallel)
    assert "warp barrier" not in str(halves)
    inner = layout(tuple(1 << i for i in range(5)), (32, 64, 128, 256, 512), (1024, 2048))
    assert "warp barrier" in str(plan_memory(inner, inner, 32, HOPPER))


# Triton 3.9.0 (sm_90, 4 warps): shuffles of a thread, read off its PTX, for what it converts within warps. Shapes 16x16, 32x32,
# 64x64, 128x128.

TRITON_SHUFFLES = [
    ("mma2_4x1->dot0", 8, (2, 4, 8, 32)),
    ("mma2_4x1->dot0", 16, (0, 0, 0, 0)),
    ("mma2_4x1->dot0", 32, (8, 16, 32, 128)),
    ("mma2_4x1->dot0", 64, (16, 32, 64, 256)),
    ("mma3->dot3", 8, (2, 4, 8, 32)),
    ("mma3->dot3", 16, (0, 0, 0, 0)),
    ("mma3->dot3", 32, (8, 16, 32, 128)),
    ("mma2_2x2->dot1", 16, (2,)),
    ("mma2_2x2->dot1", 32, (4,)),
    ("mma2_2x2->dot1", 64, (8,)),
]


def matmul_layouts(case: str, size: int, bits: int) -> tuple[LinearLayout, LinearLayout]:
    """The result of an instruction and an operand of the next, whose elements of 32 bits are adjacent."""
    shape, k_width = (size, size), max(1, 32 // bits)
    if case == "mma3->dot3":
        instruction = (16, min(size, 64))
        return nvidia_mma(shape, 3, (4, 1), instruction), nvidia_mma_operand(shape, 0, k_width, 3, (4, 1), instruction)
    warps = (4, 1) if case == "mma2_4x1->dot0" else (2, 2)
    operand = 0 if case == "mma2_4x1->dot0" else 1
    return nvidia_mma(shape, 2, warps, (16, 8)), nvidia_mma_operand(shape, operand, k_width, 2, warps, (16, 8))


@pytest.mark.parametrize(("case", "bits", "counts"), TRITON_SHUFFLES)
def test_as_few_shuffles_as_triton(held: Any, case: str, bits: int, counts: tuple[int, ...]) -> None:
    for size, shuffles in zip((16, 32, 64, 128), counts, strict=False):
        source, destination = matmul_layouts(case, size, bits)
        plan = plan_conversion(source, destination, bits, HOPPER)
        assert plan.kind == ("warp" if shuffles else "nothing")
        # Each of these is the bound as well.
        assert plan.cost == Cost(shuffles=shuffles, permutes=plan.cost.permutes)
        assert plan.lower_bound == Cost(shuffles=shuffles)
        assert np.array_equal(plan.simulate(held(source)), held(destination))


def test_what_triton_takes_through_the_blocks_memory_but_stays_in_a_warp() -> None:
    """16x16 results of wgmma are in every warp; slices of one layout along either axis: no barrier of the block in either."""
    source = nvidia_mma((16, 16), 3, (4, 1), (16, 16))
    plan = plan_conversion(source, blocked((16, 16), (1, 2), (4, 8), (4, 1), (1, 0)), 32, HOPPER)
    # A warp wants 64 words, 4 rows. Row bit 4 is a lane bit of the source, so half of its lanes hold all of them. Three lane
    # bits have to agree for a word to be where it is wanted: 8 of 64 may stay, 16 lanes send 56.
    assert (plan.kind, plan.cost.shuffles, plan.lower_bound.shuffles) == ("warp", 4, 4)
    parent = blocked((128, 128), (1, 4), (1, 32), (4, 1), (1, 0))
    plan = plan_conversion(sliced(parent, 0), layout((1, 2), (4, 8, 16, 32, 64), (0, 0)), 32, HOPPER)
    assert plan.kind == "nothing"


def test_a_slice_is_dealt_out_without_memory() -> None:
    """x[:, None]: 16 lanes hold the same 16 words; each selects its own, where Triton stores all of them from every lane."""
    held_by_all = layout((1, 2, 4, 8), (0, 0, 0, 0, 16), (32, 64))
    own = layout((), (1, 2, 4, 8, 16), (32, 64))
    plan = plan_conversion(held_by_all, own, 32, HOPPER)
    assert (plan.kind, plan.cost) == ("registers", Cost(permutes=15))


# Blocks, degenerate cases


def test_every_block_does_the_same(held: Any) -> None:
    source = layout((1, 2), (4, 8, 16, 32, 64), (256,), (128,))
    destination = layout((4, 2), (1, 8, 16, 32, 64), (256,), (128,))
    plan = plan_conversion(source, destination, 32, HOPPER)
    assert str(plan) == "2 shfl.bfly, 6 permutes"
    assert np.array_equal(plan.simulate(held(source)), held(destination))
    destination = layout((256, 2), (1, 8, 16, 32, 64), (4,), (128,))
    plan = plan_conversion(source, destination, 32, HOPPER)
    assert np.array_equal(plan.simulate(held(source)), held(destination))


def test_degenerate() -> None:
    scalar = LinearLayout({"register": [], "lane": [()] * 5, "warp": [()]}, {})
    assert plan_conversion(scalar, scalar, 32, HOPPER).kind == "nothing"
    copies = LinearLayout({"register": [()], "lane": [()] * 5, "warp": [()]}, {})
    plan = plan_conversion(copies, scalar, 1, HOPPER)
    assert plan.kind == "registers"
    assert np.array_equal(plan.simulate(np.zeros((2, 32, 2))), np.zeros((2, 32, 1)))
    # One lane, no warps, dimensions left out.
    alone = MachineModel("one lane", lanes=1)
    register = LinearLayout({"register": [(1,), (2,)]}, {"dim0": 4})
    plan = plan_conversion(register, LinearLayout({"register": [(2,), (1,)]}, {"dim0": 4}), 64, alone)
    assert plan.kind == "registers"
    assert plan.simulate(np.array([[[0, 1, 2, 3]]])).tolist() == [[[0, 2, 1, 3]]]


def test_a_large_tensor_takes_no_longer() -> None:
    """2^24 elements, 2^17 a thread: half of the words are exchanged. Nothing here is as long as the tensor."""
    units = [1 << bit for bit in range(24)]
    source = layout(units[:17], units[17:22], units[22:])
    units[16], units[17] = units[17], units[16]
    plan = plan_conversion(source, layout(units[:17], units[17:22], units[22:]), 32, HOPPER)
    assert (plan.kind, plan.cost) == ("warp", Cost(shuffles=1 << 16, permutes=3 << 16))


def test_plans_are_kept() -> None:
    source, destination = swapped([("register", 3, "lane", 3)])
    again = swapped([("register", 3, "lane", 3)])
    assert plan_conversion(source, destination, 8, HOPPER) is plan_conversion(*again, 8, HOPPER)
    assert plan_conversion(source, destination, 8, HOPPER) is not plan_conversion(source, destination, 8, AMPERE)


def test_halves_do_not_see_each_other() -> None:
    """Both warps keep their lower registers; the upper ones go through memory to the other warp."""
    addresses = Addresses((1,), (), (2,), 32, 0, 32, 2)
    store = VectorAccess(MachineModel("one lane", lanes=1), addresses, 1, (0, 1), True)
    load = replace(store, stores=False, warp_flip=1)
    renamed = Move.packed((1,), (), (0,), 32, loaded=True)
    step = Parallel((), (store, Barrier("block"), load, renamed))
    assert str(step) == "half stays (nothing), half moves (store 1 x 64 bits; barrier; load 1 x 64 bits)"
    assert run((step,), np.array([[[0, 1, 2, 3]], [[4, 5, 6, 7]]])).tolist() == [[[0, 1, 6, 7]], [[4, 5, 2, 3]]]


# Errors

GOOD = layout((1,), (2, 4, 8, 16, 32), (64,))

BAD = [
    (GOOD, GOOD, 24, "plan_conversion: bits is 24, expected a power of two from 1 to 64"),
    (GOOD, GOOD, 0, "plan_conversion: bits is 0, expected a power of two from 1 to 64"),
    (GOOD, GOOD, 128, "plan_conversion: bits is 128, expected a power of two from 1 to 64"),
    (
        LinearLayout({"offset": [(1,)]}, {"dim0": 2}),
        GOOD,
        32,
        "plan_conversion: the source layout has input dimension offset, expected register, lane, warp or block",
    ),
    (
        GOOD,
        layout((3,), (2, 4, 8, 16, 32), (64,)),
        32,
        "plan_conversion: the destination layout is not distributed: basis 0 of register is (3,), expected at most one bit set",
    ),
    (
        GOOD,
        layout((1, 32), (2, 4, 8, 16), (64,)),
        32,
        "plan_conversion: the destination layout has 16 lanes, sm_90 has 32",
    ),
    (
        LinearLayout({"register": [(1,)]}, {"dim0": 2}),
        GOOD,
        32,
        "plan_conversion: the source layout has 1 lanes, sm_90 has 32",
    ),
    (
        GOOD,
        layout((), (1, 2, 4, 8, 16), (32,)),
        32,
        "plan_conversion: the layouts are of different tensors: the source is {register: [1], lane: [2,4,8,16,32], "
        "warp: [64]} -> [dim0: 128], the destination {register: [], lane: [1,2,4,8,16], warp: [32]} -> [dim0: 64]",
    ),
    (GOOD, layout((1, 64), (2, 4, 8, 16, 32)), 32, "plan_conversion: the source has 2 warps, the destination 1"),
    (
        layout((1,), (2, 4, 8, 16, 32), (), (64,)),
        layout((1, 64), (2, 4, 8, 16, 32)),
        32,
        "plan_conversion: the source has 2 blocks, the destination 1",
    ),
    (
        layout((1,), (2, 4, 8, 16, 32), (), (64,)),
        layout((64,), (2, 4, 8, 16, 32), (), (1,)),
        32,
        "plan_conversion: basis 0 of block is (64,) in the source and (1,) in the destination, expected equal: no data moves "
        "between blocks",
    ),
]


@pytest.mark.parametrize(("source", "destination", "bits", "message"), BAD)
def test_errors(source: LinearLayout, destination: LinearLayout, bits: int, message: str) -> None:
    with pytest.raises(ValueError) as error:
        plan_conversion(source, destination, bits, HOPPER)
    assert str(error.value) == message
