"""Passes over tile IR, and analyses of it.

`PIPELINE` has the target-independent passes in their order; a machine adds its own (`weft.codegen.machine`).
`weft.transforms.passes` has all by name, `weft.transforms.axis` analyses index arithmetic.
"""

from __future__ import annotations

from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft.transforms.assertions import CollectAssertions
from weft.transforms.cse import Cse
from weft.transforms.dce import Dce
from weft.transforms.flags import RaiseFlags
from weft.transforms.induction import UniformCarry
from weft.transforms.licm import Licm
from weft.transforms.simplify import Simplify

PIPELINE: Final[tuple[ModulePass, ...]] = (
    CollectAssertions(),
    RaiseFlags(),
    Simplify(),
    Cse(),
    UniformCarry(),
    Simplify(),
    Licm(),
    Cse(),
    Dce(),
)
"""The passes with which every machine's list begins. CollectAssertions makes combine functions pure, as the others expect.
RaiseFlags completes the orders that the kernel asks for. Simplify runs next, so that constants are seen, and again after
UniformCarry, which makes scalars of tiles. CSE runs after LICM, which brings equal ops of different loops together."""


def optimise(module: ModuleOp) -> None:
    """Rewrites the module in place, keeping its meaning."""
    context = Context()
    for one in PIPELINE:
        one.apply(context, module)


__all__ = ["PIPELINE", "Cse", "Dce", "Licm", "Simplify", "optimise"]
