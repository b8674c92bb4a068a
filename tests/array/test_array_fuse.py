"""Functions compiled once per signature, and graphs built ahead of their data."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

import weft
import weft.array as wa
from weft import dtypes, semantics
from weft.array.execution import backends, reference
from weft.array.expression import tracing
from weft.array.expression.structure import leaves
from weft.runtime.emulated import EmulatedKernel


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of outputs of each plan made."""
    made: list[int] = []
    real = backends.plan

    def counted(outputs: Any, *rest: Any) -> Any:
        made.append(len(outputs))
        return real(outputs, *rest)

    monkeypatch.setattr("weft.array.execution.backends.plan", counted)
    return made


def test_a_signature_is_traced_and_compiled_once(backend: str, plans: list[int]) -> None:
    calls: list[str] = []

    @wa.fuse(semantics="jax")
    def scale(x: wa.Array, y: wa.Array) -> wa.Array:
        calls.append(str(x.dtype))
        return x * 2 + y

    for n in range(3):
        result = scale(np.full(4, n, np.float32), np.ones(4, np.int8))
        assert (result.dtype, result.numpy().tolist()) == (dtypes.float32, [2.0 * n + 1] * 4)
    assert (calls, plans, scale.signatures) == (["float32"], [1], 1)
    scale(np.ones(4, np.float16), np.ones(4, np.int8))  # another dtype
    scale(np.ones(3, np.float16), np.ones(3, np.int8))  # another shape
    scale(wa.asarray(2.0, "jax"), np.ones(3, np.int8))  # weak
    scale(wa.asarray(2.0, "jax", "float64"), np.ones(3, np.int8))  # not weak
    assert scale.signatures == len(calls) == len(plans) == 5


def test_strides_are_no_part_of_a_signature(backend: str) -> None:
    @wa.fuse
    def double(x: wa.Array) -> wa.Array:
        return x * 2

    base = np.arange(12.0).reshape(3, 4)
    for array in (base, base[::-1], np.asfortranarray(base)):
        np.testing.assert_array_equal(double(array).numpy(), array * 2)
    assert double.signatures == 1


def test_numbers_are_literals_of_the_signature(backend: str) -> None:
    @wa.fuse(semantics="jax")
    def add(x: wa.Array, y: Any) -> wa.Array:
        return x + y

    x = np.ones(2, np.int8)
    assert add(x, 1).dtype == dtypes.int8
    assert add(x, 1.5).dtype == dtypes.float64
    assert add(x, True).dtype == dtypes.int8
    assert add(x, 1).numpy().tolist() == [2, 2]
    assert add(x, np.float32(1.5)).numpy().tolist() == [2.5, 2.5]
    assert add(x, np.float32(2.5)).numpy().tolist() == [3.5, 3.5]  # a typed scalar is an input
    assert add.signatures == 4


def test_signs_of_zero_and_nan_are_told_apart(backend: str) -> None:
    @wa.fuse
    def copysign(x: wa.Array, y: float) -> wa.Array:
        return wa.atan2(x * y, x * 0 - 1)

    x = np.ones(1)
    assert copysign(x, 0.0).item() == pytest.approx(np.pi)
    assert copysign(x, -0.0).item() == pytest.approx(-np.pi)
    copysign(x, float("nan"))
    copysign(x, float("nan"))
    assert copysign.signatures == 3


def test_nests_come_in_and_go_out(backend: str) -> None:
    @wa.fuse
    def step(state: dict[str, wa.Array], *, rates: tuple[Any, ...], axis: int) -> Any:
        total = state["x"].sum(axis)
        return {"x": state["x"] * rates[0]}, [total, total.max()], 3

    new, (total, most), three = step({"x": np.ones((2, 3))}, rates=(0.5, None), axis=0)
    assert new["x"].numpy().tolist() == [[0.5] * 3] * 2
    assert (total.numpy().tolist(), most.item(), three.item()) == ([2.0] * 3, 2.0, 3)


def test_data_of_the_function_itself_come_along(backend: str) -> None:
    table = wa.asarray(np.arange(3.0))

    @wa.fuse
    def look(x: wa.Array) -> tuple[wa.Array, wa.Array, wa.Array]:
        return x + table + np.ones(3), table, x

    for value in (1.0, 2.0):
        a, b, c = look(np.full(3, value))
        assert a.numpy().tolist() == [value + 1, value + 2, value + 3]
        assert (b.numpy().tolist(), c.numpy().tolist()) == ([0.0, 1.0, 2.0], [value] * 3)


