"""How a tcgen05.mma is written: its modifiers and its operands (PTX ISA 9.7.16.10.9).

    tcgen05.mma{.ws}{.sp}.cta_group.kind{.block_scale{.size}}{.ashift}{.collector}
        [d], a or [a], b, {[metadata],} i-desc, {[scales of A], [scales of B],} {{masks of lanes},} enable {, last}

The last operand is the scale of D, or with .ws the mask of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weft.emulator.arith.tcgen05 import KINDS
from weft.emulator.ops.tensor_memory import GROUP

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

SCALES: Final = {
    "mxf8f6f4": {"": 1, "block32": 1, "scale_vec::1X": 1},
    "mxf4": {"": 2, "block32": 2, "scale_vec::2X": 2},
    "mxf4nvf4": {"block32": 2, "scale_vec::2X": 2, "block16": 4, "scale_vec::4X": 4},
}
"""Scales of a row of A, by kind and modifier. A sparse A has as many, of blocks that are twice as long."""

_COLLECTORS: Final = frozenset(
    f"collector::{buffer}::{use}"
    for buffer in ("a", "b0", "b1", "b2", "b3")
    for use in ("fill", "use", "lastuse", "discard")
)


_KEPT: Final = ("collector::a::fill", "collector::a::use")
"""Uses of a buffer for A that has it unshifted."""


@dataclass(frozen=True)
class Form:
    """The modifiers."""

    kind: str
    group: str
    stationary: bool
    sparse: bool
    scales: int
    """Scales of a row; 0 without scales."""
    shifted: bool
    """Whether A's rows move in tensor memory behind the product."""

    @property
    def masks(self) -> int:
        """Words of a mask of lanes."""
        return 8 if self.group == "cta_group::2" else 4


def form(b: Binding) -> Form:
    """The modifiers of an instruction. Raises `PTXError` for those that there are not."""
    name = b.instruction.name
    rest = [m for m in b.modifiers[1:] if m not in _COLLECTORS]
    shifted = "ashift" in rest
    rest = [m for m in rest if m != "ashift"]
    kept = [m for m in b.modifiers if m in _KEPT]
    b.require(not shifted or not kept, f"'.ashift' does not go with '.{(kept or [''])[0]}'")
    kinds = [m.removeprefix("kind::") for m in rest if m.startswith("kind::")]
    groups = [m for m in rest if m in GROUP.split()]
    b.require(len(kinds) == 1 and kinds[0] in KINDS, f"{name} has no kind that there is")
    b.require(len(groups) == 1, f"{name} has {len(groups)} groups of blocks, expected one")
    rest = [m for m in rest if m not in groups and not m.startswith("kind::")]
    kind, scaled, stationary = KINDS[kinds[0]], "block_scale" in rest, "ws" in rest
    b.require(scaled == kind.scaled, f"kind::{kind.name} and '.block_scale' do not go together")
    b.require(not (scaled and stationary), "'.ws' has no '.block_scale'")
    b.require(not stationary or groups[0] == "cta_group::1", "'.ws' has no '.cta_group::2'")
    b.require(not shifted or not (scaled or stationary), "'.ashift' goes neither with '.ws' nor with '.block_scale'")
    sizes = [m for m in rest if m not in ("ws", "sp", "block_scale")]
    known = SCALES[kind.name] if scaled else {"": 0}
    size = sizes[0] if sizes else ""
    if len(sizes) > 1 or size not in known:
        b.unknown(f"'.{(sizes or ['no block size'])[-1]}' of tcgen05.mma.kind::{kind.name}")
    return Form(kind.name, groups[0], stationary, "sp" in rest, known[size], shifted)
