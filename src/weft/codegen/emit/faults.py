"""How a checked kernel reports an access outside its arrays; `weft.codegen.kernel` describes the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.kernel import AccessSite
from weft.codegen.llvm.types import I8, I32, I64


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
                builder.store(value, builder.gep(record, [ir.Constant(I64, 8 * slot)], source_etype=I8))
        builder.ret(ir.Constant(I32, 1))
