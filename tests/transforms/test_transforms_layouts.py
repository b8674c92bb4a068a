"""Layout assignment: every tensor carries a layout, ops agree on theirs, and conversions remain only where data must move.

A checker states what holds after the pass for every op; it is run over generated kernels. For kernels of practice the remaining
conversions are listed one by one, with the reason.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportUnnecessaryComparison=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

import weft.language as tl
from fuzz.case import ARRAYS, load
from fuzz.generator import generate
from sampling import every
from weft import dtypes
from weft.codegen.compile import lay_out
from weft.codegen.emit.views import view_columns
from weft.dtypes import DType
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.ir.types import layout_of, shape_of
from weft.ir.unsupported import UnsupportedOpError
from weft.layout import LinearLayout, vector
from weft.layout.families import transfer
from weft.layout.families.distributed import why_not_distributed
from weft.target import CpuTarget
from weft.transforms.layouts import AssignLayouts, VectorRules

jit = KernelFunction
TARGET = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", "", 128)
F32, I32 = PointerArgument(dtypes.float32, aligned=True), ScalarArgument(dtypes.int32)


def laid_out(kernel: KernelFunction, **arguments: Any) -> ModuleOp:
    """A kernel after the whole pipeline, checked; arguments that are not of a signature are constants."""
    signature: dict[str, Argument] = {
        name: a if isinstance(a, PointerArgument | ScalarArgument) else ConstantArgument(a)
        for name, a in arguments.items()
    }
    module = build_module(kernel, signature)
    lay_out(module, TARGET)
    check(module)
    return module


def conversions(module: ModuleOp) -> list[tile.ConvertLayoutOp]:
    """What is left to convert, in program order."""
    return [op for op in module.walk() if isinstance(op, tile.ConvertLayoutOp)]


# ---- what holds after the pass ---------------------------------------------------------------------------------------


def check(module: ModuleOp, lanes: int = 16) -> None:
    """Fails unless every tile carries a layout for this machine and every op's operands and results agree."""
    module.verify()
    for op in module.walk():
        if _in_combine(op):
            continue
        for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)):
            if shape_of(value):
                _check_layout(value, lanes)
        _check_agreement(op)


def _in_combine(op: Operation) -> bool:
    parent = op.parent_op()
    return parent is not None and (isinstance(parent, tile.ReduceOp) or _in_combine(parent))


def _check_layout(value: SSAValue, lanes: int) -> None:
    layout = layout_of(value)
    assert layout.in_dims == ("register", "lane")
    assert layout.shape == shape_of(value)
    assert layout.in_size("lane") == lanes
    assert why_not_distributed(layout) is None
    assert not layout.zero_columns("register"), "a register would be kept twice"


def _layouts(values: Any) -> set[LinearLayout]:
    return {layout_of(value) for value in values if shape_of(value)}


def _check_agreement(op: Operation) -> None:
    match op:
        case tile.ReduceOp():
            (source,) = _layouts(op.sources)
            axis = op.axis.value.data
            assert _layouts(op.results) <= {transfer.reduce(source, axis)}
        case tile.DotOp():
            a, b, acc, result = map(layout_of, (op.a, op.b, op.acc, op.result))
            assert acc == result == vector(result.shape)
            assert b == vector(b.shape)
            assert a in (vector(a.shape), vector(a.shape, order=(0, 1)))
        case tile.ConvertLayoutOp():
            assert layout_of(op.source) != layout_of(op.result)
            assert not isinstance(op.source.owner, tile.ConvertLayoutOp), "two conversions are one"
        case scf.ForOp():
            end = op.body.block.last_op
            assert end is not None
            for values in zip(op.iter_args, op.body.block.args[1:], end.operands, op.res, strict=True):
                assert len(_layouts(values)) <= 1
        case scf.WhileOp():
            before, after = op.before_region.block, op.after_region.block
            condition, end = before.last_op, after.last_op
            assert isinstance(condition, scf.ConditionOp)
            assert end is not None
            for values in zip(op.arguments, before.args, end.operands, strict=True):
                assert len(_layouts(values)) <= 1
            for values in zip(condition.args, after.args, op.res, strict=True):
                assert len(_layouts(values)) <= 1
        case scf.IfOp():
            ends = [region.block.last_op for region in op.regions if region.blocks]
            for i, result in enumerate(op.output):
                assert len(_layouts([result, *(end.operands[i] for end in ends if end is not None)])) <= 1
        case tile.ShapeOp():
            assert not shape_of(op.operands[0]) or view_columns(op) is not None, "a shape op would move data"
        case _ if tile.is_a(op, tile.Elementwise) or isinstance(
            op, tile.LoadOp | tile.StoreOp | tile.AtomicRmwOp | tile.SplatOp
        ):
            assert len(_layouts((*op.operands, *op.results))) <= 1
        case _:
            assert isinstance(op, ModuleOp | func.FuncOp | func.ReturnOp | scf.YieldOp | scf.ConditionOp | tile.TileOp)


