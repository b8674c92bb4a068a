"""NumPy's functions follow the arrays' system or raise; values that leave it are heard of."""

from __future__ import annotations

import contextlib
import inspect
import math
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import weft.array as wa
from weft import dtypes
from weft.array.api import protocol
from weft.array.api.numpy_functions import SPECIAL
from weft.array.expression import tracing

NP: Any = np
DATA = np.array([[200, 7, 100], [3, 0, 255]], np.uint8)

SAME: list[tuple[str, Callable[[Any], Any]]] = [
    ("sum", np.sum),
    ("sum axis", lambda a: np.sum(a, 0)),
    ("sum keywords", lambda a: np.sum(a, axis=1, keepdims=True, out=None)),
    ("sum dtype", lambda a: np.sum(a, dtype=np.float32)),
    ("mean", np.mean),
    ("mean keywords", lambda a: np.mean(a, axis=(0, 1), keepdims=True)),
    ("mean dtype", lambda a: np.mean(a, dtype="float32")),
    ("prod", lambda a: np.prod(a, axis=-1)),
    ("amax", lambda a: np.amax(a, 1)),
    ("min", lambda a: np.min(a, axis=0)),
    ("argmax", lambda a: np.argmax(a, axis=1, keepdims=True)),
    ("argmin", np.argmin),
    ("any", lambda a: np.any(a, axis=0)),
    ("all", np.all),
    ("cumsum", lambda a: np.cumsum(a, axis=1)),
    ("cumsum dtype", lambda a: np.cumsum(a, dtype=np.float64)),
    ("where", lambda a: np.where(a > 50, a, 1)),
    ("clip", lambda a: np.clip(a, 5, 100)),
    ("clip below", lambda a: np.clip(a, 5, None)),
    ("clip above", lambda a: np.clip(a, None, 100)),
    ("clip keywords", lambda a: np.clip(a, min=5, max=100)),
    ("clip nothing", lambda a: np.clip(a, None, None)),
    ("reshape", lambda a: np.reshape(a, (3, 2))),
    ("reshape -1", lambda a: np.reshape(a, -1)),
    ("transpose", np.transpose),
    ("transpose axes", lambda a: np.transpose(a, (1, 0))),
    ("permute_dims", np.permute_dims),
    ("expand_dims", lambda a: np.expand_dims(a, 1)),
    ("squeeze", lambda a: np.squeeze(a[:1], axis=0)),
    ("broadcast_to", lambda a: np.broadcast_to(a, (4, 2, 3))),
    ("astype", lambda a: np.astype(a, np.int16)),
    ("real", np.real),
    ("copy", np.copy),
    ("dot", lambda a: np.dot(a, a.T)),
    ("dot number", lambda a: np.dot(2.0, a)),
    ("matmul", lambda a: np.matmul(a, a.T)),
    ("add.reduce", np.add.reduce),
    ("add.reduce axis", lambda a: np.add.reduce(a, 1, keepdims=True)),
    ("add.reduce all", lambda a: np.add.reduce(a, axis=None)),
    ("multiply.reduce", lambda a: np.multiply.reduce(a, axis=1)),
    ("maximum.reduce", np.maximum.reduce),
    ("add.accumulate", lambda a: np.add.accumulate(a, axis=1)),
    ("np.concatenate([a, a], axis=1)", lambda a: np.concatenate([a, a], axis=1)),
    ("np.concatenate((a, DATA))", lambda a: np.concatenate((a, DATA))),
    ("np.stack([a, a], axis=1)", lambda a: np.stack([a, a], axis=1)),
    ("np.vstack([a, a[0]])", lambda a: np.vstack([a, a[0]])),
    ("np.hstack([a, a])", lambda a: np.hstack([a, a])),
    ("np.hstack([a[0], a[1]])", lambda a: np.hstack([a[0], a[1]])),
    ("np.column_stack([a[:, 0], a])", lambda a: np.column_stack([a[:, 0], a])),
    ("np.split(a, 3, axis=1)[1]", lambda a: np.split(a, 3, axis=1)[1]),
    ("np.flip(a, 1)", lambda a: np.flip(a, 1)),
    ("np.flipud(a)", lambda a: np.flipud(a)),
    ("np.fliplr(a)", lambda a: np.fliplr(a)),
    ("np.roll(a, (1, 2), (0, 1))", lambda a: np.roll(a, (1, 2), (0, 1))),
    ("np.pad(a, ((1, 0), (0, 2)))", lambda a: np.pad(a, ((1, 0), (0, 2)))),
    ("np.take(a, [0, 2], axis=1)", lambda a: np.take(a, [0, 2], axis=1)),
    (
        "np.take_along_axis(a, np.argsort(a, axis=1), axis=1)",
        lambda a: np.take_along_axis(a, np.argsort(a, axis=1), axis=1),
    ),
    ("np.isnan(a * 1.0)", lambda a: np.isnan(a * 1.0)),
    ("np.logical_and(a > 1, a < 9)", lambda a: np.logical_and(a > 1, a < 9)),
    ("np.full_like(a, 7)", lambda a: np.full_like(a, 7)),
    ("np.zeros_like(a, dtype=np.float32)", lambda a: np.zeros_like(a, dtype=np.float32)),
    ("np.var(a, axis=1, ddof=1)", lambda a: np.var(a, axis=1, ddof=1)),
    ("np.std(a * 1.0, axis=0, keepdims=True)", lambda a: np.std(a * 1.0, axis=0, keepdims=True)),
    ("np.sort(a, axis=0)", lambda a: np.sort(a, axis=0)),
    ("np.cumprod(a, axis=1)", lambda a: NP.cumprod(a, axis=1)),
    ("np.einsum('ij,kj->ik', a, a)", lambda a: np.einsum("ij,kj->ik", a, a)),
    ("np.tensordot(a, a, axes=([0, 1], [0, 1]))", lambda a: np.tensordot(a, a, axes=([0, 1], [0, 1]))),
    ("np.outer(a[0], a[1])", lambda a: np.outer(a[0], a[1])),
    ("np.round(a / 7, 1)", lambda a: NP.round(a / 7, 1)),
    ("np.swapaxes(a, 0, 1)", lambda a: np.swapaxes(a, 0, 1)),
    ("np.moveaxis(a, 0, 1)", lambda a: np.moveaxis(a, 0, 1)),
    ("np.matrix_transpose(a)", lambda a: np.matrix_transpose(a)),
    ("np.ravel(a)", lambda a: np.ravel(a)),
    ("np.repeat(a, 2, axis=1)", lambda a: np.repeat(a, 2, axis=1)),
    ("np.tile(a, (2, 1))", lambda a: np.tile(a, (2, 1))),
    ("np.diff(a)", lambda a: np.diff(a)),
    ("np.diff(a, 2, axis=1)", lambda a: np.diff(a, 2, axis=1)),
    ("np.diff(a > 5, axis=0)", lambda a: np.diff(a > 5, axis=0)),
    ("np.count_nonzero(a)", lambda a: np.count_nonzero(a)),
    ("np.count_nonzero(a > 5, axis=1, keepdims=True)", lambda a: NP.count_nonzero(a > 5, axis=1, keepdims=True)),
    ("np.ptp(a, axis=0)", lambda a: np.ptp(a, axis=0)),
    ("np.maximum.accumulate(a, axis=1)", lambda a: np.maximum.accumulate(a, axis=1)),
    ("scalar on the left", lambda a: np.float32(2) * a),
    ("array on the left", lambda a: DATA + a),
]