def test_fused_functions_inline_into_each_other(backend: str, plans: list[int]) -> None:
    @wa.fuse
    def inner(x: wa.Array) -> wa.Array:
        return x + 1

    @wa.fuse
    def outer(x: wa.Array) -> wa.Array:
        return inner(x) * inner(x * 2)

    assert outer(np.array([3.0])).numpy().tolist() == [28.0]
    assert plans == [1]


def test_the_system_is_the_functions_else_the_arrays_else_the_blocks(backend: str) -> None:
    def half(x: wa.Array) -> wa.Array:
        return x / 2

    i = np.array([3], np.int32)
    assert wa.fuse(half, semantics="dali")(i).dtype == dtypes.float32
    assert wa.fuse(half)(i).dtype == dtypes.float64
    assert wa.fuse(half)(wa.asarray(i, "jax")).dtype == dtypes.float32
    fused = wa.fuse(half)
    with semantics.use("torch"):
        assert (fused(i).semantics.name, fused(i).dtype) == ("torch", dtypes.float32)
    assert fused(i).semantics.name == "numpy"
    assert fused.signatures == 2


def test_the_name_and_the_documentation_stay() -> None:
    @wa.fuse
    def documented(x: wa.Array) -> wa.Array:
        """Says so."""
        return x

    assert (documented.__name__, documented.__doc__) == ("documented", "Says so.")


TRACED = (
    "this array stands for a parameter while a function or graph is traced, and has no values yet; "
    "choose between values with weft.array.where, not with Python's if, while or bool"
)

PEEKS: list[Callable[[wa.Array], Any]] = [
    lambda x: x if x[0] > 0 else -x,
    lambda x: float(x.sum()),
    lambda x: x.numpy(),
    lambda x: np.asarray(x) + 1,
]


@pytest.mark.parametrize("peek", PEEKS)
def test_a_traced_array_has_no_values(peek: Callable[[wa.Array], Any]) -> None:
    with pytest.raises(wa.TracedValue, match=f"^{re.escape(TRACED)}$"):
        wa.fuse(peek)(np.ones(3))


def test_an_argument_that_is_no_argument() -> None:
    with pytest.raises(TypeError, match=r"^f\(\) takes arrays, numbers and hashable values, found set$"):

        @wa.fuse
        def f(x: Any) -> Any:
            return x

        f(set[int]())


@dataclass(frozen=True)
class Rate:
    """A setting that equals others which are written differently."""

    by: float


def test_settings_that_are_equal_and_not_the_same_are_told_apart(backend: str) -> None:
    @wa.fuse(semantics="jax")
    def over(x: wa.Array, rate: Rate) -> wa.Array:
        return x / rate.by

    @wa.fuse(semantics="jax")
    def times(x: wa.Array, rate: Rate) -> wa.Array:
        return x * rate.by

    x, i = np.ones(2, np.float32), np.ones(2, np.int8)
    assert [over(x, Rate(by)).numpy().tolist() for by in (0.0, -0.0)] == [[np.inf] * 2, [-np.inf] * 2]
    assert [times(i, Rate(by)).dtype for by in (1, 1.0, True)] == [dtypes.int8, dtypes.float64, dtypes.int8]
    assert times.signatures == 3
    times(i, Rate(1))
    assert times.signatures == 3


def test_named_tuples_of_one_name_are_told_apart(backend: str) -> None:
    class Pair(NamedTuple):
        x: Any
        y: Any

    class Swapped(NamedTuple):
        y: Any
        x: Any

    Swapped.__name__ = "Pair"

    @wa.fuse
    def minus(pair: Any) -> wa.Array:
        return pair.x - pair.y

    for _ in range(2):
        assert minus(Pair(np.full(2, 5.0), np.full(2, 3.0))).numpy().tolist() == [2, 2]
        assert minus(Swapped(np.full(2, 5.0), np.full(2, 3.0))).numpy().tolist() == [-2, -2]


