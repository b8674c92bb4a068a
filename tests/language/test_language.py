"""The surface of the language outside kernels: compile-time values, stubs, names."""

from __future__ import annotations

import inspect
import operator
from typing import Any

import pytest

import weft.language as tl
from weft import dtypes
from weft.frontend import registry
from weft.frontend.build import library  # fills the registry
from weft.language.core import STUBS, ConstexprFunction, block_type, stub
from weft.language.extra import libdevice

BINARY = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor",
    "lt", "le", "gt", "ge", "eq", "ne",
]  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_constexpr_arithmetic_is_pythons(name: str) -> None:
    function = getattr(operator, name)
    for a, b in ((7, 2), (-7, 2), (2, 5)):
        for x, y in ((tl.constexpr(a), b), (tl.constexpr(a), tl.constexpr(b)), (a, tl.constexpr(b))):
            result = function(x, y)
            assert isinstance(result, tl.constexpr)
            assert result.value == function(a, b)


@pytest.mark.parametrize("name", ["neg", "pos", "invert"])
def test_constexpr_unary(name: str) -> None:
    assert getattr(operator, name)(tl.constexpr(5)).value == getattr(operator, name)(5)


def test_constexpr_conversions() -> None:
    five = tl.constexpr(5)
    assert tl.constexpr(five).value == 5
    assert (int(five), float(five), bool(tl.constexpr(0)), repr(five)) == (5, 5.0, False, "constexpr[5]")
    assert list(range(five)) == [0, 1, 2, 3, 4]
    assert (len(tl.constexpr((1, 2))), tl.constexpr((1, 2))[1].value, tl.constexpr(max)(1, 2)) == (2, 2, 2)
    assert {tl.constexpr(5): "found"}[five] == "found"


def test_constexpr_function() -> None:
    @tl.constexpr_function
    def area(a: int, b: int = 2) -> int:
        """The product."""
        return a * b

    assert isinstance(area, ConstexprFunction)
    assert (area(tl.constexpr(3)), area(3, b=tl.constexpr(5)), area.__doc__) == (6, 15, "The product.")


@pytest.mark.parametrize("function", STUBS, ids=STUBS.get)
def test_stubs_refuse_to_run_outside_kernels(function: Any) -> None:
    with pytest.raises(tl.OutsideKernelError) as caught:
        function()
    assert str(caught.value) == (
        f"tl.{STUBS[function]} only has a meaning inside a kernel: call it in a function decorated with @weft.jit, "
        "and launch that as kernel[grid](...)"
    )


def test_tensors_are_not_made_by_hand() -> None:
    with pytest.raises(tl.OutsideKernelError) as caught:
        tl.tensor()
    assert str(caught.value) == "tl.tensor cannot be made by calling it: use tl.full or tl.load inside a kernel"


@pytest.mark.parametrize("function", STUBS, ids=STUBS.get)
def test_stubs_are_documented(function: Any) -> None:
    assert inspect.getdoc(function)
    assert "return" in inspect.get_annotations(function)


def test_parameters_of_stubs_are_their_signatures() -> None:
    """`parameters_of` reads code objects because `inspect.signature` is slow; they agree."""
    for function in STUBS:
        expected = inspect.signature(function).parameters.values()
        found = registry.stub_parameters(function)
        assert [p.name for p in found] == [p.name for p in expected]
        assert [p.variadic for p in found] == [p.kind is p.VAR_POSITIONAL for p in expected]
        assert [p.keyword_only for p in found] == [p.kind is p.KEYWORD_ONLY for p in expected]
        assert [p.default for p in found if p.default is not registry.MISSING] == [
            p.default for p in expected if p.default is not p.empty
        ]


TRITON_NAMES = {
    "int1": dtypes.bool_,
    "float8e4nv": dtypes.float8_e4m3fn,
    "float8e5": dtypes.float8_e5m2,
    **{d.name: d for d in dtypes.ALL if not d.is_bool},
}


@pytest.mark.parametrize("name", TRITON_NAMES)
def test_dtypes(name: str) -> None:
    assert getattr(tl, name) is TRITON_NAMES[name]
    assert tl.dtype is dtypes.DType


def test_all_names_exist_once() -> None:
    for module in (tl, tl.math, libdevice):
        assert len(set(module.__all__)) == len(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)
    # Everything public is exported (MAX_ELEMENTS by Triton's name).
    public = {
        n for n, v in vars(tl).items() if not n.startswith("_") and not inspect.ismodule(v) and n != "annotations"
    }
    assert public - {"MAX_ELEMENTS"} <= set(tl.__all__)


def test_types_print_as_users_write_them() -> None:
    assert str(tl.pointer_type(dtypes.float16)) == "pointer<float16>"
    assert str(block_type(dtypes.int8, (2, 4))) == "<[2, 4], int8>"


# The check that stubs and implementations agree


@pytest.fixture
def restored() -> Any:
    stubs, implementations = dict(STUBS), dict(registry.IMPLEMENTATIONS)
    yield
    for table, saved in ((STUBS, stubs), (registry.IMPLEMENTATIONS, implementations)):
        table.clear()
        table.update(saved)  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_the_registry_is_complete() -> None:
    assert library.__all__
    registry.check()


def test_a_stub_without_implementation(restored: None) -> None:
    @stub
    def lonely(x: Any) -> Any: ...

    with pytest.raises(TypeError) as caught:
        registry.check()
    assert str(caught.value) == "weft.language.lonely has no implementation in weft.frontend.library"


def test_an_implementation_with_other_parameters(restored: None) -> None:
    @stub
    def drifted(x: Any, y: Any) -> Any: ...

    @registry.implements(drifted)
    def _(b: Any, x: Any, z: Any) -> Any: ...

    with pytest.raises(TypeError) as caught:
        registry.check()
    assert str(caught.value) == "weft.language.drifted has parameters ('x', 'y'), its implementation has ('x', 'z')"


def test_an_implementation_without_stub(restored: None) -> None:
    def stray(x: Any) -> Any: ...

    registry.implements(stray)(stray)
    with pytest.raises(TypeError) as caught:
        registry.check()
    assert str(caught.value).endswith("stray is implemented but is no stub of weft.language")
