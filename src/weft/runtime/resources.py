"""What a block may have of a GPU, and who has it where it is too much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.options import Options
from weft.runtime.errors import OutOfResources, SharedBuffer
from weft.target import GpuTarget

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

MOST_THREADS: Final = 1024
"""Threads of a block, for every compute capability."""

_WARP: Final = 32


def check_threads(kernel: str, target: GpuTarget, options: Options) -> None:
    """Raises `OutOfResources` for a block of more threads than there can be."""
    threads = options.warps * _WARP
    if threads > MOST_THREADS:
        raise OutOfResources(kernel, target.name, "threads", threads, MOST_THREADS)


def out_of_shared(kernel: str, target: GpuTarget, asked: int, module: ModuleOp) -> OutOfResources:
    """The error for a kernel that asks for more shared memory than a block may have; ``module`` is its laid-out tile IR."""
    return OutOfResources(
        kernel, target.name, "shared memory", asked, target.model.scratch, shared_buffers(module, target)
    )


def shared_buffers(module: ModuleOp, target: GpuTarget) -> list[SharedBuffer]:
    """The buffers in shared memory of a laid-out kernel, the largest first."""
    from weft.ir.location import positions
    from weft.transforms.nvidia.scratch import scratch_of, shared_bytes

    found = [
        SharedBuffer(op.name, scratch_of(op), size, positions(op))
        for op in module.walk()
        if (size := shared_bytes(op, target))
    ]
    return sorted(found, key=lambda buffer: -buffer.size)
