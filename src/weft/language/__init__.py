"""The language of kernels: ``import weft.language as tl``.

Names, parameters and meaning follow Triton's ``triton.language``; dtypes answer to Triton's names and to NumPy's.
Importing this loads no compiler. The modules behind ``tl.extra``, a fifth of the language's, are loaded when it is asked for.
"""

from __future__ import annotations

import builtins
import importlib
import typing

from weft.dtypes import (
    DType,
    bfloat16,
    bool_,
    float8_e4m3b15,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from weft.language import math, random
from weft.language.aggregates import aggregate_replace
from weft.language.assembly import inline_asm_elementwise
from weft.language.blocks import advance, make_block_ptr
from weft.language.collective import associative_scan, cumprod, cumsum, gather, histogram
from weft.language.compiletime import (
    assume,
    condition,
    max_constancy,
    max_contiguous,
    multiple_of,
    range,
    static_assert,
    static_print,
    static_range,
    to_tensor,
)
from weft.language.core import (
    MAX_ELEMENTS,
    OutsideKernelError,
    block_type,
    const,
    constexpr,
    constexpr_function,
    constexpr_type,
    pointer_type,
    tensor,
)
from weft.language.creation import arange, cast, full, num_programs, program_id, swizzle2d, zeros, zeros_like
from weft.language.debugging import device_assert, device_print, expect_zero
from weft.language.descriptors import (
    load_tensor_descriptor,
    make_tensor_descriptor,
    store_tensor_descriptor,
    tensor_descriptor,
)
from weft.language.elementwise import (
    PropagateNan,
    abs,
    add,
    cdiv,
    ceil,
    clamp,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    fma,
    log,
    log2,
    maximum,
    meaning,
    minimum,
    mul,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    sqrt_rn,
    sub,
    umulhi,
    where,
)
from weft.language.mapping import map_elementwise
from weft.language.memory import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_poll,
    atomic_store,
    atomic_xchg,
    atomic_xor,
    debug_barrier,
    load,
    store,
)
from weft.language.random import (
    pair_uniform_to_normal,
    philox,
    philox_impl,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    uint_to_uniform_float,
)
from weft.language.reduction import argmax, argmin, dot, max, min, reduce, reduce_or, softmax, sum, xor_sum
from weft.language.scaled import dot_scaled
from weft.language.shape import (
    broadcast,
    broadcast_to,
    cat,
    expand_dims,
    flip,
    interleave,
    join,
    permute,
    ravel,
    reshape,
    split,
    squeeze,
    trans,
    unsqueeze,
    view,
)
from weft.language.sorting import bitonic_merge, sort, topk

if typing.TYPE_CHECKING:
    from weft.language import extra

dtype = DType
tuple = builtins.tuple
slice = builtins.slice
int1 = bool_
float8e4b15 = float8_e4m3b15
float8e4b8 = float8_e4m3fnuz
float8e4nv = float8_e4m3fn
float8e5 = float8_e5m2
float8e5b16 = float8_e5m2fnuz
TRITON_MAX_TENSOR_NUMEL = MAX_ELEMENTS

__all__ = [
    "DType", "OutsideKernelError", "PropagateNan", "TRITON_MAX_TENSOR_NUMEL", "abs", "add", "advance",
    "aggregate_replace", "arange", "argmax", "argmin", "associative_scan", "assume", "atomic_add", "atomic_and",
    "atomic_cas", "atomic_load", "atomic_max", "atomic_min", "atomic_or", "atomic_poll", "atomic_store", "atomic_xchg",
    "atomic_xor", "bfloat16", "bitonic_merge", "block_type", "bool_", "broadcast", "broadcast_to", "cast", "cat",
    "cdiv", "ceil", "clamp", "condition", "const", "constexpr", "constexpr_function", "constexpr_type", "cos",
    "cumprod", "cumsum", "debug_barrier", "device_assert", "device_print", "div_rn", "dot", "dot_scaled", "dtype", "erf", "exp",
    "exp2", "expand_dims", "expect_zero", "extra", "fdiv", "flip", "float16", "float32", "float64", "float8_e4m3b15",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8e4b15", "float8e4b8", "float8e4nv",
    "float8e5", "float8e5b16", "floor", "fma", "full", "gather", "histogram",
    "inline_asm_elementwise", "int1", "int16", "int32",
    "int64", "int8", "interleave", "join", "load", "load_tensor_descriptor", "log", "log2", "make_block_ptr",
    "make_tensor_descriptor", "map_elementwise", "math", "max", "max_constancy", "max_contiguous", "maximum", "meaning",
    "min", "minimum", "mul", "multiple_of", "num_programs", "pair_uniform_to_normal", "permute", "philox",
    "philox_impl", "pointer_type", "program_id", "rand", "rand4x", "randint", "randint4x", "randn", "randn4x", "random",
    "range", "ravel", "reduce", "reduce_or", "reshape", "rsqrt", "sigmoid", "sin", "slice", "softmax", "sort", "split",
    "sqrt", "sqrt_rn", "squeeze", "static_assert", "static_print", "static_range", "store", "store_tensor_descriptor",
    "sub", "sum", "swizzle2d", "tensor", "tensor_descriptor", "to_tensor", "topk", "trans", "tuple", "uint16", "uint32",
    "uint64", "uint8", "uint_to_uniform_float", "umulhi", "unsqueeze", "view", "where", "xor_sum", "zeros",
    "zeros_like",
]  # fmt: skip


if not typing.TYPE_CHECKING:  # to type checkers only the names above are there

    def __getattr__(name: str) -> typing.Any:
        if name != "extra":
            raise AttributeError(f"module 'weft.language' has no attribute {name!r}")
        return importlib.import_module("weft.language.extra")
