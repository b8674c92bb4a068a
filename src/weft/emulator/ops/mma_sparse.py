"""mma.sp: products with a sparse left matrix (PTX ISA 9.7.14.6).

Half of A is stored, and a register of metadata in some of each four threads says which half. Hardware skips the zeros. The
emulator expands A to a dense matrix and then computes as mma does. A's stored elements have the fragment of a dense A of
half the columns; `weft.emulator.arith.fragments.metadata_place` says where the metadata are. The ISA shows that in figures;
CUTLASS's layouts (``ELayout`` of its sparse atoms, ``reorder_meta``) agree.

Metadata without meaning (two elements in one place; with ``ordered_metadata``, places that do not ascend) are undefined
behaviour, and a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.fragments import SPARSITY, metadata_place
from weft.emulator.arith.products import ELEMENTS, expand, meaningful
from weft.emulator.errors import Undefined
from weft.emulator.machine.active import WARP
from weft.emulator.ops.fragments import Warps, registers
from weft.emulator.ops.mma import HALF, INTEGER, SINGLE, Row, form, listed, options, picture, step
from weft.emulator.ops.registry import Step

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

SPARSE: Final = (
    Row(("f16",), ("m16n8k16", "m16n8k32"), HALF),
    Row(("bf16",), ("m16n8k16", "m16n8k32"), SINGLE),
    Row(("tf32",), ("m16n8k8", "m16n8k16"), SINGLE),
    Row(("e4m3", "e5m2"), ("m16n8k64",), SINGLE),
    Row(("u8", "s8"), ("m16n8k32", "m16n8k64"), INTEGER),
    Row(("u4", "s4"), ("m16n8k64", "m16n8k128"), INTEGER),
)
"""mma.sp of sm_80 to sm_90."""


def plain(b: Binding) -> Step:
    """``mma.sp.sync.aligned.shape.row.col.d.a.b.c  d, a, b, c, metadata, selector``, without a kind."""
    f = form(b, "mma.sp", "sp", "sp::ordered_metadata", "sync", "aligned", "satfinite")
    types = listed(b, SPARSE, f, f.types)
    left = types[1]
    options(b, f, ELEMENTS[left].family)
    b.count(6)
    b.require("aligned" in f.rest, f"{b.instruction.name} has no '.aligned'")
    b.require(f.layouts == ("row", "col"), f"{b.instruction.name} must have layouts .row.col")
    contraction = f.size[2]
    rule = SPARSITY[ELEMENTS[left].bits]
    where = picture(f, types, contraction * rule.kept // rule.group)
    return step(b, f, where, types, dense_left(b, contraction, ELEMENTS[left].bits, 4))


def dense_left(b: Binding, contraction: int, bits: int, operand: int) -> Callable[[NDArray[Any], Warps], NDArray[Any]]:
    """What makes the stored elements (warps, 1, 16, stored) a dense A, by metadata in ``operand`` and the selector after it."""
    execution, site, name = b.execution, b.site, b.instruction.name
    thread, low, threads = metadata_place(contraction, bits)
    selector, choices = b.constant(operand + 1), 4 // threads
    b.require(
        0 <= selector < choices,
        f"{name} has a sparsity selector of {selector}, expected {'0' if choices == 1 else f'0 to {choices - 1}'}",
    )
    lanes = 4 * (np.arange(16)[:, None] % 8) + thread + threads * selector
    shifts = low.astype(np.uint32)
    (metadata,) = registers(b, operand, 1, 32, write=False)
    rule = SPARSITY[bits]
    good = meaningful(rule.kept, "sp::ordered_metadata" in b.modifiers)

    def dense(stored: NDArray[Any], warps: Warps) -> NDArray[Any]:
        words = metadata if warps is None else metadata[warps]
        fields = ((words[:, lanes] >> shifts) & 15).astype(np.uint8)
        if not (known := good[fields]).all():
            which, row, group = (int(axis[0]) for axis in (~known).nonzero())
            warp = which if warps is None else int(warps[which])
            message = (
                f"the sparsity metadata of row {row}, columns {group * rule.group} to {(group + 1) * rule.group - 1} "
                f"are 0b{fields[which, row, group]:04b}, which mean nothing"
            )
            raise execution.fault(Undefined, message, site, warp * WARP + int(lanes[row, group]))
        return expand(stored[:, 0], fields, rule.group, rule.kept, rule.run)[:, None]

    return dense
