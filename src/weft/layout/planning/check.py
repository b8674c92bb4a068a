"""Plans executed on labels, over a shared memory that notices mistakes: once for all machines.

The state is an array of labels of shape (warps, lanes, registers): element ``[w, l, r]`` is what lane l of warp w holds in
register r. Every step is executed from the fields that a code generator spells out, so a wrong lane, selector or address
gives wrong labels.

What could go wrong in shared memory on any schedule raises `ValueError` (`scratch_memory`): a barrier too few, a cell that
is read but was never written, or written while it may still be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weft.layout.planning.accesses import Access, MatrixAccess, VectorAccess
from weft.layout.planning.permute_run import elements_of, executed, words_of
from weft.layout.planning.scratch_memory import Memory
from weft.layout.planning.steps import Barrier, LaneExchange, Move, Parallel, Step, walk
from weft.layout.planning.vectors import Shuffles

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass
class Threads:
    """What all threads and their memory hold while steps run."""

    registers: NDArray[Any]
    """(warps, lanes, registers): what the threads hold."""
    memory: Memory
    loaded: NDArray[Any] | None = None
    """What has been loaded, alike; None before the first load."""
    filled: NDArray[Any] | None = None
    """Which registers of ``loaded`` have been."""

    def files(self, register_bits: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """The registers that loads fill, and which have been; made at the first load."""
        import numpy as np

        if self.loaded is None or self.filled is None:
            self.loaded = np.zeros((*self.registers.shape[:2], 1 << register_bits), dtype=self.registers.dtype)
            self.filled = np.zeros(self.loaded.shape, dtype=bool)
        return self.loaded, self.filled


def cells_of(steps: Sequence[Step]) -> int:
    """How many cells, of an element each, the scratch of these steps has."""
    accesses = [step for step in walk(steps) if isinstance(step, Access)]
    return max(((step.addresses.base + step.scratch) * 8 // step.addresses.bits for step in accesses), default=0)


def run(steps: Sequence[Step], labels: NDArray[Any]) -> NDArray[Any]:
    """What each thread holds after these steps, for labels of shape (warps, lanes, registers)."""
    return continue_run(steps, labels, Memory(cells_of(steps), labels))


def continue_run(steps: Sequence[Step], labels: NDArray[Any], memory: Memory) -> NDArray[Any]:
    """`run`, on a memory that was used before."""
    threads = Threads(labels, memory)
    for step in steps:
        execute(step, threads)
    if threads.loaded is not None:
        raise ValueError("shared memory: what was loaded is not made the threads' registers")
    return threads.registers


def execute(step: Step, threads: Threads) -> None:
    """Do one step."""
    _RUN[type(step)](step, threads)


def _thread_numbers(warp_bits: int, lane_bits: int, warp_flip: int = 0) -> NDArray[Any]:
    """What thread bits count in: the lane, then the warp."""
    import numpy as np

    return (np.arange(1 << warp_bits) ^ warp_flip)[:, None] << lane_bits | np.arange(1 << lane_bits)


def _move(step: Move, threads: Threads) -> None:
    import numpy as np

    old = threads.registers
    if step.loaded:
        if threads.loaded is None or threads.filled is None:
            raise ValueError("shared memory: nothing was loaded")
        old = threads.loaded
    numbers: NDArray[Any] = np.zeros(old.shape, dtype=np.int64)
    numbers += np.arange(int(old.shape[2]))
    held = words_of(numbers, step.taken)
    values = executed(step.network, held, _thread_numbers(len(step.by_warp), len(step.by_lane), step.warp_flip))
    outputs = [values[output] for output in step.network.outputs]
    choice = elements_of(outputs, step.made, 1 << len(step.registers), step)
    if step.loaded and threads.filled is not None:
        if not np.take_along_axis(threads.filled, choice, axis=2).all():
            raise ValueError("shared memory: a register of the result was never loaded")
        threads.loaded = threads.filled = None
    threads.registers = np.take_along_axis(old, choice, axis=2)


def _exchange(step: LaneExchange, threads: Threads) -> None:
    """`RuntimeError` where parts of several elements come together: then the step itself is wrong."""
    import numpy as np

    state = threads.registers
    networks = step.networks
    offer, receive = step.columns
    numbers = _thread_numbers(len(step.offered.warp), len(step.offered.lane))
    values = executed(networks.offer, words_of(np.arange(state.size).reshape(state.shape), offer.taken), numbers)
    shuffled = [number for number, moved in enumerate(step.rounds.moved) if moved]
    each = len(networks.offer.outputs) // max(1, len(shuffled))
    for at, output in enumerate(networks.offer.outputs):
        asked = step.reads.at(shuffled[at // each])
        values.append(np.take_along_axis(values[output], asked, axis=1))
    values = executed(networks.receive, values, numbers)
    outputs = [values[output] for output in networks.receive.outputs]
    threads.registers = state.reshape(-1)[elements_of(outputs, receive.made, 1 << step.registers, step)]


def _shuffles(step: Shuffles, threads: Threads) -> None:
    import numpy as np

    registers = threads.registers[0].T
    if registers.shape != (step.source_registers, step.lanes):
        raise ValueError(
            f"shuffles: got {registers.shape[0]} registers of {registers.shape[1]} lanes, "
            f"the source has {step.source_registers} of {step.lanes}"
        )
    result = np.zeros((step.destination_registers, step.lanes), dtype=registers.dtype)
    for group in range(step.groups):
        vectors = [registers[register] for register in step.sources(group)]
        for level in step.levels:
            vectors = [
                np.concatenate([vectors[operand] for operand in level.operands(v)])[list(level.mask(v))]
                for v in range(level.outputs)
            ]
        for vector, targets in zip(vectors, step.destinations(group), strict=True):
            result[list(targets)] = vector
    threads.registers = result.T[None]


def _barrier(step: Barrier, threads: Threads) -> None:
    threads.memory.barrier(step.scope)


def _transfer(
    step: Access, threads: Threads, cells: NDArray[Any], warps: NDArray[Any], lanes: NDArray[Any], at: NDArray[Any]
) -> None:
    """Store or load registers ``at`` of these lanes to or from these places."""
    addresses = step.addresses
    unit = cells >> addresses.unit
    inside = cells - (unit << addresses.unit)
    cells = (addresses.base * 8 + unit * addresses.unit_bits) // addresses.bits + inside
    if step.stores:
        threads.memory.write(cells, warps, threads.registers[warps, lanes, at])
        return
    loaded, filled = threads.files(len(addresses.registers))
    loaded[warps, lanes, at] = threads.memory.read(cells, warps)
    filled[warps, lanes, at] = True


def _vectors(step: VectorAccess, threads: Threads) -> None:
    import numpy as np

    moves = list(step.moves())
    if not moves:
        return
    size = len(moves[0][2])
    for move in moves:
        if move[3] % size:
            raise ValueError(f"shared memory: an access of {size} elements at cell {move[3]}")
    registers = np.array([move[2] for move in moves])
    places = np.array([[move[3] + place for place in range(size)] for move in moves])
    warps = np.array([[move[0]] * size for move in moves])
    lanes = np.array([[move[1]] * size for move in moves])
    _transfer(step, threads, places, warps, lanes, registers)


def _matrices(step: MatrixAccess, threads: Threads) -> None:
    import numpy as np

    inside = np.arange(1 << step.inside)
    shares = np.array([step.share(lane) for lane in range(32)])
    for instruction in range(step.instructions):
        # Each matrix's rows, from the lanes that give their addresses.
        rows: dict[int, dict[int, int]] = {}
        for lane in range(32):
            matrix, row = step.address_of(instruction, lane)
            rows.setdefault(matrix, {}).setdefault(row, lane)
        for matrix, given in rows.items():
            registers = np.broadcast_to((matrix << step.inside) + inside, shares.shape[:2])
            lanes = np.broadcast_to(np.arange(32)[:, None], registers.shape)
            for warp in range(step.warps):
                if warp & step.idle_warps:
                    continue
                places = step.row_places(matrix, warp)
                starts = np.array([places[row] for row in sorted(given)])
                found = starts[shares[..., 0]] + shares[..., 1]
                _transfer(step, threads, found, np.full(found.shape, warp), lanes, registers)


def _parallel(step: Parallel, threads: Threads) -> None:
    import numpy as np

    low, high = np.split(threads.registers, 2, axis=2)
    low = continue_run(step.stays, low, threads.memory)
    high = continue_run(step.moves, high, threads.memory)
    threads.registers = np.concatenate([low, high], axis=2)


_RUN: Final[dict[type[Step], Callable[[Any, Threads], None]]] = {
    Move: _move,
    LaneExchange: _exchange,
    Shuffles: _shuffles,
    Barrier: _barrier,
    VectorAccess: _vectors,
    MatrixAccess: _matrices,
    Parallel: _parallel,
}
