"""Inline assembly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.dtypes import DType
from weft.language.core import Tile, constexpr, stub


@stub
def inline_asm_elementwise(
    asm: str | constexpr,
    constraints: str | constexpr,
    args: Sequence[Tile],
    dtype: DType | Sequence[DType],
    is_pure: bool | constexpr,
    pack: int | constexpr,
) -> Any:
    """The results of PTX for the elements of tiles, ``pack`` elements at a time; a tuple where ``dtype`` is one. On a CPU a
    kernel with inline PTX does not compile.

    ``args`` broadcast; without any, the PTX is executed for a scalar. ``constraints`` are LLVM's, one for each register: ``=r``
    and the like for the results, ``r`` and the like for the operands (``h`` 16 bits, ``r`` 32, ``l`` 64, ``f`` and ``d`` floats).
    Elements narrower than 32 bits share registers, the first in the lowest bits. Which elements are taken together is not
    specified; copies of an element may be computed by several threads. With ``is_pure`` the PTX has no other effects.
    """
    ...
