"""Every pass of every machine, by name.

A module of its own: a kernel for a CPU needs no pass of a GPU, whose planners take long to import.
"""

from __future__ import annotations

from typing import Final

from xdsl.passes import ModulePass

from weft.transforms.assertions import CollectAssertions
from weft.transforms.cse import Cse
from weft.transforms.dce import Dce
from weft.transforms.delay_sums import DelaySums
from weft.transforms.fill_lanes import FillLanes
from weft.transforms.flags import RaiseFlags
from weft.transforms.induction import UniformCarry
from weft.transforms.invariant_loads import MarkInvariantLoads
from weft.transforms.join_programs import JoinPrograms
from weft.transforms.layouts import AssignVectorLayouts
from weft.transforms.layouts.threads import AssignThreadLayouts
from weft.transforms.licm import Licm
from weft.transforms.narrow_integers import NarrowIntegers
from weft.transforms.narrow_operands import NarrowOperands
from weft.transforms.nvidia.barriers import PlaceBarriers
from weft.transforms.nvidia.buffers import LayOutBuffers
from weft.transforms.nvidia.invariants import ShareInvariants
from weft.transforms.nvidia.late import ReadLate
from weft.transforms.nvidia.operands import MatchOperands
from weft.transforms.nvidia.pipeline import PipelineLoads
from weft.transforms.nvidia.scratch import AllocateScratch
from weft.transforms.nvidia.strips import CutStrips
from weft.transforms.pack_dots import PackDots
from weft.transforms.simplify import Simplify
from weft.transforms.split_sums import SplitSums
from weft.transforms.widen_dot import WidenDot
from weft.transforms.widen_packs import WidenPacks

PASSES: Final[dict[str, type[ModulePass]]] = {
    one.name: one
    for one in (
        AllocateScratch,
        AssignThreadLayouts,
        AssignVectorLayouts,
        CollectAssertions,
        Cse,
        CutStrips,
        Dce,
        DelaySums,
        FillLanes,
        LayOutBuffers,
        JoinPrograms,
        Licm,
        MarkInvariantLoads,
        MatchOperands,
        NarrowIntegers,
        NarrowOperands,
        PackDots,
        PipelineLoads,
        PlaceBarriers,
        RaiseFlags,
        ReadLate,
        ShareInvariants,
        Simplify,
        SplitSums,
        UniformCarry,
        WidenDot,
        WidenPacks,
    )
}
"""Every pass by its name. ``weft opt`` runs them one by one; each has FileCheck files in ``tests/transforms/filecheck``."""
