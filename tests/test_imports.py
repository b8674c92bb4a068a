"""No module imports a package above it by a name in a string.

import-linter checks the import statements, those under ``TYPE_CHECKING`` and inside functions included, against the layers in
pyproject.toml. It cannot see ``importlib.import_module("weft.report")``. These tests read the same layers and check the strings.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import weft

SOURCE: Final = Path(weft.__file__).parent
PROJECT: Final[dict[str, Any]] = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
LINTER: Final[dict[str, Any]] = PROJECT["tool"]["importlinter"]


def ranks(contract: dict[str, Any]) -> dict[str, int]:
    """Of each module that a contract of layers names, the number of its layer: a greater one may import a lesser one."""
    layers: list[str] = contract["layers"]
    return {
        f"{container}.{name.strip(' ()')}": len(layers) - i
        for i, layer in enumerate(layers)
        for name in re.split(r"[:|]", layer)
        for container in contract["containers"]
    }


def home(module: str, known: dict[str, int]) -> str | None:
    """The layer's module that a module is in."""
    return next((name for name in known if module == name or module.startswith(f"{name}.")), None)


def named_in_strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of each string that is a module's name or, in an f-string, begins with a package's name."""
    formatted = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            pattern = r"weft(\.\w+)+\.?" if id(node) in formatted else r"weft(\.\w+)+"
            if re.fullmatch(pattern, node.value):
                yield node.lineno, node.value.rstrip(".")


def upward(module: str, text: str, contracts: list[dict[str, Any]]) -> list[str]:
    """What is wrong with the strings of a module's source."""
    names = list(named_in_strings(ast.parse(text))) if re.search(r"""["']weft\.""", text) else []
    found: list[str] = []
    for known in map(ranks, contracts):
        here = home(module, known)
        for line, name in names:
            there = home(name, known)
            if here is not None and there is not None and known[there] > known[here]:
                found.append(f"{module}:{line} names {name}, which is above {here}")
    return found


def modules() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path.read_text()


def layers() -> list[dict[str, Any]]:
    return [contract for contract in LINTER["contracts"] if contract["type"] == "layers"]


def test_no_string_names_a_package_above() -> None:
    assert [line for module, text in modules() for line in upward(module, text, layers())] == []


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        (
            "weft.layout.algebra.f2",
            'import_module("weft.report.layouts")',
            "weft.layout.algebra.f2:1 names weft.report.layouts, which is above weft.layout",
        ),
        (
            "weft.semantics",
            'import_module(f"weft.array.{name}")',
            "weft.semantics:1 names weft.array, which is above weft.semantics",
        ),
        (
            "weft.layout.algebra.f2",
            'def f():\n    return "weft.layout.planning"',
            "weft.layout.algebra.f2:2 names weft.layout.planning, which is above weft.layout.algebra",
        ),
        ("weft.report.plain", 'import_module("weft.array.comparing.check")', None),
        ("weft.semantics.core", 'import_module("weft.layout")', None),  # beside it: import-linter's `:` does not allow
        ("weft.array.api.lazy", 'import_module("weft.array.execution.native")', None),
        ("weft.dtypes", '"""See weft.report."""', None),
    ],
)
def test_strings_that_name_a_package_above_are_found(module: str, text: str, expected: str | None) -> None:
    assert upward(module, text, layers()) == ([] if expected is None else [expected])


def test_the_linter_sees_imports_for_type_checkers() -> None:
    assert not LINTER.get("exclude_type_checking_imports", False)
    assert [contract["name"] for contract in LINTER["contracts"] if contract.get("ignore_imports")] == [
        "packages import in the order of the architecture",
        "the rooms of weft.array import downwards",
    ]
    assert layers()[0]["ignore_imports"] == ["weft -> weft.array", "weft -> weft.dropin"]
