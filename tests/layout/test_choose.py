"""The search for the cheapest plan: what is compared, by which price, and that broken plans do not pass the simulation."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from weft.layout import LinearLayout, blocked, nvidia_mma
from weft.layout.planning.accesses import Access, VectorAccess
from weft.layout.planning.check import run
from weft.layout.planning.choose import plan_conversion, plan_memory
from weft.layout.planning.machine import AMPERE, CDNA, HOPPER, MachineModel, Residency
from weft.layout.planning.needs import Places, needs
from weft.layout.planning.price import Room, exposure, latency, live_words, memory_latency
from weft.layout.planning.steps import Barrier, LaneExchange, Move, Step
from weft.layout.planning.ways.lanes import within_warps


def row(size: int, vector: int) -> LinearLayout:
    across = min(32, size // vector)
    return blocked((size, size), (1, vector), (32 // across, across), (4, 1), (1, 0))


def test_selecting_registers_is_compared_with_memory(held: Any) -> None:
    """Each lane keeps one register of 32 by its number: 31 selects a word, where memory stores once and loads one word."""
    units = [1 << bit for bit in range(13)]
    copies = LinearLayout.from_columns(
        {"register": tuple(units[:8]), "lane": (0,) * 5, "warp": (units[8], units[9])}, (("dim0", 10),)
    )
    own = LinearLayout.from_columns(
        {"register": tuple(units[5:8]), "lane": tuple(units[:5]), "warp": (units[8], units[9])}, (("dim0", 10),)
    )
    assert needs(Places.of(copies), Places.of(own)) == "registers"
    plan = plan_conversion(copies, own, 32, HOPPER)
    assert plan.kind == "memory"
    # 8 words, each selected from 32: 248 selects of 4 warps at two clocks each.
    assert plan.reason.endswith("; 284 clocks, registers at least 496")
    assert np.array_equal(plan.simulate(held(copies)), held(own))


@pytest.mark.parametrize("scratch", [227 * 1024, 1024])
def test_ldmatrix_never_makes_a_plan_dearer(gpu_pair: Any, scratch: int) -> None:
    rng = random.Random(scratch)
    matrices = replace(HOPPER, scratch=scratch)
    plain = replace(matrices, ldmatrix=False, stmatrix=False)
    cheaper = 0
    for _ in range(150):
        source, destination = gpu_pair(rng, 5, rng.randint(0, 3), rng.randint(0, 5))
        bits = rng.choice((4, 8, 16, 32))
        prices = [plan_conversion(source, destination, bits, machine).price for machine in (matrices, plain)]
        assert prices[0] <= prices[1], (source, destination, bits)
        cheaper += prices[0] < prices[1]
    assert cheaper >= 2, cheaper


def test_planning_in_rounds_looks_at_few_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """512x512 float32 to mma is 1 MiB, in rounds: one access of each kind is counted in a round, however many there are."""
    looked: Counter[str] = Counter()
    original = VectorAccess._wavefronts  # pyright: ignore[reportPrivateUsage]

    def counted(self: VectorAccess, starts: Sequence[int | None]) -> int:
        looked["accesses"] += 1
        return original(self, starts)

    monkeypatch.setattr(VectorAccess, "_wavefronts", counted)
    plan = plan_conversion(row(512, 4), nvidia_mma((512, 512), 2, (2, 2), (16, 8)), 32, AMPERE)
    assert plan.cost.barriers == 13
    assert plan.cost.stores + plan.cost.loads > 1000
    assert looked["accesses"] < 1000, looked


# The price


def test_latency_is_counted_by_kind() -> None:
    assert latency([Barrier("warp")], HOPPER) == 4
    assert latency([Barrier("block")], HOPPER) == 20
    assert memory_latency(HOPPER, local=True) == 4 + 24
    assert memory_latency(HOPPER, local=False, rounds=3) == 5 * 20 + 3 * 24
    a, b = Places((1, 2), (4, 8, 16, 32, 64), ()), Places((4, 8), (1, 2, 16, 32, 64), ())
    steps = within_warps(a, b, 32, HOPPER, lambda cost: cost.shuffles)
    assert steps is not None
    assert latency(steps, HOPPER) == 24 * sum(isinstance(step, LaneExchange) for step in steps)


def test_memory_waits_as_its_steps_do(gpu_pair: Any) -> None:
    rng = random.Random(5)
    for _ in range(60):
        source, destination = gpu_pair(rng, 5, rng.randint(0, 3), rng.randint(0, 4))
        plan = plan_memory(source, destination, 32, HOPPER)
        local = all(step.scope == "warp" for step in plan.steps if isinstance(step, Barrier))
        assert latency(plan.steps, HOPPER) == memory_latency(HOPPER, local)


def test_scratch_that_leaves_fewer_blocks_exposes_latency() -> None:
    """4 warps of 64 words and 24 registers: 5 blocks by registers. 64 KiB of scratch leave 3 on sm_90, 1 on a smaller one."""
    small = MachineModel("small", scratch=99 * 1024, residency=Residency(shared=100 * 1024))
    assert exposure(0, 64, HOPPER, 4) == 1
    assert exposure(64 * 1024, 64, HOPPER, 4) == 5 / 3
    assert exposure(64 * 1024, 64, small, 4) == 5
    # 128 words for a tile of 64 KiB in and out: registers leave 1 block in any case.
    assert exposure(64 * 1024, 256, HOPPER, 4) == 2 / 2


def test_less_scratch_is_used_where_the_rest_of_the_kernel_needs_it() -> None:
    source, destination = row(128, 4), nvidia_mma((128, 128), 2, (2, 2), (16, 8))
    alone = plan_conversion(source, destination, 32, HOPPER)
    assert alone.cost.scratch == 64 * 1024
    beside = plan_conversion(source, destination, 32, HOPPER, Room(shared=200 * 1024))
    assert beside.cost.scratch <= 27 * 1024
    assert beside.cost.barriers > alone.cost.barriers
    with pytest.raises(ValueError) as error:
        plan_conversion(source, destination, 32, HOPPER, Room(shared=227 * 1024 - 8))
    assert str(error.value).startswith("plan_conversion: sm_90 has 8 bytes of scratch left, expected at least ")


def test_registers_in_use_at_once() -> None:
    """One round: the source is stored before anything is loaded. With more rounds both are held."""
    source, destination = row(128, 4), nvidia_mma((128, 128), 2, (2, 2), (16, 8))
    one = plan_memory(source, destination, 32, HOPPER)
    more = plan_memory(source, destination, 32, replace(HOPPER, scratch=32 * 1024))
    assert (live_words(one.steps, 7, 32), live_words(more.steps, 7, 32)) == (128, 256)


# What emission needs


def test_addresses_are_an_xor_and_an_immediate(gpu_pair: Any) -> None:
    rng = random.Random(9)
    for _ in range(60):
        source, destination = gpu_pair(rng, 5, rng.randint(0, 3), rng.randint(0, 5))
        for step in plan_memory(source, destination, 32, HOPPER).steps:
            if not isinstance(step, Access):
                continue
            addresses = step.addresses
            for register in range(1 << len(addresses.registers)):
                immediate, xor = addresses.split(register)
                assert immediate & addresses.thread_bits == 0
                assert xor & ~addresses.thread_bits == 0


def test_a_plan_says_when_its_scratch_is_in_use() -> None:
    source, destination = row(64, 8), nvidia_mma((64, 64), 2, (2, 2), (16, 8))
    plan = plan_memory(source, destination, 16, HOPPER)
    assert plan.scratch is not None
    assert (plan.scratch.bytes, plan.scratch.alignment) == (8192, 128)
    first, last = plan.steps[plan.scratch.first_store], plan.steps[plan.scratch.last_load]
    assert isinstance(first, Access)
    assert isinstance(last, Access)
    assert (first.stores, last.stores) == (True, False)
    assert plan_conversion(source, source, 16, HOPPER).scratch is None


# Broken plans


def without_barriers(steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if not isinstance(step, Barrier)]


def off_by_one_lane(steps: Sequence[Step]) -> list[Step]:
    """The lowest two lane bits of the first load or exchange change places."""
    found: list[Step] = []
    changed = False
    for old in steps:
        step = old
        if isinstance(step, VectorAccess) and not step.stores and not changed:
            lanes = step.addresses.lanes
            step = replace(step, addresses=replace(step.addresses, lanes=(lanes[1], lanes[0], *lanes[2:])))
            changed = lanes[0] != lanes[1]
        elif isinstance(step, LaneExchange) and not changed:
            reads = step.reads
            step = replace(step, reads=replace(reads, lane=(reads.lane[0] ^ 1, *reads.lane[1:])))
            changed = True
        found.append(step)
    return found


@pytest.mark.parametrize("machine", [HOPPER, CDNA], ids=lambda machine: machine.name)
def test_broken_plans_are_found(gpu_pair: Any, held: Any, machine: MachineModel) -> None:
    rng = random.Random(21)
    lane_bits = machine.lanes.bit_length() - 1
    broken: Counter[str] = Counter()
    for _ in range(80):
        source, destination = gpu_pair(rng, lane_bits, rng.randint(1, 3), rng.randint(1, 4))
        plan = plan_conversion(source, destination, 32, machine)
        labels, wanted = held(source), held(destination)
        assert np.array_equal(plan.simulate(labels), wanted)
        if any(isinstance(step, Barrier) for step in plan.steps):
            with pytest.raises(ValueError, match="is read before a barrier|was never written|may still be read"):
                run(without_barriers(plan.steps), labels)
            broken["barrier"] += 1
        changed = off_by_one_lane(plan.steps)
        if tuple(changed) != plan.steps:
            try:
                survives = np.array_equal(run(changed, labels), wanted)
            except (ValueError, RuntimeError):
                survives = False
            # Lanes that hold copies may read each other.
            broken["lane"] += not survives
            broken["tried"] += 1
        moves = [at for at, step in enumerate(plan.steps) if isinstance(step, Move) and step.registers[:2] == (1, 2)]
        if moves and source.columns("register")[:2] != (0, 0):
            step = plan.steps[moves[0]]
            assert isinstance(step, Move)
            other = [*plan.steps]
            other[moves[0]] = replace(step, registers=(2, 1, *step.registers[2:]))
            try:
                broken["register"] += not np.array_equal(run(other, labels), wanted)
            except ValueError:
                broken["register"] += 1
    assert broken["barrier"] > 10, broken
    assert broken["lane"] > 0.7 * broken["tried"] > 10, broken
    assert broken["register"] > 5, broken
