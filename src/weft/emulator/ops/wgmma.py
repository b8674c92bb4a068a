"""wgmma: products of matrices in shared memory, by four warps, asynchronously (PTX ISA 9.7.15).

The products are computed when they are issued. Their asynchrony shows only in which threads may use the results and
overwrite the operands, and the race detector checks that. Until wait_group, shared memory that an instruction reads belongs
to the operation (`weft.emulator.memory.order`: the async proxy, so generic writes before it need fence.proxy.async, and a
write before wait_group is a race). Each 16 bytes of an operand are one access of the operation, however many warps use them.
An operation is the warpgroup's: it has seen what any of the four warps has seen, and each that waits for it knows it
complete. So a barrier that is missing only among the warps of one warpgroup is not found.

What is not checked, because ptxas mends it: accumulators used before wait_group (it inserts the wait, and says C7517), registers
that wgmma.mma_async uses without a wgmma.fence after other accesses (it inserts the fence, C7519).

Counted for each warpgroup: ``wgmma``, 1, and ``matrix_flops``, 2 M N K, also for integers and bits, and for a sparse A as if
it were dense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import warpgroup
from weft.emulator.machine.active import Active, IndexArray, Mask
from weft.emulator.ops.async_groups import Groups
from weft.emulator.ops.fragments import Warps, collective, registers
from weft.emulator.ops.registry import Destinations, Step, Transfer, instruction
from weft.emulator.ops.wgmma_forms import form
from weft.emulator.ops.wgmma_operands import operands
from weft.emulator.ops.wgmma_together import WARPS, Together, first_threads, uniform

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

KIND: Final = "wgmma"
"""What `Groups` calls these groups."""


@instruction("wgmma.fence")
def fence(b: Binding) -> Step:
    """``wgmma.fence.sync.aligned``: an order of accesses to registers, which are in order here anyway."""
    _aligned(b, "fence", 0)
    check = collective(b)

    def run(active: Active) -> None:
        check(active)

    return run


@instruction("wgmma.commit_group")
def commit_group(b: Binding) -> Step:
    """``wgmma.commit_group.sync.aligned``."""
    _aligned(b, "commit_group", 0)
    execution, check = b.execution, collective(b)

    def run(active: Active) -> None:
        check(active)
        Groups.of(execution, KIND).commit(active)

    return run


@instruction("wgmma.wait_group")
def wait_group(b: Binding) -> Step:
    """``wgmma.wait_group.sync.aligned N``."""
    _aligned(b, "wait_group", 1)
    pending = b.constant(0)
    b.require(pending >= 0, f"wgmma.wait_group waits for all but {pending} groups, expected 0 or more")
    execution, check = b.execution, collective(b)

    def run(active: Active) -> None:
        check(active)
        Groups.of(execution, KIND).wait(active, pending)

    return run


@instruction("wgmma.mma_async", transfer=True)
def mma_async(b: Binding) -> Transfer:
    """``wgmma.mma_async{.sp}.sync.aligned.shape.d.a.b  d, a, b-desc, {metadata, selector,} scale-d, ...``."""
    f = form(b)
    d = registers(b, 0, f.registers, 32, write=True)
    multiplicands = operands(b, f)
    scale = b.predicate(5 if f.sparse else 3)
    execution, site, following, counters = b.execution, b.site, b.next, b.execution.counters
    together = Together(execution, site)

    def run(active: Active) -> Destinations:
        active, warps = together.who(active)
        if not active:
            return []
        agent = Groups.of(execution, KIND).begin(active, together=WARPS) if execution.order.active else None
        first = first_threads(execution, warps)
        left, right = multiplicands(warps, first, agent)
        right = warpgroup.by_packets(right, f.packed)
        before = accumulators(scale(), warps, first)
        result = warpgroup.multiply(-left if f.negated else left, right, before, f.d, f.saturate)
        warpgroup.spread(warpgroup.to_registers(result, f.packed), d, warps)
        counters.add(site, "wgmma", first.size)
        counters.add(site, "matrix_flops", first.size * f.work)
        return [(following, active)]

    def accumulators(scale_d: Mask, warps: Warps, first: IndexArray) -> NDArray[np.uint32] | None:
        """D before, zero in warpgroups whose scale-d is false; None if that is all of them."""
        keep = uniform(execution, site, scale_d, warps, first, "scale-d")
        if not keep.any():
            return None
        before = warpgroup.from_registers(warpgroup.collect(d, warps), f.packed)
        if not keep.all():
            before[~keep] = 0
        return before

    return run


def _aligned(b: Binding, name: str, operands: int) -> None:
    """``wgmma.name.sync.aligned`` with so many operands."""
    for modifier in b.modifiers[1:]:
        if modifier not in ("sync", "aligned"):
            b.unknown(f"'.{modifier}' of wgmma.{name}")
    for modifier in ("sync", "aligned"):
        b.require(modifier in b.modifiers, f"{b.instruction.name} has no '.{modifier}'")
    b.count(operands)
