"""How an instruction's modifiers are read: each finds its slot, and one that finds none is an error.

A binder names its slots and what may stand in each. The modifiers are sorted into the slots, and a modifier that is left
over is refused. Tests such as ``"sat" in b.modifiers`` would ignore unknown modifiers instead.

    form(b, mode="hi lo wide", type=INTEGERS)          mad.wide.s32    {"mode": "wide", "type": "s32"}
    form(b, op="min max", sat="? sat", type="s32")     the ? says it may be missing: then ""

The order of modifiers is free (`weft.emulator.ptx.spelling`), but that types and state spaces stand in the order of their slots;
where two slots accept the same word, as for dp4a.u32.s32, the slot named first gets the modifier written first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

SIGNED: Final = "s16 s32 s64"
INTEGERS: Final = "u16 u32 u64 " + SIGNED
BITS: Final = "b16 b32 b64"

_TYPES: Final = frozenset((*TYPES, "u4", "s4", "u2", "s2", "b8x16", "b4x16_p64", "b6x16_p32"))
_SPACES: Final = frozenset({"global", "shared", "shared::cta", "shared::cluster", "const", "local", "param"})


def form(b: Binding, **slots: str) -> dict[str, str]:
    """The modifier in each slot; "" in a slot that may be empty and is.

    A slot's text lists the words it accepts, after a ``?`` if it may be empty. Raises `PTXError` for a modifier that fits in no
    slot and for a slot that must be filled and is not.
    """
    found: dict[str, str] = {}
    accepted = {name: tuple(text.replace("?", "").split()) for name, text in slots.items()}
    for modifier in b.modifiers:
        for name, words in accepted.items():
            if name not in found and modifier in words:
                found[name] = modifier
                break
        else:
            b.unknown(f"'.{modifier}' of {b.instruction.opcode}")
    for name, text in slots.items():
        if name not in found:
            if "?" not in text:
                b.wrong(f"{b.instruction.opcode} has none of {', '.join('.' + word for word in accepted[name])}")
            found[name] = ""
    for kind in (_TYPES, _SPACES):
        expected = [found[name] for name in slots if found[name] in kind]
        if len(expected) > 1 and expected != (given := [word for word in b.modifiers if word in kind]):
            b.wrong(f"{b.instruction.opcode} has .{'.'.join(given)}, expected .{'.'.join(expected)}")
    return found
