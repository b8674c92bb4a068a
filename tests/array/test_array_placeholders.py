"""The numbers of fused calls: the same results as without `weft.array.fuse`, whatever the function does with them."""

from __future__ import annotations

import copy
import functools
import math
import operator
import pickle
import random
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, TypeAlias, cast

import numpy as np
import pytest

import weft.array as wa
from weft import dtypes, semantics
from weft.array.api.placeholders import Placeholder
from weft.array.expression.structure import leaves
from weft.semantics import SYSTEMS

Operator: TypeAlias = Callable[[Any, Any], Any]

X: Final = np.array([0.5, -1.5, 3.0, 2.0], np.float32)
TABLE: Final = wa.asarray(np.arange(1.0, 5.0, dtype=np.float32))


@wa.fuse
def inner(x: Any, n: Any) -> Any:
    return x * n


def increased(x: Any, n: Any) -> Any:
    x += n
    return x


ARGUMENTS: Final[dict[str, Operator]] = {
    "times": lambda x, n: x * n,
    "from the left": lambda x, n: n - x,
    "twice": lambda x, n: (x * n + x) / n,
    "compared": lambda x, n: x < n,
    "compared from the left": lambda x, n: n <= x,
    "equal": lambda x, n: n == x,
    "of data of its own": lambda x, n: TABLE * n + x,
    "several results": lambda x, n: {"a": x + n, "b": (x, [x * n])},
    "a class": lambda x, n: x * n if isinstance(n, float) else x - n,
    "a pattern": lambda x, n: _matched(x, n),
    "another fused function": lambda x, n: inner(x, n),
    "in place": increased,
}
"""What takes a number as an argument: one trace for all numbers of a class."""


@functools.cache
def remembered(n: Any) -> Any:
    return n


READ: Final[dict[str, Operator]] = {
    "a branch": lambda x, n: x if n > 2 else -x,
    "a truth": lambda x, n: x if n else -x,
    "a branch of an equality": lambda x, n: x + 1 if n == 3 else x,
    "arithmetic": lambda x, n: x * (1 - n),
    "arithmetic of others": lambda x, n: x * float(n + Fraction(1, 2)),
    "a sign": lambda x, n: x * -n,
    "a magnitude": lambda x, n: x * abs(n),
    "a power": lambda x, n: x**n,
    "a power of a number": lambda x, n: x * n**2,
    "divmod": lambda x, n: x * divmod(n, 2)[0],
    "math": lambda x, n: x * math.exp(n),
    "int": lambda x, n: x * int(n),
    "round": lambda x, n: x * round(n / 3, 1),
    "rounded": lambda x, n: x * round(n),
    "floor": lambda x, n: x * math.floor(n),
    "a slice": lambda x, n: x[: int(n)],
    "a key": lambda x, n: x * {2: 5, 3: 7}.get(n, 11),
    "text": lambda x, n: x * len(f"{n}") + len(f"{n:.3f}") + len(str(n)) + len(repr(n)),
    "a method": lambda x, n: x if float(n).is_integer() else -x,
    "a method of its own": lambda x, n: x * n.conjugate(),
    "a copy": lambda x, n: x * copy.deepcopy([n])[0] + copy.copy(n),
    "pickled": lambda x, n: x * pickle.loads(pickle.dumps(n)),
    "remembered": lambda x, n: x * remembered(n),
    "returned": lambda x, n: (x, n),
    "a NumPy scalar": lambda x, n: x * (np.float32(2) * n),
    "a NumPy array": lambda x, n: x * (np.arange(4, dtype=np.float32) * n),
    "NumPy's sum": lambda x, n: x * float(np.sum([n, 2])),
    "NumPy's array of it": lambda x, n: x * np.full(4, n),
    "a NumPy function": lambda x, n: x * np.sqrt(n),
    "an array of it": lambda x, n: x * wa.asarray(n),
    "full": lambda x, n: x * wa.full((4,), n),
    "where": lambda x, n: wa.where(x > 0, x, n),
    "where of NumPy": lambda x, n: cast(Any, np.where)(x > 0, x, n),
    "maximum": lambda x, n: wa.maximum(x, n),
    "clip": lambda x, n: wa.clip(x, -n, n),
    "a value of data": lambda x, n: x * (TABLE * n).sum().item(),
    "a value of a branch": lambda x, n: x if (TABLE * n).sum() > 25 else -x,
    "another fused function of data": lambda x, n: x * inner(TABLE, n),
    "another fused function of its arrays": lambda x, n: x * inner(TABLE * n, 2.0),
    "an error that is caught": lambda x, n: x * _caught(n),
}
"""What reads the value."""


def _matched(x: Any, n: Any) -> Any:
    match n:
        case float():
            return x * n
        case _:
            return x - n


def _caught(n: Any) -> float:
    try:
        return math.sqrt(2.5 - n)
    except ValueError:
        return 1.0


def outcome(function: Operator, x: Any, n: Any) -> Any:
    """What a call gives, to compare bit by bit."""
    arrays = [wa.asarray(leaf) for leaf in leaves(function(x, n))]
    return [(str(array.dtype), array.shape, array.numpy().tobytes()) for array in arrays]


SETS: Final[list[tuple[Any, ...]]] = [(2, 3, 3, 2, 5, 7, 100), (0.3, 2.5, 0.7, 2.5), (2.0, 3.0, 1.0, 0.0, -0.0, 2)]


@pytest.mark.parametrize("name", [*ARGUMENTS, *READ])
def test_fused_calls_of_other_numbers(name: str, backend: str) -> None:
    function = {**ARGUMENTS, **READ}[name]
    fused = wa.fuse(function)
    for numbers in SETS:
        for n in numbers:
            for x in (X, wa.asarray(X)):
                assert outcome(fused, x, n) == outcome(function, wa.asarray(X), n), n


