"""`weft.layout` offers every name it lists, those too that it loads at their first use."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import weft.layout


@pytest.mark.parametrize("name", weft.layout.__all__)
def test_every_name_is_what_its_module_calls_so(name: str) -> None:
    value = getattr(weft.layout, name)
    home = getattr(value, "__module__", None)
    if home is not None and home.startswith("weft."):
        assert getattr(importlib.import_module(home), name) is value


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"^module 'weft\.layout' has no attribute 'missing'$"):
        weft.layout.missing  # noqa: B018 (looking the name up is what is tested)


def test_a_kernel_waits_for_no_planner_and_no_interpreter() -> None:
    """The machine that registers are planned for is there."""
    names = "('layout.planning.machine', 'layout.planning.choose', 'layout.planning.scan', 'reference.interpreter')"
    code = f"import sys, weft.codegen.cpu.machine; print(*('weft.' + name in sys.modules for name in {names}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False False False\n"
