"""What ``tile.print`` writes, as data: C formats for a GPU's driver, and the same lines from Python. Loads no xDSL.

A line for each element, as Triton writes them::

    pid (0, 0, 0) idx ( 3) x: 7

Indices are as wide as the largest of their dimension. Values are 32-bit integers or wider, bools as 0 and 1, floats of 32 or 64
bits, pointers; `weft.frontend.library.debugging` brings others to these.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

POINTER: Final = "pointer"
"""The type of an address, beside the names of NumPy's dtypes."""


class Print(NamedTuple):
    """A ``tile.print``: the text before the value, whether it is hexadecimal, the elements' type (empty without a value) and
    shape.

    In local memory the element at position p is the row-major element that is the XOR of ``columns`` by the bits of p.
    """

    prefix: str
    hex: bool
    type: str
    shape: tuple[int, ...]
    columns: tuple[int, ...] = ()

    @property
    def format(self) -> str:
        """The C format of a line: its arguments are three program ids, the indices and the value."""
        prefix = self.prefix.replace("%", "%%")
        if not self.type:
            return f"pid (%u, %u, %u){prefix}\n"
        indices = ", ".join(f"%{_digits(size)}u" for size in self.shape)
        return f"pid (%u, %u, %u) idx ({indices}){prefix}{_directive(self.type, self.hex)}\n"

    def text(self, program: Sequence[int], values: NDArray[Any] | None) -> str:
        """The lines of a program, in row-major order of the elements."""
        x, y, z = program
        start = f"pid ({x}, {y}, {z})"
        if values is None:
            return f"{start}{self.prefix}\n"
        indices = itertools.product(*([f"{i:{_digits(size)}}" for i in range(size)] for size in self.shape))
        return "".join(
            f"{start} idx ({', '.join(index)}){self.prefix}{_spelled(value, self.type, self.hex)}\n"
            for index, value in zip(indices, values.ravel().tolist(), strict=True)
        )

    def placed(self, data: NDArray[Any]) -> NDArray[Any]:
        """The elements in their shape, from how they lie in local memory."""
        import numpy as np

        positions = np.arange(data.size)
        places = np.zeros_like(positions)
        for bit, column in enumerate(self.columns):
            places ^= (positions >> bit & 1) * column
        values = np.empty(math.prod(self.shape), data.dtype)
        values[places] = data
        return values.reshape(self.shape)


def _digits(size: int) -> int | str:
    """The width of an index of a dimension; nothing for one digit, as no width is."""
    return len(str(size - 1)) if size > 1 else ""


def _bits(type_: str) -> int:
    """The bits of an integer, which its hexadecimal digits show at least. A bool has less than a digit."""
    return 0 if type_ == "bool" else int(type_.lstrip("uint"))


def _directive(type_: str, hexadecimal: bool) -> str:
    """C's directive for a value."""
    if type_ == POINTER:
        return "%p"
    if type_.startswith("float"):
        return "%a" if hexadecimal else "%f"
    bits = _bits(type_)
    long = "ll" if bits == 64 else ""
    if hexadecimal:
        return f"0x%0{bits // 4}{long}x" if bits else "0x%x"
    return f"%{long}{'i' if type_.startswith('int') else 'u'}"


def _spelled(value: Any, type_: str, hexadecimal: bool) -> str:
    """A value as C's printf writes it under `_directive`; a NaN without a sign."""
    if type_ == POINTER:
        return f"0x{value & (1 << 64) - 1:x}" if value else "(nil)"
    if type_.startswith("float"):
        if not hexadecimal or not math.isfinite(value):
            return f"{value:f}"
        mantissa, exponent = float(value).hex().split("p")
        return f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{exponent}"
    number = int(value)
    if hexadecimal:  # an integer of less than 32 bits is printed as one of 32, with its sign
        bits = _bits(type_)
        return f"0x{number & (1 << max(32, bits)) - 1:0{max(1, bits // 4)}x}"
    return str(number)
