"""A launch from beginning to end: allocations, batches of blocks, and what is handed back."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Fault, LaunchError, Uninitialised
from weft.emulator.machine.active import WARP
from weft.emulator.machine.arguments import Arguments
from weft.emulator.machine.device_memory import DeviceMemory
from weft.emulator.machine.execution import Checks, Execution
from weft.emulator.machine.grid import Dim3, Grid
from weft.emulator.machine.program import Program
from weft.emulator.machine.provenance import shared_variables
from weft.emulator.machine.scheduler import Scheduler
from weft.emulator.machine.symbols import Symbols
from weft.emulator.machine.tracked import LOADS, Tracked
from weft.emulator.machine.variable_map import VariableMap
from weft.emulator.memory import spare
from weft.emulator.memory.access_batch import Space
from weft.emulator.memory.arena import Allocation, Heap, layout
from weft.emulator.memory.cluster import MOST, reaches
from weft.emulator.memory.device_heap import NAME
from weft.emulator.memory.global_order import GlobalOrder
from weft.emulator.memory.host import HostAddresses
from weft.emulator.memory.memory import WINDOW, Memory
from weft.emulator.memory.order import NullOrder, Order
from weft.emulator.ops.allocation import NAMES
from weft.emulator.profile.counters import Counters

RESIDENT: Final = 16384
"""Threads that are executed at once, if there are so many."""

RESIDENT_BYTES: Final = 256 << 20
"""Bytes of shared and local memory of the blocks that are executed at once."""

FEW: Final = 4
"""Clusters that are executed at once where blocks cancel the launch of others, so that there are others."""

CANCELS: Final = "clusterlaunchcontrol"

SHARED_LIMIT: Final = 227 << 10
"""Bytes of shared memory a block may have (sm_90)."""

RESERVED: Final = 1 << 10
"""Bytes of a block's shared memory that are the system's, on sm_80 and later; programs that ask for them have them here."""

COOPERATIVE_LIMIT: Final = 1 << 18
"""Threads of a cooperative launch, all of which are resident."""

BLOCK_LIMIT: Final = 1024
WORKSPACE: Final = "the grid's workspace"

_WORKSPACE: Final = (8).to_bytes(4, "little") + bytes(4)
"""What `cooperative_groups` finds where %envreg1 (high half of the address) and %envreg2 point: the size, and the barrier."""

GRID_LIMIT: Final = (2**31 - 1, 65535, 65535)


@dataclass
class Outcome:
    """What a launch leaves behind, beside what it wrote."""

    counters: Counters
    output: list[str]
    shared_bytes: int
    static_shared: int


def dim3(name: str, given: int | Sequence[int]) -> Dim3:
    """A grid or block from a number or up to three. Raises: LaunchError."""
    values = (given,) if isinstance(given, int) else tuple(given)
    if not 1 <= len(values) <= 3:
        raise LaunchError(f"{name} is {given!r}, expected one to three integers")
    x, y, z = (*(int(v) for v in values), 1, 1, 1)[:3]
    if min(x, y, z) < 1:
        raise LaunchError(f"{name} is {given!r}, expected numbers from 1 on")
    return x, y, z


def launch(
    program: Program,
    kernel: str,
    grid: Dim3,
    block: Dim3,
    arguments: Sequence[Any],
    dynamic_shared: int,
    checks: Checks,
    reached: Sequence[NDArray[Any]] | DeviceMemory = (),
    symbols: Symbols | None = None,
    cooperative: bool = False,
    cluster: Dim3 | None = None,
    tracked: bool = False,
) -> Outcome:
    """Executes a kernel; arrays among the arguments and in ``reached`` hold afterwards what it wrote, and so do ``symbols``, the
    module's variables. ``cooperative``: all blocks are resident, and have a barrier in common. ``cluster``: the shape of
    clusters, where the kernel does not say it. ``tracked``: reads of unwritten memory are faults where their values are used.
    Raises: LaunchError, PTXError, Fault."""
    spare.keep_temporaries()
    function = program.module.functions.get(kernel)
    if function is None or not function.entry:
        names = ", ".join(f.name for f in program.module.functions.values() if f.entry) or "none"
        raise LaunchError(f"the module has no kernel '{kernel}'; it has {names}")
    _check_shape(function.name, function.directives, grid, block)
    shape = _clusters(function.name, function.directives, grid, cluster)
    size = shape.cluster_size
    given = Arguments(function, arguments, reached)
    symbols = Symbols(program) if symbols is None else symbols  # one without variables is false, and has a heap
    variable_map = VariableMap(program, kernel, symbols, dynamic_shared, RESERVED)
    if variable_map.shared_bytes - variable_map.reserved_shared > SHARED_LIMIT:
        needs = (
            f"{kernel} needs {variable_map.shared_bytes - variable_map.reserved_shared} bytes of shared memory a block"
        )
        message = f"{needs}, more than the {SHARED_LIMIT} there are"
        raise LaunchError(message)
    total = shape.blocks
    block_threads = -(-block[0] * block[1] * block[2] // WARP) * WARP
    per_block = variable_map.shared_bytes + variable_map.local_bytes * block_threads
    blocks = max(1, min(total, RESIDENT // block_threads, RESIDENT_BYTES // max(per_block, 1)) // size) * size
    if CANCELS in variable_map.reached.opcodes:
        blocks = min(blocks, size * FEW)
    if cooperative:
        blocks = total
        if total * block_threads > COOPERATIVE_LIMIT:
            message = (
                f"a cooperative launch of {total} blocks of {block_threads} threads: all blocks are resident at once"
            )
            raise LaunchError(f"{message}, and at most {COOPERATIVE_LIMIT} threads can be")
    memory = _memory(variable_map, symbols, given, blocks, block_threads, checks, cooperative, size)
    counters = Counters(len(program.instructions))
    execution = Execution(program, kernel, shape, block, blocks, memory, counters, checks)
    execution.variable_map = variable_map
    if cooperative:
        execution.special.set_workspace(WINDOW[Space.GLOBAL] + memory.heaps[Space.GLOBAL].allocations[-1].start)
    memory.fault = execution.fault
    if memory.clusters is not None:
        memory.clusters.ended = lambda: np.logical_and.reduce(execution.exited.reshape(blocks, -1), axis=1)
        memory.clusters.reaches = lambda site: reaches(program.instructions[site])
    elif checks.bounds:
        memory.variables = shared_variables(variable_map)
    memory.order = execution.order = _order(execution, block_threads, variable_map.reached.granule)
    try:
        with np.errstate(all="ignore"), _no_collection():
            scheduler = Tracked(execution, variable_map) if tracked else Scheduler(execution, variable_map)
            while execution.next_block < total:
                memory.begin()
                resident = min(blocks, total - execution.next_block)
                execution.order.reset(resident // size)
                scheduler.run(execution.begin(resident))
            scheduler.count()
    except Fault as fault:
        by = fault.where.instruction
        if tracked or not isinstance(fault, Uninitialised) or by is None or by.opcode not in LOADS:
            fault.output = "".join(execution.output)
            raise
        tracked = True
    else:
        tracked = False
    if tracked:  # once more, with a look at what becomes of what is read
        rest = dynamic_shared, checks, reached, symbols, cooperative, cluster
        return launch(program, kernel, grid, block, arguments, *rest, tracked=True)
    heap = memory.heaps[Space.GLOBAL]
    placed = heap.allocations[len(symbols.sizes) + (memory.device_heap is not None) :]
    results = [(r, heap.bytes[a.start : a.start + a.size]) for r, a in zip(given.ranges, placed, strict=False)]
    for r, result in results:
        if not r.writeable and not np.array_equal(r.view(), result):
            raise LaunchError(f"{r.name} is a read-only array, and {kernel} writes to it")
    for r, result in results:
        if r.writeable:
            r.view()[...] = result
    symbols.take(heap, heap.allocations)
    memory.images.end()
    if memory.device_heap is not None:
        memory.device_heap.end()
    spare.give(heap.bytes)
    return Outcome(counters, execution.output, variable_map.shared_bytes, variable_map.static_shared)


def _order(execution: Execution, block_threads: int, granule: int) -> NullOrder:
    """Who looks for races."""
    memory, checks, size = execution.memory, execution.checks, execution.grid.cluster_size
    clusters = execution.blocks // size
    known = execution.program.instructions, execution.coordinates, execution.kernel
    order = NullOrder()
    if checks.races and memory.shared_bytes:
        contents = memory.shared.bytes[: memory.shared_stride * execution.blocks].reshape(clusters, -1)
        order = Order(contents, block_threads * size, granule, *known, size)
        if checks.bounds and checks.alignment:
            execution.shared_order = order
    memory.watch_global = checks.global_races
    if checks.global_races:
        heap = memory.heaps[Space.GLOBAL]
        order = GlobalOrder(heap, order, clusters, block_threads * size, checks.alignment, *known, size)
    return order


def _check_shape(name: str, directives: dict[str, tuple[int, ...]], grid: Dim3, block: Dim3) -> None:
    threads = block[0] * block[1] * block[2]
    if threads > BLOCK_LIMIT or block[2] > 64:
        raise LaunchError(f"a block of {block} has {threads} threads; a block has at most {BLOCK_LIMIT}, 64 in z")
    if any(g > limit for g, limit in zip(grid, GRID_LIMIT, strict=True)):
        raise LaunchError(f"a grid of {grid} is larger than the largest, {GRID_LIMIT}")
    if (required := directives.get("reqntid")) and (*required, 1, 1)[:3] != block:
        raise LaunchError(f"{name} requires blocks of {(*required, 1, 1)[:3]} threads (.reqntid), got {block}")
    if (most := directives.get("maxntid")) and threads > np.prod(most):
        raise LaunchError(f"{name} allows blocks of at most {int(np.prod(most))} threads (.maxntid), got {threads}")


def _clusters(name: str, directives: dict[str, tuple[int, ...]], grid: Dim3, given: Dim3 | None) -> Grid:
    """The grid in clusters, of the shape that the kernel requires or the launch gives."""
    required = directives.get("reqnctapercluster")
    if required is not None:
        x, y, z = (*required, 1, 1)[:3]
        if given is not None and given != (x, y, z):
            raise LaunchError(f"{name} requires clusters of {(x, y, z)} blocks (.reqnctapercluster), got {given}")
        given = x, y, z
    if given is None:
        if "explicitcluster" in directives:
            raise LaunchError(f"{name} needs clusters (.explicitcluster): give their shape, cluster=")
        return Grid(grid)
    if "blocksareclusters" in directives:
        x, y, z = (g * c for g, c in zip(grid, given, strict=True))
        grid = x, y, z
    found = Grid(grid, given, explicit=True)
    most = directives.get("maxclusterrank", (MOST,))[0]
    if found.cluster_size > most:
        limit = "(.maxclusterrank)" if "maxclusterrank" in directives else "on sm_90"
        raise LaunchError(f"a cluster of {given} has {found.cluster_size} blocks; it has at most {most} {limit}")
    if any(g % c for g, c in zip(grid, given, strict=True)):
        raise LaunchError(f"a grid of {grid} blocks is not made of whole clusters of {given}")
    return found


def _memory(
    variable_map: VariableMap,
    symbols: Symbols,
    given: Arguments,
    blocks: int,
    block_threads: int,
    checks: Checks,
    cooperative: bool,
    cluster: int,
) -> Memory:
    scratch = any(not r.defined for r in given.ranges)
    has_heap = bool(
        variable_map.reached.calls & NAMES or symbols.heap.live
    )  # it may use what earlier launches have allocated
    before = symbols.sizes + [(NAME, symbols.heap.size, 0)] * has_heap
    sizes = before + [(r.name, r.high - r.low, r.skew) for r in given.ranges]
    allocations = layout(sizes + [(WORKSPACE, len(_WORKSPACE), 0)] * cooperative)
    placed = allocations[len(before) : len(sizes)]
    heap = Heap(WINDOW[Space.GLOBAL], allocations, checks.uninitialised and (scratch or has_heap), filled=placed)
    use = symbols.heap.begin(heap, allocations[len(before) - 1].start) if has_heap else None
    symbols.put(Space.GLOBAL, heap, allocations)
    if cooperative:
        start = allocations[-1].start
        heap.bytes[start : start + len(_WORKSPACE)] = np.frombuffer(_WORKSPACE, np.uint8)
        heap.mark(start, len(_WORKSPACE))
    for r, a in zip(given.ranges, placed, strict=True):
        heap.bytes[a.start : a.start + a.size] = r.view()
        if r.defined:
            heap.mark(a.start, a.size)
    constants = Heap(WINDOW[Space.CONST], symbols.constants, track=False)
    symbols.put(Space.CONST, constants, symbols.constants)
    parameters = Heap(WINDOW[Space.PARAM], _parameter_layout(variable_map), track=False)
    starts = [WINDOW[Space.GLOBAL] + a.start for a in placed]
    for parameter, data in zip(variable_map.kernel.parameters, given.encode(starts), strict=True):
        at = variable_map.addresses[variable_map.kernel.name, parameter.name]
        parameters.bytes[at : at + len(data)] = np.frombuffer(data, np.uint8)
    host = [(r.low, r.high, start) for r, start in zip(given.ranges, starts, strict=True) if r.reached]
    for r, start in zip(given.ranges, starts, strict=True):
        if r.device is not None:
            host.append((r.device, r.device + r.high - r.low, start))
    memory = Memory(
        heap,
        constants,
        parameters,
        variable_map.shared_bytes,
        variable_map.dynamic_shared,
        variable_map.reserved_shared,
        variable_map.local_bytes,
        blocks,
        block_threads,
        NullOrder(),
        checks,
        HostAddresses(host),
        cluster,
    )
    memory.device_heap = use
    memory.multicasts = given.multicasts
    return memory


def _parameter_layout(variable_map: VariableMap) -> list[Allocation]:
    (allocation,) = layout([("the parameters", variable_map.parameter_bytes, 0)])
    for key in [k for k in variable_map.addresses if variable_map.spaces[k] is Space.PARAM]:
        variable_map.addresses[key] += allocation.start
    return [allocation]


@contextlib.contextmanager
def _no_collection() -> Generator[None]:
    """Python's collector walks the bound steps over and over and finds nothing to free: it pauses."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
