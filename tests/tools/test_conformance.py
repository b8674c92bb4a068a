"""docs/triton-names.md is what its tool writes, and no name of Triton's is without a word."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "conformance.py"


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("conformance", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.pages
def test_the_page_is_current(tool: Any) -> None:
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "python tools/conformance.py writes it"


def test_each_name_has_one_of_three_answers(tool: Any) -> None:
    answers = {tool.status(path, name).partition(":")[0] for path, names in tool.NAMES.items() for name in names}
    assert answers == {"supported", "accepted, ignored", "refused"}


def test_names_of_modules_exist(tool: Any) -> None:
    """A program may import each name; what weft does not have is refused where it is used."""
    values = {
        "triton.language.tensor",
        "triton.language.dtype",
        "triton.language.pointer_type",
        "triton.language.block_type",
    }
    missing = [
        f"{path}.{name}"
        for path, names in tool.NAMES.items()
        if path not in values
        for name in names
        if tool.status(path, name).startswith("refused: module") or "has no attribute" in tool.status(path, name)
    ]
    assert set(missing) <= {
        "triton.language.standard.sort_impl",
        "triton.language.tensor_descriptor.block_shape",
        "triton.language.tensor_descriptor.block_type",
        "triton.language.tensor_descriptor.dtype",
        "triton.language.constexpr.logical_and",
        "triton.language.constexpr.logical_or",
        "triton.runtime.jit.JITFunction.preload",
        "triton.runtime.jit.JITFunction.type",
        "triton.runtime.build",
    }
