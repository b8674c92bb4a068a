"""When an array is an expression and when it is data; where its system comes from; what goes in and out."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.array as wa
from weft import dtypes, semantics
from weft.array.execution import backends
from weft.array.expression.nodes import Apply, Convert, Input, Reduce, Scalar, View
from weft.semantics import Constant


def data(a: wa.Array) -> NDArray[Any]:
    """What an array holds, which must be computed."""
    assert isinstance(a.node, Input)
    assert a.node.array is not None
    return a.node.array


# ---- systems ----------------------------------------------------------------------------------------------------------


def test_weft_brings_the_packages() -> None:
    assert weft.array is wa
    assert weft.semantics is semantics


def test_the_system_is_the_argument_else_the_block_else_numpy() -> None:
    assert wa.asarray(1).semantics.name == "numpy"
    with semantics.use("jax"):
        assert wa.asarray(1).semantics.name == "jax"
        assert wa.asarray(1, "dali").semantics.name == "dali"
        assert wa.exp(1.0).semantics.name == "jax"


def test_arrays_keep_their_system_in_blocks_of_others() -> None:
    a = wa.asarray([1], "jax")
    with semantics.use("dali"):
        assert (a + 1).semantics.name == "jax"
        assert wa.asarray(a) is a


def test_an_array_moves_to_another_system_as_it_is() -> None:
    weak = wa.asarray(2, "jax")
    assert (weak.dtype, weak.weak) == (dtypes.int64, True)
    moved = wa.asarray(weak, "dali")
    assert (moved.semantics.name, moved.dtype, moved.weak) == ("dali", dtypes.int64, False)
    assert moved.node is weak.node
    assert wa.asarray(weak, "jax@0.10").weak


@pytest.mark.parametrize(
    ("system", "expected"),
    # int + float literal, / of integers, uint8 + int8: NOTES of each system's documentation
    [
        ("numpy", ("float64", "float64", "int16")),
        ("jax", ("float64*", "float32", "int16")),
        ("dali", ("float32", "float32", "int16")),
        ("triton", ("float32", "float32", "uint8")),
        ("torch", ("float32", "float32", "int16")),
        ("max", ("refused", "float64", "int16")),
    ],
)
def test_one_expression_means_something_else_in_each_system(system: str, expected: tuple[str, ...]) -> None:
    with semantics.use(system):
        u, i = wa.asarray(np.array([200, 7], np.uint8)), wa.asarray(np.array([-1, 3], np.int8))
    try:
        mixed = f"{(i + 0.5).dtype}{'*' * (i + 0.5).weak}"
    except semantics.PromotionError:
        mixed = "refused"
    found = (mixed, str((i / i).dtype), str((u + i).dtype))
    assert found == expected


def test_weak_results_stay_weak() -> None:
    i = wa.asarray(np.array([1, 2], np.int8), "jax")
    mixed = i + 0.5
    assert (mixed.dtype, mixed.weak) == (dtypes.float64, True)
    assert (mixed + wa.asarray(np.ones(2, ml_dtypes.bfloat16), "jax")).dtype == dtypes.bfloat16
    assert (mixed[0].weak, mixed.T.weak, mixed.astype("float64").weak) == (True, True, False)


# ---- nodes ------------------------------------------------------------------------------------------------------------


def test_an_operator_is_conversions_and_a_meaning() -> None:
    u, i = wa.asarray(np.ones(2, np.uint8), "jax"), wa.asarray(np.ones(2, np.int8), "jax")
    node = (u + i).node
    assert isinstance(node, Apply)
    assert (node.meaning, node.dtype) == ("add", dtypes.int16)
    left, right = node.arguments
    assert isinstance(left, Convert)
    assert isinstance(right, Convert)
    assert (left.source, right.source) == (u.node, i.node)
    assert left.dtype == right.dtype == dtypes.int16


def test_a_literal_is_what_the_system_makes_of_it() -> None:
    # jax wraps 300 into uint8: 44
    node = (wa.asarray(np.ones(2, np.uint8), "jax") + 300).node
    assert isinstance(node, Apply)
    scalar = node.arguments[1]
    assert isinstance(scalar, Scalar)
    assert (scalar.value, scalar.dtype) == (44, dtypes.uint8)


def test_an_exact_comparison_converts_no_side() -> None:
    node = (wa.asarray(np.ones(2, np.uint64), "dali") < wa.asarray(np.ones(2, np.int64), "dali")).node
    assert isinstance(node, Apply)
    assert [a.dtype for a in node.arguments] == [dtypes.uint64, dtypes.int64]


def test_typed_constants_keep_their_type() -> None:
    u = wa.asarray(np.array([42, 8], np.uint8), "dali")
    assert (u + Constant(10, dtypes.int16)).dtype == dtypes.int16
    assert (u + np.uint8(10)).dtype == dtypes.uint8
    assert (u + 10).dtype == dtypes.int32


def test_views_of_views_are_one_view() -> None:
    a = wa.asarray(np.zeros((4, 6)))
    node = a[1:][::-1].T[2:, None].broadcast_to(4, 5, 3).node
    assert isinstance(node, View)
    assert node.source is a.node
    assert a[:, :].node is a.node
    assert a.T.T.node is a.node


def test_a_reduction_over_no_axes_is_a_conversion() -> None:
    node = wa.asarray(np.int8(3)).sum().node
    assert isinstance(node, Convert)
    assert node.dtype == dtypes.int64


def test_maxima_follow_the_systems_maximum() -> None:
    # NumPy's maximum gives NaN, Triton's the number
    for system, meaning in (("numpy", "max_nan"), ("jax", "max_nan"), ("triton", "max")):
        node = wa.asarray(np.ones(3, np.float32), system).max().node
        assert isinstance(node, Reduce)
        assert node.meaning == meaning
    integers = wa.asarray(np.ones(3, np.int32)).max().node
    assert isinstance(integers, Reduce)
    assert integers.meaning == "max"


@pytest.mark.jit
def test_a_mean_of_many_float16_does_not_overflow() -> None:
    # the sum, 70000, and the count are no float16
    a = wa.asarray(np.ones(70000, np.float16))
    assert a.mean().item() == 1.0
    assert a.mean().dtype == dtypes.float16


# ---- values -----------------------------------------------------------------------------------------------------------


def test_values_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []
    real = backends.run

    def counted(*arguments: Any) -> Any:
        runs.append(len(arguments[0]))
        return real(*arguments)

    monkeypatch.setattr("weft.array.execution.backends.run", counted)
    with wa.use_backend("reference"):
        a = wa.asarray([1, 2]) + 1
        assert runs == []
        assert a.numpy().tolist() == [2, 3]
        assert a.numpy() is not None
        assert runs == [1]
        b, c = a * 2, a * 3
        assert [r.tolist() for r in wa.compute(b, a, c)] == [[4, 6], [2, 3], [6, 9]]
        assert runs == [1, 2]  # two at once, and `a` not again


@pytest.mark.usefixtures("apart")
def test_a_computed_array_lets_its_expression_go(backend: str) -> None:
    a = wa.asarray(np.ones(3)) + 1
    gone = weakref.ref(a.node)
    a.numpy()
    gc.collect()
    assert gone() is None


def test_values_are_read_only_and_data_are_shared() -> None:
    array = np.ones(3, np.float32)
    a = wa.asarray(array)
    assert np.shares_memory(a.numpy(), array)
    assert not a.numpy().flags.writeable
    assert array.flags.writeable
    assert not np.asarray(a).flags.writeable
    copy = np.array(a)
    copy[0] = 2
    assert array[0] == 1


def test_computing_gives_values_that_nobody_can_write(backend: str) -> None:
    array = np.ones(3, np.float32)
    a = wa.asarray(array)
    for values in (*wa.compute(a, a + 1, a[::2]), *wa.compute(a)):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 5
    assert array.tolist() == [1, 1, 1]
    assert array.flags.writeable


def test_an_array_keeps_its_form_whatever_becomes_of_the_object_it_was_made_of(backend: str) -> None:
    data = np.arange(4.0)
    a = wa.asarray(data)
    data.resize((2, 2), refcheck=False)  # in place, as is ``data.shape = 2, 2``
    assert a.numpy().tolist() == [0, 1, 2, 3]
    assert (a + 1).numpy().tolist() == [1, 2, 3, 4]


def test_an_expression_used_twice_is_one_node(backend: str) -> None:
    a = wa.asarray(np.arange(4.0)).sum()
    assert (a + a).item() == 12.0


def test_python_takes_single_elements(backend: str) -> None:
    three = wa.asarray([[1.5, 1.5]]).sum()
    assert (float(three), int(three), bool(three), three.item()) == (3.0, 3, True, 3.0)
    assert "abcd"[wa.asarray(2)] == "c"
    assert not wa.asarray(0)
    assert len(wa.asarray([[1], [2]])) == 2


def test_numpys_operators_leave_it_to_weft(backend: str) -> None:
    a = wa.asarray(np.array([1, 2], np.int8), "jax")
    for result in (np.ones(2, np.float32) + a, np.float32(1) + a, np.add(np.float32(1), a)):
        assert isinstance(result, wa.Array)
        assert (result.dtype, result.numpy().tolist()) == (dtypes.float32, [2.0, 3.0])
    root: Any = np.sqrt(a)
    assert root.dtype == dtypes.float32


def test_in_place_operators_make_new_arrays(backend: str) -> None:
    a = before = wa.asarray([1, 2])
    a += 1
    assert (before.numpy().tolist(), a.numpy().tolist()) == ([1, 2], [2, 3])


def test_printing_an_expression_computes_nothing() -> None:
    a = wa.asarray(np.ones((2, 3), np.int8), "jax") + 0.5
    assert repr(a) == "Array(shape=(2, 3), dtype=float64 (weak), semantics=jax)"
    assert not isinstance(a.node, Input)


def test_printing_values() -> None:
    assert repr(wa.asarray([1, 2], "dali")) == "Array([1, 2], dtype=int32, semantics=dali)"
    assert repr(wa.asarray([[True], [False]])) == ("Array([[ True],\n       [False]], dtype=bool, semantics=numpy)")


# ---- numbers and lists ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "ints", "floats"),
    [("numpy", "int64", "float64"), ("jax", "int64", "float64"), ("jax-x32", "int32", "float32")]
    + [("triton", "int32", "float32"), ("dali", "int32", "float32"), ("torch", "int64", "float32")],
)
def test_lists_have_the_systems_types(system: str, ints: str, floats: str) -> None:
    assert str(wa.asarray([[1, 2], [3, 4]], system).dtype) == ints
    assert str(wa.asarray([1, 2.5], system).dtype) == floats
    assert str(wa.asarray([True], system).dtype) == "bool"
    assert not wa.asarray([1], system).weak


def test_great_integers_in_lists() -> None:
    assert wa.asarray([1, 2**40], "triton").dtype == dtypes.int64
    assert wa.asarray([2**31], "triton").dtype == dtypes.uint32
    assert wa.asarray([-1, 2**31], "triton").dtype == dtypes.int64
    assert wa.asarray([2**63]).dtype == dtypes.uint64


def test_a_dtype_can_be_chosen() -> None:
    for spelling in (dtypes.bfloat16, "bfloat16", "bf16", ml_dtypes.bfloat16, np.dtype(ml_dtypes.bfloat16)):
        assert wa.asarray([1, 2], dtype=spelling).dtype == dtypes.bfloat16
    assert wa.asarray(np.array([1.7]), dtype=np.int8).numpy().tolist() == [1]
    assert wa.asarray(3, "jax", "int8").weak is False


def test_numbers_of_numpy_are_typed() -> None:
    assert wa.asarray(np.float16(1)).dtype == dtypes.float16
    assert wa.asarray([np.int8(1), np.int8(2)], "triton").dtype == dtypes.int8


def test_without_64_bit_types_data_narrow() -> None:
    a = wa.asarray(np.array([1.5, 2**40]), "jax-x32")
    assert a.dtype == dtypes.float32
    assert (a + 1).dtype == dtypes.float32


# ---- other libraries --------------------------------------------------------------------------------------------------


class Producer:
    """An array that only speaks DLPack."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OnDevice(Producer):
    """The same, in the memory of a GPU."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


class Jax:
    """An array like JAX's: ``__array__`` and ``weak_type``."""

    weak_type = True

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array([1.5], np.float32)


