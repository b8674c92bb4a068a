"""The memory that notices mistakes, and the parts of a conversion through it: what each does, costs and is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from weft.layout import LinearLayout, nvidia_mma_operand
from weft.layout.planning.accesses import Addresses, MatrixAccess, VectorAccess
from weft.layout.planning.check import Threads, continue_run, execute, run
from weft.layout.planning.choose import plan_memory
from weft.layout.planning.machine import HOPPER, MachineModel, Scope
from weft.layout.planning.matrix import AccessKind
from weft.layout.planning.scratch_memory import Memory
from weft.layout.planning.steps import Barrier, Cost, Move, Step

LABELS = np.arange(8)
PLAIN = MachineModel("no matrices")


def write(memory: Memory, warp: int, cell: int, label: int) -> None:
    memory.write(np.array([cell]), np.array([warp]), np.array([label]))


def read(memory: Memory, warp: int, cell: int) -> int:
    return int(memory.read(np.array([cell]), np.array([warp]))[0])


# The memory: what is right


@pytest.mark.parametrize(("scope", "reader"), [("warp", 0), ("block", 0), ("block", 1)])
def test_what_is_written_is_read_after_a_barrier(scope: Scope, reader: int) -> None:
    memory = Memory(8, LABELS)
    write(memory, 0, 3, 5)
    memory.barrier(scope)
    assert read(memory, reader, 3) == 5


def test_a_cell_is_reused_after_a_barrier() -> None:
    memory = Memory(8, LABELS)
    write(memory, 0, 3, 5)
    memory.barrier("block")
    assert read(memory, 1, 3) == 5
    memory.barrier("block")
    write(memory, 1, 3, 6)
    memory.barrier("warp")
    assert read(memory, 1, 3) == 6


def test_several_may_write_the_same() -> None:
    """Two warps that hold copies each write and read their own, with barriers of warps only."""
    memory = Memory(8, LABELS)
    write(memory, 0, 3, 5)
    write(memory, 1, 3, 5)
    memory.barrier("warp")
    assert (read(memory, 0, 3), read(memory, 1, 3)) == (5, 5)


# The memory: what raises


def before_a_barrier(memory: Memory) -> None:
    write(memory, 0, 3, 5)
    read(memory, 0, 3)


def by_a_warp_that_has_not_waited(memory: Memory) -> None:
    write(memory, 0, 3, 5)
    memory.barrier("warp")
    read(memory, 1, 3)


def what_nobody_wrote(memory: Memory) -> None:
    write(memory, 0, 2, 5)
    memory.barrier("block")
    read(memory, 0, 3)


def over_what_is_being_read(memory: Memory) -> None:
    write(memory, 0, 3, 5)
    memory.barrier("block")
    read(memory, 0, 3)
    write(memory, 0, 3, 6)


def over_what_another_warp_may_still_read(memory: Memory) -> None:
    write(memory, 0, 3, 5)
    memory.barrier("block")
    read(memory, 1, 3)
    memory.barrier("warp")
    write(memory, 0, 3, 6)


def two_values_at_once(memory: Memory) -> None:
    memory.write(np.array([3, 3]), np.array([0, 0]), np.array([5, 6]))


def two_values_of_two_warps(memory: Memory) -> None:
    write(memory, 0, 3, 5)
    memory.barrier("warp")
    write(memory, 1, 3, 6)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (before_a_barrier, "is read before a barrier"),
        (by_a_warp_that_has_not_waited, "is read by a warp that has not waited for the one that wrote it"),
        (what_nobody_wrote, "is read but was never written"),
        (over_what_is_being_read, "is written while it may still be read"),
        (over_what_another_warp_may_still_read, "is written while it may still be read"),
        (two_values_at_once, "gets two values at once"),
        (two_values_of_two_warps, "gets two values at once"),
    ],
)
def test_mistakes(mistake: Callable[[Memory], None], message: str) -> None:
    with pytest.raises(ValueError) as error:
        mistake(Memory(8, LABELS))
    assert str(error.value) == f"shared memory: cell 3 {message}"


# Plans that were right, broken

CROSSING = (
    LinearLayout.parse("{register: [1,2], lane: [4,8,16,32,64], warp: [128]} -> [dim0: 256]"),
    LinearLayout.parse("{register: [64,128], lane: [1,2,4,8,16], warp: [32]} -> [dim0: 256]"),
)


def no_barrier(part: Step) -> Step | None:
    return None if isinstance(part, Barrier) else part


def a_barrier_of_warps(part: Step) -> Step | None:
    return Barrier("warp") if isinstance(part, Barrier) else part


def half_is_stored(part: Step) -> Step | None:
    return replace(part, idle_warps=1) if isinstance(part, VectorAccess) and part.stores else part


def half_is_loaded(part: Step) -> Step | None:
    """Every second element of the scratch is another round's."""
    if not (isinstance(part, VectorAccess) and not part.stores):
        return part
    return replace(part, addresses=replace(part.addresses, tile=part.addresses.tile - 1))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (no_barrier, r"shared memory: cell \d+ is read before a barrier"),
        (
            a_barrier_of_warps,
            r"shared memory: cell \d+ is read by a warp that has not waited for the one that wrote it",
        ),
        (half_is_stored, r"shared memory: cell \d+ is read but was never written"),
        (half_is_loaded, "shared memory: a register of the result was never loaded"),
    ],
)
def test_a_broken_plan_raises(held: Any, broken: Callable[[Step], Step | None], message: str) -> None:
    steps = plan_memory(*CROSSING, 32, PLAIN).steps
    changed = [new for step in steps if (new := broken(step)) is not None]
    with pytest.raises(ValueError, match=f"^{message}$"):
        run(changed, held(CROSSING[0]))


