"""Sums of products in launches that allow fusion (``enable_fp_fusion=True``): one rounding, also where a mask makes versions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from llvmlite import ir

import weft
import weft.language as tl
from weft import dtypes
from weft.codegen import emit_assembly
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import Module, llvm_type
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import X86_LEVELS, CpuTarget, host

pytestmark = pytest.mark.jit

FORMS = ("a*b + c", "c + a*b", "a*b - c", "c - a*b")


@weft.jit
def form(a_ptr: Any, b_ptr: Any, c_ptr: Any, out_ptr: Any, n: Any, FORM: tl.constexpr, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    a, b = tl.load(a_ptr + i, mask=i < n, other=0), tl.load(b_ptr + i, mask=i < n, other=0)
    c = tl.load(c_ptr + i, mask=i < n, other=0)
    if FORM == "a*b + c":
        result = a * b + c
    elif FORM == "c + a*b":
        result = c + a * b
    elif FORM == "a*b - c":
        result = a * b - c
    else:
        result = c - a * b
    tl.store(out_ptr + i, result, mask=i < n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form_", FORMS)
def test_what_the_product_loses_is_left(form_: str, dtype: Any) -> None:
    """``c`` is the rounded product, or its negative: without a rounding between them the error of the product is left, which
    integers say exactly."""
    bits, n = np.finfo(dtype).nmant, 301
    r = np.random.default_rng(1)
    x, y = (r.integers(1 << bits, 2 << bits, n) for _ in range(2))
    a, b = (v.astype(dtype) for v in (x, y))
    rounded = a * b
    error = np.array([int(p) * int(q) - int(z) for p, q, z in zip(x, y, rounded, strict=True)], object).astype(dtype)
    minuend = form_.endswith("- a*b")
    c = rounded if "-" in form_ else -rounded
    out = np.zeros(n, dtype)
    form[(1,)](a, b, c, out, n, FORM=form_, BLOCK=512, enable_fp_fusion=True)
    has_fma = Module("m", host().triple, host().enabled).fma
    assert np.count_nonzero(error) > 250
    assert np.array_equal(out, (-error if minuend else error) if has_fma else 0 * error)
    form[(1,)](a, b, c, out, n, FORM=form_, BLOCK=512)
    assert not out.any()


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("flags", "jumps", "contracts"), [(("contract",), False, True), ((), False, False), (("contract",), True, False)]
)
def test_which_products_are_contracted(flags: tuple[str, ...], jumps: bool, contracts: bool, place: int) -> None:
    """Those that kernels write, as either operand. Not those within functions, nor those of another block, which may be
    outside of the loop of the sum."""
    module = Module("m", "x86_64-unknown-linux-gnu", frozenset({"fma", "contract"}))
    type_ = llvm_type(dtypes.float32, 8)
    function = ir.Function(module, ir.FunctionType(type_, [type_] * 3), "f")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    a, b, c = function.args
    operands = [builder.fmul(a, b, flags=flags), c]
    if jumps:
        after = builder.append_basic_block("after")
        builder.branch(after)
        builder.position_at_end(after)
    builder.ret(arith.binary(builder, "add", dtypes.float32, operands[place], operands[1 - place]))
    assert ("llvm.fma" in str(module), "fadd" in str(module)) == (contracts, not contracts)


@weft.jit
def squares(a_ptr: Any, out_ptr: Any, n: Any, BLOCK: tl.constexpr) -> None:
    """Part of a norm: the mask of the row makes two versions of the loop."""
    i = tl.arange(0, BLOCK)
    x = tl.load(a_ptr + tl.program_id(0) * n + i, mask=i < n, other=0.0)
    centered = tl.where(i < n, x - 1, 0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(centered * centered, axis=0))


@pytest.mark.parametrize("fusion", [True, False])
@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_versions_of_masked_sums_contract(level: str, fusion: bool) -> None:
    """No product is left where products may be contracted and the level can; none is contracted elsewhere."""
    levels = list(X86_LEVELS)
    features = " ".join(X86_LEVELS[name] for name in levels[: levels.index(level) + 1]).split()
    width = {"x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}[level]
    target = CpuTarget("x86_64-unknown-linux-gnu", level, ",".join(f"+{f}" for f in features), width)
    signature: dict[str, Argument] = {
        "a_ptr": PointerArgument(dtypes.float32, aligned=True),
        "out_ptr": PointerArgument(dtypes.float32, aligned=True),
        "n": ScalarArgument(dtypes.int32),
        "BLOCK": ConstantArgument(1024),
    }
    module = build_module(KernelFunction(squares.fn), signature)
    text = emit_assembly(module, target, Options(disjoint=True, launch=(("enable_fp_fusion", fusion),)))
    products, fused = (len(re.findall(rf"\t{name}", text)) for name in (r"v?mulps\b", r"vfn?m\w+ps\b"))
    contracts = fusion and level != "x86-64-v2"
    assert (products == 0, fused > 0) == (contracts, contracts)
