"""The module that the frontend builds: its function, names, locations, and the shape of its control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

import weft.language as tl
from weft.dtypes import float32, int32, int64, uint32
from weft.frontend import (
    CompilationError,
    ConstantArgument,
    KernelFunction,
    PointerArgument,
    ScalarArgument,
    build_module,
)
from weft.ir import tile
from weft.ir.location import Position, positions
from weft.ir.types import pointer, scalar
from weft.semantics import Semantics, triton, triton_3_9

jit = KernelFunction
Build = Callable[..., ModuleOp]
PTR = PointerArgument(float32)


def ops(module: ModuleOp, kind: type[Operation]) -> list[Any]:
    return [op for op in module.walk() if isinstance(op, kind)]


@jit
def signature_kernel(a: Any, n: Any, b: Any, BLOCK: tl.constexpr, one: Any, m: Any, s: Any = 2.5) -> None:
    tl.store(a, n + m + BLOCK + one)


def test_function_and_arguments() -> None:
    signature = {
        "a": PointerArgument(float32, aligned=True),
        "n": ScalarArgument(int32, divisible=True),
        "b": PointerArgument(int64),
        "BLOCK": ConstantArgument(64),
        "one": ConstantArgument(1),
        "m": ScalarArgument(uint32),
    }
    module = build_module(signature_kernel, signature)
    module.verify()
    (function,) = ops(module, FuncOp)
    assert function.sym_name.data == "signature_kernel"
    arguments = list(function.body.block.args)
    assert [a.name_hint for a in arguments] == ["a", "n", "b", "m"]
    assert [a.type for a in arguments] == [pointer(float32), scalar(int32), pointer(int64), scalar(uint32)]
    attributes = [attribute.data for attribute in function.arg_attrs.data]
    assert [a["tile.name"] for a in attributes] == [StringAttr(n) for n in ("a", "n", "b", "m")]
    assert [a.get("tile.divisibility") for a in attributes] == [IntegerAttr(16, 64), IntegerAttr(16, 64), None, None]


@jit
def helper(x: Any) -> Any:
    y = x * 2
    return y + 1


@jit
def caller(p: Any, n: Any) -> None:
    total = helper(n) - 3
    tl.store(p, total)


def test_locations_are_the_chain_of_calls(build: Build) -> None:
    module = build(caller, p=PTR, n=int32)
    first = {op.kind.data: positions(op) for op in ops(module, tile.BinaryOp)}
    line, call = helper.first_line, caller.first_line
    inlined = Position(__file__, call + 2, len("    total = "), "caller")
    assert first == {
        "mul": (Position(__file__, line + 2, len("    y = "), "helper"), inlined),
        "add": (Position(__file__, line + 3, len("    return "), "helper"), inlined),
        "sub": (Position(__file__, call + 2, len("    total = "), "caller"),),
    }
    assert all(positions(op) for op in ops(module, tile.TileOp))


def test_names_are_the_variables(build: Build) -> None:
    module = build(caller, p=PTR, n=int32)
    assert {op.kind.data: op.result.name_hint for op in ops(module, tile.BinaryOp)} == {
        "mul": "y",
        "add": None,
        "sub": "total",
    }


@jit
def loop_kernel(p: Any, n: Any, FLAG: tl.constexpr) -> None:
    scale = tl.load(p)
    total = 0.0
    unused = 1  # pyright: ignore[reportUnusedVariable]
    for i in range(n):
        twice = scale * 2
        if FLAG:
            scale = scale  # noqa: PLW0127 - unchanged
        unused = i  # noqa: F841 - a loop must not carry it  # pyright: ignore[reportUnusedVariable]
        total += twice
    tl.store(p, total)


@pytest.mark.parametrize("flag", [True, False])
def test_loops_carry_what_changes_and_is_read(build: Build, flag: bool) -> None:
    (loop,) = ops(build(loop_kernel, p=PTR, n=int32, FLAG=flag), scf.ForOp)
    assert [a.name_hint for a in loop.iter_args] == ["total"]
    assert [a.name_hint for a in loop.body.block.args] == ["i", "total"]
    assert [r.name_hint for r in loop.res] == ["total"]
    assert loop.lb.type == scalar(int32)


@jit
def branch_kernel(p: Any, n: Any) -> None:
    x = n
    if n > 0:
        scratch = n * 2
        x = scratch + 1
    tl.store(p, x)


def test_branches_yield_what_is_read_later(build: Build) -> None:
    (branch,) = ops(build(branch_kernel, p=PTR, n=int32), scf.IfOp)
    assert [r.name_hint for r in branch.results] == ["x"]


@jit
def guard_kernel(p: Any, n: Any) -> None:
    if tl.program_id(0) >= n:
        return
    tl.store(p, 1.0)


def test_an_early_return_nests_the_rest_once(build: Build) -> None:
    module = build(guard_kernel, p=PTR, n=int32)
    (branch,) = ops(module, scf.IfOp)
    (store,) = ops(module, tile.StoreOp)
    assert store.parent_block() is branch.false_region.block
    assert [type(op) for op in branch.true_region.block.ops] == [scf.YieldOp]


@jit
def static_kernel(p: Any, n: Any, KIND: tl.constexpr) -> None:
    if KIND == "a" or n > 0:
        x = 1.0
    else:
        tl.static_assert(False, "never compiled")
        x = 2.0
    for i in tl.static_range(3):
        x += i
    y = x if KIND != 3 else tl.cast(x, tl.int32)
    tl.store(p, y)


def test_static_control_flow_leaves_no_trace(build: Build) -> None:
    module = build(static_kernel, p=PTR, n=int32, KIND="a")
    assert not ops(module, scf.IfOp)
    assert not ops(module, scf.ForOp)
    assert len(ops(module, tile.BinaryOp)) == 3


@jit
def wide_loop(p: Any, n: Any) -> None:
    for i in range(0, n, 2):
        tl.store(p + i, 1.0)


@pytest.mark.parametrize(("dtype", "counted"), [(int32, int32), (int64, int64), (uint32, int64)])
def test_loops_count_in_signless_integers(build: Build, dtype: Any, counted: Any) -> None:
    (loop,) = ops(build(wide_loop, p=PTR, n=dtype), scf.ForOp)
    assert loop.body.block.args[0].type == scalar(counted)


@jit
def promotes(p: Any, a: Any, b: Any) -> None:
    tl.store(p, a / b)


def test_the_semantics_decides() -> None:
    """float16 / float16 is float16 by Triton's documentation and float32 in the package."""
    from weft.dtypes import float16

    signature = {"p": PTR, "a": ScalarArgument(float16), "b": ScalarArgument(float16)}
    (document,) = ops(build_module(promotes, signature), tile.BinaryOp)
    (package,) = ops(build_module(promotes, signature, triton_3_9), tile.BinaryOp)
    assert [document.result.type, package.result.type] == [scalar(float16), scalar(float32)]


