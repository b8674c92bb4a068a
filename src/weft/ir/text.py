"""Reads textual tile IR: modules of `func`, `scf`, `tile`, `cpu` and `gpu` ops, as `str` prints them.

`str(module)` writes the text. What `parse` reads prints as the same text; source locations are not part of it.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from weft.ir.cpu import Cpu
from weft.ir.gpu import Gpu
from weft.ir.tile import Tile


def parse(text: str, name: str = "<text>") -> ModuleOp:
    """Return the verified module of ``text``. `ValueError` says what is wrong with it, after ``name`` and, for a syntax error,
    line and column."""
    context = Context()
    for dialect in (Builtin, Func, Scf, Tile, Cpu, Gpu):
        context.load_dialect(dialect)
    try:
        module = Parser(context, text, name).parse_module()
    except ParseError as error:
        line, column = (
            text.count("\n", 0, error.span.start) + 1,
            error.span.start - text.rfind("\n", 0, error.span.start),
        )
        raise ValueError(f"{name}:{line}:{column}: {error.msg}") from None
    try:
        module.verify()
    except VerifyException as error:
        raise ValueError(f"{name}: {error}") from None
    return module
