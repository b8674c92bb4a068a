"""The ops that only a GPU has; the dialect ``gpu`` beside ``tile``.

They are ops on whole tiles and blocks, as tile IR's are. Passes of `weft.transforms.nvidia` make them; the frontend never does.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, prop_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from weft.ir.base import TileOp


@irdl_op_definition
class BarrierOp(TileOp):
    """All threads of the block wait for each other, and see what the others wrote before. ``reason`` names the hazard."""

    name = "gpu.barrier"
    reason = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$reason attr-dict"

    def __init__(self, reason: str):
        super().__init__(properties={"reason": StringAttr(reason)})


Gpu = Dialect("gpu", [BarrierOp])
"""The dialect."""
