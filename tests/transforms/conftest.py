"""Parsing and running tile IR for the tests of passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.context import Context
from xdsl.dialects import builtin, func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from weft.ir.tile import Tile


@pytest.fixture(scope="session")
def parse() -> Callable[[str], ModuleOp]:
    """A module from its text."""
    context = Context()
    for dialect in (builtin.Builtin, func.Func, scf.Scf, Tile):
        context.load_dialect(dialect)

    def parse_text(text: str) -> ModuleOp:
        module = Parser(context, text).parse_module()
        module.verify()
        return module

    return parse_text


@pytest.fixture(scope="session")
def kernel(parse: Callable[[str], ModuleOp]) -> Callable[[str, str], ModuleOp]:
    """A module of one function from its parameters and the lines of its body, without the return."""

    def make(parameters: str, body: str) -> ModuleOp:
        return parse(f"builtin.module {{ func.func @k({parameters}) {{ {body}\n func.return }} }}")

    return make


@pytest.fixture(scope="session")
def body_of() -> Callable[[ModuleOp], str]:
    """The lines of the one function's body, without the return and without indentation."""

    def lines(module: ModuleOp) -> str:
        text = [line.strip() for line in str(module).splitlines()]
        return "\n".join(text[2:-3])

    return lines
