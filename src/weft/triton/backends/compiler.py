"""``triton.backends.compiler``: the machine that code is made for, as programs name it."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from weft.runtime.place import CURRENT
from weft.target import GpuTarget, gpu


@dataclass(frozen=True)
class GPUTarget:
    """A machine: the ``backend`` (``"cuda"`` or ``"cpu"``), its ``arch`` (a compute capability such as 90, or the CPU's name),
    and the threads of a warp."""

    backend: str
    arch: int | str
    warp_size: int


def current() -> GPUTarget:
    """The machine that launches run on now: the emulated GPU, or this machine's CPU."""
    emulated = CURRENT.get()
    if emulated is None:
        return GPUTarget("cpu", platform.machine(), 32)
    return GPUTarget("cuda", emulated.sm, 32)


def compiled_for(target: GPUTarget | None) -> GpuTarget | None:
    """The target of weft's compiler; None is this machine's CPU. Raises: `ValueError` for machines that weft has no code
    for."""
    chosen = current() if target is None else target
    if chosen.backend == "cpu":
        return None
    if chosen.backend != "cuda":
        raise ValueError(f"weft compiles for 'cpu' and 'cuda', found the target {chosen}")
    return gpu(f"sm_{chosen.arch}")


class BaseBackend:
    """A compiler for a kind of machine."""

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether weft makes code for it."""
        return target.backend in {"cpu", "cuda"}

    def hash(self) -> str:
        """A text that differs for different machines."""
        return f"weft-{self.target.backend}-{self.target.arch}"