@pytest.mark.parametrize(("name", "call"), SAME, ids=[name for name, _ in SAME])
def test_numpys_functions_under_numpys_rules_are_numpys(name: str, call: Callable[[Any], Any]) -> None:
    expected = np.asarray(call(DATA))  # before NumPy 2.4 a count is an int
    with wa.use_backend("reference"):
        found = call(wa.asarray(DATA, "numpy"))
        assert isinstance(found, wa.Array), name
        assert (found.dtype, found.shape) == (dtypes.named(expected.dtype.name), expected.shape)
        np.testing.assert_array_equal(found.numpy(), expected)


FOLLOWED: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("clip", lambda a: np.clip(a, -5, 300), lambda a: wa.clamp(a, -5, 300)),
    ("where", lambda a: np.where(a > 3, a, -1), lambda a: wa.where(a > 3, a, -1)),
    ("sum", np.sum, wa.sum),
    ("mean", lambda a: np.mean(a, keepdims=True), lambda a: wa.mean(a, keepdims=True)),
    ("cumsum", np.cumsum, wa.cumsum),
    ("add.reduce", lambda a: np.add.reduce(a, axis=None), wa.sum),
]


@pytest.mark.parametrize("system", ["jax", "torch", "dali", "max", "triton", "numpy"])
@pytest.mark.parametrize(("name", "called", "own"), FOLLOWED, ids=[name for name, _, _ in FOLLOWED])
def test_numpys_functions_are_those_of_the_system(
    system: str, name: str, called: Callable[[Any], Any], own: Callable[[Any], Any]
) -> None:
    def outcome(function: Callable[[Any], Any]) -> object:
        try:
            result = function(wa.asarray(DATA, system))
            return result.dtype, result.weak, result.semantics.name, result.numpy().tolist()
        except (TypeError, ValueError) as error:
            return str(error)

    with wa.use_backend("reference"):
        assert outcome(called) == outcome(own), name


