"""What ``kernel[grid]`` is: a kernel with its grid, here or in the emulator."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from weft.runtime.binding import GridLike, grid_of
from weft.target import GpuTarget
from weft.target import gpu as gpu_of_name

if TYPE_CHECKING:
    from weft.runtime.jit import JITFunction


def named_gpu(target: str | GpuTarget) -> GpuTarget:
    """A GPU by its name, or itself."""
    return gpu_of_name(target) if isinstance(target, str) else target


Result = TypeVar("Result")


class Launcher(partial[None]):
    """A kernel with its grid: launches when called with the arguments."""

    __slots__ = ("kernel",)
    kernel: JITFunction

    def __reduce__(self) -> tuple[Any, ...]:
        return operator.getitem, (self.kernel, self.args[0])

    def bind(self, *args: Any, **keywords: Any) -> Callable[[], None]:
        """Prepare a launch, without running it. Return a function without parameters that runs it.

            again = step[(8,)].bind(x, y, n, BLOCK=128)
            for _ in range(1000):
                again()

        Each call reads and writes the elements that the arrays have then. Everything else is as it was: the numbers, the
        compile-time values, the grid (a function of the arguments is called once), dtypes and strides. The arrays are kept alive.

        Raises: as a launch does. The function raises RuntimeError, and runs nothing, where the memory of a NumPy array or a
        tensor of PyTorch has moved, a global or a helper of the kernel has changed, or launches are run elsewhere
        (`weft.emulate`). Then bind again.
        """
        return self.kernel.captured(self.args[0], args, keywords)


class Placed(Generic[Result]):
    """A kernel with the GPU on which its launches are emulated."""

    def __init__(self, kernel: JITFunction, launch: Callable[..., Result], target: str | GpuTarget):
        self.kernel = kernel
        self.target = named_gpu(target)
        self._launch = launch

    def __getitem__(self, grid: GridLike) -> Callable[..., Result]:
        """The launcher for a grid, as `JITFunction.__getitem__`."""
        chosen = grid if callable(grid) else grid_of(self.kernel.name, grid)
        return partial(self._launch, self.target, chosen)
