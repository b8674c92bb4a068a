"""Where an unmodified Triton program runs: what ``--device`` says."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Final

from weft.devices import notice
from weft.dropin import after_import, as_triton
from weft.target import gpu

if TYPE_CHECKING:
    from weft.target import GpuTarget

_CPU_CAPABILITY: Final = (9, 0)
"""What programs are told of the card that the CPU stands in for."""


@dataclass(frozen=True)
class Device:
    """What stands in for ``cuda``: the CPU, or a GPU in the emulator; ``mapped`` is False where nothing does."""

    gpu: GpuTarget | None = None
    mapped: bool = True

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that programs are told."""
        return _CPU_CAPABILITY if self.gpu is None else divmod(self.gpu.sm, 10)

    def install(self, quiet: bool = False) -> None:
        """``import triton`` gives weft, and ``torch``'s ``cuda`` the stand-ins, to the end of the process."""
        notice.Settings.quiet = quiet
        as_triton()
        if self.mapped:
            after_import("torch", self._install)

    def _install(self, torch: ModuleType) -> None:
        from weft.devices import torch_cuda

        torch_cuda.install(torch, self.capability)

    @contextmanager
    def in_force(self, quiet: bool = False) -> Generator[None]:
        """As `install`; launches inside are emulated on the GPU, if there is one, and their profiles printed at the end."""
        self.install(quiet)
        with ExitStack() as stack:
            if self.gpu is not None:
                from weft.runtime.emulated import emulate

                stack.callback(_print_profiles)
                stack.enter_context(emulate(self.gpu))
            yield


def _print_profiles() -> None:
    """Prints what emulated launches did, if there were any."""
    if (profiles := sys.modules.get("weft.triton.profiles")) is not None:
        profiles.LAUNCHES.print(sys.stderr)


def device_of(name: str) -> Device:
    """The device of a name: ``cpu``, ``none``, or a GPU. Raises: `ValueError` for another."""
    if name == "cpu":
        return Device()
    return Device(mapped=False) if name == "none" else Device(gpu(name))
