"""Machines as data: what limits resident blocks, by hand from the limits of compute capabilities."""

from __future__ import annotations

import pytest

from weft.layout.planning.machine import (
    ADA,
    AMPERE,
    AMPERE_CONSUMER,
    CDNA,
    HOPPER,
    MachineModel,
    Residency,
    vector_machine,
)

GPUS = [AMPERE, AMPERE_CONSUMER, ADA, HOPPER, CDNA]


@pytest.mark.parametrize(
    ("machine", "warps", "shared", "registers", "blocks"),
    [
        (HOPPER, 4, 0, 0, 16),  # 64 warps
        (HOPPER, 1, 0, 0, 32),  # 32 blocks
        (HOPPER, 4, 48 * 1024, 0, 4),  # 228 KiB hold four times 49
        (HOPPER, 4, 227 * 1024, 0, 1),
        (HOPPER, 4, 228 * 1024, 0, 0),  # the system takes 1 KiB of each block
        (HOPPER, 4, 0, 255, 2),  # 65,536 registers hold twice 32,640
        (HOPPER, 4, 64 * 1024, 255, 2),
        (AMPERE_CONSUMER, 4, 0, 0, 12),
        (AMPERE_CONSUMER, 4, 48 * 1024, 0, 2),
        (CDNA, 4, 16 * 1024, 0, 4),
        (CDNA, 4, 0, 512, 1),
    ],
)
def test_resident_blocks(machine: MachineModel, warps: int, shared: int, registers: int, blocks: int) -> None:
    assert machine.residency.resident(warps, machine.lanes, shared, registers) == blocks


@pytest.mark.parametrize("machine", GPUS, ids=lambda machine: machine.name)
def test_a_block_may_have_what_the_multiprocessor_has(machine: MachineModel) -> None:
    """The limit of a block is the multiprocessor's less what the system reserves."""
    limits: Residency = machine.residency
    assert machine.scratch == limits.shared - limits.reserved
    assert limits.resident(1, machine.lanes, machine.scratch) == 1
    assert limits.resident(1, machine.lanes, machine.scratch + 1) == 0


def test_a_warp_barrier_is_cheaper_than_a_blocks() -> None:
    for machine in GPUS:
        assert machine.latency.barrier("warp") < machine.latency.barrier("block")


def test_a_cpu_is_a_machine_of_one_warp_without_memory() -> None:
    machine = vector_machine(16)
    assert (machine.lanes, machine.lane_primitive, machine.scratch) == (16, "shuffle", 0)
    assert not (machine.ldmatrix or machine.stmatrix or machine.redux)
