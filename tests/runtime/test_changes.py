"""What changes between decoration and launches: the file, globals, helpers. A launch runs the text as it was at decoration,
with globals and helpers as they are now."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

pytestmark = pytest.mark.jit

HEADER = """
import weft
import weft.language as tl
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Imports a text as a module with a file of its own, and removes it afterwards."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    # Python takes a file of the same size, changed in the same second, for the one it has compiled.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def make(text: str) -> ModuleType:
        path = tmp_path / "changing.py"
        path.write_text(HEADER + text)
        spec = importlib.util.spec_from_file_location("changing", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "changing", module)
        spec.loader.exec_module(module)
        return module

    return make


def run(kernel: Any, *arguments: Any) -> float:
    out = np.zeros(1, np.float32)
    kernel[(1,)](out, *arguments)
    return float(out[0])


STORES = """
@weft.jit
def kernel(out):
    tl.store(out, {})
"""


def edit(module: ModuleType, text: str) -> None:
    assert module.__file__ is not None
    Path(module.__file__).write_text(HEADER + text, encoding="utf-8")


def test_the_text_is_that_of_decoration(load: Callable[[str], Any]) -> None:
    module = load(STORES.format(1.0))
    edit(module, STORES.format(2.0))
    assert run(module.kernel) == 1.0
    edit(module, "x = 1")
    assert run(module.kernel) == 1.0


def test_a_file_edited_before_decoration(load: Callable[[str], Any]) -> None:
    module = load("def kernel(out):\n    tl.store(out, 1.0)\n")
    for text in ("x = 1\n" * 5, "def other(out):\n    tl.store(out, 2.0)\n", "    if:\n"):
        edit(module, text)
        with pytest.raises(weft.CompilationError) as raised:
            run(weft.jit(module.kernel))
        assert str(raised.value).startswith(
            f"the source of kernel is no longer at {module.__file__}:4: the file was edited after Python read it"
        )


GLOBAL = """
N: tl.constexpr = 1
@weft.jit
def helper(x):
    return x * N
@weft.jit
def kernel(out):
    tl.store(out, helper(2.0))
"""


def test_a_changed_global_compiles_anew(load: Callable[[str], Any]) -> None:
    module = load(GLOBAL)
    assert run(module.kernel) == 2.0
    module.N = 10
    assert run(module.kernel) == 20.0
    module.N = 1
    assert run(module.kernel) == 2.0


def test_a_redefined_helper_compiles_anew(load: Callable[[str], Any]) -> None:
    module = load(GLOBAL)
    kernel = module.kernel
    assert run(kernel) == 2.0
    other = load(GLOBAL.replace("x * N", "x + 40.0"))
    module.helper = other.helper
    assert run(kernel) == 42.0


def test_an_equal_global_compiles_nothing(load: Callable[[str], Any]) -> None:
    module = load(GLOBAL.replace("N: tl.constexpr = 1", "N: tl.constexpr = 1000"))
    assert run(module.kernel) == 2000.0
    before = module.kernel.compile(np.zeros(1, np.float32)).executable
    module.N = int("1000")
    assert module.kernel.compile(np.zeros(1, np.float32)).executable is before


NOTHING = """
VALUE: tl.constexpr = {}

@weft.jit
def kernel(out):
    if VALUE is None:
        tl.store(out, 1.0)
    else:
        tl.store(out, VALUE)
"""


@pytest.mark.parametrize("value", [None, 2.0])
def test_a_global_that_is_gone(load: Callable[[str], Any], value: float | None) -> None:
    """Also one that was None, which looking up a name gives for none."""
    module = load(NOTHING.format(value))
    out = np.zeros(1, np.float32)
    again = module.kernel[(1,)].bind(out)
    for _ in range(3):  # the last ones by the short way
        assert run(module.kernel) == (value or 1.0)
    again()
    del module.VALUE
    with pytest.raises(weft.CompilationError, match="^the name 'VALUE' is not defined"):
        run(module.kernel)
    with pytest.raises(RuntimeError, match="a global or a helper has changed"):
        again()
    module.VALUE = tl.constexpr(5.0)
    assert run(module.kernel) == 5.0


def test_a_name_that_comes_to_hide_a_builtin(load: Callable[[str], Any]) -> None:
    """None under that name is something else than no such name."""
    module = load("@weft.jit\ndef kernel(out):\n    tl.store(out, len((1, 2)) + 0.0)\n")
    assert run(module.kernel) == 2.0
    before = module.kernel.compile(np.zeros(1, np.float32)).executable
    assert module.kernel.compile(np.zeros(1, np.float32)).executable is before
    module.len = None
    with pytest.raises(weft.CompilationError):
        run(module.kernel)


def test_what_decorators_name_compiles_nothing_anew(load: Callable[[str], Any]) -> None:
    module = load(
        "OPTIONS = ()\n\n@weft.jit(do_not_specialize=OPTIONS)" + STORES.format("3.0").removeprefix("\n@weft.jit")
    )
    assert run(module.kernel) == 3.0
    before = module.kernel.compile(np.zeros(1, np.float32)).executable
    module.OPTIONS = module.weft = None
    assert module.kernel.compile(np.zeros(1, np.float32)).executable is before
    assert run(module.kernel) == 3.0


