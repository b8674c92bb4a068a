"""The textual form of each op, and what the verifier says about each mistake.

``filecheck/OP.mlir`` is parsed, verified, printed and matched against its own CHECK lines; printed text, and generic text, must
read back as the same module. ``invalid/OP.mlir`` holds functions between ``// -----`` lines, each wrong in one way under
the CHECK line with the whole message.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import ParseError, VerifyException

from filechecking import assert_filecheck
from weft.ir.tile import Tile, TileOp

Parse = Callable[[str], ModuleOp]
Print = Callable[..., str]

HERE = Path(__file__).parent
VALID = sorted((HERE / "filecheck").glob("*.mlir"))
INVALID = sorted((HERE / "invalid").glob("*.mlir"))


def stem(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", VALID, ids=stem)
def test_textual_form(path: Path, parse: Parse, print_module: Print) -> None:
    module = parse(path.read_text(encoding="utf-8"))
    module.verify()
    text = print_module(module)
    assert_filecheck(path, text)
    assert print_module(parse(text)) == text
    if path.stem != "constant":  # xDSL (0.74) cannot read its own generic text of infinities and exponents
        assert print_module(parse(print_module(module, generic=True))) == text


@pytest.mark.parametrize("path", INVALID, ids=stem)
def test_diagnostics(path: Path, parse: Parse) -> None:
    messages: list[str] = []
    cases = path.read_text(encoding="utf-8").split("// -----\n")
    for case in cases:
        assert case.count("// CHECK") == 1, f"one CHECK line in:\n{case}"
        with pytest.raises((VerifyException, ParseError)) as error:
            parse(case).verify()
        message = error.value.msg if isinstance(error.value, ParseError) else str(error.value)
        messages.append(" ".join(message.split()))
    assert_filecheck(path, "\n".join(messages) + "\n", full_lines=True)


def test_each_op_has_its_files() -> None:
    """`tile.yield` stands in reduce.mlir; an op is verified by code of its own where its class or a base of it says how."""
    names = {op.name.removeprefix("tile."): op for op in Tile.operations}
    assert {p.stem for p in VALID} == set(names) - {"yield"}
    plain = (IRDLOperation.verify_, TileOp.verify_)
    assert {p.stem for p in INVALID} >= {name for name, op in names.items() if op.verify_ not in plain}
    assert {p.stem for p in INVALID} <= set(names)
