"""The public interface: a module of PTX, and launches of its kernels on NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from weft.emulator import ops
from weft.emulator.machine.device_memory import DeviceMemory
from weft.emulator.machine.execution import Checks
from weft.emulator.machine.launch import dim3, launch
from weft.emulator.machine.program import Program
from weft.emulator.machine.symbols import Symbols
from weft.emulator.ptx import parse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.emulator.profile.profile import Profile


class Module:
    """A PTX module, ready to be launched.

        module = Module(ptx)
        profile = module.launch("add", grid=4, block=128, args=[x, y, out, 512])

    Raises: PTXError, where the text cannot be read.
    """

    def __init__(self, ptx: str) -> None:
        self.ptx = ptx
        self.syntax = parse(ptx)

    @property
    def kernels(self) -> list[str]:
        """The names of its kernels."""
        return [f.name for f in self.syntax.functions.values() if f.entry and not f.declared]

    @cached_property
    def _program(self) -> Program:
        ops.load()
        return Program(self.syntax)

    @cached_property
    def symbols(self) -> Symbols:
        """Its variables in global and constant memory, by name, to be read and set between launches."""
        return Symbols(self._program)

    @property
    def heap_limit(self) -> int:
        """Bytes of the heap of device malloc and free, 8 MiB unless set; set it before the first launch that allocates."""
        return self.symbols.heap.limit

    @heap_limit.setter
    def heap_limit(self, limit: int) -> None:
        if self.symbols.heap.live:
            raise ValueError(
                "heap_limit: the heap has allocations of earlier launches; module.symbols.reset() drops them"
            )
        self.symbols.heap.limit = limit

    def launch(
        self,
        kernel: str,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        *,
        shared: int = 0,
        checks: Checks | None = None,
        memory: Sequence[NDArray[Any]] | DeviceMemory = (),
        cooperative: bool = False,
        cluster: int | Sequence[int] | None = None,
    ) -> Profile:
        """Runs a kernel over a grid of blocks (one to three numbers each), and says what it did.

        ``args``, one for each parameter: NumPy arrays, whose address is passed and which hold what the kernel wrote when it is
        over; `Scratch` around an array that holds nothing yet; `TensorMap`; numbers; structures (of ctypes, scalars of a
        structured NumPy dtype, or ``bytes``). ``shared`` is the dynamic shared memory of a block, in bytes. ``checks``
        switches checks off.
        ``memory`` are arrays that the kernel reaches through addresses in other arrays, in structures or among the numbers: a
        `DeviceMemory`, which gives them addresses, or a sequence of arrays, whose addresses are the host's
        (``array.ctypes.data``). ``cluster`` is the shape of clusters (one to three numbers of blocks), where the kernel does not
        require one. ``cooperative``: all blocks run at once and have a barrier in common (``grid.sync()``). What the
        kernel writes to the module's variables stays there (`symbols`).

        Raises: LaunchError for a launch that cannot be; PTXError for an instruction the emulator does not know; Fault for what
        the program does wrong: the arrays are then as before the launch.
        """
        from weft.emulator.profile.profile import Launch, Profile

        shape = dim3("grid", grid), dim3("block", block)
        checks = checks or Checks()
        clusters = None if cluster is None else dim3("cluster", cluster)
        outcome = launch(
            self._program, kernel, *shape, args, shared, checks, memory, self.symbols, cooperative, clusters
        )
        program = self._program
        launched = Launch(kernel, *shape, self.syntax.target[0], outcome.static_shared, shared, checks=checks.switches)
        functions = [function.name for function in program.function_of]
        printed = "".join(outcome.output)
        return Profile.of(launched, program.instructions, functions, outcome.counters, self.ptx, printed)