def number_type(number: bool | int | float) -> DType:
    """The type by which a Python number is passed."""
    if isinstance(number, bool | float):
        return dtypes.bool_ if isinstance(number, bool) else dtypes.float32
    return next(d for d in (dtypes.int32, dtypes.int64, dtypes.uint64) if d.min <= number <= d.max)


@pytest.mark.parametrize("seed", every(2, range(0, 60, 4)))
def test_every_op_of_generated_kernels_agrees(seed: int, tmp_path: Path) -> None:
    """The generator's kernels, each on machines of three sizes."""
    for number in range(seed, seed + 4):
        path = tmp_path / f"seed_{number}.py"
        path.write_text(generate(number))
        case = load(path)
        signature: dict[str, Argument] = {}
        for name, (kind, *rest) in case.arguments.items():
            if kind in (*ARRAYS, "alias", "zeros", "trap"):
                signature[name] = PointerArgument(dtypes.float64 if kind == "bound" else dtypes.parse(rest[0]), True)
            elif kind == "number":
                signature[name] = ScalarArgument(number_type(rest[0]))
            else:
                signature[name] = ConstantArgument(rest[0])
        module = build_module(case.kernel, signature)
        for lanes in (16, 4, 64) if number % 4 == 0 else (16,):
            copy = module.clone()
            lay_out(copy, CpuTarget(TARGET.triple, TARGET.cpu, "", 128, lanes))
            check_lanes(copy, lanes)


def check_lanes(module: ModuleOp, lanes: int) -> None:
    """`check`, but for the layouts of dots, which `vector` gives for 16 lanes."""
    if lanes == 16:
        check(module)
        return
    module.verify()
    for op in module.walk():
        if not _in_combine(op):
            for result in op.results:
                if shape_of(result):
                    _check_layout(result, lanes)
            if not isinstance(op, tile.DotOp):
                _check_agreement(op)


# ---- kernels of practice ---------------------------------------------------------------------------------------------


