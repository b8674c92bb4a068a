"""clusterlaunchcontrol: a cluster takes the place of one that has not been launched yet (PTX ISA 9.7.13.4).

The answer to a request is 16 bytes in shared memory that only query_cancel can read. An mbarrier tracks them like a copy of the
asynchronous proxy. Clusters are cancelled in the order in which they would be launched. The emulator has few clusters at a time
of kernels that ask (`weft.emulator.machine.launch`), so that requests are granted as on a full device.

The words of an answer here: 1 or 0, and the index x, y, z of the first block of the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active, IndexArray
from weft.emulator.memory.access_batch import Kind, Space
from weft.emulator.ops.bulk import COMPLETE, Transfer, aimed
from weft.emulator.ops.forms import form
from weft.emulator.ops.mbarrier import U32, shared_address
from weft.emulator.ops.registry import Step, instruction, masked
from weft.emulator.ptx.syntax import Sink
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

BYTES: Final = 16
ALL: Final = "multicast::cluster::all"

AXES: Final = ("x", "y", "z")


def _cancel(execution: Execution) -> NDArray[np.uint8]:
    """The answer to a request."""
    grid, first = execution.grid, execution.next_block
    words = np.zeros(BYTES // 4, np.uint32)
    if first < grid.blocks:
        execution.next_block += grid.cluster_size
        words[:] = 1, *grid.index(first)
    return words.view(np.uint8)


@instruction("clusterlaunchcontrol.try_cancel")
def _try_cancel(b: Binding) -> Step:
    f = form(
        b,
        op="try_cancel",
        how="async",
        space="? shared::cta",
        completion=COMPLETE,
        multicast=f"? {ALL}",
        type="b128",
    )
    b.count(2)
    execution = b.execution
    to, barrier = shared_address(b, 0, f["space"]), shared_address(b, 1, f["space"])
    ranks: list[int | None] = [*range(execution.grid.cluster_size)] if f["multicast"] else [None]

    def step(active: Active) -> None:
        answers = {thread: _cancel(execution) for thread in active.index.tolist()}
        for rank in ranks:
            for copies in Transfer.begin(b, active, aimed(execution, barrier, rank)):
                values = np.stack([answers[thread] for thread in copies.threads.tolist()])
                places = aimed(execution, to, rank)(copies.threads)
                copies.write(copies.access(Space.SHARED, Kind.WRITE, slice(None), places, BYTES), values)
                copies.complete(BYTES)

    return step


def _answers(b: Binding) -> Callable[[], NDArray[Any]]:
    """The words of the answers that threads have, (T, 4)."""
    values = b.read(1, TYPES["b128"])
    return lambda: np.ascontiguousarray(values).view(np.uint32)


@instruction("clusterlaunchcontrol.query_cancel.is_canceled")
def _is_cancelled(b: Binding) -> Step:
    form(b, op="query_cancel", what="is_canceled", to="pred", type="b128")
    b.count(2)
    result, answers = b.write(0, TYPES["pred"]), _answers(b)
    return lambda active: masked(result, answers()[:, 0] != 0, active)


@instruction(
    "clusterlaunchcontrol.query_cancel.get_first_ctaid",
    *(f"clusterlaunchcontrol.query_cancel.get_first_ctaid::{axis}" for axis in AXES),
)
def _first(b: Binding) -> Step:
    """The fourth word of ``.v4`` is 0 here; the ISA leaves it open."""
    whats = "get_first_ctaid " + " ".join(f"get_first_ctaid::{axis}" for axis in AXES)
    f = form(b, op="query_cancel", what=whats, vector="? v4", to="b32", type="b128")
    b.count(2)
    axis = f["what"].partition("::")[2]
    b.require(bool(f["vector"]) != bool(axis), f"{b.instruction.name} has either '.v4' or an axis")
    answers, execution, site, name = _answers(b), b.execution, b.site, b.instruction.name
    if axis:
        targets = [(b.write(0, U32), 1 + AXES.index(axis))]
    else:
        elements = b.elements(0)
        b.require(len(elements) == 4, f"{name} has {len(elements)} results, expected 4")
        places = [(e, (1, 2, 3, None)[i]) for i, e in enumerate(elements) if not isinstance(e, Sink)]
        targets = [(b.write(e, U32), place) for e, place in places]

    def refused(words: NDArray[Any], threads: IndexArray) -> None:
        if (bad := words[threads, 0] == 0).any():
            message = f"{name} of a request that has cancelled no cluster"
            raise execution.fault(Undefined, message, site, int(threads[bad.argmax()]))

    def step(active: Active) -> None:
        words = answers()
        refused(words, active.index)
        for target, place in targets:
            masked(target, words[:, place] if place is not None else np.zeros(len(words), np.uint32), active)

    return step
