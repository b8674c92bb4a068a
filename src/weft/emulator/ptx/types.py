"""PTX's types as data: how wide a value is, and as what NumPy sees its register's bits.

Registers hold bits; an instruction's type says how to read them (PTX ISA 5.2). So a register is an array of unsigned integers of
its width (of bool for predicates) and `Type.numpy` is the view an instruction takes of it. Types that NumPy does not compute
with (bfloat16, the packed and the narrow ones) are viewed as their bits; `weft.emulator.arith` computes with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np


@dataclass(frozen=True)
class Type:
    """A PTX type: ``kind`` is "u", "s", "b" (untyped bits), "f" (a float NumPy computes with), "x" (bits of some other float or
    of packed floats) or "pred". 128-bit values are arrays with a last axis of two 64-bit halves, the low one first."""

    name: str
    bits: int
    kind: str
    numpy: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """What memory holds of it."""
        return max(self.bits, 8) // 8

    @property
    def signed(self) -> bool:
        return self.kind == "s"


def _type(name: str, bits: int, kind: str, numpy: Any) -> Type:
    return Type(name, bits, kind, np.dtype(numpy))


_INTEGERS: Final = tuple(
    _type(f"{kind}{bits}", bits, kind, f"{'i' if kind == 's' else 'u'}{bits // 8}")
    for kind in "usb"
    for bits in (8, 16, 32, 64)
)
_FLOATS: Final = (_type("f16", 16, "f", "f2"), _type("f32", 32, "f", "f4"), _type("f64", 64, "f", "f8"))
_OTHERS: Final = tuple(
    _type(name, bits, "x", f"u{bits // 8}")
    for name, bits in (
        ("bf16", 16),
        ("tf32", 32),
        ("f16x2", 32),
        ("bf16x2", 32),
        ("u16x2", 32),
        ("s16x2", 32),
        ("f32x2", 64),
        ("e4m3", 8),
        ("e5m2", 8),
        ("e4m3x2", 16),
        ("e5m2x2", 16),
        ("e4m3x4", 32),
        ("e5m2x4", 32),
        ("e2m3x2", 16),
        ("e3m2x2", 16),
        ("e2m1x2", 8),
        ("ue8m0x2", 16),
    )
)

TYPES: Final[dict[str, Type]] = {
    t.name: t
    for t in (
        *_INTEGERS,
        *_FLOATS,
        *_OTHERS,
        _type("b128", 128, "b", "u8"),
        _type("pred", 1, "pred", "?"),
    )
}
"""Every type by the name it has in an instruction."""

STORAGE: Final[dict[int, np.dtype[Any]]] = {bits: np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)} | {
    1: np.dtype("?"),
    128: np.dtype("u8"),
}
"""What a register of so many bits is stored as."""
