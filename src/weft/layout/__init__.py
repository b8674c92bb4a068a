"""Tensor layouts as linear maps over F2: the algebra, the families, shape operations on layouts, conversion plans.

Stands alone: imports nothing of weft's other packages. Planners that compiling for a CPU does not ask, and the spellings of
other systems, are loaded at their first use: every process that defines a kernel would wait for them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.algebra.matrix_view import MatrixView
from weft.layout.algebra.operations import (
    canonical,
    concat_ins,
    concat_outs,
    flatten_ins,
    flatten_outs,
    free_variables,
    image,
    is_identity_on,
    kernel,
    register_permutation,
    reshape_ins,
    reshape_outs,
    transpose_ins,
)
from weft.layout.families.amd import amd_mfma, amd_mfma_operand, amd_wmma, amd_wmma_operand
from weft.layout.families.distributed import blocked, blocked_operand, sliced, vector, why_not_distributed
from weft.layout.families.intel import intel_dpas, intel_dpas_operand
from weft.layout.families.nvidia import nvidia_mma, nvidia_mma_operand
from weft.layout.families.tcgen05 import tcgen05_registers
from weft.layout.families.transfer import (
    broadcast,
    broadcast_back,
    expand_dims,
    expand_dims_back,
    join,
    join_back,
    project,
    reduce,
    reduce_back,
    reshape,
    split,
    split_back,
    trans,
    trans_back,
)
from weft.layout.memory.banks import (
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
from weft.layout.memory.coalesced import coalesced
from weft.layout.memory.nvmma import nvmma_shared
from weft.layout.memory.queries import (
    Coalescing,
    address_map,
    coalescing,
    contiguity,
    copies,
    elements_per_thread,
    vector_bits,
)
from weft.layout.memory.runs import Runs, runs_of
from weft.layout.memory.shared import linear_memory, mma_swizzled, padded, unswizzled, why_not_memory
from weft.layout.memory.swizzle import Swizzle, optimal_swizzle
from weft.layout.memory.tensor_memory import tensor_memory, tensor_memory_scales
from weft.layout.planning.choose import plan_conversion, plan_memory
from weft.layout.planning.machine import AMPERE, CDNA, HOPPER, MachineModel, vector_machine
from weft.layout.planning.plan import ConversionPlan
from weft.layout.planning.price import Room
from weft.layout.planning.steps import Cost, Step
from weft.layout.planning.vectors import Place, RegisterMap, Shuffle, Shuffles

if TYPE_CHECKING:
    from weft.layout.interop.cute import CuteLayout
    from weft.layout.interop.encodings import Encoding, encoding_of, parse_encoding, parse_module
    from weft.layout.interop.json_form import from_json, to_json
    from weft.layout.planning.access import AccessPlan, plan_access, why_not_access
    from weft.layout.planning.gather import GatherPlan, plan_gather
    from weft.layout.planning.gather_memory import GatherMemory
    from weft.layout.planning.reduce import ReducePlan, plan_reduce
    from weft.layout.planning.scan import ScanPlan, plan_scan

__all__ = [
    "LinearLayout",
    "blocked", "blocked_operand", "sliced", "vector", "why_not_distributed",
    "nvidia_mma", "nvidia_mma_operand", "amd_mfma", "amd_mfma_operand", "amd_wmma", "amd_wmma_operand",
    "intel_dpas", "intel_dpas_operand", "tcgen05_registers",
    "trans", "trans_back", "reshape", "expand_dims", "expand_dims_back", "broadcast", "broadcast_back", "project",
    "reduce", "reduce_back", "join", "join_back", "split", "split_back",
    "MatrixView", "canonical", "concat_ins", "concat_outs", "flatten_ins", "flatten_outs", "free_variables", "image",
    "is_identity_on", "kernel", "register_permutation", "reshape_ins", "reshape_outs", "transpose_ins",
    "unswizzled", "mma_swizzled", "nvmma_shared", "linear_memory", "padded", "tensor_memory", "tensor_memory_scales",
    "why_not_memory",
    "address_map", "contiguity", "vector_bits", "elements_per_thread", "copies", "Coalescing", "coalescing",
    "coalesced", "Runs", "runs_of",
    "Banks", "BankConflicts", "SHARED", "Vectors", "access_map", "bank_conflicts", "simulate_wavefronts", "vector_size",
    "vectors", "Swizzle", "optimal_swizzle",
    "CuteLayout", "Encoding", "encoding_of", "parse_encoding", "parse_module", "from_json", "to_json",
    "AccessPlan", "plan_access", "why_not_access", "GatherMemory", "GatherPlan", "plan_gather",
    "ReducePlan", "plan_reduce", "ScanPlan", "plan_scan",
    "Place", "RegisterMap", "Shuffle", "Shuffles",
    "AMPERE", "CDNA", "HOPPER", "ConversionPlan", "Cost", "MachineModel", "Room", "Step", "plan_conversion", "plan_memory",
    "vector_machine",
]  # fmt: skip

_HOMES = {
    "CuteLayout": "weft.layout.interop.cute",
    "Encoding": "weft.layout.interop.encodings",
    "encoding_of": "weft.layout.interop.encodings",
    "parse_encoding": "weft.layout.interop.encodings",
    "parse_module": "weft.layout.interop.encodings",
    "from_json": "weft.layout.interop.json_form",
    "to_json": "weft.layout.interop.json_form",
    "AccessPlan": "weft.layout.planning.access",
    "plan_access": "weft.layout.planning.access",
    "why_not_access": "weft.layout.planning.access",
    "GatherPlan": "weft.layout.planning.gather",
    "plan_gather": "weft.layout.planning.gather",
    "GatherMemory": "weft.layout.planning.gather_memory",
    "ReducePlan": "weft.layout.planning.reduce",
    "plan_reduce": "weft.layout.planning.reduce",
    "ScanPlan": "weft.layout.planning.scan",
    "plan_scan": "weft.layout.planning.scan",
}
"""Where each lazily loaded name lives."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value
