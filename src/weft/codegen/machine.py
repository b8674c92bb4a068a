"""What a machine is to the compiler.

There is one object for each target. It says what becomes of tile IR on it, and is the only thing that does: the rest of the
compiler asks the machine and never which machine it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from xdsl.dialects import func
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from weft.codegen.emit.context import Lowering
from weft.codegen.kernel import AccessSite, CompiledKernel, GpuKernel
from weft.ir.printing import Print
from weft.options import Options


@dataclass(frozen=True)
class Emitted:
    """A kernel as an LLVM ``module``, before LLVM's passes, with what its launcher must know: the entry point, the scratch
    bytes each thread needs, the checked accesses, and for a CPU the prints, whether the kernel itself has loops, whether it
    multiplies panels, and how many sums it adds up in parts, in which order, and the `CompiledKernel.copies` and ``measured``."""

    module: Any
    symbol: str
    scratch: int
    sites: tuple[AccessSite, ...]
    threads: int = 1
    prints: tuple[Print, ...] = ()
    loops: bool = False
    products: bool = False
    sums: int = 0
    order: str = ""
    copies: int = 0
    measured: tuple[int, ...] = ()


class Machine(Protocol):
    """One target's part of the compiler, in the order of its use."""

    @property
    def lowerings(self) -> Mapping[type[Operation], Lowering]:
        """How each op is emitted."""
        ...

    def passes(self, options: Options) -> tuple[ModulePass, ...]:
        """The passes from the frontend's tile IR to what `emit` takes."""
        ...

    def emit(self, kernel: func.FuncOp, options: Options) -> Emitted:
        """The LLVM module of a kernel that has gone through the passes."""
        ...

    def finish(self, emitted: Emitted) -> CompiledKernel | GpuKernel:
        """What the runtime loads."""
        ...

    def assembly(self, emitted: Emitted) -> str:
        """The same as the target's assembly, to read."""
        ...
