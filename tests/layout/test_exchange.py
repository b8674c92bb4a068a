"""Conversions through shared memory, executed on a memory that notices mistakes and compared with direct evaluation; their
wavefronts against what rank arithmetic promises, and the cases that decide how they go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sampling import grid, some
from weft.layout import LinearLayout, blocked, nvidia_mma, nvidia_mma_operand, optimal_swizzle, sliced
from weft.layout.planning.accesses import Access, MatrixAccess, VectorAccess
from weft.layout.planning.choose import plan_memory
from weft.layout.planning.machine import AMPERE, CDNA, HOPPER, MachineModel
from weft.layout.planning.plan import ConversionPlan
from weft.layout.planning.steps import Barrier, Cost

PLAIN = MachineModel("no matrices")
BYTES = replace(HOPPER, name="transposes bytes", matrix_b8=True)


def layout(register: Sequence[int], lane: Sequence[int], warp: Sequence[int] = (), size: int = 0) -> LinearLayout:
    """A layout of a one-dimensional tensor, by default one that has all these bits."""
    dims = {"register": register, "lane": lane, "warp": warp}
    found = 1 << sum(1 for bases in dims.values() for basis in bases if basis)
    return LinearLayout({dim: [(basis,) for basis in bases] for dim, bases in dims.items()}, {"dim0": size or found})


def accesses(plan: ConversionPlan) -> list[Access]:
    return [step for step in plan.steps if isinstance(step, Access)]


def barriers(plan: ConversionPlan) -> list[str]:
    return [step.scope for step in plan.steps if isinstance(step, Barrier)]


def wavefronts_by_warp(plan: ConversionPlan) -> tuple[int, ...]:
    """Wavefronts of each warp, counted from every address of every instruction."""
    return tuple(map(sum, zip(*(step.wavefronts_by_warp() for step in accesses(plan)), strict=True)))


def conflict_free(plan: ConversionPlan) -> int:
    """Wavefronts if no access conflicted: what lemma 9.6 promises for these instructions."""
    return sum(step.bound for step in accesses(plan))


def row(size: int, vector: int) -> LinearLayout:
    """VectorAccess along a row, the lanes along rows first."""
    across = size // vector
    return blocked((size, size), (1, vector), (32 // across, across), (4, 1), (1, 0))


def column(size: int, vector: int) -> LinearLayout:
    """The transposed of `row`."""
    across = size // vector
    return blocked((size, size), (vector, 1), (across, 32 // across), (1, 4), (0, 1))


# Correctness


def structured_pair(rng: random.Random, size_bits: int) -> tuple[LinearLayout, LinearLayout]:
    """Layouts whose vectors and lanes lie as instructions like them, with a few places exchanged."""
    size = 1 << size_bits
    shape = (size, size)
    choices = [
        blocked(shape, (1, 4), (4, 8), (2, 2), (1, 0)),
        blocked(shape, (8, 1), (4, 8), (1, 4), (0, 1)),
        blocked(shape, (1, 16), (8, 4), (4, 1), (1, 0)),
        nvidia_mma(shape, 2, (2, 2), (16, 8)),
        nvidia_mma(shape, 2, (4, 1), (16, 8)),
        nvidia_mma_operand(shape, 0, 2, 2, (2, 2), (16, 8)),
        nvidia_mma_operand(shape, 1, 4, 2, (2, 2), (16, 8)),
    ]
    source, destination = rng.choice(choices), rng.choice(choices)
    columns = [list(destination.columns(dim)) for dim in ("register", "lane", "warp")]
    for _ in range(rng.randint(0, 2)):
        first, second = rng.choice(columns[:2]), rng.choice(columns)
        i, j = rng.randrange(len(first)), rng.randrange(len(second))
        first[i], second[j] = second[j], first[i]
    register, lane, warp = map(tuple, columns)
    return source, destination.with_columns({"register": register, "lane": lane, "warp": warp})


def check(plan: ConversionPlan, source: LinearLayout, destination: LinearLayout, held: Any) -> None:
    """The result, the counts against all addresses, and the bounds."""
    assert np.array_equal(plan.simulate(held(source)), held(destination)), (source, destination)
    assert sum(wavefronts_by_warp(plan)) == plan.cost.wavefronts, (source, destination)
    for count, least in vars(plan.lower_bound).items():
        assert getattr(plan.cost, count) >= least, (source, destination, count)
    # Lemma 9.6: no conflicts where both sides take vectors of one width, and for rows of matrices.
    widths = {part.vector_bits if isinstance(part, VectorAccess) else 128 for part in accesses(plan)}
    whole = not any(isinstance(part, VectorAccess) and part.idle_lanes for part in accesses(plan))
    if len(widths) == 1 and len(accesses(plan)) == 2:
        assert plan.cost.wavefronts <= conflict_free(plan)
        if whole:
            assert plan.cost.wavefronts == conflict_free(plan)


@pytest.mark.parametrize(
    ("bits", "machine"),
    grid(4, [1, 2, 4, 8, 16, 32, 64], [HOPPER, AMPERE, BYTES, PLAIN, CDNA]),
    ids=lambda value: value.name if isinstance(value, MachineModel) else str(value),
)
def test_plans_do_what_the_layouts_say(gpu_pair: Any, held: Any, bits: int, machine: MachineModel) -> None:
    rng = random.Random(bits * 100 + len(machine.name))
    lane_bits = machine.lanes.bit_length() - 1
    for _ in range(20):
        source, destination = gpu_pair(rng, lane_bits, rng.randint(0, 4), rng.randint(0, 5))
        check(plan_memory(source, destination, bits, machine), source, destination, held)


@pytest.mark.parametrize("machine", some([HOPPER, AMPERE, BYTES], AMPERE), ids=lambda machine: machine.name)
def test_structured_layouts(held: Any, machine: MachineModel) -> None:
    """Each way to reach memory is taken by some of them, on a machine that has it."""
    rng = random.Random(7)
    ways: Counter[str] = Counter()
    for _ in range(100):
        source, destination = structured_pair(rng, rng.choice((4, 5, 6)))
        plan = plan_memory(source, destination, rng.choice((4, 8, 16, 32)), machine)
        check(plan, source, destination, held)
        for part in accesses(plan):
            ways[("st" if part.stores else "ld") + (part.kind if isinstance(part, MatrixAccess) else "vector")] += 1
    expected = {"stvector", "ldvector", "ldmatrix", "ldtransposed"}
    if machine.stmatrix:
        expected |= {"stmatrix", "sttransposed"}
    if machine.matrix_b8:
        expected |= {"ldbytes"}
    assert set(ways) == expected, ways


@pytest.mark.parametrize("scratch", some([256, 1024, 1500, 3000], 1024, 3000))
def test_rounds_through_less_scratch(held: Any, scratch: int) -> None:
    """Never more than there is; each word of scratch is read before it is written over, or the memory raises."""
    rng = random.Random(scratch)
    several = 0
    for _ in range(25):
        machine = replace(rng.choice((HOPPER, PLAIN)), scratch=scratch)
        if rng.random() < 0.5:
            source, destination = structured_pair(rng, rng.choice((4, 5)))
        else:
            columns = [1 << bit for bit in range(10)] + [0]
            source, destination = (
                layout(places[:4], places[4:9], places[9:], size=1024)
                for places in (rng.sample(columns, 11), rng.sample(columns, 11))
            )
        plan = plan_memory(source, destination, rng.choice((8, 16, 32, 64)), machine)
        assert np.array_equal(plan.simulate(held(source)), held(destination)), (source, destination)
        assert sum(wavefronts_by_warp(plan)) == plan.cost.wavefronts
        assert plan.cost.scratch <= scratch
        several += len(barriers(plan)) > 1
        assert len(barriers(plan)) == len(accesses(plan)) - 1
    assert several > 5


def test_an_estimate_from_ranks_is_what_the_addresses_give(gpu_pair: Any) -> None:
    """`exchange_ways.estimate` ranks ways before any address exists; the plan that comes of it costs that."""
    from weft.layout.planning.choose import plan_memory as plan
    from weft.layout.planning.matrix import Side
    from weft.layout.planning.needs import Places, crossing
    from weft.layout.planning.ways.access_pairs import Task, all_ways, estimate

    rng = random.Random(3)
    for _ in range(200):
        source, destination = gpu_pair(rng, 5, rng.randint(0, 3), rng.randint(0, 5))
        bits = rng.choice((8, 16, 32, 64))
        made = plan(source, destination, bits, HOPPER)
        places = Places.of(source), Places.of(destination)
        task = Task(Side(*places[0]), Side(*places[1]), bits, HOPPER, not crossing(*places), HOPPER.scratch)
        found = [estimate(task, way) for way in all_ways(task)]
        got = replace(made.cost, barriers=0, scratch=0)
        # Without shares of copies, one of the ways has just this cost; shares only make it cheaper.
        if "share" not in made.reason:
            assert got in found, (source, destination, bits)


def test_vectors_take_the_wavefronts_of_the_optimal_swizzle() -> None:
    """`optimal_swizzle` searches memory layouts for any accesses; the plan finds its own for two. Without matrices and copies
    both take equally many wavefronts."""
    rng = random.Random(6)
    for _ in range(80):
        warp_bits, register_bits = rng.randint(0, 3), rng.randint(0, 5)
        units = [1 << bit for bit in range(register_bits + 5 + warp_bits)]
        source, destination = (
            layout(places[:register_bits], places[register_bits : register_bits + 5], places[register_bits + 5 :])
            for places in (rng.sample(units, len(units)), rng.sample(units, len(units)))
        )
        bits = rng.choice((8, 16, 32, 64, 128))
        plan = plan_memory(source, destination, bits, PLAIN)
        assert plan.cost.wavefronts == optimal_swizzle(source, destination, bits=bits).wavefronts, (source, destination)


# Cases


def test_a_transpose_of_float16_takes_ldmatrix_trans(held: Any) -> None:
    """64x64: a thread stores 4 vectors of 8, and gets 4 matrices with each of 4 instructions; 4 wavefronts each, 4 warps: 128.

    A matrix row is what lanes 2 to 4 of the columns' side differ in, columns 1 and 2 and row 32, so rows 0 and 32 of
    the source are interleaved first, a permute for each of a thread's 16 words."""
    source, destination = row(64, 8), column(64, 8)
    plan = plan_memory(source, destination, 16, HOPPER)
    assert str(plan) == "registers permuted, 16 permutes; store 4 x 128 bits; barrier; ldmatrix 4 x x4.trans"
    assert plan.cost == Cost(permutes=16, stores=4, loads=4, wavefronts=128, barriers=1, scratch=8192)
    assert plan.reason == (
        "warps need what others hold, so it goes through memory; stored as vectors, loaded as transposed matrices; "
        "128 wavefronts, none for conflicts"
    )
    check(plan, source, destination, held)


