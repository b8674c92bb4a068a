"""The launch's record in a program: how a checked access reports a failure, and how a program learns that the launch stops.

`weft.codegen.kernel` describes the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.kernel import FAULT, PRINTER, STOP, STOPPED, AccessSite
from weft.codegen.llvm.types import I8, I32, I64, POINTER
from weft.codegen.llvm.volatile import volatile_load
from weft.ir.printing import Print


@dataclass
class Faults:
    """The launch's ``record``, the ``bounds`` (first byte, one past the last) of each pointer argument, and the ``sites``
    of the accesses checked so far, and the ``prints``."""

    record: ir.Value
    bounds: Mapping[SSAValue, tuple[ir.Value, ir.Value]]
    sites: list[AccessSite] = field(default_factory=list[AccessSite])
    prints: list[Print] = field(default_factory=list[Print])

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

    def print(self, builder: ir.IRBuilder, what: Print, program_ids: Sequence[ir.Value], values: ir.Value) -> None:
        """Calls what prints, with the address of the values."""
        self.prints.append(what)
        function = ir.FunctionType(ir.VoidType(), [I32, I32, I32, I32, POINTER])
        printer = builder.load(word(builder, self.record, PRINTER), typ=function.as_pointer(), align=8)
        builder.call(printer, [ir.Constant(I32, len(self.prints) - 1), *program_ids, values])

    def leave_if_stopped(self, builder: ir.IRBuilder) -> None:
        """Leaves the program where the launch stops. For a loop's back edge."""
        stop = volatile_load(builder, word(builder, self.record, STOP), I64, 8)
        with builder.if_then(builder.icmp_unsigned("!=", stop, ir.Constant(I64, 0)), likely=False):
            builder.ret(ir.Constant(I32, STOPPED))


def word(builder: ir.IRBuilder, base: ir.Value, index: int) -> ir.Value:
    """The address of one of the 8-byte words at ``base``."""
    return builder.gep(base, [ir.Constant(I64, 8 * index)], source_etype=I8)
