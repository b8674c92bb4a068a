"""``triton.language.target_info``: the machine that a kernel is compiled for, at compile time."""

from __future__ import annotations

from weft.language.core import constexpr_function
from weft.triton.backends.compiler import GPUTarget, current

__all__ = ["cuda_capability_geq", "current_target", "is_cuda", "is_hip"]


@constexpr_function
def current_target() -> GPUTarget:
    """The machine."""
    return current()


@constexpr_function
def is_cuda() -> bool:
    """Whether it is an emulated GPU."""
    return current().backend == "cuda"


@constexpr_function
def is_hip() -> bool:
    """False: weft has no code for AMD's GPUs."""
    return False


@constexpr_function
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """Whether it is a GPU of at least that compute capability."""
    target = current()
    return target.backend == "cuda" and int(target.arch) >= major * 10 + minor