def test_systems_of_one_name_are_told_apart() -> None:
    numpy, known = semantics.get("numpy"), cast(Any, semantics.get("torch"))
    torch: semantics.Semantics = replace(known, name=numpy.name)

    @wa.fuse
    def half(x: wa.Array) -> wa.Array:
        return x / 2

    for _ in range(3):
        for array in (np.array([3], np.int32), wa.asarray([3], numpy, "int32")):
            assert half(array).dtype == dtypes.float64
            moved = array if isinstance(array, np.ndarray) else wa.asarray(array.numpy(), torch)
            with semantics.use(torch):
                assert half(moved).dtype == dtypes.float32


def test_a_fused_call_takes_no_values_out(backend: str) -> None:
    @wa.fuse
    def more(x: wa.Array) -> wa.Array:
        return x + 1

    x = wa.asarray(np.ones(2))
    with tracing.departures() as left:
        for _ in range(3):
            x = more(x + 1)
    assert left == []


def test_fused_functions_refuse_arrays_of_another_system() -> None:
    message = "'half' mixes arrays of dali and jax; move one over with weft.array.asarray(array, semantics='dali')"

    def half(x: wa.Array) -> wa.Array:
        return x / 2

    with pytest.raises(wa.MixedSemantics, match=f"^{re.escape(message)}$"):
        wa.fuse(half, semantics="dali")(wa.asarray([1], "jax"))


# ---- graphs -----------------------------------------------------------------------------------------------------------


def linear() -> wa.Graph:
    """y = x @ w + 1 and its greatest element."""
    graph = wa.Graph("max")
    x, w = graph.input("x", "float32", (2, 3)), graph.input("w", np.float32, [3, 2])
    y = x @ w + graph.scalar(1, "float32")
    graph.output(y)
    graph.output(y.max())
    return graph


def test_a_graph_is_compiled_once_and_called_many_times(backend: str, plans: list[int]) -> None:
    run = linear().compile()
    assert run.inputs == ("x", "w")
    w = np.ones((3, 2), np.float32)
    for n in (1, 2):
        x = np.full((2, 3), n, np.float32)
        y, most = run(x, w=w)
        assert y.numpy().tolist() == [[3 * n + 1] * 2] * 2
        assert most.item() == 3 * n + 1
    assert plans == [2]


def test_types_are_known_before_any_data() -> None:
    graph = wa.Graph()
    u, i = graph.input("u", "uint8", 4), graph.input("i", "int8", 4)
    assert graph.semantics.name == "max"
    assert (u + i).dtype == dtypes.int16  # the documented lattice
    assert (u.dtype, u.shape, (u / i).dtype) == (dtypes.uint8, (4,), dtypes.float64)
    assert (u + graph.scalar(2.5, "bfloat16")).dtype == dtypes.bfloat16


def test_one_output_comes_alone(backend: str) -> None:
    graph = wa.Graph("numpy")
    graph.output(graph.input("x", "int8", ()) + 1)
    assert graph.compile()(np.int8(4)).item() == 5


def refused_inputs() -> wa.Graph:
    """Another graph's input among the outputs."""
    graph = wa.Graph()
    graph.output(wa.Graph().input("other", "int8", ()))
    return graph


GRAPH_ERRORS: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (ValueError, "the graph has no outputs; name them with graph.output(array)", lambda: wa.Graph().compile()),
    (
        ValueError,
        "an output depends on 'other', which is no input of this graph",
        lambda: refused_inputs().compile(),
    ),
    (ValueError, "the graph has an input 'x' already", lambda: linear().input("x", "int8")),
    (ValueError, "a shape has no negative sizes, found (-1,)", lambda: wa.Graph().input("x", "int8", -1)),
    (
        wa.UnsupportedDType,
        "input 'x' is tensor_float32, which weft does not compute with; cast to float32 first",
        lambda: wa.Graph().input("x", "tensor_float32"),
    ),
    (TypeError, "the graph takes (x, w), found no 'w'", lambda: linear().compile()(np.ones(2))),
    (TypeError, "the graph takes (x, w), found 'z'", lambda: linear().compile()(z=1)),
    (TypeError, "the graph takes (x, w), found 'x' twice", lambda: linear().compile()(1, 2, x=1)),
    (TypeError, "the graph takes (x, w), found 3 arguments", lambda: linear().compile()(1, 2, 3)),
    (
        TypeError,
        "graph input 'x' is float32 of shape (2, 3), found float64 of shape (2, 3)",
        lambda: linear().compile()(np.ones((2, 3)), np.ones((3, 2), np.float32)),
    ),
    (
        wa.MixedSemantics,
        "'output' mixes arrays of max and jax; move one over with weft.array.asarray(array, semantics='max')",
        lambda: wa.Graph().output(wa.asarray(1, "jax")),
    ),
    (wa.TracedValue, TRACED, lambda: bool(wa.Graph().input("x", "int8"))),
]


