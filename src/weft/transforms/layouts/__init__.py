"""Layouts for tiles: `AssignLayouts` gives every tile one and makes conversions explicit.

`rules` is what a machine says of its ops, `vectors` the CPU's rules, `assign` the pass.
"""

from weft.transforms.layouts.assign import AssignLayouts
from weft.transforms.layouts.rules import LayoutFacts, LayoutRules, OperandLayouts
from weft.transforms.layouts.vectors import VectorRules

__all__ = ["AssignLayouts", "LayoutFacts", "LayoutRules", "OperandLayouts", "VectorRules"]
