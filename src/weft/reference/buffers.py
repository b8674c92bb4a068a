"""Buffers of a program, as the dialect ``gpu`` defines them: slots that asynchronous copies fill.

A copy reads memory when it begins. Its slot may not be read until the group of the copy has been waited for, nor before anything
was copied into it: both raise `UndefinedBehaviourError`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import SSAValue

from weft.ir.gpu import BufferType
from weft.reference.memory import Site
from weft.reference.numbers import Array
from weft.reference.programs import UndefinedBehaviourError

Slot = tuple[SSAValue, int]


@dataclass
class Buffers:
    """What the slots of a program's buffers hold, and the copies that have not been waited for, group by group."""

    held: dict[Slot, Array] = field(default_factory=dict[Slot, Array])
    begun: list[Slot] = field(default_factory=list[Slot])
    groups: list[list[Slot]] = field(default_factory=list[list[Slot]])

    def alloc(self, buffer: SSAValue) -> None:
        """A new buffer: its slots hold nothing."""
        for slot in [slot for slot in self.held if slot[0] is buffer]:
            del self.held[slot]

    def copy(self, site: Site, buffer: SSAValue, slot: int, values: Array) -> None:
        """Begins a copy of ``values``."""
        self.held[self._slot(site, buffer, slot)] = values
        self.begun.append((buffer, slot))

    def write(self, site: Site, buffer: SSAValue, slot: int, values: Array) -> None:
        """Writes ``values`` at once."""
        self.held[self._slot(site, buffer, slot)] = values

    def commit(self) -> None:
        """The copies begun since the last commit become a group."""
        self.groups.append(self.begun)
        self.begun = []

    def wait(self, pending: int) -> None:
        """All but the latest ``pending`` groups are done."""
        del self.groups[: max(0, len(self.groups) - pending)]

    def read(self, site: Site, buffer: SSAValue, slot: int) -> Array:
        """What a slot holds."""
        key = self._slot(site, buffer, slot)
        if any(key in group for group in (self.begun, *self.groups)):
            raise UndefinedBehaviourError(f"{site}: slot {slot} is read while it is being copied into")
        if key not in self.held:
            raise UndefinedBehaviourError(f"{site}: slot {slot} is read before anything was copied into it")
        return self.held[key]

    @staticmethod
    def _slot(site: Site, buffer: SSAValue, slot: int) -> Slot:
        slots = buffer.type.slots.data if isinstance(buffer.type, BufferType) else 0
        if not 0 <= slot < slots:
            raise UndefinedBehaviourError(f"{site}: slot {slot} of a buffer of {slots}")
        return buffer, slot


def empty() -> Array:
    """What stands for a buffer among a program's values: its contents are in `Buffers`."""
    return np.array(0)
