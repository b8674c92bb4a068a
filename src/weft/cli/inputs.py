"""What a command line gives a function: arrays made on the spot, from files, or by the script itself.

``random`` covers 8 and 16 bits whole, so that sums overflow and signs differ; wider integers stay within a million, and
floats are of every magnitude near 1. The first elements are the edges of the type.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.dtypes import DType

FORM: Final = "expected TYPE[SHAPE]=FILL, TYPE=NUMBER, a number, @FILE.npy, @FILE.npz or :NAME"

_SHAPED: Final = re.compile(r"(?P<type>[A-Za-z]\w*)\[(?P<shape>[\d, ]*)\]=(?P<fill>\S+)")
_TYPED: Final = re.compile(r"(?P<type>[A-Za-z]\w*)=(?P<number>\S+)")
_NAMED: Final = re.compile(r"(?P<name>[A-Za-z_]\w*):(?P<input>.+)")

_WIDE: Final = 1 << 20


def read_inputs(spelled: list[str], script: Mapping[str, Any], seed: int) -> Any:
    """The inputs as `weft.semantics.compare` takes them: a dict where they have names (``scale:float32=2``, an ``.npz``), else a
    list. `ValueError` names the one that is wrong."""
    rng = np.random.default_rng(seed)
    if len(spelled) == 1 and spelled[0].startswith(":"):
        return _of_script(spelled[0][1:], script)
    named: dict[str, Any] = {}
    placed: list[Any] = []
    for text in spelled:
        match = _NAMED.fullmatch(text)
        value = _read(match["input"] if match else text, script, rng)
        if match:
            named[match["name"]] = value
        elif isinstance(value, dict) and text.startswith("@"):
            named |= value
        else:
            placed.append(value)
    if named and placed:
        raise ValueError(
            "--inputs has inputs with names and without; give all of them names, such as NAME:uint8[4]=random"
        )
    return named or placed


def _read(text: str, script: Mapping[str, Any], rng: np.random.Generator) -> Any:
    if text.startswith(":"):
        return _of_script(text[1:], script)
    if text.startswith("@"):
        return _of_file(text[1:])
    if match := _SHAPED.fullmatch(text):
        shape = tuple(int(size) for size in match["shape"].replace(" ", "").split(",") if size)
        return _filled(text, _dtype(text, match["type"]), shape, match["fill"], rng)
    if match := _TYPED.fullmatch(text):
        return _filled(text, _dtype(text, match["type"]), (), match["number"], rng)[()]
    try:
        number = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        number = None
    if not isinstance(number, (bool, int, float, complex)):
        raise ValueError(f"--inputs '{text}': {FORM}")
    return number


def _of_script(name: str, script: Mapping[str, Any]) -> Any:
    """A value of the script; what it returns, if it is a function."""
    if name not in script:
        raise ValueError(f"--inputs ':{name}': the script has no '{name}'")
    value = script[name]
    return value() if callable(value) else value


def _of_file(file: str) -> Any:
    try:
        loaded: Any = np.load(file, allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"--inputs '@{file}' is no array: {error}") from None
    return loaded if type(loaded) is np.ndarray else dict(loaded)


def _dtype(text: str, name: str) -> DType:
    try:
        return dtypes.named(name)
    except ValueError as error:
        raise ValueError(f"--inputs '{text}': {error}") from None


def _filled(text: str, dtype: DType, shape: tuple[int, ...], fill: str, rng: np.random.Generator) -> NDArray[Any]:
    if (make := FILLS.get(fill)) is not None:
        return make(rng, shape, dtype)
    try:
        number: Any = ast.literal_eval(fill)
        return np.full(shape, number, dtype.numpy)
    except (ValueError, SyntaxError, TypeError, OverflowError):
        fills = ", ".join(FILLS)
        raise ValueError(f"--inputs '{text}': '{fill}' is no {dtype}; expected {fills} or a number") from None


def _edges(dtype: DType) -> list[Any]:
    if dtype.is_bool:
        return [False, True]
    if dtype.is_integer:
        return sorted({dtype.min, -1, 0, 1, dtype.max} - ({-1} if not dtype.signed else set()))
    return [0.0, -0.0, 1.0, -1.0, 0.1, dtype.largest, -dtype.largest] + [np.inf, -np.inf, np.nan] * (
        not dtype.finite_only
    )


def _cycled(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    return np.resize(np.array(_edges(dtype), np.float64 if dtype.is_float else None), shape).astype(dtype.numpy)


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    if dtype.is_float or dtype.is_complex:
        values = rng.standard_normal(shape) * np.exp2(rng.integers(-4, 5, shape))
        return np.asarray(values + (1j * rng.standard_normal(shape) if dtype.is_complex else 0)).astype(dtype.numpy)
    low, high = max(dtype.min, -_WIDE), min(dtype.max, _WIDE)
    values = np.asarray(rng.integers(low, high, shape, np.int64, endpoint=True)).astype(dtype.numpy)
    edges = np.array([low, high], np.int64).astype(dtype.numpy)[: values.size]
    values.reshape(-1)[: edges.size] = edges
    return values


def _counted(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> NDArray[Any]:
    return np.arange(math.prod(shape)).reshape(shape).astype(dtype.numpy)


FILLS: Final[Mapping[str, Callable[[np.random.Generator, tuple[int, ...], DType], NDArray[Any]]]] = {
    "random": _random,
    "edges": _cycled,
    "zeros": lambda _, shape, dtype: np.zeros(shape, dtype.numpy),
    "ones": lambda _, shape, dtype: np.ones(shape, dtype.numpy),
    "arange": _counted,
}
"""What may fill an array."""