@jit
def literals(p: Any, x: Any) -> None:
    tl.store(p, x + 0.1)


def test_literals_are_rounded_to_their_type() -> None:
    """0.1 in float16 is 0x2E66 = 1638 / 2**14."""
    from weft.dtypes import float16

    module = build_module(literals, {"p": PTR, "x": ScalarArgument(float16)})
    assert [c.number for c in ops(module, tile.ConstantOp)] == [1638 / 2**14]


@jit
def defaults(p: Any, n: Any, BLOCK: tl.constexpr = 16) -> None:  # pyright: ignore[reportArgumentType]
    tl.store(p + tl.arange(0, BLOCK), n)


def test_missing_entries_take_the_default(build: Build) -> None:
    (arange,) = ops(build(defaults, p=PTR, n=int32), tile.ArangeOp)
    assert arange.end.value.data == 16


@jit
def advised(p: Any, n: Any, S: tl.constexpr, U: tl.constexpr, F: tl.constexpr) -> None:
    for i in tl.range(0, n, num_stages=S, loop_unroll_factor=U, flatten=F, warp_specialize=F):
        tl.store(p + i, 0)
    for i in tl.range(0, n, disallow_acc_multi_buffer=F, disable_licm=F):
        tl.store(p + i, 1)


def attributes_of(module: ModuleOp) -> list[dict[str, int]]:
    return [{name: a.value.data for name, a in loop.attributes.items()} for loop in ops(module, scf.ForOp)]


def test_advice_about_loops_reaches_the_ir(build: Build) -> None:
    assert attributes_of(build(advised, p=PTR, n=int32, S=3, U=4, F=True)) == [
        {"tile.num_stages": 3, "tile.loop_unroll_factor": 4, "tile.flatten": 1, "tile.warp_specialize": 1},
        {"tile.disallow_acc_multi_buffer": 1, "tile.disable_licm": 1},
    ]
    assert attributes_of(build(advised, p=PTR, n=int32, S=0, U=1, F=False)) == [
        {"tile.num_stages": 0, "tile.loop_unroll_factor": 1},
        {},
    ]
    assert attributes_of(build(advised, p=PTR, n=int32, S=None, U=None, F=False)) == [{}, {}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"S": -1, "U": 1}, "'num_stages' is at least 0, found -1"),
        ({"S": 1, "U": 0}, "'loop_unroll_factor' is at least 1, found 0"),
        ({"S": "2", "U": 1}, "'num_stages' is an integer, found '2'"),
    ],
)
def test_wrong_advice_is_refused(build: Build, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CompilationError) as caught:
        build(advised, p=PTR, n=int32, F=False, **options)
    assert caught.value.message == message


@pytest.mark.parametrize("system", [triton, triton_3_9])
def test_right_shift_of_mixed_signedness(execute: Callable[..., None], system: Semantics) -> None:
    """The document converts both sides to uint8 first: 251 >> 3 = 31. The package copies the sign of the left side: -1."""

    def shift(out: Any, x: Any, y: Any) -> None:
        tl.store(out, tl.load(x) >> tl.load(y))

    out = np.zeros(1, np.uint8)
    execute(KernelFunction(shift, system), out=out, x=np.array([-5], np.int8), y=np.array([3], np.uint8))
    assert out.tolist() == [31 if system is triton else 255]
