"""Runs a `Call` as a step of a plan, in place of a kernel.

Concatenation, gathers, scatters and sorts read whole arrays and do not fuse: their operands are stored first. NumPy then
copies or sorts them, in the same order of steps as kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from numpy.typing import NDArray

from weft.array.execution.calls import FUNCTIONS, Sizes, window
from weft.array.expression.nodes import Call, Fill, Node
from weft.array.expression.views import row_major
from weft.array.programs.canonical import Access
from weft.runtime.binding import Grid


@dataclass(frozen=True)
class HostCall:
    """A call as plans run it: `run` reads the operands' buffers and writes the last one.

    ``windows`` are shape, offset and strides of each operand in its buffer.
    """

    name: str
    text: str
    arguments: tuple[Node | int | None, ...]
    shape: Sizes
    windows: tuple[tuple[Sizes, int, Sizes], ...]
    parameters: tuple[tuple[str, Any], ...]
    grid: Grid = (1, 1, 1)
    work: int = 0

    def run(self, buffers: Sequence[NDArray[Any]]) -> None:
        """Calls the function, with a buffer for each argument."""
        *sources, result = buffers
        operands = [_operand(source, place) for source, place in zip(sources, self.windows, strict=True)]
        FUNCTIONS[self.name](result.reshape(self.shape), *operands, **dict(self.parameters))


def _operand(source: NDArray[Any], place: tuple[Sizes, int, Sizes]) -> NDArray[Any]:
    """An operand's window of its buffer; all of a row-major buffer is no other window."""
    shape, offset, strides = place
    whole = offset == 0 and source.flags.c_contiguous and source.size == prod(shape) and strides == row_major(shape)
    return source.reshape(shape) if whole else window(source, shape, offset, strides)


def call_of(node: Call) -> HostCall:
    """The step for a canonical call, whose arguments are memory."""
    accesses = tuple(a for a in node.arguments if isinstance(a, Access))
    shown = ", ".join(f"{a.dtype}{list(a.shape)}" for a in accesses)
    values = ((name, value.text if isinstance(value, Fill) else repr(value)) for name, value in node.parameters)
    parameters = "".join(f", {name}={value}" for name, value in values)
    return HostCall(
        node.meaning,
        f"# NumPy: {node.meaning}({shown}{parameters}) -> {node.dtype}{list(node.shape)}\n",
        (*(a.buffer for a in accesses), node),
        node.shape,
        tuple((a.shape, a.offset, a.strides) for a in accesses),
        node.parameters,
    )