def test_a_transpose_of_bytes_takes_no_byte_accesses(held: Any) -> None:
    """Pairs of bytes are transposed as 16-bit units. The reader gets both bytes of 32 pairs and keeps one of each: 64 bytes, 4
    loads, 8 selects that fill a word from two. Triton 3.9: 32 stores of a byte and 16 loads of two."""
    source, destination = row(64, 16), column(64, 16)
    plan = plan_memory(source, destination, 8, HOPPER)
    assert str(plan) == "stmatrix 2 x x4.trans; barrier; load 4 x 128 bits; registers selected, 8 permutes"
    assert plan.cost == Cost(permutes=8, stores=2, loads=4, wavefronts=96, barriers=1, scratch=4096)
    assert "2 elements stay together and the reader selects its own" in plan.reason
    check(plan, source, destination, held)


def test_a_machine_that_transposes_bytes_needs_no_pairs(held: Any) -> None:
    """A 16x16 matrix fills 8 bytes of a thread's 32: 4 of them, 2 in an instruction, 2 wavefronts each."""
    source, destination = row(64, 16), column(64, 16)
    plan = plan_memory(source, destination, 8, BYTES)
    assert str(plan) == "store 4 x 64 bits; barrier; ldmatrix 2 x x2.trans.b8; registers permuted, 8 permutes"
    assert plan.cost.wavefronts == 64
    check(plan, source, destination, held)