def test_facts_about_arrays() -> None:
    a = wa.asarray(DATA, "jax")
    assert (np.shape(a), np.ndim(a), np.size(a), np.size(a, 1)) == ((2, 3), 2, 6, 3)
    assert (np.iscomplexobj(a), np.isrealobj(a)) == (False, True)


def test_readers_get_the_values() -> None:
    a: Any = wa.asarray(DATA, "jax")
    with tracing.departures() as left:
        assert np.array_equal(a, DATA) and not np.allclose(DATA, a + 1)
        assert np.array_repr(a[0]) == "array([200,   7, 100], dtype=uint8)"
    assert [d.way for d in left] == ["numpy.array_equal", "numpy.allclose", "numpy.array_repr"]


REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    (
        "numpy.convolve has no counterpart in weft.array; pass array.numpy() to compute with NumPy, outside jax",
        lambda a: np.convolve(a, a),
    ),
    (
        "numpy.linalg.norm has no counterpart in weft.array; pass array.numpy() to compute with NumPy, outside jax",
        np.linalg.norm,
    ),
    (
        "numpy.add.at has no counterpart in weft.array; pass array.numpy() to compute with NumPy, outside jax",
        lambda a: np.add.at(a, 0, 1),
    ),
    (
        "numpy.spacing has no counterpart in weft.array; pass array.numpy() to compute with NumPy, outside jax",
        np.spacing,
    ),
    (
        "numpy.add(out=) has no counterpart in weft.array, whose arrays are never written to; "
        "leave it out, or write apply('+', ...)",
        lambda a: np.add(a, 1, out=DATA.copy()),
    ),
    (
        "numpy.add(where=) has no counterpart in weft.array; leave it out, or write apply('+', ...)",
        lambda a: np.add(a, 1, where=DATA > 3),
    ),
    (
        "numpy.sum(where=) has no counterpart in weft.array; weft.array.sum takes x, axis, keepdims",
        lambda a: np.sum(a, where=DATA > 3),
    ),
    (
        "numpy.max(initial=) has no counterpart in weft.array; weft.array.max takes x, axis, keepdims",
        lambda a: np.max(a, initial=3),
    ),
    (
        "numpy.add.reduce(initial=) has no counterpart in weft.array; weft.array.sum takes x, axis, keepdims",
        lambda a: np.add.reduce(a, initial=3),
    ),
    (
        "numpy.sum(dtype=int8) gives int64 in jax; write weft.array.sum(...).astype('int8')",
        lambda a: np.sum(a, dtype="int8"),
    ),
    (
        "numpy.clip(where=) has no counterpart in weft.array; it takes a, a_min, a_max, min, max",
        lambda a: np.clip(a, 1, 2, where=DATA > 3),
    ),
    (
        "numpy.where of a condition alone has no counterpart in weft.array; write where(mask, x, y)",
        lambda a: np.where(a > 3),
    ),
    (
        "numpy.dot of more than two dimensions has no counterpart; write weft.array.matmul(a, b)",
        lambda a: np.dot(a.reshape(1, 2, 3), a.T),
    ),
]


@pytest.mark.parametrize(("message", "call"), REFUSED, ids=[message.partition(" ")[0] for message, _ in REFUSED])
def test_what_has_no_counterpart(message: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError) as raised:
        call(wa.asarray(DATA, "jax"))
    assert str(raised.value) == message


def test_writing_into_numpys_arrays_is_refused() -> None:
    buffer = DATA.copy()
    with pytest.raises(TypeError, match=r"^numpy.add\(out=\) has no counterpart"):
        buffer += wa.asarray(DATA, "jax")
    assert np.array_equal(buffer, DATA)


# ---- no way out in silence ---------------------------------------------------------------------------------------------


