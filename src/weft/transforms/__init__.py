"""Passes over tile IR, and analyses of it.

`optimise` runs the target-independent passes in their order; each is also an xDSL `ModulePass` of its own.
`weft.transforms.axis` analyses index arithmetic.
"""

from __future__ import annotations

from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft.transforms.cse import Cse
from weft.transforms.dce import Dce
from weft.transforms.licm import Licm
from weft.transforms.simplify import Simplify

PIPELINE: Final[tuple[ModulePass, ...]] = (Simplify(), Licm(), Cse(), Dce())
"""Simplify first, so that constants are seen; CSE after LICM, which brings equal ops of different loops together."""


def optimise(module: ModuleOp) -> None:
    """Rewrites the module in place, keeping its meaning."""
    context = Context()
    for one in PIPELINE:
        one.apply(context, module)


__all__ = ["PIPELINE", "Cse", "Dce", "Licm", "Simplify", "optimise"]