@pytest.mark.parametrize(("kind", "message", "fails"), GRAPH_ERRORS, ids=[c[1][:40] for c in GRAPH_ERRORS])
def test_what_graphs_refuse(kind: type[Exception], message: str, fails: Callable[[], Any]) -> None:
    with wa.use_backend("reference"), pytest.raises(kind, match=f"^{re.escape(message)}$"):
        fails()


def test_repeated_calls_tell_apart_what_promotion_tells_apart() -> None:
    """After the first call, NumPy's arrays and plain values are looked up without being read."""

    @wa.fuse(semantics="jax")
    def times(x: wa.Array, y: Any) -> wa.Array:
        return x / y

    ones = np.ones(3, "float32")
    for _ in range(2):
        assert times(ones, 0.0).numpy()[0] == np.inf
        assert times(ones, -0.0).numpy()[0] == -np.inf
        assert times(ones, True).numpy().dtype == np.float32
        assert times(ones.astype("int8"), 1).numpy().dtype == np.float32
        assert times(ones.astype("int8"), ones.astype("float16")).numpy().dtype == np.float16
        assert times(ones[::2], 2).numpy().tolist() == [0.5, 0.5]
    assert times.signatures == 6


def test_repeated_calls_take_arrays_that_lie_otherwise() -> None:
    @wa.fuse
    def minus(unused: wa.Array, x: wa.Array, y: wa.Array) -> wa.Array:
        return y - x

    base = np.arange(24, dtype=np.float32)
    shifted = np.frombuffer(b"\0" + base.tobytes(), np.float32, 24, offset=1)
    views = (base[:6], base[::4], base[5::-1], shifted[:6], base[6:12], wa.asarray(base[::4]), wa.asarray(base)[:6])
    for _ in range(2):
        for x in views:
            for y in views:
                expected = np.asarray(y) - np.asarray(x)
                np.testing.assert_array_equal(minus(y, x, y).numpy(), expected)
    assert minus.signatures == 1


def test_repeated_calls_follow_the_backend_and_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    launches: list[str] = []

    def counted(owner: Any, name: str, label: str) -> None:
        known = getattr(owner, name)

        def call(*arguments: Any) -> Any:
            launches.append(label)
            return known(*arguments)

        monkeypatch.setattr(owner, name, call)

    counted(EmulatedKernel, "launch", "emulated")
    counted(reference, "value_of", "reference")
    table = wa.asarray(np.arange(3.0))

    @wa.fuse
    def fused(x: wa.Array) -> wa.Array:
        return x + table

    for _ in range(2):
        for place, expected in (
            (nullcontext(), set[str]()),
            (wa.use_backend("reference"), {"reference"}),
            (weft.emulate("sm_90"), {"emulated"}),
        ):
            launches.clear()
            with place:
                assert fused(np.ones(3)).numpy().tolist() == [1, 2, 3]
            assert set(launches) == expected


KEPT: list[tuple[str, Callable[[wa.Array], Any]]] = [
    ("float32", lambda x: x + 1),
    ("float32", lambda x: x[:, ::2].sum(1)),
    ("float32", lambda x: wa.concatenate([x, wa.sort(x)])),
    ("float32", lambda x: x @ x.T),
    ("complex64", lambda x: x * x),
    ("int4", lambda x: x + x),
    ("bfloat16", lambda x: (x, x.T, x[0])),
]


@pytest.mark.usefixtures("apart")
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("number", range(len(KEPT)))
def test_neither_plans_nor_traces_keep_data_alive_or_share_its_memory(number: int, fused: bool, backend: str) -> None:
    dtype, plain = KEPT[number]
    function = wa.fuse(plain) if fused else plain
    for _ in range(3):
        data = np.ones((4, 6)).astype(dtypes.named(dtype).numpy)
        x, gone = wa.asarray(data), weakref.ref(data)
        results = [wa.asarray(leaf).numpy() for leaf in leaves(function(x))]
        assert not (fused and any(np.shares_memory(values, data) for values in results))
        assert data.flags.writeable
        del x, data, results
        gc.collect()
        assert gone() is None
