"""Fills the generated parts of docs/semantics: the differences between each document and its package, the table of ``+``, and
the pictures of the lattices.

A page says where: between ``<!-- differences -->`` and ``<!-- /differences -->`` (or ``cross table``). Run without arguments to
write the pages; with ``--check`` it writes nothing and fails where a page is not what the code says (a test does that).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from pathlib import Path

from weft import dtypes, semantics
from weft.dtypes import DType
from weft.report.disagreement import EXPLAINED, summary
from weft.report.types import code
from weft.report.types_graph import type_graph
from weft.semantics import PromotionError
from weft.semantics.core import Operand
from weft.semantics.difference import Diff, diff
from weft.semantics.explanation import expression, outcome

DOCS = Path(__file__).parents[1] / "docs" / "semantics"

PAGES = ("triton", "jax", "max", "dali")
"""The systems with a document and a package."""

PICTURES = ("jax", "max", "dali")
"""The documents that define a lattice."""

COLUMNS = tuple(name for name in semantics.SYSTEMS if not name.startswith("jax") or name == "jax")
"""The systems of the cross table; JAX's package promotes as its document says."""

TYPES = (
    *(dtypes.bool_, dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16, dtypes.uint32, dtypes.int32),
    *(dtypes.uint64, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64),
    *(dtypes.float8_e4m3fn, dtypes.float8_e5m2),
)
"""The types of the cross table, all pairs."""

WIDTH = 120
"""Columns of the text that is no table."""

LITERALS: tuple[tuple[Operand, Operand], ...] = (
    (dtypes.bool_, 1),
    (dtypes.uint8, 1),
    (dtypes.uint8, 300),
    (dtypes.uint8, -1),
    (dtypes.int32, 2**40),
    (dtypes.int8, 2.5),
    (dtypes.int64, 2.5),
    (dtypes.float16, 1),
    (dtypes.float16, 2.5),
    (dtypes.bfloat16, 2.5),
    (dtypes.float32, 1e300),
)
"""The rows of the cross table with a literal."""


def versions(page: str) -> list[tuple[str, str]]:
    """(document, package) for each system of a page."""
    pairs = [(name.partition("@")[0], name) for name in semantics.SYSTEMS if "@" in name]
    return [(document, package) for document, package in pairs if document.partition("-")[0] == page]


def differences(page: str) -> str:
    """The differences of each document of a page from its package, in Markdown."""
    return "\n\n".join(_differences(diff(*pair)) for pair in versions(page))


def _differences(found: Diff) -> str:
    head = f"`{found.a.name}` and `{found.b.name}`: {len(found.differences)} of {found.cases} cases differ."
    if not found.differences:
        return head
    rows = [
        (EXPLAINED[g.kind], " ".join(f"`{op}`" for op in g.ops), *map(_prose, ("<br>".join(g.operands), g.a, g.b)))
        for g in found.groups
    ]
    table = _table(("what differs", "operations", "operands", f"`{found.a.name}`", f"`{found.b.name}`"), rows)
    notes = "\n".join(_note(sentence) for sentence in summary(found))
    return "\n\n".join(part for part in (head, table, notes) if part)


def _prose(text: str) -> str:
    """Text in which an asterisk is one: ``2**31``, ``i*``."""
    return text.replace("*", "\\*")


def _note(sentence: str) -> str:
    """A sentence of `summary` as an item of a list, each thing it lists as code."""
    what, _, listed = sentence.partition(": ")
    separator = "; " if what.startswith("pairs") else ", " if " only " in what else " "
    return _filled_lines(f"- {what.capitalize()}:", [f"`{each}`" for each in listed.split(separator)], indent="  ")


def _filled_lines(start: str, items: Sequence[str], indent: str = "", end: str = "") -> str:
    """``start`` and the items, in lines of at most `WIDTH` columns that break between items only."""
    lines = [start]
    for n, item in enumerate(items):
        text = item + ("," if n < len(items) - 1 else end)
        if len(lines[-1]) + 1 + len(text) > WIDTH:
            lines.append(f"{indent}{text}")
        else:
            lines[-1] += f" {text}"
    return "\n".join(lines)


def cross_table() -> str:
    """``a + b`` in all systems, without the pairs on which all systems that have both types agree."""
    rows: list[tuple[str, ...]] = []
    agreed: list[str] = []
    for a, b in (*combinations_with_replacement(TYPES, 2), *LITERALS):
        cells = tuple(_cell(name, a, b) for name in COLUMNS)
        known = {cell for cell in cells if cell}
        shown = f"`{expression('+', (a, b))}`"
        if len(known) == 1:
            agreed.append(shown)
        else:
            rows.append((shown, *cells))
    table = _table(("", *(f"`{name}`" for name in COLUMNS)), rows)
    return f"{table}\n\n{_filled_lines('All that have both types agree on', agreed, end='.')}"


def _cell(name: str, a: Operand, b: Operand) -> str:
    system = semantics.get(name)
    if any(isinstance(o, DType) and o not in system.dtypes for o in (a, b)):
        return ""
    found = outcome(system, "+", a, b)
    return "refused" if isinstance(found, PromotionError) else code(found.type)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def filled(text: str, marker: str, content: str) -> str:
    """A page's text with its part ``marker`` replaced; `ValueError` where the page has no such part."""
    pattern = re.compile(rf"(<!-- {marker} -->\n).*?(<!-- /{marker} -->)", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"no <!-- {marker} --> with its end")
    return pattern.sub(lambda match: f"{match[1]}\n{content}\n\n{match[2]}", text)


def pages() -> dict[Path, str]:
    """Every page with generated parts, and every picture, and what it should say."""
    parts: list[tuple[str, str, Callable[[], str]]] = [
        (page, "differences", lambda page=page: differences(page)) for page in PAGES
    ]
    parts.append(("index", "cross table", cross_table))
    found: dict[Path, str] = {}
    for page, marker, content in parts:
        path = DOCS / f"{page}.md"
        found[path] = filled(path.read_text(encoding="utf-8"), marker, content())
    return found | {DOCS / f"{name}.svg": type_graph(name).svg() for name in PICTURES}


def stale() -> dict[Path, str]:
    """The pages and pictures that are not what the code says."""
    return {p: text for p, text in pages().items() if not p.exists() or p.read_text(encoding="utf-8") != text}


def main() -> int:
    found = stale()
    for path, text in found.items():
        if "--check" in sys.argv:
            sys.stderr.write(f"{path} is not what the code says; run tools/semantics_docs.py\n")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if found and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
