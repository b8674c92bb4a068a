"""Source positions on ops."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, NameLoc, StringAttr, UnknownLoc
from xdsl.printer import Printer

from weft.ir.location import Position, describe, location, positions
from weft.ir.tile import ProgramIdOp

Parse = Callable[[str], ModuleOp]

INNER = Position("lib.py", 7, 4, "gelu")
MIDDLE = Position("lib.py", 20, 8, "mlp")
OUTER = Position("k.py", 3, 0, "kernel")


@pytest.mark.parametrize("chain", [(), (OUTER,), (INNER, OUTER), (INNER, MIDDLE, OUTER)])
def test_a_chain_is_read_back(chain: tuple[Position, ...]) -> None:
    op = ProgramIdOp(0)
    op.location = location(chain)
    assert positions(op) == chain


def test_a_chain_is_mlirs_call_sites(parse: Parse) -> None:
    """The innermost position is the callee; MLIR's own syntax, which other tools read."""
    op = ProgramIdOp(0)
    op.location = location([INNER, OUTER])
    stream = StringIO()
    Printer(stream, print_debuginfo=True).print_op(op)
    expected = 'loc(callsite("gelu"("lib.py":7:4) at "kernel"("k.py":3:0)))'
    assert stream.getvalue() == f"%0 = tile.program_id 0 {expected}"


def test_positions_survive_cloning() -> None:
    op = ProgramIdOp(0)
    op.location = location([INNER, OUTER])
    assert positions(op.clone()) == (INNER, OUTER)


def test_describe_counts_lines_and_columns_from_one() -> None:
    op = ProgramIdOp(0)
    assert describe(op) == "an unknown position"
    op.location = location([OUTER])
    assert describe(op) == "k.py:3:1 in kernel"
    op.location = location([INNER, MIDDLE, OUTER])
    assert describe(op) == "lib.py:7:5 in gelu, called from lib.py:20:9 in mlp, called from k.py:3:1 in kernel"


def test_locations_of_other_forms() -> None:
    """A bare position stands in an unknown function; what we do not write ourselves says nothing."""
    op = ProgramIdOp(0)
    op.location = FileLineColLoc(StringAttr("k.py"), IntAttr(3), IntAttr(2))
    assert positions(op) == (Position("k.py", 3, 2, "?"),)
    op.location = NameLoc(StringAttr("kernel"), UnknownLoc())
    assert positions(op) == ()


def test_an_op_made_without_a_location_has_none() -> None:
    assert positions(ProgramIdOp(0)) == ()
    assert location([]) == UnknownLoc()
