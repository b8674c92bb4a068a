"""The launch's record in a program: how a checked access reports a failure, and how a program learns that the launch stops.

`weft.codegen.kernel` describes the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.kernel import FAULT, STOP, STOPPED, AccessSite
from weft.codegen.llvm.types import I8, I32, I64
from weft.codegen.llvm.volatile import volatile_load


@dataclass
class Faults:
    """The launch's ``record``, the ``bounds`` (first byte, one past the last) of each pointer argument, and the ``sites``
    of the accesses checked so far."""

    record: ir.Value
    bounds: Mapping[SSAValue, tuple[ir.Value, ir.Value]]
    sites: list[AccessSite] = field(default_factory=list[AccessSite])

    def add(self, site: AccessSite) -> int:
        """Enters an access; gives its number."""
        self.sites.append(site)
        return len(self.sites) - 1

    def leave(self, builder: ir.IRBuilder, site: int, program_ids: Sequence[ir.Value], address: ir.Value) -> None:
        """Reports a failed access, unless another was first, and leaves the kernel."""
        record = self.record
        one = ir.Constant(I64, 1)
        claimed = builder.extract_value(builder.cmpxchg(record, ir.Constant(I64, 0), one, "monotonic", "monotonic"), 1)
        with builder.if_then(claimed):
            ids = [builder.zext(program_id, I64) for program_id in program_ids]
            for slot, value in enumerate([ir.Constant(I64, site), *ids, address], start=1):
                builder.store(value, word(builder, record, slot))
        builder.ret(ir.Constant(I32, FAULT))

    def leave_if_stopped(self, builder: ir.IRBuilder) -> None:
        """Leaves the program where the launch stops. For a loop's back edge."""
        stop = volatile_load(builder, word(builder, self.record, STOP), I64, 8)
        with builder.if_then(builder.icmp_unsigned("!=", stop, ir.Constant(I64, 0)), likely=False):
            builder.ret(ir.Constant(I32, STOPPED))


def word(builder: ir.IRBuilder, base: ir.Value, index: int) -> ir.Value:
    """The address of one of the 8-byte words at ``base``."""
    return builder.gep(base, [ir.Constant(I64, 8 * index)], source_etype=I8)
