"""What the native interpreter's key on disk is computed from: every module that its text follows from."""

from __future__ import annotations

import ast
from pathlib import Path

import weft
from weft.emulator.native.code import SOURCES

ROOT = Path(weft.__file__).parents[1]
NATIVE = "weft.emulator.native"


def imported(module: str) -> set[str]:
    """The modules of weft that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("weft"):
            inside = {f"{node.module}.{name.name}" for name in node.names}
            modules = {name for name in inside if ROOT.joinpath(*name.split(".")).with_suffix(".py").exists()}
            found |= modules or {node.module}
    return found


def test_the_key_is_of_all_that_the_text_follows_from() -> None:
    """A module that is left out could change without new code: that on disk would be taken."""
    seen: set[str] = set()
    pending = {f"{NATIVE}.interpreter"}
    while pending:
        module = pending.pop()
        seen.add(module)
        pending |= imported(module) - seen
    assert seen == {f"{NATIVE}.{name}" for name in SOURCES}
