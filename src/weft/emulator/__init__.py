"""Runs PTX on the CPU, checks every access to memory, and counts what the GPU would do.

The emulator executes any PTX text (ISA 7.0 to 9.0, sm_70 to sm_100) for whole grids: every value is a NumPy array over all
threads of as many blocks as fit. It defines results bit for bit where the PTX ISA does, reports accesses out of bounds,
misaligned, uninitialised or unordered as faults with the source line, and counts per instruction: bank conflicts, sectors,
atomics, floating-point operations. What it does not model: time, caches, the order in which hardware would have run the warps.

    from weft.emulator import Module
    profile = Module(open("add.ptx").read()).launch("add", grid=4, block=128, args=[x, y, out, 512])
"""

from weft.emulator.errors import (
    BarrierFault,
    Endless,
    Fault,
    LaunchError,
    Misaligned,
    OutOfBounds,
    PTXError,
    Race,
    ToolError,
    Trap,
    Undefined,
    Uninitialised,
)
from weft.emulator.machine.device_memory import DeviceMemory, Scratch
from weft.emulator.machine.execution import Checks
from weft.emulator.module import Module
from weft.emulator.profile import Profile
from weft.emulator.tensor_map import TensorMap
from weft.emulator.texture import Surface, Texture

__all__ = [
    "BarrierFault",
    "Checks",
    "DeviceMemory",
    "Endless",
    "Fault",
    "LaunchError",
    "Misaligned",
    "Module",
    "OutOfBounds",
    "PTXError",
    "Profile",
    "Race",
    "Scratch",
    "Surface",
    "TensorMap",
    "Texture",
    "ToolError",
    "Trap",
    "Undefined",
    "Uninitialised",
]