def test_a_wrong_address_gives_wrong_labels(held: Any) -> None:
    steps = plan_memory(*CROSSING, 32, PLAIN).steps

    def shifted(part: Step) -> Step:
        if not (isinstance(part, VectorAccess) and part.stores):
            return part
        lanes = part.addresses.lanes
        return replace(part, addresses=replace(part.addresses, lanes=(lanes[1], lanes[0], *lanes[2:])))

    changed = [shifted(step) for step in steps]
    assert np.array_equal(run(steps, held(CROSSING[0])), held(CROSSING[1]))
    assert not np.array_equal(run(changed, held(CROSSING[0])), held(CROSSING[1]))


# Matrices, as the PTX ISA gives their fragments


def loaded(access: AccessKind, bits: int, rows: int, registers: int) -> Any:
    """What each lane gets of one matrix of consecutive rows of 16 bytes, labelled by position, registers in order."""
    row = 128 // bits
    memory = Memory(rows * row, np.arange(rows * row))
    memory.write(np.arange(rows * row), np.zeros(rows * row, dtype=int), np.arange(rows * row))
    memory.barrier("warp")
    count = registers.bit_length() - 1
    addresses = Addresses((0,) * count, (0,) * 5, (), bits, 0, bits, (rows * row).bit_length() - 1)
    part = MatrixAccess(
        HOPPER,
        addresses,
        inside=count,
        granules=(0, 1),
        stores=False,
        rows=tuple(row << i for i in range(rows.bit_length() - 1)),
        kind=access,
    )
    result = np.zeros((1, 32, registers), dtype=int)
    threads = Threads(result, memory)
    execute(part, threads)
    assert threads.loaded is not None
    assert threads.filled is not None
    assert threads.filled.all()
    assert part.cost == Cost(loads=1, wavefronts=rows // 8, scratch=rows * 16)
    return threads.loaded[0]


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_ldmatrix(bits: int) -> None:
    """PTX ISA, ldmatrix: thread l receives 32 bits of row l / 4, those at 4 (l % 4) bytes."""
    row, word = 128 // bits, 32 // bits
    expected = [[(lane // 4) * row + (lane % 4) * word + i for i in range(word)] for lane in range(32)]
    assert loaded("matrix", bits, 8, word).tolist() == expected


def test_ldmatrix_trans() -> None:
    """PTX ISA, ldmatrix .trans: the matrix is loaded in column-major format, so thread l has rows 2 (l % 4) and the next of
    column l / 4."""
    expected = [[(2 * (lane % 4) + i) * 8 + lane // 4 for i in range(2)] for lane in range(32)]
    assert loaded("transposed", 16, 8, 2).tolist() == expected


def test_ldmatrix_trans_of_bytes() -> None:
    """ldmatrix .m16n16 .trans .b8, as measured on hardware in public; not compared with the ISA's text. Of a 16x16 matrix,
    thread l has rows 4 (l % 4) to 4 (l % 4) + 3 of column l / 4 in the first register, of column l / 4 + 8 in the second."""
    expected = [
        [(4 * (lane % 4) + i) * 16 + lane // 4 + 8 * half for half in (0, 1) for i in range(4)] for lane in range(32)
    ]
    assert loaded("bytes", 8, 16, 8).tolist() == expected


def test_an_operand_is_what_ldmatrix_loads() -> None:
    """The left operand of mma.m16n8k16 is four 8x8 matrices of a row-major tile, as the PTX ISA says of ldmatrix .x4."""
    source = LinearLayout.parse(
        "{register: [(0,1),(0,2),(0,4)], lane: [(1,0),(2,0),(4,0),(8,0),(0,8)], warp: []} -> [dim0: 16, dim1: 16]"
    )
    plan = plan_memory(source, nvidia_mma_operand((16, 16), 0, 2, 2, (1, 1), (16, 8)), 16, HOPPER)
    assert str(plan) == "store 1 x 128 bits; warp barrier; ldmatrix 1 x x4"
    assert plan.cost == Cost(stores=1, loads=1, wavefronts=8, barriers=1, scratch=512)


# Vectors and selects


def vectors(lanes: tuple[int, ...], registers: tuple[int, ...] = (), bits: int = 32) -> VectorAccess:
    """A load at the addresses of these columns, all registers in a vector."""
    addresses = Addresses(registers, lanes, (), bits, 0, bits, 12)
    return VectorAccess(HOPPER, addresses, len(registers), (0, 1), stores=False)


@pytest.mark.parametrize(
    ("part", "wavefronts"),
    [
        # 32 lanes read the 32 banks; every other word, so 16 banks twice; 32 words of one bank; one word.
        (vectors((1, 2, 4, 8, 16)), 1),
        (vectors((2, 4, 8, 16, 32)), 2),
        (vectors((32, 64, 128, 256, 512)), 32),
        (vectors((0, 0, 0, 0, 0)), 1),
        # Bytes of one word are one access of a bank; of 8 words four times.
        (vectors((1, 2, 4, 8, 16), bits=8), 1),
        (vectors((4, 8, 16, 32, 64), bits=8), 1),
        # 128 bits: phases of 8 lanes; the second has its 8 vectors in the same banks.
        (vectors((4, 8, 16, 32, 64), registers=(1, 2)), 4),
        (vectors((32, 64, 128, 256, 512), registers=(1, 2)), 32),
    ],
)
def test_wavefronts_are_counted_from_addresses(part: VectorAccess, wavefronts: int) -> None:
    assert part.cost.wavefronts == sum(part.wavefronts_by_warp()) == wavefronts


def test_idle_lanes_take_no_phase() -> None:
    """64 bits are served 16 lanes at a time: with lanes 16 to 31 idle there is one phase."""
    part = vectors((2, 4, 8, 16, 32), registers=(1,))
    assert part.cost.wavefronts == 2
    assert replace(part, idle_lanes=16).cost.wavefronts == 1
    assert replace(part, idle_lanes=1).cost.wavefronts == 2


def test_an_unaligned_vector_raises() -> None:
    part = vectors((1, 2, 4, 8, 16), registers=(1,))
    state = np.zeros((1, 32, 2), dtype=int)
    with pytest.raises(ValueError) as error:
        execute(part, Threads(state, Memory(64, state)))
    assert str(error.value) == "shared memory: an access of 2 elements at cell 1"


def test_unaligned_rows_raise() -> None:
    addresses = Addresses((0,), (0,) * 5, (), 16, 0, 16, 10)
    part = MatrixAccess(HOPPER, addresses, 1, (0, 1), stores=False, rows=(4, 16, 32))
    state = np.zeros((1, 32, 2), dtype=int)
    with pytest.raises(ValueError) as error:
        execute(part, Threads(state, Memory(64, state)))
    assert str(error.value) == "shared memory: rows of a matrix at cells [0, 4, 16, 20, 32, 36, 48, 52]"


def test_a_select_chooses_by_lane_and_warp() -> None:
    """Register 0 of a thread, plus 1 for odd lanes, plus 2 for odd warps; with a flip, plus 2 for even warps."""
    labels = np.arange(2 * 2 * 4).reshape(2, 2, 4)
    step = Move.packed((0,), (1,), (2,), 32)
    assert run([step], labels).tolist() == [[[0, 0], [5, 5]], [[10, 10], [15, 15]]]
    assert run([replace(step, warp_flip=1)], labels).tolist() == [[[2, 2], [7, 7]], [[8, 8], [13, 13]]]
    assert step.cost == Cost(permutes=3)


def test_what_is_loaded_has_to_become_the_threads_registers() -> None:
    labels = np.zeros((1, 32, 2), dtype=int)
    memory = Memory(64, labels)
    memory.write(np.arange(64), np.zeros(64, dtype=int), np.arange(64))
    memory.barrier("warp")
    load = vectors((2, 4, 8, 16, 32), registers=(1,))
    with pytest.raises(ValueError) as error:
        continue_run([load], labels, memory)
    assert str(error.value) == "shared memory: what was loaded is not made the threads' registers"
    with pytest.raises(ValueError) as error:
        run([Move.packed((1,), (0,) * 5, (), 32, loaded=True)], labels)
    assert str(error.value) == "shared memory: nothing was loaded"


def test_words() -> None:
    assert str(Move.packed((1,), (0,), (0,), 32)) == "registers renamed"
    assert str(Move.packed((2, 1), (0,), (0,), 16)) == "registers permuted, 2 permutes"
    assert str(Move.packed((), (1,), (0,), 32)) == "registers selected, 1 permute"
    assert str(Barrier("block")) == "barrier"
    assert str(Barrier("warp")) == "warp barrier"
    assert str(plan_memory(*CROSSING, 32, PLAIN)) == "store 1 x 128 bits; barrier; load 4 x 32 bits"
