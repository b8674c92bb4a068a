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


def test_a_kernel_waits_for_no_planner_of_gpus() -> None:
    asked = "*(f'weft.layout.planning.{n}' in sys.modules for n in ('choose', 'gather', 'scan'))"
    code = f"import sys, weft.codegen.cpu.machine; print({asked})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False False\n"
