"""Instructions that change nothing a program can see: hints about caches and registers, marks for profilers (PTX ISA 9.7).

Each is a row of a table: its modifiers in all their forms, and how many operands it has. Addresses are not checked: a prefetch
of an address outside every allocation does no harm on hardware.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from weft.emulator.machine.active import Active
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.ops.forms import form
from weft.emulator.ops.registry import Step, instruction, masked
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding


@dataclass(frozen=True)
class Hint:
    """``slots`` are the modifiers, as `form` takes them; ``operands`` how many operands there are."""

    slots: dict[str, str]
    operands: tuple[int, ...]


_PRIORITIES: Final = "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged"

HINTS: Final[dict[str, Hint]] = {
    "prefetch": Hint(
        {
            "space": "? global local const param",
            "level": "L1 L2 tensormap",
            "evict": "? L2::evict_last L2::evict_normal",
        },
        (1,),
    ),
    "prefetchu": Hint({"level": "L1"}, (1,)),
    "applypriority": Hint({"space": "? global", "level": "L2::evict_normal"}, (2,)),
    "griddepcontrol": Hint({"what": "launch_dependents wait"}, (0,)),
    "pmevent": Hint({"mask": "? mask"}, (1,)),
}
"""What these say of caches, dependent grids and profilers is not modelled."""


def _hint(b: Binding) -> Step:
    hint = HINTS[b.instruction.opcode]
    modifiers = b.modifiers
    if b.instruction.opcode == "prefetch" and any(m.startswith("L2::evict") for m in modifiers):
        form(b, space="? global", evict="L2::evict_last L2::evict_normal")
    else:
        form(b, **hint.slots)
    b.count(*hint.operands)
    return lambda active: None


for _name in HINTS:
    instruction(_name)(_hint)


@instruction("setmaxnreg")
def setmaxnreg(b: Binding) -> Step:
    """How many registers a thread has from now on: an emulated one has as many as it names."""
    form(b, way="inc dec", sync="sync", aligned="aligned", type="u32")
    b.count(1)
    registers = b.constant(0)
    b.require(
        24 <= registers <= 256 and registers % 8 == 0,
        f"setmaxnreg to {registers}; it must be a multiple of 8 from 24 to 256",
    )
    execution, site = b.execution, b.site

    def step(active: Active) -> None:
        execution.whole_warps(active, site)

    return step


@instruction("createpolicy")
def createpolicy(b: Binding) -> Step:
    """A cache policy is 64 bits that mean nothing here: 0."""
    kind = b.modifiers[0] if b.modifiers else ""
    if kind == "fractional":
        secondary = "? L2::evict_first L2::evict_unchanged"
        form(b, how="fractional", first=_PRIORITIES, second=secondary, type="b64")
        b.count(1, 2)
    elif kind == "range":
        form(
            b,
            how="range",
            space="? global",
            first=_PRIORITIES,
            second="? L2::evict_first L2::evict_unchanged",
            type="b64",
        )
        b.count(4)
    else:
        form(b, how="cvt", level="L2", type="b64")
        b.count(2)
    d = b.write(0, TYPES["b64"])
    nothing = np.zeros(b.execution.threads, np.uint64)
    return lambda active: masked(d, nothing, active)


@instruction("discard")
def discard(b: Binding) -> Step:
    """Bytes lose their value: where reads of unwritten memory are watched for, they count as unwritten again."""
    form(b, space="? global", level="L2")
    b.count(2)
    size = b.constant(1)
    b.require(size == 128, f"discard of {size} bytes; it is of 128")
    address, execution, site = b.address(0, Space.GLOBAL), b.execution, b.site

    def step(active: Active) -> None:
        threads = active.index
        access = AccessBatch(site, Space.GLOBAL, Kind.WRITE, threads, address()[threads], size)
        flat = execution.memory.check(access)
        written = execution.memory.arenas[Space.GLOBAL].written
        if written is not None:
            written[flat[:, None] + np.arange(size)] = 0

    return step
