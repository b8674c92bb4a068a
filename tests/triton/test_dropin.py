"""`weft.as_triton`: ``import triton`` gives weft, and afterwards what it gave before."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from types import ModuleType

import pytest

import weft
from weft import triton as ours

MODULES = [
    *("triton", "triton.language", "triton.language.core", "triton.language.extra", "triton.language.extra.libdevice"),
    *(
        "triton.language.extra.cuda.libdevice",
        "triton.language.math",
        "triton.language.standard",
        "triton.language.random",
    ),
    *("triton.language.target_info", "triton.runtime", "triton.runtime.driver", "triton.runtime.jit", "triton.errors"),
    *("triton.runtime.autotuner", "triton.runtime.cache", "triton.runtime.errors", "triton.compiler", "triton.knobs"),
    *("triton.compiler.compiler", "triton.compiler.errors", "triton.testing", "triton.tools.tensor_descriptor"),
    *("triton.profiler", "triton.profiler.viewer"),
    *("triton.backends", "triton.backends.compiler", "triton.backends.driver", "triton._internal_testing"),
]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_the_one_of_weft(name: str) -> None:
    with weft.as_triton():
        found = importlib.import_module(name)
    assert found is importlib.import_module("weft." + name)
    assert found.__spec__ is not None
    assert found.__spec__.name == "weft." + name


def test_nothing_is_left_behind() -> None:
    before = [name for name in sys.modules if name.partition(".")[0] == "triton"]
    finders = list(sys.meta_path)
    with weft.as_triton():
        importlib.import_module("triton.language")
        assert "triton.language" in sys.modules
    assert [name for name in sys.modules if name.partition(".")[0] == "triton"] == before
    assert sys.meta_path == finders


def test_an_installed_triton_stands_again(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = ModuleType("triton")
    monkeypatch.setitem(sys.modules, "triton", theirs)
    with weft.as_triton():
        assert importlib.import_module("triton") is ours
    assert importlib.import_module("triton") is theirs


def test_a_context_inside_another_ends_nothing() -> None:
    with weft.as_triton():
        with weft.as_triton():
            pass
        assert importlib.import_module("triton") is ours


def test_an_object_is_not_replaced_by_the_module_of_its_name() -> None:
    with weft.as_triton():
        module = importlib.import_module("triton.runtime.driver")
    assert ours.runtime.driver is module.driver


def test_a_module_that_weft_has_not() -> None:
    with weft.as_triton(), pytest.raises(ModuleNotFoundError) as raised:
        importlib.import_module("triton.experimental")
    assert str(raised.value) == "No module named 'triton.experimental'"


def test_programs_may_ask_for_a_module_that_weft_has_not() -> None:
    with weft.as_triton():
        assert importlib.util.find_spec("triton.experimental") is None


def test_without_with_it_lasts() -> None:
    code = "import weft; weft.as_triton(); import triton, triton.language as tl; print(triton.__version__, tl.float32)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "3.9.0 float32\n"


def test_importing_triton_loads_neither_layouts_nor_the_compiler() -> None:
    """Programs start with it: what compiles is loaded by the first launch."""
    heavy = ("weft.layout", "weft.ir.tile", "weft.transforms", "weft.codegen", "xdsl", "llvmlite", "scipy")
    code = f"import sys, weft; weft.as_triton(); import triton, triton.language; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_importing_weft_loads_no_triton() -> None:
    code = "import sys, weft; weft.as_triton(); print([m for m in sys.modules if m.startswith('weft.triton')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