def test_what_is_looked_at(load: Callable[[str], Any]) -> None:
    """Nothing within weft and its language, which do not change: each look is felt in a launch."""
    module = load("@weft.jit\ndef kernel(out):\n    tl.store(out, weft.cdiv(7, 2) + tl.cdiv(1, 1) + abs(-1.0))\n")
    assert run(module.kernel) == 6.0
    assert sorted(name for _, name, _ in module.kernel.references().looks) == ["abs", "tl", "weft"]
    assert not module.kernel.references().moved()


LOCALS = """
@weft.jit
def kernel(out, n):
    total = n + 1.0
    for i in range(2):
        total += i
    tl.store(out, total)
"""


@pytest.mark.parametrize("name", ["total", "i", "n", "out"])
def test_a_global_with_the_name_of_a_local_variable_is_another(load: Callable[[str], Any], name: str) -> None:
    module = load(LOCALS)
    assert run(module.kernel, 1.0) == 3.0
    before = module.kernel.dependencies()
    executable = module.kernel.compile(np.zeros(1, np.float32), 1.0).executable
    for value in (1000, weft.language.constexpr(7), module.kernel):
        setattr(module, name, value)
        assert run(module.kernel, 1.0) == 3.0
        assert module.kernel.dependencies() == before
        assert module.kernel.compile(np.zeros(1, np.float32), 1.0).executable is executable


def test_a_changed_cell_compiles_anew() -> None:
    n = weft.language.constexpr(1)

    @weft.jit
    def kernel(out: Any) -> None:
        weft.language.store(out, n + 1.0)

    assert run(kernel) == 2.0
    n = weft.language.constexpr(5)
    assert run(kernel) == 6.0


COMPILE_TIME = """
N = 4
def twice(x):
    return 2 * x
@tl.constexpr_function
def size():
    return twice(N)
@weft.jit
def kernel(out):
    tl.store(out, size() * 1.0)
"""


def test_what_compile_time_functions_read_counts_too(load: Callable[[str], Any]) -> None:
    module = load(COMPILE_TIME)
    assert run(module.kernel) == 8.0
    before = module.kernel.dependencies()
    module.N = 5
    assert run(module.kernel) == 10.0
    assert module.kernel.dependencies() != before

    def thrice(x: int) -> int:
        return 3 * x

    module.twice = thrice
    assert run(module.kernel) == 15.0


FUNCTION_BY_NAME = """
from weft.language import {}
chosen = tl.constexpr({})
class user:
    function = {}
@weft.jit
def kernel(out):
    x = tl.load(out) + 0.25
    tl.store(out, {} + x * 0.0)
"""


@pytest.mark.parametrize("called", ["function(x)", "chosen(x)", "user.function(x)"])
def test_which_function_of_the_language_a_name_is(load: Callable[[str], Any], called: str) -> None:
    """In the process, and on disk, where a kernel of the same text is for another import."""
    found: list[float] = []
    for name in ("floor", "ceil"):
        text = FUNCTION_BY_NAME.format(f"{name} as function", f"tl.{name}", f"tl.{name}", called)
        module = load(text)
        found.append(run(module.kernel))
    assert found == [0.0, 1.0]
    module.function, module.chosen, module.user.function = (weft.language.floor,) * 3
    assert run(module.kernel) == 0.0


WRAPPED = """
def twice(n):
    return 2 * n
@weft.jit
def kernel(out, F: tl.constexpr, N: tl.constexpr):
    tl.store(out, F(N) if N == 3 else F(tl.load(out)))
"""


def test_constexprs_of_one_function_are_the_same(load: Callable[[str], Any]) -> None:
    """A launch wraps a function anew, and takes the code that is there. Functions of the language stay what they are."""
    module, tl = load(WRAPPED), weft.language
    assert [run(module.kernel, tl.constexpr(module.twice), 3) for _ in range(3)] == [6.0] * 3
    assert len(module.kernel._executables) == 1
    assert run(module.kernel, tl.constexpr(tl.exp), 1) == 1.0


NUMPY_CONSTANT = """
import numpy
number = tl.constexpr(numpy.{})
@weft.jit
def kernel(out):
    tl.store(out, number * 1.0)
"""


def test_constants_of_numpy_count(load: Callable[[str], Any]) -> None:
    values = "float32(2.5)", "float32(3.5)", "int16(4)"
    assert [run(load(NUMPY_CONSTANT.format(value)).kernel) for value in values] == [2.5, 3.5, 4.0]


BUILT_IN = """
import math
function = math.{}
@weft.jit
def kernel(out):
    tl.store(out, function(2.5))
"""


def test_which_function_of_python_a_name_is(load: Callable[[str], Any]) -> None:
    assert [run(load(BUILT_IN.format(name)).kernel) for name in ("floor", "ceil")] == [2.0, 3.0]


HELPER_AS_CONSTANT = """
@weft.jit
def one(x):
    return x + 1.0
@weft.jit
def two(x):
    return x + 2.0
chosen: tl.constexpr = tl.constexpr(one)
@weft.jit
def kernel(out):
    tl.store(out, chosen(1.0))
"""


def test_a_helper_in_a_constexpr_is_a_dependency(load: Callable[[str], Any]) -> None:
    module = load(HELPER_AS_CONSTANT)
    assert "return x + 1.0" in module.kernel.dependencies()
    assert run(module.kernel) == 2.0
    module.chosen = weft.language.constexpr(module.two)
    assert run(module.kernel) == 3.0