def test_without_matrices_one_side_keeps_wide_vectors(held: Any) -> None:
    """32 bits are not transposed by matrices, and no register is common. One side keeps vectors of two words: of the other's
    lanes one bit moves inside them, the other four among 16 pairs of banks. With four words, 8 would be left for 16 lanes."""
    source, destination = row(64, 4), column(64, 4)
    plan = plan_memory(source, destination, 32, HOPPER)
    assert str(plan) == "store 16 x 64 bits; barrier; load 32 x 32 bits"
    assert plan.cost.wavefronts == 4 * (16 * 2 + 32)
    check(plan, source, destination, held)


def test_narrower_vectors_may_conflict_and_then_both_are_narrow(held: Any) -> None:
    """A's 2-bit vectors are in no lane of B's, which lie in one bank group above them; equal vectors have no conflicts."""
    source = layout([1, 2, 4], [8, 16, 32, 64, 128], [256, 512])
    destination = layout([8, 16, 32], [64, 128, 256, 512, 1], [2, 4])
    plan = plan_memory(source, destination, 32, PLAIN)
    check(plan, source, destination, held)
    assert plan.cost.wavefronts == conflict_free(plan) == 64


def test_copies_are_stored_once() -> None:
    """A slice that 16 lanes hold, 64 of its 512 elements of 4 bytes in each. Stored by all that is 16 x 128 bits a thread and
    64 wavefronts a warp. Two lanes share, 8 x 128 bits, and the other 14 wait; as lanes 8 to 15 wait, 2 of an instruction's
    4 phases are empty: 16 wavefronts. Four sharing would select more than they save."""
    source = sliced(blocked((512, 64), (1, 4), (2, 16), (4, 1), (1, 0)), 1)
    destination = blocked((512,), (4,), (32,), (4,), (0,))
    plan = plan_memory(source, destination, 32, HOPPER)
    stores, loads = accesses(plan)
    assert (stores.instructions, stores.wavefronts_by_warp()) == (8, [16] * 4)
    assert (loads.instructions, sum(loads.wavefronts_by_warp())) == (4, 16)
    assert "2 holders of copies store a share each" in plan.reason


