"""The effects that passes ask for: of ops that declare them, of accesses, and of ops with regions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from weft.transforms.effects import Effect, effect_of


@irdl_op_definition
class Silent(IRDLOperation):
    """Declares nothing."""

    name = "test.silent"


@irdl_op_definition
class Computes(IRDLOperation):
    name = "test.computes"
    traits = traits_def(Pure())


@irdl_op_definition
class Reads(IRDLOperation):
    name = "test.reads"
    traits = traits_def(MemoryReadEffect())


@irdl_op_definition
class Writes(IRDLOperation):
    name = "test.writes"
    traits = traits_def(MemoryWriteEffect())


@irdl_op_definition
class Updates(IRDLOperation):
    name = "test.updates"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Silent, Effect.WRITE),
        (Computes, Effect.NONE),
        (Reads, Effect.READ),
        (Writes, Effect.WRITE),
        (Updates, Effect.WRITE),
    ],
)
def test_what_an_op_declares(kind: type[Operation], expected: Effect) -> None:
    assert [effect_of(kind()) for _ in range(2)] == [expected, expected]  # the second time from the table


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ("", Effect.NONE),
        ("%y = tile.load %p : !tile.ptr<f32> to f32", Effect.READ),
        ("%y = tile.load %p volatile : !tile.ptr<f32> to f32", Effect.WRITE),
        ("%y = tile.load %p : !tile.ptr<f32> to f32\ntile.store %p, %y : !tile.ptr<f32>, f32", Effect.WRITE),
    ],
)
def test_a_branch_does_what_its_ops_do(kernel: Callable[[str, str], ModuleOp], inner: str, expected: Effect) -> None:
    module = kernel("%p: !tile.ptr<f32>, %flag: i1", f"scf.if %flag {{ {inner} }}")
    (branch,) = (op for op in module.walk() if op.name == "scf.if")
    assert effect_of(branch) is expected
