"""Any boolean function of three words, as few NumPy calls: how ``lop3``'s truth table becomes an expression.

A function of bits a, b, c is a table of eight bits: bit 4a + 2b + c is its value. So 0xF0 is a, 0xCC is b, 0xAA is c, and the
table of an expression is that expression of these three constants (PTX ISA, lop3):

    a & b | c    0xF0 & 0xCC | 0xAA = 0xEA

The obvious evaluation, an ``or`` over the table's ones, costs up to 31 operations. Here expressions are made in order of their
number of operations until one has the wanted table, so each table gets a shortest one (without sharing of subexpressions): two
operations for most tables that compilers write, five at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

LEAVES: Final = {"a": 0xF0, "b": 0xCC, "c": 0xAA, "0": 0x00, "1": 0xFF}


@dataclass(frozen=True)
class Expression:
    """``left operator right``; ``~ left``; or a leaf, whose operator is its name."""

    operator: str
    left: Expression | None = None
    right: Expression | None = None

    def __str__(self) -> str:
        if self.left is None:
            return self.operator
        return f"~{self.left}" if self.right is None else f"({self.left} {self.operator} {self.right})"

    def __call__(self, values: dict[str, Array]) -> Array:
        """Its value, of words; ``values`` gives "a", "b", "c", "0" and "1"."""
        if self.left is None:
            return values[self.operator]
        left = self.left(values)
        if self.right is None:
            return np.invert(left)
        return _OPERATORS[self.operator](left, self.right(values))


_OPERATORS: Final = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}


class _Levels:
    """Tables by the least number of operations that make them."""

    def __init__(self) -> None:
        self.found = {table: Expression(name) for name, table in LEAVES.items()}
        self.levels: list[list[int]] = [list(self.found)]

    def grow(self) -> None:
        """Adds the tables that need one operation more than those there are."""
        cost = len(self.levels)
        fresh: dict[int, Expression] = {}
        for table in self.levels[cost - 1]:
            fresh.setdefault(table ^ 0xFF, Expression("~", self.found[table]))
        for left_cost in range((cost + 1) // 2):
            for x in self.levels[left_cost]:
                for y in self.levels[cost - 1 - left_cost]:
                    for operator, table in (("&", x & y), ("|", x | y), ("^", x ^ y)):
                        if table not in self.found and table not in fresh:
                            fresh[table] = Expression(operator, self.found[x], self.found[y])
        self.levels.append([table for table in fresh if table not in self.found])
        self.found = {**fresh, **self.found}


_LEVELS: Final = _Levels()


@cache
def expression(table: int) -> Expression:
    """A shortest expression with this table (0 to 255)."""
    while table not in _LEVELS.found:
        _LEVELS.grow()
    return _LEVELS.found[table]
