"""How an opcode gets its meaning: one binder per opcode, in one table.

An instruction is *bound* once per launch: its binder checks modifiers and operand types, fetches the arrays that hold its
operands, and returns a `Step`, a closure that is little more than the NumPy call. Decoding the instruction at each execution
would cost more than executing it. A binder refuses modifiers it does not know with `Binding.unknown`, so no modifier is
ignored.

A step that only computes returns nothing. A *transfer* (a branch, a barrier, whatever may hold threads back or send them
elsewhere) is bound with ``transfer=True`` and returns where its threads go next.

    @instruction("add")
    def add(b: Binding) -> Step:
        kind = b.type()                              # .s32
        x, y = b.read(1, kind), b.read(2, kind)      # views of the registers, or scalars
        d = b.write(0, kind)
        return lambda active: masked(d, x + y, active)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from weft.emulator.machine.active import Active, Mask
from weft.emulator.ptx.spelling import well_named

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

Step: TypeAlias = Callable[[Active], None]
"""Executes an instruction for the active threads. Guards (``@p``) are already applied."""

Destinations: TypeAlias = Sequence[tuple[int, Active]]
"""Where threads go: (index of an instruction in the program, those who go there). Who is in none of them has exited or waits."""

Transfer: TypeAlias = Callable[[Active], Destinations]
"""Executes a control instruction. A guard is applied: threads it excludes fall through."""

Binder: TypeAlias = Callable[["Binding"], "Step | Transfer"]

AnyBinder = TypeVar("AnyBinder", bound="Binder")


class Entry:
    """A row of the table."""

    def __init__(self, binder: Binder, transfer: bool, polls: bool) -> None:
        self.binder = binder
        self.transfer = transfer
        self.polls = polls


TABLE: Final[dict[str, Entry]] = {}
"""Every instruction there is, by opcode or by opcode and first modifiers (``cp.async.bulk``): the longest match wins."""


def instruction(*names: str, transfer: bool = False, polls: bool = False) -> Callable[[AnyBinder], AnyBinder]:
    """Enters a binder into the table. ``polls``: a thread may execute it over and over until another thread acts."""

    def enter(binder: AnyBinder) -> AnyBinder:
        for name in names:
            if name in TABLE:
                raise ValueError(f"instruction {name} is defined twice")
            TABLE[name] = Entry(binder, transfer, polls)
        return binder

    return enter


def lookup(name: str) -> Entry | None:
    """The entry for a dotted name: the longest prefix that is in the table; None if its words are out of place."""
    if not well_named(name):
        return None
    while name:
        if (entry := TABLE.get(name)) is not None:
            return entry
        name = name.rpartition(".")[0]
    return None


MANY: Final = 1024
"""Elements from which on it pays to write by bits: a branch for each element is slow where its mask cannot be foreseen."""


def masked(target: np.ndarray, values: np.ndarray, active: Active) -> None:
    """``target[i] = values[i]`` for the active threads i, converted to the target's type.

    Of many, t ^ ((t ^ v) & m) with m all ones or zero: three passes whatever the mask, where NumPy's masked copies take up to
    thirty times as long.
    """
    if active.full:
        target[...] = values
    elif target.size < MANY:
        mask: Mask = active.mask
        np.copyto(target, values, where=mask if target.ndim == 1 else mask[:, None], casting="unsafe")
    else:
        bits = active.bits(target.itemsize)
        old = target.view(bits.dtype)
        new = np.asarray(values).astype(target.dtype, copy=False).view(bits.dtype) ^ old
        new &= bits if target.ndim == 1 else bits[:, None]
        old ^= new
