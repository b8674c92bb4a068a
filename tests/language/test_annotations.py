"""Annotations where Python keeps them: with their owner until 3.13, behind ``__annotate__`` since 3.14."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import weft.language as tl
from weft.frontend import KernelFunction
from weft.language.annotations import annotations_in, annotations_of

LATE = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="needs Python 3.14, which evaluates annotations when they are asked for"
)


def run(text: str) -> dict[str, Any]:
    """The namespace of a module without ``from __future__ import annotations``."""
    names: dict[str, Any] = {"tl": tl}
    exec(compile(text, "module", "exec", dont_inherit=True), names)
    return names


def asked(values: dict[str, Any]) -> Any:
    """A module's ``__annotate__``, as Python 3.14 calls it for values."""

    def annotate(format: int) -> dict[str, Any]:
        assert format == 1
        return values

    return annotate


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ({}, {}),
        ({"__annotations__": {"N": int}}, {"N": int}),
        ({"__annotations__": {}}, {}),
        ({"__annotate__": None}, {}),
        ({"__annotate__": asked({"N": tl.constexpr})}, {"N": tl.constexpr}),
        ({"__annotations__": {"N": int}, "__annotate__": asked({"N": str})}, {"N": int}),
    ],
)
def test_annotations_of_globals(module: dict[str, Any], expected: dict[str, Any]) -> None:
    assert annotations_in(module) == expected


def test_a_global_annotated_on_any_version_is_a_constant() -> None:
    """What Python puts into the namespace differs, what kernels see does not."""
    names = run("N: tl.constexpr = 4\nM = 5\nL: int = 6\ndef kernel(): ...\n")
    assert ("__annotations__" in names) == (sys.version_info < (3, 14))
    kernel = KernelFunction(names["kernel"])
    for _ in range(2):
        assert [kernel.is_constexpr_global(name) for name in "NML"] == [True, False, False]
        names["__annotate__"] = asked(names.pop("__annotations__", {"N": tl.constexpr, "L": int}))


def test_a_class_has_its_own_annotations_alone() -> None:
    class Base:
        a: int

    class Derived(Base):
        b: int

    class Bare(Base):
        pass

    assert [list(annotations_of(one)) for one in (Base, Derived, Bare)] == [["a"], ["b"], []]


@LATE
def test_names_that_are_not_defined_stand_for_themselves() -> None:
    names = run(
        "N: tl.constexpr = 4\nM: Missing = 5\ndef f(x: Missing, n: tl.constexpr): ...\nclass C:\n  y: Missing\n"
    )
    assert annotations_in(names)["N"] is tl.constexpr
    assert [p.is_constexpr for p in KernelFunction(names["f"]).parameters] == [False, True]
    assert KernelFunction(names["f"]).is_constexpr_global("N")
    assert list(annotations_of(names["C"])) == ["y"]


@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="needs a Python before 3.14, which knows no ForwardRef of the missing name"
)
def test_an_error_of_the_module_is_not_hidden() -> None:
    def annotate(format: int) -> dict[str, Any]:
        raise NameError("name 'Missing' is not defined")

    with pytest.raises(NameError, match=r"^name 'Missing' is not defined$"):
        annotations_in({"__annotate__": annotate})
