"""Layouts as numbers: those equal up to the order of registers and copies there have one number, the key of all tables.

Elements narrower than a word are packed in the order of registers, and to change what is packed takes permutes. So
registers of one word are told from the others, in kernels that have such elements.

Each number has one spelling, that of the layout that was entered first. Only spellings go into the IR. So two users that
want one form share one conversion, and no conversion renames registers alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from weft.layout import LinearLayout

WORD: Final = 32


def packed(bits: Iterable[int]) -> int:
    """How many register bits lie within a word, of the narrowest elements."""
    return (WORD // min((WORD, *bits))).bit_length() - 1


@lru_cache(maxsize=1 << 15)
def canonical(layout: LinearLayout, within: int) -> LinearLayout:
    """The layout without copies in registers, those ``within`` a word sorted, then the others."""
    columns = dict(layout.inputs)
    registers = [column for column in columns.get("register", ()) if column]
    columns["register"] = (*sorted(registers[:within]), *sorted(registers[within:]))
    return LinearLayout.from_columns(columns, layout.outputs)


class Forms:
    """The layouts of one kernel, numbered; ``within`` register bits lie within a word."""

    def __init__(self, within: int = 0) -> None:
        self.spelled: list[LinearLayout] = []
        self._within = within
        self._of_form: dict[LinearLayout, int] = {}
        self._of_layout: dict[LinearLayout, int] = {}

    def number(self, layout: LinearLayout) -> int:
        """The number of a layout; a new form is entered under this spelling."""
        found = self._of_layout.get(layout)
        if found is None:
            form = canonical(layout, self._within)
            found = self._of_form.get(form)
            if found is None:
                found = self._of_form[form] = len(self.spelled)
                self.spelled.append(layout if _plain(layout) else form)
            self._of_layout[layout] = found
        return found

    def spelling(self, layout: LinearLayout) -> LinearLayout:
        """The layout as it is spelled in the IR."""
        return self.spelled[self.number(layout)]


def _plain(layout: LinearLayout) -> bool:
    """Whether registers hold no copies."""
    return "register" in layout.in_dims and all(layout.columns("register"))
