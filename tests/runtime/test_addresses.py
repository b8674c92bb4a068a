"""Where NumPy's arrays are, as NumPy says it."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft.runtime import addresses


def arrays() -> list[np.ndarray[Any, Any]]:
    base = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    frozen = np.ones(7)
    frozen.flags.writeable = False
    views = [
        base[1:, ::2],
        base[::-1],
        base.T,
        base[2:2],
        np.broadcast_to(base, (2, 3, 4, 5)),
        base[1, 2, 3:],
        base[..., None],
    ]
    return [
        base,
        frozen,
        *views,
        np.zeros(()),
        np.zeros(3, ml_dtypes.bfloat16),
        np.zeros(5, "S3"),
        np.zeros(2, "f4,i8")["f1"],
    ]


@pytest.mark.parametrize("number", range(len(arrays())))
def test_the_address_is_numpys(number: int) -> None:
    array = arrays()[number]
    expected = array.__array_interface__["data"][0]
    assert addresses.address_of(array) == expected
    assert addresses.WORDS is not None
    assert addresses.WORDS[id(array) >> 3] == expected


def test_it_is_looked_at_each_time() -> None:
    array = np.zeros(8, np.uint8)
    for size in (10**6, 16, 10**5):
        array.resize(size, refcheck=False)
        assert addresses.address_of(array) == array.ctypes.data


def test_where_objects_look_different_numpy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    larger = SimpleNamespace(__basicsize__=object.__basicsize__ + 16)
    monkeypatch.setattr(addresses, "object", larger, raising=False)
    assert addresses._words() is None  # pyright: ignore[reportPrivateUsage]


def test_where_ids_are_no_addresses_numpy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses.sys.implementation, "name", "pypy")
    assert addresses._words() is None  # pyright: ignore[reportPrivateUsage]


def test_where_addresses_have_32_bits_numpy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Narrow:
        def __mul__(self, count: int) -> Any:
            raise OverflowError("array too large")

    monkeypatch.setattr(ctypes, "c_uint64", Narrow())
    assert addresses._words() is None  # pyright: ignore[reportPrivateUsage]
