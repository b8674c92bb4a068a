"""Triton's words in errors, where programs and tests match them. Each text is what Triton 3.9 says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft import triton
from weft.triton import language as tl
from weft.triton.compiler.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct

pytestmark = pytest.mark.jit

NUMBER = 42


@triton.jit
def undefined(x: Any):
    tl.store(x, nowhere)  # pyright: ignore[reportUndefinedVariable, reportUnknownArgumentType]  # noqa: F821


@triton.jit
def plain_global(x: Any):
    tl.store(x, NUMBER)


@triton.jit
def bits_of_floats(x: Any):
    tl.store(x, tl.load(x).to(tl.float32) & 1)


@triton.jit
def mixed_signs(x: Any):
    tl.store(x, tl.load(x) % tl.load(x).to(tl.uint32))


@triton.jit
def mixed_quotients(x: Any):
    tl.store(x, tl.load(x) // tl.load(x).to(tl.uint32))


@triton.jit
def narrow_exp(x: Any):
    tl.store(x, tl.exp(tl.load(x).to(tl.float16)))


@triton.jit
def odd_range(x: Any):
    tl.store(x + tl.arange(0, 5), 0)


@triton.jit
def odd_shape(x: Any):
    tl.store(x, tl.sum(tl.full((33,), 0, dtype=tl.int32)))


@triton.jit
def odd_second_size(x: Any):
    tl.store(x, tl.sum(tl.full((4, 33), 0, dtype=tl.int32)))


@triton.jit
def far_axis(x: Any):
    tl.store(x, tl.sum(tl.expand_dims(tl.arange(0, 4), -3)))


@triton.jit
def far_program(x: Any):
    tl.store(x, tl.program_id(20))


@triton.jit
def sliced(x: Any):
    tl.store(x, tl.arange(0, 4)[1:])


@triton.jit
def short_block(x: Any):
    descriptor = tl.make_tensor_descriptor(x, shape=[8, 8], strides=[8, 1], block_shape=[8, 2])
    tl.store(x, tl.sum(descriptor.load([0, 0])))


@triton.jit
def narrow_atomic(x: Any):
    tl.atomic_add(x.to(tl.pointer_type(tl.int8)), 1)


@triton.jit
def short_atomic(x: Any):
    tl.atomic_xchg(x.to(tl.pointer_type(tl.uint16)), 1)


@triton.jit
def chosen_by_number(x: Any):
    tl.store(x, tl.where(tl.load(x), 5, 7))


@triton.jit
def through_a_constant(x: Any, out: Any):
    tl.store(out, 1)


@triton.jit
def typed(x: Any, N: Any):
    tl.static_assert(N.type == tl.core.constexpr_type(7))
    tl.store(x, N)


@triton.jit
def used_early(x: Any):
    tl.store(x, late)  # pyright: ignore[reportUnboundVariable, reportUnknownArgumentType]  # noqa: F821
    late = 1  # noqa: F841 - the assignment makes the name a local one


ANNOTATED: tl.constexpr = 7  # pyright: ignore[reportAssignmentType]


@triton.jit
def annotated_global(x: Any):
    tl.store(x, ANNOTATED)


@triton.jit
def two_scale_factors(x: Any):
    m = tl.zeros((32, 64), tl.uint8)
    scale = tl.zeros((32, 2), tl.uint8)
    tl.dot_scaled(m, tl.zeros((32, 4), tl.uint8), "e5m2", m.T, scale, "e5m2")


WORDS = [
    (used_early, "NameError('late is not defined')"),
    (
        annotated_global,
        "Cannot access global variable ANNOTATED from within @jit'ed function. Triton kernels can only access global "
        "variables that are instantiated as constexpr (`x = triton.language.constexpr(42)`)",
    ),
    (two_scale_factors, "Operands must have the same scale factor; (lhs: 16 vs rhs: 32)"),
    (undefined, "NameError('nowhere is not defined')"),
    (
        plain_global,
        "Cannot access global variable NUMBER from within @jit'ed function. Triton kernels can only access global variables "
        "that are instantiated as constexpr (`x = triton.language.constexpr(42)`)",
    ),
    (bits_of_floats, "invalid operands of type float32"),
    (
        mixed_signs,
        "Cannot use % with i32 and u32 because they have different signedness;this is unlikely to result in a useful answer. "
        "Cast them to the same signedness.",
    ),
    (
        mixed_quotients,
        "Cannot use // with i32 and u32 because they have different signedness;this is unlikely to result in a useful answer. "
        "Cast them to the same signedness.",
    ),
    (narrow_exp, "Expected dtype ['fp32', 'fp64'] but got fp16"),
    (odd_range, "arange's range must be a power of 2"),
    (odd_shape, "Shape element 0 must be a power of 2"),
    (odd_second_size, "Shape element 1 must be a power of 2"),
    (far_axis, "invalid axis -3"),
    (far_program, "program_id axis must be 0, 1, or 2 but got 20"),
    (short_block, "Descriptor block shape must have at least 16 bytes in the last dimension, but got 2 * 4 = 8 bytes"),
    (narrow_atomic, "atomic_add does not support int8"),
    (short_atomic, "atomic_xchg does not support uint16"),
    (sliced, "unsupported tensor index"),
]


@pytest.mark.parametrize(("kernel", "text"), WORDS, ids=[kernel.name for kernel, _ in WORDS])
def test_the_words(kernel: Any, text: str) -> None:
    with pytest.raises(CompilationError) as raised:
        kernel[(1,)](np.zeros(1, np.int32))
    assert raised.value.error_message == text
    assert str(raised.value.__cause__) == text
    assert "weft: " in str(raised.value)


@triton.jit
def with_lambda(x: Any):
    tl.store(x, (lambda y: y)(1))  # noqa: PLC3002


def test_python_that_kernels_are_not_written_in() -> None:
    with pytest.raises(UnsupportedLanguageConstruct) as raised:
        with_lambda[(1,)](np.zeros(1, np.int32))
    assert raised.value.error_message == "a lambda cannot be used in a kernel"
    assert raised.value.__cause__ is None


def test_the_annotations_of_triton_are_those_of_weft() -> None:
    """Not as text, but as the objects that this module imports."""
    read_only = triton.jit(_with(through_a_constant.fn, out=tl.const))
    with pytest.raises(CompilationError) as raised:
        read_only.warmup(np.zeros(1, np.int32), np.zeros(1, np.int32), grid=(1,))
    assert raised.value.error_message == "Cannot store to a constant pointer"
    x = np.zeros(1, np.int32)
    triton.jit(_with(typed.fn, N=tl.constexpr))[(1,)](x, 7)
    assert x[0] == 7


def _with(function: Any, **annotations: Any) -> Any:
    function.__annotations__ = annotations
    return function


def test_a_condition_that_is_no_bool_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", "0")  # the compiler warns, and a kernel on disk is not compiled
    x = np.full(1, 2, np.int32)
    with pytest.warns(UserWarning) as warned:
        chosen_by_number[(1,)](x)
    words = (
        "tl.where with a non-boolean condition is deprecated and will error out in a future triton release. Got int32"
    )
    assert [str(w.message) for w in warned] == [words]
    assert x[0] == 5


@triton.must_use_result("Assign it.")
@triton.jit
def cube(x: Any):
    return x * x * x


@triton.aggregate
class Square:
    x: tl.tensor

    @triton.constexpr_function
    def __init__(self, x: Any):
        self.x = x

    @triton.must_use_result
    @triton.constexpr_function
    def power(self):
        return 2

    @triton.must_use_result
    @triton.jit
    def compute(self):
        return self.x * self.x


@triton.jit
def drops(x: Any, CASE: tl.constexpr):
    v: Any = tl.load(x)
    square: Any = Square(v)
    if CASE == "function":
        cube(v)
    elif CASE == "method":
        square.compute()
    elif CASE == "python":
        square.power()
    elif CASE == "advance":
        tl.advance(tl.make_block_ptr(x, (8,), (1,), (0,), (8,), (0,)), (8,))
    else:
        v = cube(v) + square.compute() + square.power()
        cube(v) if CASE == "argument" else tl.store(x, cube(v))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("function", "The result of cube is not being used. Assign it."),
        ("method", "The result of square.compute is not being used."),
        ("python", "The result of square.power is not being used."),
        (
            "advance",
            "The result of tl.advance is not being used. tl.advance has no effect of its own: assign its result to a variable.",
        ),
    ],
)
def test_results_that_must_be_used(case: str, words: str) -> None:
    with pytest.raises(CompilationError) as raised:
        drops[(1,)](np.zeros(1, np.int32), case)
    assert raised.value.error_message == words
    assert raised.value.__cause__ is None
    lines = str(raised.value).split("\n")
    assert lines[-1] == words
    assert "weft: " + words in lines


def test_results_that_are_used() -> None:
    x = np.full(1, 2, np.int32)
    drops[(1,)](x, "used")
    assert x[0] == (8 + 4 + 2) ** 3


@pytest.mark.parametrize("option", ["do_not_specialize", "do_not_specialize_on_alignment"])
def test_constants_are_specialised(option: str) -> None:
    def kernel(x: Any, N: tl.constexpr) -> None:
        tl.store(x, N)

    listed: dict[str, Any] = {option: ["N"]}
    refused: Any = triton.jit(**listed)(kernel)
    words = (
        "N marked as constexpr and listed in do_not_specialize/do_not_specialize_on_alignment. "
        "Remove constexpr designation to skip specialization."
    )
    source = triton.compiler.ASTSource(fn=refused, signature={"x": "*i32", "N": "constexpr"}, constexprs={"N": 5})
    for compile_ in (lambda: refused[(1,)](np.zeros(1, np.int32), 5), lambda: triton.compile(source)):
        with pytest.raises(CompilationError) as raised:
            compile_()
        assert raised.value.error_message == words
        assert raised.value.__cause__ is None


@triton.jit
def two_types(n: Any):
    if n == 0:
        return tl.arange(0, 4)
    return tl.arange(0, 8)


@triton.jit
def returns(n: Any):
    two_types(n)


def test_results_of_two_types_are_an_error_of_the_function() -> None:
    with pytest.raises(CompilationError) as raised:
        returns[(1,)](2)
    assert str(raised.value).startswith("at 2:4:\ndef returns(n: Any):\n    two_types(n)\n    ^")
    assert str(raised.value.__cause__).startswith(
        "at 1:0:\ndef two_types(n: Any):\n^\nReturn type mismatch: int32[4] and int32[8]"
    )


@triton.jit
def largest(K: tl.constexpr):
    tl.topk(tl.arange(0, 8), K)


def test_assertions_of_the_library_are_compile_time_assertions() -> None:
    """Triton's library is made of kernels, whose assertions are no Python errors."""
    with pytest.raises(CompileTimeAssertionFailure) as raised:
        largest[(1,)](3)
    assert raised.value.error_message == "topk: k must be a power of two"
    assert raised.value.__cause__ is None
