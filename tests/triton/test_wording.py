"""Triton's words in errors, where programs and tests match them. Each text is what Triton 3.9 says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft import triton
from weft.triton import language as tl
from weft.triton.compiler.errors import CompilationError, UnsupportedLanguageConstruct

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


WORDS = [
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


def test_a_condition_that_is_no_bool_is_warned_of() -> None:
    x = np.full(1, 2, np.int32)
    with pytest.warns(UserWarning) as warned:
        chosen_by_number[(1,)](x)
    words = (
        "tl.where with a non-boolean condition is deprecated and will error out in a future triton release. Got int32"
    )
    assert [str(w.message) for w in warned] == [words]
    assert x[0] == 5
