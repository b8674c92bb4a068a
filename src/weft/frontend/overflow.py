"""Assertions that sums, differences and products of integers do not overflow, as debug builds of Triton have them.

Each is computed once more in int64 and compared with the limits of its type. Not checked are integers of 64 bits, bools, address
arithmetic, other semantics than Triton's, in which integers wrap, and what the functions of the language compute inside.
"""

from __future__ import annotations

from typing import Final

from weft import dtypes
from weft import language as tl
from weft.frontend.builder import Builder
from weft.frontend.promotion import is_triton, operands_of, resolve
from weft.frontend.registry import implementation_of
from weft.frontend.values import Tensor, Value

_NAMES: Final = {"+": "add", "-": "sub", "*": "mul"}


def check_overflow(b: Builder, op: str, lhs: Value, rhs: Value) -> None:
    """Assert that ``lhs op rhs`` is in the range of its type, if kernels check that."""
    if not _checks(b) or op not in _NAMES:
        return
    promotion = resolve(b, op, lhs, rhs)
    if promotion.operands.is_integer:
        left, right = operands_of(b, promotion, lhs, rhs)
        check_result(b, _NAMES[op], left, right)


def check_result(b: Builder, name: str, left: Tensor, right: Tensor) -> None:
    """The same for operands of one dtype and shape, and any ``name`` of a `tile.binary`."""
    dtype = left.dtype
    if name not in _NAMES.values() or not _checks(b) or not dtype.is_integer or dtype.bits >= 64:
        return
    exact = b.binary(name, b.cast(left, dtypes.int64), b.cast(right, dtypes.int64))
    least, most = (b.constant(limit, dtypes.int64, exact.shape) for limit in (dtype.min, dtype.max))
    holds = b.binary("and", b.compare("ge", exact, least), b.compare("le", exact, most))
    implementation_of(tl.device_assert)(b, holds, f"int{dtype.bits} overflow detected for operation {name}", None)


def _checks(b: Builder) -> bool:
    return b.overflow and is_triton(b.semantics) and b.frame.kernel.is_shown
