"""What `JITFunction.compile` returns: compiled kernels, to read and to be launched by other code."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from weft.frontend.signature import Argument
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.artifacts import GpuArtifact
from weft.runtime.binding import GridLike, grid_of
from weft.runtime.description import LaunchDescription, Parameter, check_grid, parameters_of
from weft.runtime.executable import Executable
from weft.semantics import get as get_semantics
from weft.target import GpuTarget, host

if TYPE_CHECKING:
    from weft.emulator.profile import Resources
    from weft.frontend.source import KernelFunction


class CompiledHandle:
    """What a kernel was compiled to, for reading: the ``semantics`` it was compiled under, and its texts, which are made
    when asked for."""

    def __init__(
        self, kernel: KernelFunction, signature: dict[str, Argument], options: Options, executable: Executable
    ):
        self.kernel = kernel
        self.signature = signature
        self.options = options
        self.executable = executable
        self.semantics = get_semantics("triton") if kernel.semantics is None else kernel.semantics

    def __repr__(self) -> str:
        return f"<compiled {self.kernel.name}, semantics {self.semantics}>"

    @cached_property
    def ir(self) -> str:
        """The frontend's tile IR."""
        return str(compiler.tile_ir(self.kernel, self.signature, self.options))

    @cached_property
    def llvm(self) -> str:
        """The LLVM IR that codegen emits, before LLVM's passes."""
        return compiler.llvm_ir(self.kernel, self.signature, self.options, host())

    @cached_property
    def asm(self) -> str:
        """The host's assembly."""
        return compiler.assembly(self.kernel, self.signature, self.options, host())


class GpuHandle:
    """What a kernel was compiled to for a GPU, for reading and for launches by other code.

    A launch has as many blocks as programs, of ``threads`` each, with ``shared`` bytes of dynamic shared memory.
    ``parameters`` are those of ``symbol``: the run-time arguments in order. `description` has all of that for a grid.
    """

    def __init__(
        self,
        kernel: KernelFunction,
        signature: dict[str, Argument],
        options: Options,
        target: GpuTarget,
        artifact: GpuArtifact,
    ):
        self.kernel = kernel
        self.signature = signature
        self.options = options
        self.target = target
        self.ptx = artifact.ptx
        self.symbol = artifact.symbol
        self.threads = artifact.threads
        self.shared = artifact.shared
        self.parameters: tuple[Parameter, ...] = parameters_of(signature)

    def __repr__(self) -> str:
        return f"<compiled {self.kernel.name} for {self.target.name}>"

    @property
    def launch(self) -> str:
        """How to launch it, in a sentence."""
        return (
            f"launch {self.symbol}: a block for each program, {self.threads} threads a block, "
            f"{self.shared} bytes of dynamic shared memory"
        )

    def description(self, grid: GridLike) -> LaunchDescription:
        """How to launch the kernel on a grid of programs: sizes, 1 to 3 of them. Raises: `TypeError`, `ValueError` for no such
        grid."""
        if callable(grid):
            raise TypeError(f"kernel '{self.kernel.name}': a description is of a grid's sizes, found a function")
        sizes = grid_of(self.kernel.name, grid)
        check_grid(self.kernel.name, sizes)
        return LaunchDescription(self.symbol, sizes, (self.threads, 1, 1), self.shared, self.parameters)

    @cached_property
    def resources(self) -> Resources:
        """Registers, spills and memory of a thread and block, as ptxas says. Raises: `weft.emulator.ToolError` where there is
        no ptxas, or it refuses the code."""
        from weft.emulator.profile import ptxas

        return ptxas.known_resources(self.ptx, self.symbol, self.target.name)

    @property
    def registers(self) -> int:
        """The registers of a thread; see `resources`."""
        return self.resources.registers

    @property
    def spills(self) -> int:
        """The bytes of a thread's registers that are stored in local memory; see `resources`."""
        return self.resources.spill_stores

    @cached_property
    def sass(self) -> str:
        """The machine code, as nvdisasm prints it. Raises: `weft.emulator.ToolError` where ptxas or nvdisasm is missing, or
        refuses the code."""
        from weft.emulator.profile import ptxas

        return ptxas.disassembly(self.ptx, self.target.name)

    @cached_property
    def tile_ir(self) -> str:
        """The frontend's tile IR."""
        return str(compiler.tile_ir(self.kernel, self.signature, self.options))

    @cached_property
    def laid_out(self) -> str:
        """The tile IR after the passes: every tile has a layout, conversions, scratch and barriers are explicit."""
        return str(compiler.laid_out(self.kernel, self.signature, self.options, self.target))

    @cached_property
    def llvm(self) -> str:
        """The LLVM IR that codegen emits, before LLVM's passes."""
        return compiler.llvm_ir(self.kernel, self.signature, self.options, self.target)