def test_warps_with_copies_wait() -> None:
    """Both warps hold everything; the first stores it. That is half of the wavefronts."""
    source = layout([1], [2, 4, 8, 16, 32], [0])
    destination = layout([32], [1, 2, 4, 8, 16], [0])
    crossing = layout([1], [2, 4, 8, 16, 0], [32])
    assert barriers(plan_memory(source, destination, 32, HOPPER)) == ["warp"]
    plan = plan_memory(source, crossing, 32, HOPPER)
    assert barriers(plan) == ["warp"]
    back = plan_memory(layout([1, 0], [2, 4, 8, 16, 0], [32]), source, 32, HOPPER)
    assert barriers(back) == ["block"]
    both = plan_memory(layout([], [1, 2, 4, 8, 16], [0, 32]), layout([], [2, 1, 4, 8, 16], [32, 0]), 32, HOPPER)
    assert accesses(both)[0].idle_warps == 1
    assert wavefronts_by_warp(both) == (2, 1, 2, 1)


def test_one_barrier_where_scratch_allows_else_full_rounds(held: Any) -> None:
    """128x128 float32 is 64 KB, for which Triton 3.9 takes 2 KB and 63 barriers. n rounds take 2 n - 1. Of float64, 48 KB of
    scratch take three parts of 16 KB at once: 8 parts in 3 rounds, where 32 KB would take 4."""
    source, destination = row(128, 4), blocked((128, 128), (1, 1), (1, 32), (1, 4), (1, 0))
    assert plan_memory(source, destination, 32, HOPPER).cost.barriers == 1
    for scratch, count, used in ((65536, 1, 65536), (49152, 3, 32768), (32768, 3, 32768), (20000, 7, 16384)):
        plan = plan_memory(source, destination, 32, replace(HOPPER, scratch=scratch))
        assert (plan.cost.barriers, plan.cost.scratch) == (count, used), scratch
        assert np.array_equal(plan.simulate(held(source)), held(destination))
    wide = plan_memory(source, destination, 64, replace(HOPPER, scratch=49152))
    assert (wide.cost.barriers, wide.cost.scratch) == (5, 49152)
    assert "in 3 rounds, as scratch has 49152 bytes" in wide.reason
    assert np.array_equal(wide.simulate(held(source)), held(destination))


