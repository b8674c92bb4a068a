"""The steps of pointers along dimensions, as sums of products, stated for the addresses of kernels."""

from __future__ import annotations

from typing import Any

import pytest

import weft.language as tl
from weft import dtypes
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.ir.direct import ops_in
from weft.ir.types import shape_of
from weft.transforms.affine import step_along
from weft.transforms.axis import analyse


@KernelFunction
def one(x: Any, a: Any, b: Any, KIND: tl.constexpr) -> None:
    i = tl.arange(0, 8)
    if KIND == "product":
        tl.load(x + (tl.program_id(0) * 8 + i) * a)
    elif KIND == "difference":
        tl.load(x + (a - i * b))
    elif KIND == "sum":
        tl.load(x + i * a + i * 3)
    elif KIND == "twice":
        tl.load(x + b * (i * a))
    elif KIND == "wide":
        tl.load(x + (i * a).to(tl.int64) * b)
    elif KIND == "square":
        tl.load(x + i * i * a)
    elif KIND == "quotient":
        tl.load(x + (i * a) // b)
    elif KIND == "unsigned":
        tl.load(x + i.to(tl.uint32) * a.to(tl.uint32))
    elif KIND == "narrow":
        tl.load(x + i.to(tl.int16) * a.to(tl.int16))
    elif KIND == "doubled":
        at = i * a
        for _ in tl.static_range(40):
            at = at + at
        tl.load(x + at)
    else:
        tl.load(x + (i * a).to(tl.int16))


@KernelFunction
def two(x: Any, a: Any, b: Any, KIND: tl.constexpr) -> None:
    i, j = tl.arange(0, 4), tl.arange(0, 8)
    if KIND == "rows":
        tl.load(x + (i * a)[:, None] + (j * b)[None, :])
    elif KIND == "trans":
        tl.load(tl.trans(x + (i * a)[:, None] + j[None, :]))
    else:
        tl.load(x + (i * a)[:, None] * j[None, :])


def steps(kernel: KernelFunction, kind: str) -> list[str | None]:
    """What each index along each dimension of the loaded pointers adds to them, of float32, in the arguments' names."""
    number = ScalarArgument(dtypes.int32)
    signature: dict[str, Argument] = {"x": PointerArgument(dtypes.float32), "a": number, "b": number}
    module = build_module(kernel, signature | {"KIND": ConstantArgument(kind)})
    (function,) = module.ops
    facts = analyse(function)  # type: ignore[arg-type] # the module's only function
    names = dict(zip(function.body.block.args, "xab", strict=True))  # type: ignore[attr-defined] # likewise
    (load,) = [op for op in ops_in(module) if isinstance(op, tile.LoadOp)]

    def spelled(uniform: Any) -> str:
        while uniform not in names:
            uniform = uniform.owner.operands[0]
        return names[uniform]

    found: list[str | None] = []
    for dimension in range(len(shape_of(load.pointer))):
        step = step_along(load.pointer, dimension, facts)
        products = None if step is None else [[str(each.factor), *map(spelled, each.uniform)] for each in step]
        found.append(None if products is None else " + ".join(" * ".join(product) for product in products))
    return found


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("product", "4 * a"),
        ("difference", "-4 * b"),
        ("sum", "4 * a + 12"),
        ("twice", "4 * a * b"),
        ("wide", "4 * a * b"),
        ("square", None),
        ("quotient", None),
        ("unsigned", None),
        ("narrow", None),
        ("cut", None),
        ("doubled", None),
    ],
)
def test_steps_of_one_dimension(kind: str, expected: str | None) -> None:
    """Unsigned and narrow numbers wrap in real kernels."""
    assert steps(one, kind) == [expected]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("rows", ["4 * a", "4 * b"]), ("trans", ["4", "4 * a"]), ("product", [None, None])],
)
def test_steps_of_two_dimensions(kind: str, expected: list[str | None]) -> None:
    """A product of both dimensions has another step in each row."""
    assert steps(two, kind) == expected