@pytest.mark.parametrize("view", ["whole", "strided", "reversed", "empty"])
def test_dlpack_shares_memory(view: str) -> None:
    base = np.arange(12, dtype=np.int16).reshape(3, 4)
    array = {"whole": base, "strided": base[1:, ::2], "reversed": base.T, "empty": base[:0]}[view]
    a = wa.asarray(Producer(array))
    assert (a.shape, a.dtype) == (array.shape, dtypes.int16)
    np.testing.assert_array_equal(a.numpy(), array)
    assert np.shares_memory(a.numpy(), base) == (view != "empty")


@pytest.mark.usefixtures("apart")
def test_dlpack_keeps_the_owner_alive() -> None:
    array = np.arange(3.0)
    gone = weakref.ref(array)
    a = wa.asarray(Producer(array))
    del array
    gc.collect()
    assert gone() is not None
    assert a.numpy().tolist() == [0.0, 1.0, 2.0]


def test_results_leave_through_dlpack() -> None:
    a = wa.asarray(np.arange(3.0)) + 1
    with wa.use_backend("reference"):
        assert np.from_dlpack(a).tolist() == [1.0, 2.0, 3.0]
        assert a.__dlpack_device__() == (1, 0)
        assert a.__dlpack__() is not None  # a consumer from before DLPack 1.0, which knows no read-only memory