def test_elements_smaller_than_a_byte_are_packed(held: Any) -> None:
    """Four elements of 2 bits that both hold make a byte; where the reader holds only one it selects it."""
    source = layout([1, 2, 4], [8, 16, 32, 64, 128])
    same = layout([1, 2, 8], [4, 16, 32, 64, 128])
    assert plan_memory(source, same, 2, HOPPER).cost.scratch == 256 * 2 // 8
    other = layout([8, 16, 32], [1, 2, 4, 64, 128])
    plan = plan_memory(source, other, 2, HOPPER)
    assert plan.cost.scratch == 256 * 2 // 8
    assert "elements stay together and the reader selects its own" in plan.reason
    check(plan, source, other, held)
    # A thread that holds one element has a byte to itself.
    lonely = layout([], [1, 2, 4, 8, 16]), layout([], [2, 1, 4, 8, 16])
    assert plan_memory(*lonely, 1, HOPPER).cost.scratch == 32


def test_packing_is_counted(held: Any) -> None:
    """Bytes: a word is stored as it is; four loads of one byte, which three permutes join."""
    source = layout([1, 2], [4, 8, 16, 32, 64], [128])
    destination = layout([32, 64], [1, 2, 4, 8, 16], [128])
    plan = plan_memory(source, destination, 8, PLAIN)
    assert str(plan) == "store 1 x 32 bits; warp barrier; load 4 x 8 bits; registers permuted, 3 permutes"
    assert plan.cost.permutes == 3
    check(plan, source, destination, held)


def test_blocks_do_the_same_each(held: Any) -> None:
    source = LinearLayout.parse("{register: [1], lane: [2,4,8,16,32], warp: [64], block: [128]} -> [dim0: 256]")
    destination = LinearLayout.parse("{register: [64], lane: [1,2,4,8,16], warp: [32], block: [128]} -> [dim0: 256]")
    plan = plan_memory(source, destination, 32, HOPPER)
    assert plan.cost.scratch == 128 * 4
    assert np.array_equal(plan.simulate(held(source)), held(destination))


def test_degenerate(held: Any) -> None:
    """One element that every thread holds; a machine of one lane; rank 0; no warps."""
    one = layout([], [0, 0, 0, 0, 0], [0])
    plan = plan_memory(one, one, 16, HOPPER)
    assert str(plan) == "store 1 x 16 bits; warp barrier; load 1 x 16 bits"
    assert plan.cost == Cost(stores=1, loads=1, wavefronts=4, barriers=1, scratch=2)
    assert plan.lower_bound == Cost()
    single = MachineModel("one lane", lanes=1)
    pair = layout([1, 2], []), layout([2, 1], [])
    assert np.array_equal(plan_memory(*pair, 32, single).simulate(held(pair[0])), held(pair[1]))
    scalar = LinearLayout({"register": [], "lane": [()] * 5}, {})
    assert plan_memory(scalar, scalar, 64, HOPPER).simulate(np.full((1, 32, 1), 7)).tolist() == [[[7]] * 32]