@pytest.mark.parametrize("name", ARGUMENTS)
def test_numbers_of_a_class_share_a_trace(name: str, backend: str) -> None:
    fused = wa.fuse(ARGUMENTS[name])
    for n in (0.3, 0.7, 1.7, 0.001, 0.9):
        fused(X, n)
    assert fused.signatures == 1
    for n in (17, 19, 21, 23):
        fused(X, n)
    assert fused.signatures == 2
    fused(X, -0.3)
    assert fused.signatures == 3


@pytest.mark.parametrize("name", READ)
def test_numbers_that_are_read_count_by_value(name: str) -> None:
    calls: list[Any] = []

    @wa.fuse
    def fused(x: Any, n: Any) -> Any:
        calls.append(n)
        return READ[name](x, n)

    for _ in range(3):
        for n in (1.25, 2.5, 1.75):
            fused(X, n)
    assert fused.signatures == 3
    assert len(calls) in (3, 4)  # a trace that a placeholder breaks is made again with the number
    assert not any(type(n) is Placeholder for n in calls[2:])


def operators(names: str) -> list[Operator]:
    return [getattr(operator, name) for name in names.split()]


OPERATORS: Final = operators("add sub mul truediv floordiv mod and_ or_ xor lshift rshift lt le gt ge eq ne")


@pytest.mark.parametrize("system", SYSTEMS)
def test_operators_of_every_system(system: str) -> None:
    """The same value and type, or the same refusal, as without fuse, for numbers at the edges of types."""
    rng = random.Random(7)
    chosen = semantics.get(system)
    held = [d for d in chosen.dtypes if d in dtypes.ALL and not d.is_complex]
    edges = sorted({b for d in held if d.is_integer for b in (d.min, d.max)})
    for _ in range(25):
        op = rng.choice(OPERATORS)
        dtype, reflected = rng.choice(held), rng.random() < 0.5
        data = wa.asarray(np.array([1, 0, 1, 1])).astype("float32").numpy().astype(dtype.numpy)
        x = wa.asarray(data, chosen)

        def function(x: Any, n: Any, op: Any = op, reflected: bool = reflected) -> Any:
            return op(n, x) if reflected else op(x, n)

        fused = wa.fuse(function)
        for _ in range(12):
            whole = rng.choice(edges) + rng.randrange(-2, 3)
            n = rng.choice(
                (whole, rng.randrange(1, 40), rng.randrange(1, 40), rng.uniform(0, 9), float(whole), math.nan)
            )
            with wa.use_backend("reference"):
                try:
                    expected = outcome(function, x, n)
                except Exception as error:
                    with pytest.raises(type(error)):
                        fused(x, n)
                else:
                    assert outcome(fused, x, n) == expected, (op, dtype, n)


def test_arrays_of_another_system_inside() -> None:
    """A number is what the system of the array beside it makes of it."""

    @wa.fuse(semantics="numpy")
    def both(x: wa.Array, n: float) -> wa.Array:
        return x + wa.asarray(wa.asarray(np.arange(4, dtype=np.float16), "jax") * n, "numpy")

    for n in (0.3, 0.7):
        assert np.array_equal(both(X, n).numpy(), X + np.arange(4, dtype=np.float16) * np.float16(n))
    assert both.signatures == 1


def test_places_of_numbers_in_nests(backend: str) -> None:
    @wa.fuse
    def step(state: dict[str, Any], rates: tuple[Any, ...], *, decay: float, axis: int) -> Any:
        return state["x"] * rates[0] - rates[1] * decay, state["x"].sum(axis)

    for a, b, c in ((0.5, 2.0, 0.1), (0.25, 3.0, 0.2), (0.75, 2.0, 0.3)):
        moved, total = step({"x": X}, (a, wa.asarray(X), b), decay=c, axis=0)
        assert np.array_equal(moved.numpy(), X * np.float32(a) - X * np.float32(c))
        assert total.item() == X.sum()
    assert step.signatures == 1


def test_an_error_is_the_one_without_placeholders() -> None:
    @wa.fuse
    def broken(x: wa.Array, n: int) -> wa.Array:
        return x.reshape(n)

    for n in (3, 5):
        with pytest.raises(ValueError, match=rf"'reshape' cannot give 4 elements of shape \(4,\) the shape \({n},\)"):
            broken(X, n)
    assert broken(X, 4).shape == (4,)


def test_threads_that_read_and_do_not(backend: str) -> None:
    @wa.fuse
    def pick(x: wa.Array, a: float, b: float) -> wa.Array:
        return x * a if b > 0.5 else x * (a + b)

    wrong: list[Any] = []

    def run(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(60):
            a, b = rng.choice((0.25, 0.75, 1.5)), rng.choice((0.125, 0.625))
            found = pick(X, a, b).numpy()
            if not np.array_equal(found, X * np.float32(a if b > 0.5 else a + b)):
                wrong.append((a, b))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "dtype", ["complex64", "int4", "float8_e5m2", "bfloat16", "float16", "float64", "int8", "uint64", "bool"]
)
def test_numbers_beside_every_kind_of_type(dtype: str, backend: str) -> None:
    x = wa.asarray(np.array([0, 1, 1, 0]), "jax").astype(dtype)

    def function(x: Any, n: Any) -> Any:
        return x * n, n + x

    fused = wa.fuse(function, semantics="jax")
    for n in (3, 5, 7, 3) if dtype[0] in "iu" else (3, 5, 7, 3, 0.3, 0.7, 0.7, 0.3):
        assert outcome(fused, x, n) == outcome(function, x, n)
