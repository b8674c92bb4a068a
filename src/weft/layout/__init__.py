"""Tensor layouts as linear maps over F2: the algebra, the families, shape operations on layouts, conversion plans.

Stands alone: imports nothing of weft's other packages.
"""

from weft.layout.banks import (
    SHARED,
    BankConflicts,
    Banks,
    Vectors,
    access_map,
    bank_conflicts,
    simulate_wavefronts,
    vector_size,
    vectors,
)
from weft.layout.conversion import Place, Plan, RegisterMap, Shuffle, plan_conversion
from weft.layout.families import blocked, sliced, vector, why_not_distributed
from weft.layout.linear_layout import LinearLayout
from weft.layout.swizzle import Swizzle, optimal_swizzle
from weft.layout.transfer import (
    broadcast,
    broadcast_back,
    expand_dims,
    expand_dims_back,
    project,
    reduce,
    reduce_back,
    reshape,
    trans,
    trans_back,
)

__all__ = [
    "LinearLayout",
    "blocked", "sliced", "vector", "why_not_distributed",
    "trans", "trans_back", "reshape", "expand_dims", "expand_dims_back", "broadcast", "broadcast_back", "project",
    "reduce", "reduce_back",
    "Banks", "BankConflicts", "SHARED", "Vectors", "access_map", "bank_conflicts", "simulate_wavefronts", "vector_size",
    "vectors", "Swizzle", "optimal_swizzle",
    "Place", "Plan", "RegisterMap", "Shuffle", "plan_conversion",
]  # fmt: skip