def test_the_lower_bound() -> None:
    """4 warps, each needs 32 elements of 4 bytes and holds 8 of them, one in four: 96 bytes, a wavefront each to read, and one
    to write what the worst lacks."""
    source = layout([], [1, 2, 4, 8, 16], [32, 64])
    destination = layout([], [1, 2, 4, 32, 64], [8, 16])
    plan = plan_memory(source, destination, 32, HOPPER)
    assert plan.lower_bound == Cost(stores=1, loads=1, wavefronts=5, barriers=1)
    inside = plan_memory(source, layout([], [16, 8, 4, 2, 1], [32, 64]), 32, HOPPER)
    assert inside.lower_bound == Cost()


# Errors

GOOD = layout([1], [2, 4, 8, 16, 32], [64])


@pytest.mark.parametrize(
    ("source", "destination", "bits", "machine", "message"),
    [
        (
            LinearLayout.parse("{offset: [1]} -> [dim0: 2]"),
            GOOD,
            16,
            HOPPER,
            "plan_memory: the source layout has input dimension offset, expected register, lane, warp or block",
        ),
        (
            GOOD,
            layout([3], [2, 4, 8, 16, 32], [64], size=128),
            16,
            HOPPER,
            "plan_memory: the destination layout is not distributed: basis 0 of register is (3,), expected at most one bit set",
        ),
        (GOOD, GOOD, 16, CDNA, "plan_memory: the source layout has 32 lanes, gfx942 has 64"),
        (
            GOOD,
            layout([1], [2, 4, 8, 16, 32]),
            16,
            HOPPER,
            "plan_memory: the layouts are of different tensors: the source is {register: [1], lane: [2,4,8,16,32], "
            "warp: [64]} -> [dim0: 128], the destination {register: [1], lane: [2,4,8,16,32], warp: []} -> [dim0: 64]",
        ),
        (
            GOOD,
            layout([1], [2, 4, 8, 16, 32], [64, 0]),
            16,
            HOPPER,
            "plan_memory: the source has 2 warps, the destination 4",
        ),
        (
            GOOD,
            LinearLayout.parse("{register: [1], lane: [2,4,8,16,32], warp: [0], block: [64]} -> [dim0: 128]"),
            16,
            HOPPER,
            "plan_memory: the source has 1 blocks, the destination 2",
        ),
        (GOOD, GOOD, 12, HOPPER, "plan_memory: bits is 12, expected a power of two from 1 to 128"),
        (GOOD, GOOD, 256, HOPPER, "plan_memory: bits is 256, expected a power of two from 1 to 128"),
        (
            GOOD,
            GOOD,
            32,
            replace(HOPPER, scratch=7),
            "plan_memory: sm_90 has 7 bytes of scratch left, expected at least 8",
        ),
    ],
)
def test_errors(
    source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel, message: str
) -> None:
    with pytest.raises(ValueError) as error:
        plan_memory(source, destination, bits, machine)
    assert str(error.value) == message


def test_the_least_scratch_is_enough(held: Any) -> None:
    """One vector of both elements of a thread, 8 bytes: 64 rounds, in each of which one lane of one warp moves."""
    plan = plan_memory(GOOD, GOOD, 32, replace(HOPPER, scratch=8))
    assert (plan.cost.scratch, plan.cost.barriers) == (8, 127)
    assert np.array_equal(plan.simulate(held(GOOD)), held(GOOD))


def test_labels_of_another_shape() -> None:
    plan = plan_memory(GOOD, GOOD, 32, HOPPER)
    with pytest.raises(ValueError) as error:
        plan.simulate(np.zeros((1, 32, 2), dtype=int))
    assert str(error.value) == ("simulate: labels have shape (1, 32, 2), expected (2, 32, 2) (warps, lanes, registers)")
