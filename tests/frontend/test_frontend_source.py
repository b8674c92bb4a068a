"""`KernelFunction`: parameters, names it reaches, and the fingerprint of everything it depends on."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft.language as tl
from weft.frontend import MISSING, KernelFunction


def with_everything(a: Any, b: tl.constexpr, c: Any = 3, *rest: Any, d: tl.constexpr = 4, e: Any = None) -> None:  # pyright: ignore[reportArgumentType]
    pass


def test_parameters_with_postponed_annotations() -> None:
    """This file's annotations are strings, because of its __future__ import."""
    found = [
        (p.name, p.is_constexpr, p.default, p.keyword_only, p.variadic)
        for p in KernelFunction(with_everything).parameters
    ]
    assert found == [
        ("a", False, MISSING, False, False),
        ("b", True, MISSING, False, False),
        ("c", False, 3, False, False),
        ("rest", False, MISSING, False, True),
        ("d", True, 4, True, False),
        ("e", False, None, True, False),
    ]


@pytest.mark.parametrize(
    ("annotation", "marked"),
    [
        (tl.constexpr, True),
        ("tl.constexpr", True),
        ("constexpr", True),
        ("weft.constexpr", True),
        ("'tl.constexpr'", True),
        ("int | tl.constexpr", True),
        (int | tl.constexpr, True),
        (int | None, False),
        ("tl.tensor", False),
        (int, False),
        ("constexpr_like", False),
    ],
)
def test_constexpr_annotations(annotation: Any, marked: bool) -> None:
    def kernel(x: Any) -> None: ...

    kernel.__annotations__["x"] = annotation
    assert [p.is_constexpr for p in KernelFunction(kernel).parameters] == [marked]


def test_where_it_stands() -> None:
    kernel = KernelFunction(with_everything)
    assert (kernel.name, kernel.file) == ("with_everything", __file__)
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert lines[kernel.first_line - 1].startswith("def with_everything(")
    assert kernel.source.startswith("def with_everything(")
    assert kernel.tree.lineno == kernel.first_line
    assert kernel.tree is kernel.tree  # parsed once


# Fingerprints


MODULE = """
import weft.language as tl
from weft.frontend import KernelFunction as jit
import other

SIZE = tl.constexpr(64)
SCALE: tl.constexpr = 2.0
UNUSED = tl.constexpr(1)
TYPE = tl.float32

@jit
def leaf(x):
    return x * SCALE

@jit
def middle(x):
    return leaf(x).to(TYPE)

@jit
def kernel(p, n=3):
    tl.store(p, middle(n) + SIZE + other.helper(n) + other.OFFSET)
"""
OTHER = """
import weft.language as tl
from weft.frontend import KernelFunction as jit
OFFSET = tl.constexpr(5)

@jit
def helper(x):
    return x
"""


def load(folder: Path, monkeypatch: pytest.MonkeyPatch, module: str = MODULE, other: str = OTHER) -> str:
    """The fingerprint of ``kernel`` in fresh modules with these sources."""
    folder.mkdir()
    loaded: list[types.ModuleType] = []
    for name, text in (("other", other), ("main", module)):
        path = folder / f"{name}.py"
        path.write_text(text)
        new = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, new)
        exec(compile(text, str(path), "exec"), new.__dict__)
        loaded.append(new)
    return loaded[-1].kernel.dependencies()


CHANGES = {
    "own source": ("SIZE + other", "SIZE - other"),
    "helper": ("x * SCALE", "x + SCALE"),
    "constexpr global": ("constexpr(64)", "constexpr(32)"),
    "annotated global of a helper": ("= 2.0", "= 3.0"),
    "dtype global": ("tl.float32", "tl.float16"),
    "default": ("n=3", "n=4"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_changed_dependency_changes_the_fingerprint(
    change: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert change[0] in MODULE
    before = load(tmp_path / "a", monkeypatch)
    assert load(tmp_path / "b", monkeypatch, MODULE.replace(*change)) != before


@pytest.mark.parametrize("change", [("constexpr(5)", "constexpr(6)"), ("return x", "return x + 1")])
def test_a_changed_module_attribute_changes_the_fingerprint(
    change: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load(tmp_path / "a", monkeypatch)
    assert load(tmp_path / "b", monkeypatch, other=OTHER.replace(*change)) != before


@pytest.mark.parametrize("change", [("UNUSED = tl.constexpr(1)", "UNUSED = tl.constexpr(2)"), ("\nSIZE", "\n\n\nSIZE")])
def test_what_is_not_used_does_not_count(
    change: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = load(tmp_path / "a", monkeypatch)
    assert load(tmp_path / "b", monkeypatch, MODULE.replace(*change)) == before


def test_globals_are_read_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(tmp_path / "a", monkeypatch)
    main = sys.modules["main"]
    before = main.kernel.dependencies()
    main.SIZE = tl.constexpr(128)  # pyright: ignore[reportAttributeAccessIssue]
    assert main.kernel.dependencies() != before
    main.SIZE = tl.constexpr(64)  # pyright: ignore[reportAttributeAccessIssue]
    assert main.kernel.dependencies() == before


def test_closures_count() -> None:
    def make(size: Any) -> KernelFunction:
        def kernel(p: Any) -> None:
            tl.store(p, size)

        return KernelFunction(kernel)

    assert make(tl.constexpr(1)).dependencies() != make(tl.constexpr(2)).dependencies()
    assert make(tl.constexpr(1)).dependencies() == make(tl.constexpr(1)).dependencies()


def test_mutual_references_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = MODULE + "\n@jit\ndef a(x):\n    return b(x)\n\n@jit\ndef b(x):\n    return a(x)\nkernel = a\n"
    fingerprint = load(tmp_path / "a", monkeypatch, text)
    assert fingerprint.count("def a(x):") == fingerprint.count("def b(x):") == 1


def test_equal_in_every_process() -> None:
    """Hash seeds differ between processes; the text must not."""
    program = (
        "import importlib.util, sys; s = importlib.util.spec_from_file_location('m', sys.argv[1]);"
        "m = importlib.util.module_from_spec(s); s.loader.exec_module(m); print(m.KERNEL.dependencies())"
    )
    path = Path(__file__).parent / "kernel_for_fingerprint.py"
    runs = [
        subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2)
    ]
    assert runs[0] == runs[1]
    assert "SIZE = 16" in runs[0]
    assert "xdsl" not in runs[0]


def test_no_compiler_is_loaded() -> None:
    """Parsing and fingerprints, all that a cache hit needs, load no IR."""
    program = "import weft.language, weft.frontend, sys; print('xdsl' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_lookup_order() -> None:
    size: Any = tl.constexpr(7)

    def kernel() -> Any:
        return size, load, len

    function: Callable[[str], Any] = KernelFunction(kernel).lookup
    assert function("size") is size
    assert function("load") is load
    assert function("len") is len
    assert function("nothing") is MISSING
