"""A CPU's registers of a tile, without those that hold duplicates."""

from __future__ import annotations

from functools import lru_cache

from weft.layout import LinearLayout


@lru_cache(maxsize=4096)
def used_registers(layout: LinearLayout) -> int:
    """The mask of register bits that do not merely duplicate."""
    return sum(1 << j for j, column in enumerate(layout.columns("register")) if column)


def register_bits(layout: LinearLayout) -> list[int]:
    """These bits, one by one, lowest first."""
    used = used_registers(layout)
    return [1 << j for j in range(used.bit_length()) if used >> j & 1]


@lru_cache(maxsize=4096)
def slots(layout: LinearLayout) -> tuple[int, ...]:
    """Columns of the map from registers to consecutive slots: duplicates share one."""
    columns: list[int] = []
    slot = 1
    for column in layout.columns("register"):
        columns.append(slot if column else 0)
        slot <<= bool(column)
    return tuple(columns)


def slot_count(layout: LinearLayout) -> int:
    """How many different registers the layout has."""
    return 1 << used_registers(layout).bit_count()
