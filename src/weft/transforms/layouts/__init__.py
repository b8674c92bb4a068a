"""Layouts for tiles: `AssignLayouts` gives every tile one and makes conversions explicit.

`rules` is what a machine says of its ops, `vectors` the CPU's rules, `assign` the pass: first `infer`, then `rewrite`.
"""

from weft.transforms.layouts.assign import AssignLayouts
from weft.transforms.layouts.rules import LayoutFacts, LayoutRules, OperandLayouts
from weft.transforms.layouts.vectors import AssignVectorLayouts, VectorRules

__all__ = ["AssignLayouts", "AssignVectorLayouts", "LayoutFacts", "LayoutRules", "OperandLayouts", "VectorRules"]
