"""Every function and method of the language: which ops of tile IR it becomes, and the type it gives.

A case is an expression as a kernel author writes it. Expected are the ops it emits, by name and kind, and the type of its
value as ``tl.static_print`` shows it. Scalars are named in `TYPES`, ``F`` is a tile of 16 of ``f`` (and so on), ``G`` a 4 by 8
tile of float32; the ops that make these tiles are not part of the expectation.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

import weft.language as tl
from weft import dtypes
from weft.frontend import KernelFunction, PointerArgument
from weft.frontend.attributes import METHODS
from weft.ir import tile
from weft.language import elementwise
from weft.language.core import COMPOSITES, STUBS
from weft.language.extra import libdevice

TYPES: dict[str, Any] = {
    "i": dtypes.int32, "j": dtypes.int64, "u": dtypes.uint32, "b": dtypes.bool_, "c": dtypes.int8, "v": dtypes.uint8,
    "f": dtypes.float32, "h": dtypes.float16, "k": dtypes.bfloat16, "d": dtypes.float64, "q": dtypes.float8_e4m3fn,
    "p": PointerArgument(dtypes.float32), "r": PointerArgument(dtypes.uint8),
}  # fmt: skip

Build = Callable[..., ModuleOp]


@KernelFunction
def add(a: Any, b: Any) -> Any:
    return a + b


@KernelFunction
def pair(a: Any, i: Any, b: Any, j: Any) -> Any:
    return a + b, i + j


def spell(op: Operation) -> str:
    """``add`` for a tile.binary add, the name without the dialect for an op without a kind."""
    kind = op.properties.get("kind")
    return kind.data if isinstance(kind, StringAttr) else op.name.removeprefix("tile.")


def compile_expression(build: Build, expression: str) -> str:
    """The ops that ``expression`` emits; its type is printed."""
    tiles = [name for name in TYPES if name.upper() in set(expression.replace("True", "").replace("False", ""))]
    body = [f"{name.upper()} = tl.broadcast_to({name}, (16,))" for name in tiles]
    body += ["G = tl.broadcast_to(f, (4, 8))", "tl.assume(b)"]
    body += [f"result = {expression}", "tl.assume(b)", "tl.static_print(result)"]
    source = [f"def kernel({', '.join(TYPES)}):\n", *(f"    {line}\n" for line in body)]
    filename = f"<expression {expression}>"
    linecache.cache[filename] = (1, None, source, filename)
    names: dict[str, Any] = {"tl": tl, "libdevice": libdevice, "add": add, "pair": pair}
    exec(compile("".join(source), filename, "exec"), names)
    ops = list(build(names["kernel"], **TYPES).walk())
    first, last = (i for i, op in enumerate(ops) if isinstance(op, tile.AssumeOp))
    return " ".join(spell(op) for op in ops[first + 1 : last])


CASES = [
    # creation
    ("tl.program_id(1)", "program_id", "int32 scalar"),
    ("tl.num_programs(axis=2)", "num_programs", "int32 scalar"),
    ("tl.arange(16, 32)", "arange", "int32[16]"),
    ("tl.full((4, 8), 3, tl.float16)", "constant", "float16[4, 8]"),
    ("tl.full([4], 2.0, tl.int32)", "constant", "int32[4]"),
    ("tl.full((4,), i, tl.float32)", "cast splat", "float32[4]"),
    ("tl.full((), 7, tl.uint8)", "constant", "uint8 scalar"),
    ("tl.zeros((2, 2), dtype=tl.int1)", "constant", "bool[2, 2]"),
    ("tl.zeros_like(G)", "constant", "float32[4, 8]"),
    ("tl.to_tensor(2**40)", "constant", "int64 scalar"),
    ("tl.to_tensor(F)", "", "float32[16]"),
    # casts
    ("tl.cast(F, tl.int32)", "cast", "int32[16]"),
    ("F.to(tl.float32)", "", "float32[16]"),
    ("F.to(tl.int32, bitcast=True)", "bitcast", "int32[16]"),
    ("tl.cast(3, tl.float64)", "constant", "float64 scalar"),
    ("tl.cast(3.5, tl.int32)", "constant cast", "int32 scalar"),
    ("H.to(tl.float8e5, 'rtne')", "constant constant maxnan minnan cast", "float8_e5m2[16]"),
    ("p.to(tl.pointer_type(tl.int8))", "bitcast", "pointer<int8> scalar"),
    ("P.to(tl.uint64, bitcast=True)", "bitcast", "uint64[16]"),
    # operators: promotion is the semantics' business, so one of each
    ("F + i", "cast splat add", "float32[16]"),
    ("i - 1", "constant sub", "int32 scalar"),
    ("2 * H", "constant mul", "float16[16]"),
    ("i / j", "cast cast div", "float32 scalar"),
    ("i // 2", "constant div", "int32 scalar"),
    ("f % 2.0", "constant rem", "float32 scalar"),
    ("b & True", "constant and", "bool scalar"),
    ("i | j", "cast or", "int64 scalar"),
    ("u ^ i", "cast xor", "uint32 scalar"),
    ("1 << i", "constant shl", "int32 scalar"),
    ("c >> 1", "constant shr", "int8 scalar"),
    ("F < 3", "constant lt", "bool[16]"),
    ("i == u", "cast eq", "bool scalar"),
    ("3 != i", "constant ne", "bool scalar"),
    ("i <= j", "cast le", "bool scalar"),
    ("(f > 0) and b", "constant gt and", "bool scalar"),
    ("b or (f >= 0)", "constant ge or", "bool scalar"),
    ("not b", "not", "bool scalar"),
    ("~v", "not", "uint8 scalar"),
    ("-K", "neg", "bfloat16[16]"),
    ("+F", "", "float32[16]"),
    ("0 < i < 5", "constant lt constant lt and", "bool scalar"),
    ("f if b else 0.0", "scf.if scf.yield constant scf.yield", "float32 scalar"),
    # elementwise
    ("tl.where(B, F, 0)", "constant select", "float32[16]"),
    ("tl.where(G > 0, f, d)", "constant gt cast splat splat select", "float64[4, 8]"),
    ("tl.where(True, p, p)", "constant select", "pointer<float32> scalar"),
    ("tl.where(i, 1, 2.5)", "cast constant constant select", "float32 scalar"),
    ("tl.minimum(F, 0)", "constant min", "float32[16]"),
    ("tl.maximum(F, f, propagate_nan=tl.PropagateNan.ALL)", "splat maxnan", "float32[16]"),
    ("tl.maximum(i, 3, tl.PropagateNan.ALL)", "constant max", "int32 scalar"),
    ("tl.clamp(F, 0.0, 1.0)", "constant max constant min", "float32[16]"),
    ("tl.add(i, 1)", "constant add", "int32 scalar"),
    ("tl.sub(i, j, sanitize_overflow=False)", "cast sub", "int64 scalar"),
    ("F.mul(F)", "mul", "float32[16]"),
    ("tl.cdiv(i, 16)", "constant add constant div", "int32 scalar"),
    ("tl.cdiv(j, i)", "constant sub cast add cast div", "int64 scalar"),
    ("tl.fdiv(F, 3.0)", "constant div", "float32[16]"),
    ("tl.fdiv(F, 3.0, ieee_rounding=True)", "constant div_rn", "float32[16]"),
    ("tl.div_rn(d, d)", "div_rn", "float64 scalar"),
    ("tl.umulhi(I, V.to(tl.uint32))", "cast cast umulhi", "uint32[16]"),
    ("tl.fma(F, f, 1.0)", "constant splat splat fma", "float32[16]"),
    ("tl.abs(I)", "abs", "int32[16]"),
    ("tl.abs(V)", "", "uint8[16]"),
    ("abs(f)", "abs", "float32 scalar"),
    ("H.exp()", "exp", "float16[16]"),
    ("tl.exp(1.0)", "constant exp", "float32 scalar"),
    ("tl.sigmoid(F)", "constant neg exp add div", "float32[16]"),
    ("tl.sigmoid(h)", "cast constant neg exp add div cast", "float16 scalar"),
    *((f"tl.{name}(F)", name, "float32[16]") for name in ("exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos")),
    *((f"tl.{name}(F)", name, "float32[16]") for name in ("erf", "floor", "ceil")),
    *((f"tl.math.{name}(d)", name, "float64 scalar") for name in ("exp", "sqrt", "erf")),
    ("tl.sqrt_rn(F)", "sqrt_rn", "float32[16]"),
    ("libdevice.tanh(K)", "tanh", "bfloat16[16]"),
    ("tl.extra.libdevice.fma(f, f, f)", "fma", "float32 scalar"),
    # memory
    ("tl.load(p)", "load", "float32 scalar"),
    ("tl.load(p + I)", "splat addptr load", "float32[16]"),
    ("tl.load(p - I, I < i, 1)", "neg splat addptr splat lt constant load", "float32[16]"),
    ("tl.load(r + u, mask=b, other=i)", "addptr cast load", "uint8 scalar"),
    ("tl.load(P, mask=True, other=0.0)", "load", "float32[16]"),
    ("tl.load(P, mask=False, volatile=True, cache_modifier='.cg')", "constant splat load", "float32[16]"),
    ("tl.load(P[:, None], mask=B[None, :])", "expand_dims expand_dims broadcast broadcast load", "float32[16, 16]"),
    ("tl.store(P, 1, eviction_policy='evict_last')", "constant store", "None"),
    ("tl.store(P, i, B)", "cast splat store", "None"),
    ("tl.store(r, 300)", "constant cast store", "None"),
    ("tl.store(r, 1.5)", "constant cast store", "None"),
    ("tl.make_block_ptr(p, (8,), (1,), (i,), (4,), (0,))", "constant constant", "block pointer to float32[4]"),
    (
        "tl.make_tensor_descriptor(p, (i, 8), (8, 1), (4, 8))",
        "constant constant constant",
        "tensor descriptor of float32[4, 8]",
    ),
    (
        "tl.advance(tl.make_block_ptr(p, (8,), (1,), (i,), (4,), (0,)), (2,))",
        "constant constant constant add",
        "block pointer to float32[4]",
    ),
    ("tl.atomic_load(P, B)", "load", "float32[16]"),
    ("P.atomic_load(sem='relaxed', scope='cta')", "load", "float32[16]"),
    ("tl.atomic_store(P, 1, B, 'relaxed')", "constant store", "None"),
    ("tl.atomic_add(P, 1.0, mask=B, sem='relaxed')", "constant add", "float32[16]"),
    ("p.atomic_add(h)", "cast add", "float32 scalar"),
    ("tl.atomic_max(r, 3)", "constant max", "uint8 scalar"),
    ("tl.atomic_min(P, F, B, 'acquire', 'cta')", "min", "float32[16]"),
    ("tl.atomic_and(r, u)", "cast and", "uint8 scalar"),
    ("tl.atomic_or(r, u, sem='release')", "cast or", "uint8 scalar"),
    ("r.atomic_xor(u, scope='sys')", "cast xor", "uint8 scalar"),
    ("tl.atomic_xchg(P, 0.5)", "constant xchg", "float32[16]"),
    ("tl.atomic_cas(P, f, 1)", "splat constant atomic_cas", "float32[16]"),
    ("r.atomic_cas(0, 1, 'relaxed', 'cta')", "constant constant atomic_cas", "uint8 scalar"),
    ("tl.debug_barrier()", "barrier", "None"),
    ("1 + p", "constant addptr", "pointer<float32> scalar"),
    ("p - u", "cast neg addptr", "pointer<float32> scalar"),
    ("P + b", "cast splat addptr", "pointer<float32>[16]"),
    ("p != p", "ne", "bool scalar"),
    # shapes
    ("G[None, :, :, None]", "expand_dims expand_dims", "float32[1, 4, 8, 1]"),
    ("f[None]", "splat", "float32[1]"),
    ("G.T", "trans", "float32[8, 4]"),
    ("tl.trans(G, 0, 1)", "", "float32[4, 8]"),
    ("G[None, :, :].permute((2, -2, 0))", "expand_dims trans", "float32[8, 4, 1]"),
    ("tl.trans(G[None, :, :])", "expand_dims trans", "float32[1, 8, 4]"),
    ("G.reshape((2, 16))", "reshape", "float32[2, 16]"),
    ("tl.view(G, 32)", "reshape", "float32[32]"),
    ("tl.ravel(G)", "reshape", "float32[32]"),
    ("tl.reshape(tl.full((1, 1), 2, tl.int32), ())", "constant reshape reduce yield", "int32 scalar"),
    ("tl.join(F, h.to(tl.float32))", "cast splat join", "float32[16, 2]"),
    ("tl.join(f, f)", "splat splat join reshape", "float32[2]"),
    ("tl.split(G.reshape(16, 2))", "reshape split", "(float32[16], float32[16])"),
    ("G.flip()", "flip", "float32[4, 8]"),
    ("tl.flip(tl.arange(0, 64), 0)", "arange reshape flip flip reshape", "int32[64]"),
    ("tl.flip(tl.full((1, 4), 0, tl.int8), 0)", "constant", "int8[1, 4]"),
    ("tl.reshape(f, (1, 1))", "splat", "float32[1, 1]"),
    ("tl.expand_dims(G, -1)", "expand_dims", "float32[4, 8, 1]"),
    ("tl.expand_dims(F, (0, 2))", "expand_dims expand_dims", "float32[1, 16, 1]"),
    ("F[:, None].broadcast_to(16, 4)", "expand_dims broadcast", "float32[16, 4]"),
    ("tl.broadcast_to(F, (2, 16))", "expand_dims broadcast", "float32[2, 16]"),
    ("tl.broadcast(f, G)", "splat", "(float32[4, 8], float32[4, 8])"),
    # reductions
    ("tl.sum(G)", "reshape reduce add yield", "float32 scalar"),
    ("G.sum(axis=-1)", "reduce add yield", "float32[4]"),
    ("tl.sum(G, 0, keep_dims=True)", "reduce add yield reshape", "float32[1, 8]"),
    ("tl.sum(G, keep_dims=True)", "reshape reduce add yield splat", "float32[1, 1]"),
    ("tl.sum(C)", "cast reduce add yield", "int32 scalar"),
    ("tl.sum(B)", "cast reduce add yield", "uint32 scalar"),
    ("tl.sum(H)", "reduce add yield", "float16 scalar"),
    ("tl.sum(H, dtype=tl.float32)", "cast reduce add yield", "float32 scalar"),
    ("tl.max(K)", "cast reduce max yield", "float32 scalar"),
    ("tl.min(V, axis=0)", "cast reduce min yield", "int32 scalar"),
    ("tl.reduce_or(U, 0)", "reduce or yield", "uint32 scalar"),
    ("tl.xor_sum(U)", "reduce xor yield", "uint32 scalar"),
    ("tl.argmax(I, 0)", "arange reduce lt eq gt and or select select yield", "int32 scalar"),
    ("U.argmin(0)", "arange reduce lt eq lt and or select select yield", "int32 scalar"),
    (
        "tl.min(G, 1, return_indices=True)",
        "arange expand_dims broadcast reduce lt eq lt ne ne not and or and or and or select select yield",
        "(float32[4], int32[4])",
    ),
    ("tl.reduce(G, 1, add, keep_dims=True)", "reduce add yield reshape", "float32[4, 1]"),
    ("tl.reduce((F, I), None, pair)", "reduce add add yield", "(float32 scalar, int32 scalar)"),
    (
        "tl.softmax(G, dim=1)",
        "reduce max yield reshape broadcast sub exp reduce add yield reshape broadcast div",
        "float32[4, 8]",
    ),
    # scans and gathers
    ("tl.associative_scan(G, 1, add)", "scan add yield", "float32[4, 8]"),
    ("F.associative_scan(-1, add, reverse=True)", "scan add yield", "float32[16]"),
    ("tl.associative_scan((F, I), 0, pair)", "scan add add yield", "(float32[16], int32[16])"),
    ("tl.cumsum(G)", "scan add yield", "float32[4, 8]"),
    ("tl.cumsum(H, 0)", "cast scan add yield cast", "float16[16]"),
    ("tl.cumsum(K)", "cast scan add yield cast", "bfloat16[16]"),
    ("tl.cumsum(C, 0)", "cast scan add yield", "int32[16]"),
    ("tl.cumsum(V, 0)", "cast scan add yield", "uint32[16]"),
    ("tl.cumsum(B, 0)", "cast scan add yield", "uint32[16]"),
    ("J.cumsum()", "scan add yield", "int64[16]"),
    ("tl.cumsum(C, 0, dtype=tl.float32)", "cast scan add yield", "float32[16]"),
    ("tl.cumprod(G, 1, reverse=True)", "scan mul yield", "float32[4, 8]"),
    ("tl.cumprod(V, dtype=tl.uint8)", "scan mul yield", "uint8[16]"),
    ("tl.gather(F, I, 0)", "gather", "float32[16]"),
    ("F.gather(tl.zeros((4,), tl.int64), -1)", "constant gather", "float32[4]"),
    ("P.gather(V, 0)", "gather", "pointer<float32>[16]"),
    ("tl.histogram(I, 4)", "histogram", "int32[4]"),
    ("U.histogram(32, mask=B)", "histogram", "int32[32]"),
    ("tl.histogram(I, 4, b)", "splat histogram", "int32[4]"),
    ("tl.gather(F, B, 0)", "cast gather", "float32[16]"),
    # products
    ("tl.dot(G, G.T)", "trans constant dot", "float32[4, 4]"),
    ("tl.dot(G.to(tl.float16), G.T.to(tl.float16), out_dtype=tl.float16)", "cast trans cast constant dot", "float16[4, 4]"),
    (
        "tl.dot(G.to(tl.float16), G.T.to(tl.float16), tl.zeros((4, 4), tl.bfloat16))",
        "cast trans cast constant cast dot cast",
        "bfloat16[4, 4]",
    ),
    (
        "tl.dot(G.to(tl.bfloat16), G.T.to(tl.bfloat16), out_dtype=tl.float16)",
        "cast trans cast constant dot",
        "float32[4, 4]",
    ),
    ("tl.dot(G, G.T, acc=tl.zeros((4, 4), tl.float32), allow_tf32=False)", "trans constant dot", "float32[4, 4]"),
    ("tl.dot(G.to(tl.int8), G.T.to(tl.int8))", "cast trans cast constant dot", "int32[4, 4]"),
    ("tl.dot(G.to(tl.float64), G.T.to(tl.float64), input_precision='ieee')", "cast trans cast constant dot", "float64[4, 4]"),
    # hints
    ("tl.multiple_of(i, 16)", "hint", "int32 scalar"),
    ("tl.max_contiguous(tl.multiple_of(I, 8), [16])", "hint hint", "int32[16]"),
    ("tl.max_constancy(P, (4,))", "hint", "pointer<float32>[16]"),
    ("tl.multiple_of(64, 16)", "constant", "int32 scalar"),
    ("tl.assume(True)", "", "None"),
    # the machine
    ("tl.extra.cuda.globaltimer()", "clock", "int64 scalar"),
    ("tl.extra.cuda.smid()", "processor", "int32 scalar"),
    ("tl.zeros((tl.extra.cuda.num_warps() * tl.extra.cuda.num_threads(),), tl.int8)", "constant", "int8[512]"),
    ("tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [I], tl.int32, True, 1)", "inline_asm", "int32[16]"),
    ("tl.inline_asm_elementwise('', '=r,=l,r,h', [i, H], (c.dtype, d.dtype), 0, 1)[1]", "splat inline_asm", "float64[16]"),
]  # fmt: skip


@pytest.mark.parametrize(("expression", "ops", "type_"), CASES, ids=[case[0] for case in CASES])
def test_expression(build: Build, capsys: pytest.CaptureFixture[str], expression: str, ops: str, type_: str) -> None:
    assert compile_expression(build, expression) == ops
    assert capsys.readouterr().out == type_ + "\n"


def test_every_op_of_the_language_has_a_case() -> None:
    """Loops, assertions and prints are tested where they have an effect, meanings and what descriptors do in files of their
    own; ``tl.assume`` frames every expression here."""
    elsewhere = {name for name in STUBS.values() if "descriptor" in name} - {"make_tensor_descriptor"}
    elsewhere |= {"meaning", "range", "static_range", "static_assert", "static_print", "assume", "condition"}
    elsewhere |= {"device_assert", "device_print", "expect_zero", "map_elementwise"}
    text = " ".join(case[0] for case in CASES)
    missing = {name for name in STUBS.values() if f".{name}(" not in text} - elsewhere
    assert not missing
    assert set(METHODS.values()) <= set(STUBS) | set(COMPOSITES)


def test_the_same_functions_under_other_names() -> None:
    for module in (tl.math, libdevice):
        for name in module.__all__:
            function = getattr(module, name)
            assert function in COMPOSITES or function is getattr(elementwise, name)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("F.shape", "(16,)"),
        ("F.dtype", "float32"),
        ("P.dtype", "pointer<float32>"),
        ("P.dtype.element_ty", "float32"),
        ("P.type", "<[16], pointer<float32>>"),
        ("P.type.element_ty.element_ty", "float32"),
        ("G.type.scalar", "float32"),
        ("G.type.shape[1]", "8"),
        ("p.dtype.is_ptr(), f.dtype.is_ptr()", "(True, False)"),
        ("G.type.is_block(), f.type.is_block(), P.type.is_ptr(), G.type.is_floating()", "(True, False, False, False)"),
        ("G.type.get_block_shapes()", "(4, 8)"),
        ("h.dtype.name", "fp16"),
        ("h.dtype.primitive_bitwidth", "16"),
        ("b.dtype.primitive_bitwidth", "1"),
        ("h.dtype.value.name, p.dtype.value, P.type.value.shape", "('fp16', the dtype pointer<float32>, (16,))"),
        ("k.dtype.is_bf16(), k.dtype.is_fp16(), q.dtype.is_fp8()", "(True, False, True)"),
        ("u.dtype.is_int_unsigned(), i.dtype.is_int_signed(), f.dtype.is_int()", "(True, True, False)"),
        ("tl.float8e4nv is q.dtype, tl.int1 == b.dtype", "(True, True)"),
        ("f'{i} {3:02d} {tl.float32} {\"x\"!r}'", "int32 scalar 03 float32 'x'"),
        ("(1, 2) + (3,)", "(1, 2, 3)"),
        ("(*(1, 2), 3)[1:]", "(2, 3)"),
        ("3 in (1, 2, 3), 'a' not in 'abc'", "(True, False)"),
        ("min(3, 4), max((1, 7)), abs(-2), int(2.5), float('inf'), round(2.6)", "(3, 7, 2, 2, inf, 3)"),
        ("-7 // 2, -7 % 3, 2**10, 1 << 4, not 3", "(-4, 2, 1024, 16, False)"),
        ("tl.cdiv(7, 2), tl.constexpr(5).value", "(4, 5)"),
        ("math.log2(8), math.isqrt(17)", "(3.0, 4)"),
        ("i is None, None is None, i is not None", "(False, True, True)"),
        ("len((1, 2)), len(G), len('abc')", "(2, 4, 3)"),
    ],
)
def test_what_is_known_at_compile_time(
    build: Build, capsys: pytest.CaptureFixture[str], expression: str, expected: str
) -> None:
    """As a constexpr, so that numbers stay numbers."""
    source = [
        f"def kernel({', '.join(TYPES)}):\n",
        "    F, G, P = tl.broadcast_to(f, 16), tl.broadcast_to(f, (4, 8)), tl.broadcast_to(p, 16)\n",
    ]
    source += [f"    x: tl.constexpr = ({expression})\n", "    tl.static_print(f'{x}')\n"]
    filename = f"<constexpr {expression}>"
    linecache.cache[filename] = (1, None, source, filename)
    names: dict[str, Any] = {"tl": tl, "math": math}
    exec(compile("".join(source), filename, "exec"), names)
    build(names["kernel"], **TYPES)
    assert capsys.readouterr().out == expected + "\n"
