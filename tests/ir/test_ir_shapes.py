"""Every op refuses operands and results whose shapes do not fit together.

Each op of the FileCheck files is valid. One operand or result at a time gets another shape: a size doubled, a dimension
more, a dimension less, a scalar. The verifier refuses all of these ops, but takes those whose new shapes fit (`FITS`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.test_value import create_ssa_value

from weft.ir import tile
from weft.ir.tile import Tile, TileOp
from weft.ir.types import element_of, shape_of, tensor

Parse = Callable[[str], ModuleOp]

FILES = {p.stem: p for p in sorted((Path(__file__).parent / "filecheck").glob("*.mlir"))}


def reduced(op: Operation) -> bool:
    shapes = {shape_of(source) for source in op.operands}
    assert isinstance(op, tile.ReduceOp)
    axis = op.axis.value.data
    if len(shapes) > 1:
        return False
    (shape,) = shapes
    left = (*shape[:axis], *shape[axis + 1 :])
    return axis < len(shape) and all(shape_of(result) == left for result in op.results)


def grown(op: Operation) -> bool:
    old, new = shape_of(op.operands[0]), shape_of(op.results[0])
    return len(old) == len(new) > 0 and all(m in (1, n) for m, n in zip(old, new, strict=True))


def recounted(op: Operation) -> bool:
    old, new = shape_of(op.operands[0]), shape_of(op.results[0])
    return old != () != new and math.prod(old) == math.prod(new)


def scanned(op: Operation) -> bool:
    return len({shape_of(value) for value in (*op.operands, *op.results)}) == 1


def gathered(op: Operation) -> bool:
    assert isinstance(op, tile.GatherOp)
    source, index, axis = list(shape_of(op.source)), list(shape_of(op.index)), op.axis.value.data
    if shape_of(op.result) != tuple(index) or not len(source) == len(index) > axis:
        return False
    del source[axis], index[axis]
    return source == index


def counted(op: Operation) -> bool:
    """Any number of bins; the mask has the source's shape."""
    source, *masks = map(shape_of, op.operands)
    return len(source) == len(shape_of(op.results[0])) == 1 and all(mask == source for mask in masks)


FITS: Final[dict[type[Operation], Callable[[Operation], bool]]] = {
    tile.ConstantOp: lambda op: True,
    tile.PrintOp: lambda op: True,
    tile.SplatOp: lambda op: shape_of(op.operands[0]) == () != shape_of(op.results[0]),
    tile.BroadcastOp: grown,
    tile.ReshapeOp: recounted,
    tile.ReduceOp: reduced,
    tile.ScanOp: scanned,
    tile.GatherOp: gathered,
    tile.HistogramOp: counted,
}
"""Ops that some of the new shapes fit, and which."""


def other_shapes(type_: Attribute) -> Iterator[Attribute]:
    """The type with other shapes, without a layout."""
    shape, element = shape_of(type_), element_of(type_)
    changed = {(*shape, 2), (2, *shape), (), *((*shape[:i], 2 * n, *shape[i + 1 :]) for i, n in enumerate(shape))}
    changed |= {(*shape[:i], *shape[i + 1 :]) for i in range(len(shape))}
    for new in sorted(changed - {shape}):
        yield tensor(element, new)


def mutants(op: Operation) -> Iterator[tuple[str, Operation]]:
    """The op with one operand or result of another shape, and what was changed."""

    def copy(operands: list[SSAValue], results: list[Attribute]) -> Operation:
        regions = [region.clone() for region in op.regions]
        return type(op).create(operands=operands, properties=op.properties, result_types=results, regions=regions)

    operands: list[SSAValue] = [create_ssa_value(v.type) for v in op.operands]
    results = list(op.result_types)
    for i, operand in enumerate(operands):
        for type_ in other_shapes(operand.type):
            changed = [*operands[:i], create_ssa_value(type_), *operands[i + 1 :]]
            yield f"operand {i}: {type_}", copy(changed, results)
    for i, result in enumerate(results):
        for type_ in other_shapes(result):
            yield f"result {i}: {type_}", copy(operands, [*results[:i], type_, *results[i + 1 :]])


@pytest.mark.parametrize("name", FILES)
def test_other_shapes_are_refused(name: str, parse: Parse) -> None:
    module = parse(FILES[name].read_text())
    ops = [op for op in module.walk() if isinstance(op, TileOp) and op.name == f"tile.{name}"]
    assert ops
    refused = 0
    for op in ops:
        for change, mutant in mutants(op):
            if type(op) in FITS and FITS[type(op)](mutant):
                mutant.verify()
                continue
            with pytest.raises(VerifyException) as error:
                mutant.verify()
                pytest.fail(f"{op.name} takes {change}")
            assert op.name in str(error.value) or "does not verify" in str(error.value)
            refused += 1
    assert refused or FITS.get(type(ops[0])) or name == "barrier"  # which has no shapes


def test_every_op_is_walked() -> None:
    """`tile.yield` is checked by the op around it (`tests/ir/invalid/reduce.mlir`)."""
    assert set(FILES) == {op.name.removeprefix("tile.") for op in Tile.operations} - {"yield"}
