"""Shared by the tests of the IR: parsing and printing textual tile IR."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import TypeAlias

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.dialects.test import Test
from xdsl.parser import Parser
from xdsl.printer import Printer

from weft.ir.tile import Tile

Parse: TypeAlias = Callable[[str], ModuleOp]
Print: TypeAlias = Callable[..., str]


@pytest.fixture(scope="session")
def parse() -> Parse:
    """``parse(text)``: the module, not yet verified."""
    context = Context()
    for dialect in (Builtin, Func, Scf, Test, Tile):
        context.load_dialect(dialect)
    return lambda text: Parser(context, text).parse_module()


@pytest.fixture(scope="session")
def print_module() -> Print:
    """``print_module(module, generic=False)``: its text, in the ops' own or in MLIR's generic format."""

    def run(module: ModuleOp, *, generic: bool = False) -> str:
        stream = StringIO()
        Printer(stream, print_generic_format=generic).print_op(module)
        return stream.getvalue() + "\n"

    return run
