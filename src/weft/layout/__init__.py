"""Tensor layouts as linear maps over F2: the algebra, the families, shape operations on layouts, conversion plans.

Stands alone: imports nothing of weft's other packages.
"""

from weft.layout.algebra import (
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
from weft.layout.amd import amd_mfma, amd_mfma_operand, amd_wmma, amd_wmma_operand
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
from weft.layout.cute import CuteLayout
from weft.layout.encodings import Encoding, encoding_of, parse_encoding, parse_module
from weft.layout.exchange import plan_memory
from weft.layout.families import blocked, blocked_operand, sliced, vector, why_not_distributed
from weft.layout.gather import GatherPlan, plan_gather
from weft.layout.intel import intel_dpas, intel_dpas_operand
from weft.layout.json_form import from_json, to_json
from weft.layout.linear_layout import LinearLayout
from weft.layout.matrix_view import MatrixView
from weft.layout.memory import linear_memory, mma_swizzled, padded, unswizzled, why_not_memory
from weft.layout.nvidia import nvidia_mma, nvidia_mma_operand
from weft.layout.nvmma import nvmma_shared
from weft.layout.plans import plan_exchange
from weft.layout.queries import (
    Coalescing,
    address_map,
    coalescing,
    contiguity,
    copies,
    elements_per_thread,
    vector_bits,
)
from weft.layout.steps import AMPERE, CDNA, HOPPER, Cost, ExchangePlan, Machine, Step
from weft.layout.swizzle import Swizzle, optimal_swizzle
from weft.layout.tcgen05 import tcgen05_registers
from weft.layout.tensor_memory import tensor_memory, tensor_memory_scales
from weft.layout.transfer import (
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
    "Banks", "BankConflicts", "SHARED", "Vectors", "access_map", "bank_conflicts", "simulate_wavefronts", "vector_size",
    "vectors", "Swizzle", "optimal_swizzle",
    "CuteLayout", "Encoding", "encoding_of", "parse_encoding", "parse_module", "from_json", "to_json",
    "GatherPlan", "plan_gather",
    "Place", "Plan", "RegisterMap", "Shuffle", "plan_conversion",
    "AMPERE", "CDNA", "HOPPER", "Cost", "ExchangePlan", "Machine", "Step", "plan_exchange", "plan_memory",
]  # fmt: skip