def offered() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every function of NumPy that asks its arguments first."""
    for space in (np, np.linalg, np.fft):
        for name in dir(space):
            function = getattr(space, name)
            asks = isinstance(function, np.ufunc) or type(function).__name__ == "_ArrayFunctionDispatcher"
            if asks and not name.startswith(("_", "save")):
                yield f"{space.__name__}.{name}", function


LISTS = {f"numpy.{name}" for name in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block")}
"""The functions that look for arrays in a list. The others read a list of arrays like any nested list."""


def test_no_function_of_numpy_reads_the_values() -> None:
    a = wa.asarray(DATA.astype(np.float32), "jax")
    asked = [(name, f) for name, f in offered() if name.partition(".")[2] not in protocol.READERS]
    assert len(asked) > 300  # NumPy 2.4 has some 390
    for name, function in asked:
        lists = [([a, a],)] if name in LISTS else []
        seconds = (
            [(1, a)] if isinstance(function, np.ufunc) else []
        )  # of take and roll this would be indices and numbers
        for arguments in ((a,), (a, a), (a, a, a), (a, 1), (a, 1, a), *lists, *seconds):
            with tracing.departures() as left, warnings.catch_warnings(action="ignore"):
                try:
                    result = function(*arguments)
                except Exception:  # each function has its own about arguments that make no sense to it
                    result = None
            assert not left, f"{name} took values by {left[0].way}"
            assert not isinstance(result, (np.ndarray, np.generic)), name
    methods = [u for _, u in asked if isinstance(u, np.ufunc)]
    for ufunc in methods:
        for method in ("reduce", "accumulate", "outer", "at", "reduceat"):
            with tracing.departures() as left, contextlib.suppress(TypeError, ValueError, RuntimeError):
                getattr(ufunc, method)(a, *(([0], a) if method in ("at", "reduceat") else ()))
            assert not left, f"{ufunc.__name__}.{method}"


ONE = np.array([3], np.int32)
WAYS: list[tuple[str, Callable[[Any], Any]]] = [
    ("numpy.asarray", np.asarray),
    ("numpy.asarray", lambda a: np.array([a, a])),
    ("numpy.asarray", DATA[0, :1].dot),
    ("numpy.asarray", lambda a: DATA[a - 2]),
    (".numpy()", lambda a: a.numpy()),
    (".item()", lambda a: a.item()),
    ("float()", float),
    ("int()", int),
    ("complex()", complex),
    ("an index", lambda a: range(a[0])),
    ("an index", lambda a: "abcd"[a[0]]),
    ("float()", math.sqrt),
    ("bool()", bool),
    ("bool()", lambda a: 3 in a),
    ("DLPack", np.from_dlpack),
    ("weft.array.compute", lambda a: wa.compute(a, a + 1)),
    ("asarray(semantics='numpy')", lambda a: wa.asarray(a, "numpy")),
]


@pytest.mark.parametrize(("way", "leave"), WAYS, ids=[way for way, _ in WAYS])
def test_each_way_out_is_heard(way: str, leave: Callable[[Any], Any]) -> None:
    a = wa.asarray(ONE, "jax")
    with tracing.departures() as left:
        leave(a)
    assert {d.way for d in left} == {way}
    assert all(d.file == __file__ for d in left)


def test_what_takes_no_values_is_not_heard() -> None:
    with tracing.departures() as left:
        a = wa.asarray(ONE, "jax")
        assert isinstance(wa.asarray(a, "jax") + 1, wa.Array)
        assert len(a) == a.size == a.ndim == 1 and repr(a) and [*a][0].shape == ()
        assert isinstance(a.node, object) and isinstance(a.semantics.name, str)
    assert left == []


def test_there_is_no_buffer() -> None:
    with pytest.raises(TypeError, match="bytes-like object"):
        memoryview(wa.asarray(ONE))  # pyright: ignore[reportArgumentType]
    assert not any(hasattr(wa.Array, name) for name in ("__array_interface__", "__array_struct__", "__buffer__"))
    assert isinstance(wa.Array.__array_function__, types.FunctionType)


@pytest.mark.parametrize("name", protocol.IN_C)
def test_parameters_of_functions_in_c_are_numpys(name: str) -> None:
    """Names, places and defaults, as NumPy 2.4 says them."""
    try:
        said = inspect.signature(getattr(np, name))
    except ValueError:
        pytest.skip(f"NumPy {np.__version__} does not say the parameters of {name}")
    ours = inspect.signature(protocol.IN_C[name])
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
        (p.name, p.kind, p.default) for p in said.parameters.values()
    ]


def test_every_function_in_c_with_a_counterpart_has_its_parameters_here() -> None:
    in_c = {name for name, f in offered() if inspect.isbuiltin(getattr(f, "_implementation", None))}
    names = {name.removeprefix("numpy.") for name in in_c}
    ours = {name for name in names if name in SPECIAL or protocol._NAMES.get(name, name) in wa.__all__}  # pyright: ignore[reportPrivateUsage]
    assert {"where", "vdot"} <= ours <= protocol.IN_C.keys()


def test_functions_in_c_need_not_say_their_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before NumPy 2.4 they do not."""
    said = inspect.signature

    def before(called: Any) -> inspect.Signature:
        if inspect.isbuiltin(getattr(called, "_implementation", None)):
            raise ValueError(f"no signature found for builtin {called}")
        return said(called)

    monkeypatch.setattr(inspect, "signature", before)
    protocol._parameters.cache_clear()  # pyright: ignore[reportPrivateUsage]
    x: Any = wa.asarray(DATA, semantics="numpy")
    assert NP.where(x > 50, x, 1).numpy().tolist() == [[200, 1, 100], [1, 1, 255]]
    assert np.concatenate([x, x], axis=1).shape == (2, 6)
    assert NP.dot(x, 2).numpy().tolist() == [[144, 14, 200], [6, 0, 254]]
    assert np.empty_like(x).shape == (2, 3)
    protocol._parameters.cache_clear()  # pyright: ignore[reportPrivateUsage]
