"""Passes over tile IR, and analyses of it.

`PIPELINE` has the target-independent passes in their order; a machine adds its own (`weft.codegen.machine`).
`weft.transforms.axis` analyses index arithmetic.
"""

from __future__ import annotations

from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from weft.transforms.cse import Cse
from weft.transforms.dce import Dce
from weft.transforms.flags import RaiseFlags
from weft.transforms.induction import UniformCarry
from weft.transforms.invariant_loads import MarkInvariantLoads
from weft.transforms.layouts import AssignVectorLayouts
from weft.transforms.layouts.threads import AssignThreadLayouts
from weft.transforms.licm import Licm
from weft.transforms.nvidia.barriers import PlaceBarriers
from weft.transforms.nvidia.buffers import LayOutBuffers
from weft.transforms.nvidia.invariants import ShareInvariants
from weft.transforms.nvidia.operands import MatchOperands
from weft.transforms.nvidia.pipeline import PipelineLoads
from weft.transforms.nvidia.scratch import AllocateScratch
from weft.transforms.simplify import Simplify
from weft.transforms.widen_dot import WidenDot

PASSES: Final[dict[str, type[ModulePass]]] = {
    one.name: one
    for one in (
        AllocateScratch,
        AssignThreadLayouts,
        AssignVectorLayouts,
        Cse,
        Dce,
        LayOutBuffers,
        Licm,
        MarkInvariantLoads,
        MatchOperands,
        PipelineLoads,
        PlaceBarriers,
        RaiseFlags,
        ShareInvariants,
        Simplify,
        UniformCarry,
        WidenDot,
    )
}
"""Every pass by its name. ``weft opt`` runs them one by one; each has FileCheck files in ``tests/transforms/filecheck``."""

PIPELINE: Final[tuple[ModulePass, ...]] = (
    RaiseFlags(),
    Simplify(),
    Cse(),
    UniformCarry(),
    Simplify(),
    Licm(),
    Cse(),
    Dce(),
)
"""The passes with which every machine's list begins. RaiseFlags completes the orders that the kernel asks for. Simplify runs
next, so that constants are seen, and again after UniformCarry, which makes scalars of tiles. CSE runs after LICM, which
brings equal ops of different loops together."""


def optimise(module: ModuleOp) -> None:
    """Rewrites the module in place, keeping its meaning."""
    context = Context()
    for one in PIPELINE:
        one.apply(context, module)


__all__ = ["PASSES", "PIPELINE", "Cse", "Dce", "Licm", "Simplify", "optimise"]
