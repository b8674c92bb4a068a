"""Where the words of an instruction may stand, which ptxas takes in more orders than the PTX ISA writes.

The ISA writes each instruction's modifiers in one order. ptxas asks for less, and CUDA's own headers make use of it
(``vote.ballot.sync.b32``). Asked about every order of the modifiers of every form of instruction that the emulator's tests have
(ptxas 13.0, 64,000 orders of 3,400 forms), it answers by this rule:

- The *name* of an instruction comes first: its opcode, and words which ptxas knows as one name with it (``mul.wide``,
  ``cp.async.bulk``). Which words belong to the name cannot be told from the instruction (``cvt.sat`` is no name): `NAMES`
  lists them, where `weft.emulator.ops` has no entry of that name.
- Types keep their order among themselves, and so do state spaces (``weft.emulator.ops.forms`` sees to that).
- ``.popc`` follows the operation that it belongs to, though not at once (``.xor.popc``).
- All other words stand anywhere.

So the parser puts the words that the table of instructions begins with, and those of fences, where the ISA writes them:
`spelled`. The rest of the emulator sees one order only, or does not care.

    vote.ballot.sync.b32       vote.sync.ballot.b32
    add.u32.cc                 add.cc.u32
    fence.gpu.acq_rel          fence.acq_rel.gpu
    mul.u32.wide               refused: no name of an instruction
"""

from __future__ import annotations

from functools import cache
from typing import Final

_ORDERS: Final[dict[str, str]] = {
    "vote": "sync",
    "shfl": "sync",
    "redux": "sync",
    "add": "cc",
    "sub": "cc",
    "mad": "cc",
    "mma": "sp|sp::ordered_metadata",
    "fence": "mbarrier_init|sc|acq_rel async|alias|tensormap::generic|async::generic acquire|release "
    "sync_restrict::shared::cta|sync_restrict::shared::cluster shared::cta|shared::cluster|global cta|cluster|gpu|sys",
}
"""The words that stand first behind the name, in the ISA's order; those between bars take the same place."""

NAMES: Final = (
    "bar.cta", "bar.cta.red", "bar.red", "barrier.cta", "barrier.cta.red", "barrier.red", "createpolicy.cvt", "cvta.to",
    "div.full", "dp2a.hi", "dp2a.lo", "fence.proxy", "mad.hi", "mad.lo", "mad.wide", "mad24.hi", "mad24.lo", "madc.hi",
    "madc.lo", "mbarrier.arrive.expect_tx", "mbarrier.arrive_drop.expect_tx", "mbarrier.test_wait.parity",
    "mbarrier.try_wait.parity", "mul.hi", "mul.lo", "mul.wide", "mul24.hi", "mul24.lo", "setmaxnreg.dec", "setmaxnreg.inc",
    "shf.l", "shf.r", "tcgen05.mma.sp", "tcgen05.mma.ws", "tcgen05.mma.ws.sp",
)  # fmt: skip
"""Names of several words."""

_RANKS: Final = {
    opcode: {word: rank for rank, words in enumerate(text.split()) for word in words.split("|")}
    for opcode, text in _ORDERS.items()
}

_BY_OPCODE: Final = {
    opcode: sorted(
        (tuple(name.split(".")[1:]) for name in NAMES if name.startswith(opcode + ".")), key=len, reverse=True
    )
    for opcode in {name.partition(".")[0] for name in NAMES}
}


def spelled(opcode: str, modifiers: tuple[str, ...]) -> tuple[str, ...]:
    """The modifiers as the ISA writes them, as far as the emulator has to know."""
    ranks = _RANKS.get(opcode)
    if ranks is None:
        return modifiers
    named = len(_longest(opcode, modifiers))
    return modifiers[:named] + tuple(sorted(modifiers[named:], key=lambda word: ranks.get(word, len(ranks))))


@cache
def well_named(name: str) -> bool:
    """Whether the words of an instruction's name come first, and ``.popc`` behind its operation."""
    opcode, *rest = name.split(".")
    words = tuple(rest)
    if "popc" in words and opcode in ("mma", "wmma", "wgmma"):
        before = words[: words.index("popc")]
        if "and" not in before and "xor" not in before:
            return False
    longest = _longest(opcode, words)
    return words[: len(longest)] == longest


def _longest(opcode: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The words behind the opcode of the longest name that the words contain."""
    return next((named for named in _BY_OPCODE.get(opcode, ()) if set(named) <= set(words)), ())