@jit
def transposed_row_sums(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.trans(tl.load(x + i[:, None] * N + j[None, :]))
    w = tl.exp(v) * 2
    tl.store(out + j, tl.sum(w, 1))
    tl.store(out + N + i, tl.max(w, 0))


@jit
def shapes_of_one_load(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    """A reshape, a transposition, a new dimension, a broadcast, each read by arithmetic and reduced."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + j[None, :])
    flat = tl.reshape(v, (M * N,))
    tl.store(out + tl.arange(0, M * N), flat + 1)
    halves = tl.reshape(v, (M, 2, N // 2))
    tl.store(out + i[:, None] * 2 + tl.arange(0, 2)[None, :], tl.sum(halves * halves, axis=2))
    turned = tl.permute(halves, (1, 0, 2)) - 1
    tl.store(out + i, tl.max(tl.max(turned, axis=2), axis=0))


@jit
def outer(x: Any, y: Any, out: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(y + j)
    tl.store(out + i[:, None] * N + j[None, :], row[None, :] * 3 + (i * 2)[:, None])


@jit
def softmax_rows(x: Any, y: Any, stride: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M), tl.arange(0, N)
    at = i[:, None] * stride + j[None, :]
    v = tl.load(x + at, mask=j[None, :] < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 1)[:, None])
    tl.store(y + at, e / tl.sum(e, 1)[:, None], mask=j[None, :] < n)


@jit
def softmax_columns(x: Any, y: Any, stride: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M), tl.arange(0, N)
    at = i[:, None] * stride + j[None, :]
    v = tl.load(x + at, mask=i[:, None] < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0)[None, :])
    tl.store(y + at, e / tl.sum(e, 0)[None, :])


@jit
def layer_norm(x: Any, w: Any, b: Any, y: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    row = tl.program_id(0) * n
    v = tl.load(x + row + i, mask=i < n, other=0.0)
    centred = tl.where(i < n, v - tl.sum(v, 0) / n, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / n + 1e-5)
    result = centred * scale * tl.load(w + i, mask=i < n) + tl.load(b + i, mask=i < n)
    tl.store(y + row + i, result, mask=i < n)


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        (transposed_row_sums, {"x": F32, "out": F32, "M": 16, "N": 32}),
        (shapes_of_one_load, {"x": F32, "out": F32, "M": 8, "N": 32}),
        (outer, {"x": F32, "y": F32, "out": F32, "M": 8, "N": 64}),
        (softmax_rows, {"x": F32, "y": F32, "stride": I32, "n": I32, "M": 8, "N": 64}),
        (softmax_rows, {"x": F32, "y": F32, "stride": I32, "n": I32, "M": 1, "N": 1024}),
        (softmax_rows, {"x": F32, "y": F32, "stride": I32, "n": I32, "M": 16, "N": 4}),
        (softmax_columns, {"x": F32, "y": F32, "stride": I32, "n": I32, "M": 64, "N": 32}),
        (layer_norm, {"x": F32, "w": F32, "b": F32, "y": F32, "n": I32, "N": 1024}),
    ],
    ids=lambda p: p.name if isinstance(p, KernelFunction) else None,
)
def test_nothing_is_converted(kernel: KernelFunction, arguments: dict[str, Any]) -> None:
    """Loads decide, arithmetic and reductions follow, shape ops carry, indices are computed in the layout asked for."""
    assert conversions(laid_out(kernel, **arguments)) == []


def test_a_store_that_reads_across_lanes_is_a_conversion() -> None:
    """The off-by-one of the above: a tile and its transposition added. The tile is converted to the layout under which
    transposing it is free and gives the layout of the other operand."""

    @jit
    def both(x: Any, out: Any, N: tl.constexpr) -> None:
        i = tl.arange(0, N)
        v = tl.load(x + i[:, None] * N + i[None, :])
        tl.store(out + i[:, None] * N + i[None, :], v + tl.trans(v))

    module = laid_out(both, x=F32, out=F32, N=32)
    (only,) = conversions(module)
    assert layout_of(only.source) == vector((32, 32))
    assert layout_of(only.result) == vector((32, 32), order=(0, 1))
    (turned,) = (op for op in module.walk() if isinstance(op, tile.TransOp))
    assert turned.source is only.result


def test_a_result_whose_lanes_are_not_the_first_is_converted_in_one_register() -> None:
    """2 x 4 elements on 16 lanes: a row's maximum leaves the row in lane bit 2, memory wants it in bit 0."""
    module = laid_out(transposed_row_sums, x=F32, out=F32, M=2, N=4)
    (only,) = conversions(module)
    assert str(layout_of(only.source)) == "{register: [], lane: [0,0,1,0]} -> [dim0: 2]"
    assert str(layout_of(only.result)) == "{register: [], lane: [1,0,0,0]} -> [dim0: 2]"


@jit
def matmul(
    a: Any, b: Any, c: Any, K: Any, sa: Any, sb: Any,
    M: tl.constexpr, N: tl.constexpr, B: tl.constexpr, A_COLUMNS: tl.constexpr, B_COLUMNS: tl.constexpr,
) -> None:  # fmt: skip
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    pa = a + i[:, None] + k[None, :] * sa if A_COLUMNS else a + i[:, None] * sa + k[None, :]
    pb = b + k[:, None] + j[None, :] * sb if B_COLUMNS else b + k[:, None] * sb + j[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, B):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += B * sa if A_COLUMNS else B
        pb += B if B_COLUMNS else B * sb
    tl.store(c + i[:, None] * N + j[None, :], acc)


@pytest.mark.parametrize("a_columns", [False, True])
@pytest.mark.parametrize("b_columns", [False, True])
def test_matmul_converts_only_b_and_only_where_it_is_transposed(a_columns: bool, b_columns: bool) -> None:
    """The micro-kernel reads vectors of b's rows and elements of a, so a may lie either way."""
    sizes = {"M": 32, "N": 64, "B": 16, "A_COLUMNS": a_columns, "B_COLUMNS": b_columns}
    found = conversions(laid_out(matmul, a=F32, b=F32, c=F32, K=I32, sa=I32, sb=I32, **sizes))
    assert [layout_of(op.result) for op in found] == [vector((16, 64))] * b_columns
    assert [layout_of(op.source) for op in found] == [vector((16, 64), order=(0, 1))] * b_columns
    assert all(isinstance(op.parent_op(), scf.ForOp) for op in found)


@jit
def attention(q: Any, k: Any, v: Any, out: Any, length: Any, D: tl.constexpr, M: tl.constexpr, B: tl.constexpr) -> None:
    i, d, j = tl.arange(0, M), tl.arange(0, D), tl.arange(0, B)
    start = tl.program_id(0) * M
    queries = tl.load(q + (start + i)[:, None] * D + d[None, :])
    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    acc = tl.zeros((M, D), tl.float32)
    for n in range(0, length, B):
        keys = tl.load(k + (n + j)[None, :] * D + d[:, None])
        scores = tl.dot(queries, keys)
        new = tl.maximum(top, tl.max(scores, 1))
        share = tl.exp2(top - new)
        p = tl.exp2(scores - new[:, None])
        total = total * share + tl.sum(p, 1)
        acc = acc * share[:, None]
        acc = tl.dot(p, tl.load(v + (n + j)[:, None] * D + d[None, :]), acc)
        top = new
    tl.store(out + (start + i)[:, None] * D + d[None, :], acc / total[:, None])


def test_attention_converts_the_keys_and_what_an_exponential_takes() -> None:
    """Keys are read along d, which for the first product is the depth: b transposed. The probabilities are the first
    product's result and the second's left operand, both row-major; row statistics broadcast in registers, and their
    exponential is computed in full ones."""
    module = laid_out(attention, q=F32, k=F32, v=F32, out=F32, length=I32, D=64, M=32, B=16)
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    keys, filled, repeated = conversions(module)
    assert all(op.parent_op() is loop for op in (keys, filled, repeated))
    assert keys.source.name_hint == "keys"
    assert shape_of(keys.result) == (64, 16)
    assert layout_of(filled.result) == vector((32,))
    assert layout_of(repeated.result) == layout_of(filled.source) == transfer.reduce(vector((32, 16)), 1)
    carried = {shape_of(a): layout_of(a) for a in loop.body.block.args[1:]}
    assert carried[32, 64] == vector((32, 64))
    assert carried[(32,)] == transfer.reduce(vector((32, 16)), 1)


# ---- anchors and loops -----------------------------------------------------------------------------------------------

Parse = Callable[[str], ModuleOp]


def assigned(parse: Parse, parameters: str, body: str, lanes: int = 4) -> dict[str, str]:
    """The layouts by name after this pass alone."""
    module = parse(f"builtin.module {{ func.func @k({parameters}) {{ {body}\n func.return }} }}")
    AssignLayouts(VectorRules(lanes)).apply(Context(), module)
    module.verify()
    results = (r for op in module.walk() for r in op.results)
    return {r.name_hint: str(layout_of(r)) for r in results if r.name_hint and shape_of(r)}


def two_dimensional(rows: int, columns: int, row_stride: str, column_stride: str) -> str:
    """The pointers ``%p`` and the load ``%v`` of a tile with these strides, values or constants."""
    shape = f"{rows}x{columns}"
    lines = [
        f"%i = tile.arange 0 {rows} : tensor<{rows}xi32>",
        f"%j = tile.arange 0 {columns} : tensor<{columns}xi32>",
        f"%i1 = tile.expand_dims %i 1 : tensor<{rows}xi32> to tensor<{rows}x1xi32>",
        f"%j1 = tile.expand_dims %j 0 : tensor<{columns}xi32> to tensor<1x{columns}xi32>",
        f"%i2 = tile.broadcast %i1 : tensor<{rows}x1xi32> to tensor<{shape}xi32>",
        f"%j2 = tile.broadcast %j1 : tensor<1x{columns}xi32> to tensor<{shape}xi32>",
    ]
    scaled: list[str] = []
    for name, stride in (("i", row_stride), ("j", column_stride)):
        scaled.append(f"%{name}2" if stride == "1" else f"%{name}3")
        if stride.isdigit():
            lines.append(f"%s{name} = tile.constant {stride} : tensor<{shape}xi32>")
        else:
            lines.append(f"%s{name} = tile.splat {stride} : i32 to tensor<{shape}xi32>")
        lines.append(f'%{name}3 = tile.binary "mul" %{name}2, %s{name} : tensor<{shape}xi32>')
    return "\n".join(
        [
            *lines,
            f'%o = tile.binary "add" {scaled[0]}, {scaled[1]} : tensor<{shape}xi32>',
            f"%b = tile.splat %x : !tile.ptr<f32> to tensor<{shape}x!tile.ptr<f32>>",
            f"%p = tile.addptr %b, %o : tensor<{shape}x!tile.ptr<f32>>, tensor<{shape}xi32> "
            f"to tensor<{shape}x!tile.ptr<f32>>",
            f"%v = tile.load %p : tensor<{shape}x!tile.ptr<f32>> to tensor<{shape}xf32>",
        ]
    )


@pytest.mark.parametrize(
    ("strides", "expected"),
    [
        # 8 x 4 on 4 lanes. Along a row: the column's bits 1, 2 in the lanes, the row's in the registers.
        (("%n", "1"), "{register: [(1,0),(2,0),(4,0)], lane: [(0,1),(0,2)]} -> [dim0: 8, dim1: 4]"),
        # Along a column: row bits 1, 2 in the lanes; then row bit 4, then the columns.
        (("1", "%n"), "{register: [(4,0),(0,1),(0,2)], lane: [(1,0),(2,0)]} -> [dim0: 8, dim1: 4]"),
        # Contiguous nowhere: the default, row-major.
        (("%n", "2"), "{register: [(1,0),(2,0),(4,0)], lane: [(0,1),(0,2)]} -> [dim0: 8, dim1: 4]"),
    ],
)
def test_a_load_puts_the_contiguous_dimension_into_the_lanes(
    parse: Parse, strides: tuple[str, str], expected: str
) -> None:
    layouts = assigned(parse, "%x: !tile.ptr<f32>, %n: i32", two_dimensional(8, 4, *strides))
    assert layouts["v"] == layouts["p"] == expected


def test_a_gather_stays_where_its_indices_are(parse: Parse) -> None:
    """Pointers computed from a tile that was loaded column by column: nothing is contiguous, so nothing moves."""
    body = (
        two_dimensional(8, 4, "1", "%n")
        + """
        %k = tile.cast %v : tensor<8x4xf32> to tensor<8x4xi32>
        %g = tile.addptr %b, %k : tensor<8x4x!tile.ptr<f32>>, tensor<8x4xi32> to tensor<8x4x!tile.ptr<f32>>
        %w = tile.load %g : tensor<8x4x!tile.ptr<f32>> to tensor<8x4xf32>
    """
    )
    layouts = assigned(parse, "%x: !tile.ptr<f32>, %n: i32", body)
    assert layouts["w"] == layouts["v"] == "{register: [(4,0),(0,1),(0,2)], lane: [(1,0),(2,0)]} -> [dim0: 8, dim1: 4]"


def test_a_carried_tile_that_starts_free_takes_the_layout_of_the_body(parse: Parse) -> None:
    """Zeros become column-major outside the loop, because what is added to them is."""
    body = (
        two_dimensional(8, 4, "1", "%n")
        + """
        %zero = tile.constant 0.0 : tensor<8x4xf32>
        %lb = tile.constant 0 : i32
        %one = tile.constant 1 : i32
        %sum = scf.for %it = %lb to %n step %one iter_args(%acc = %zero) -> (tensor<8x4xf32>) : i32 {
          %next = tile.binary "add" %acc, %v : tensor<8x4xf32>
          scf.yield %next : tensor<8x4xf32>
        }
        %end = tile.unary "neg" %sum : tensor<8x4xf32>
    """
    )
    layouts = assigned(parse, "%x: !tile.ptr<f32>, %n: i32", body)
    assert layouts["sum"] == layouts["next"] == layouts["end"] == layouts["v"]
    assert "convert_layout" not in layouts.values()


def test_a_carried_tile_that_starts_somewhere_stays_there(parse: Parse) -> None:
    """Row-major at the start, column-major in the body: one conversion where the body yields, none elsewhere."""
    body = (
        two_dimensional(8, 4, "%n", "1").replace("%v =", "%first =")
        + """
        %lb = tile.constant 0 : i32
        %one = tile.constant 1 : i32
        %sum = scf.for %it = %lb to %n step %one iter_args(%acc = %first) -> (tensor<8x4xf32>) : i32 {
          %turned = tile.reshape %acc : tensor<8x4xf32> to tensor<4x8xf32>
          %next = tile.trans %turned [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>
          scf.yield %next : tensor<8x4xf32>
        }
    """
    )
    module = parse(f"builtin.module {{ func.func @k(%x: !tile.ptr<f32>, %n: i32) {{ {body}\n func.return }} }}")
    AssignLayouts(VectorRules(4)).apply(Context(), module)
    module.verify()
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    assert layout_of(loop.res[0]) == layout_of(loop.iter_args[0]) == vector((8, 4), 4)
    (only,) = conversions(module)
    assert only.parent_op() is loop


def test_a_second_run_is_refused(parse: Parse) -> None:
    body = (
        two_dimensional(8, 4, "%n", "1")
        + """
        %t = tile.trans %v [1, 0] : tensor<8x4xf32> to tensor<4x8xf32>
        %r = tile.reshape %t : tensor<4x8xf32> to tensor<8x4xf32>
        %s = tile.binary "add" %r, %v : tensor<8x4xf32>
    """
    )
    module = parse(f"builtin.module {{ func.func @k(%x: !tile.ptr<f32>, %n: i32) {{ {body}\n func.return }} }}")
    AssignLayouts(VectorRules(4)).apply(Context(), module)
    assert conversions(module)
    with pytest.raises(UnsupportedOpError) as caught:
        AssignLayouts(VectorRules(4)).apply(Context(), module)
    assert str(caught.value) == "tile.convert_layout stands in the module before layouts are assigned"


def test_long_chains_of_free_values(parse: Parse) -> None:
    """As many ops as an unrolled loop makes, cloned into the layout in which the last one is used: none keeps the default."""
    chain = ["%c0 = tile.arange 0 32 : tensor<32xi32>"]
    chain += [f'%c{k + 1} = tile.binary "xor" %c{k}, %c0 : tensor<32xi32>' for k in range(1000)]
    body = f"""
        {
        '''
        '''.join(chain)
    }
        {two_dimensional(8, 4, "1", "%n")}
        %square = tile.reshape %c1000 : tensor<32xi32> to tensor<8x4xi32>
        %wide = tile.cast %square : tensor<8x4xi32> to tensor<8x4xf32>
        %sum = tile.binary "add" %v, %wide : tensor<8x4xf32>
    """
    layouts = assigned(parse, "%x: !tile.ptr<f32>, %n: i32", body)
    assert layouts["sum"] == layouts["v"]


# ---- nests ----------------------------------------------------------------------------------------------------------


def _addition(x: Any, _n: Any) -> Any:
    return x + 1.0


def _loops(inner: KernelFunction) -> KernelFunction:
    """A helper of eight nested loops around another."""

    def around(x: Any, n: Any) -> Any:
        for _0 in range(n):
            for _1 in range(n):
                for _2 in range(n):
                    for _3 in range(n):
                        for _4 in range(n):
                            for _5 in range(n):
                                for _6 in range(n):
                                    for _7 in range(n):
                                        x = inner(x, n)
        return x

    return jit(around)


eight = _loops(jit(_addition))
sixteen = _loops(eight)
twenty_four = _loops(sixteen)


@jit
def nested(x: Any, n: Any, N: tl.constexpr) -> None:
    """24 loops that carry a tile without a layout of its own."""
    tl.store(x + tl.arange(0, N), twenty_four(tl.zeros((N,), tl.float32), n))


def test_a_deep_nest_is_laid_out_in_time_that_grows_with_its_depth() -> None:
    """Repeating every loop's body until layouts agree takes 2 ** 24 visits of the innermost, which would not end."""
    assert conversions(laid_out(nested, x=F32, n=I32, N=128)) == []