def test_a_device_is_refused() -> None:
    message = (
        "asarray cannot read a OnDevice: found an array on a device of DLPack's kind CUDA, expected memory of the CPU"
    )
    with pytest.raises(TypeError, match=f"^{message}$"):
        wa.asarray(OnDevice(np.ones(1)))


def test_weak_types_of_jax_are_kept_under_jax() -> None:
    assert wa.asarray(Jax(), "jax").weak
    assert not wa.asarray(Jax(), "numpy").weak


def test_other_arrays_are_operands() -> None:
    a = wa.asarray(np.array([1, 2, 3], np.int8), "jax")
    assert (a + Producer(np.ones(3, np.float16))).dtype == dtypes.float16
    assert (Jax() * a.astype("float16")).dtype == dtypes.float16  # weakly typed, so it yields


@pytest.mark.torch
def test_torch() -> None:
    torch: Any = pytest.importorskip("torch")
    tensor = torch.arange(4, dtype=torch.bfloat16)
    a = wa.asarray(tensor, "torch")
    assert a.dtype == dtypes.bfloat16
    assert (a + 1).numpy().astype(np.float32).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert torch.from_dlpack(wa.asarray(np.arange(3.0)) * 2).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises((TypeError, RuntimeError), match="grad"):
        wa.asarray(torch.ones(2, requires_grad=True), "torch")
