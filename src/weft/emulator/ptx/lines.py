"""Where PTX comes from: ``.file`` and ``.loc`` (PTX ISA 11.5).

Compilers write ``.file`` before the functions or after them, so the files are looked for first. A ``.loc`` holds until the
next; what is inlined says where, and if a ``.loc`` of that place said where *it* was inlined, so does this one. Compilers
write line 0 for code that belongs to no line: inlined code of that kind has the line where it was inlined, other code has no
source.

LLVM counts up the line within a piece of inline assembly, one for each of its lines, as if the source had them too; in
Triton's programs, whose loads and stores are inline assembly, these are lines of something else. All of a piece belongs to the
line it began with: between LLVM's comments that mark a piece, a ``.loc`` behind an instruction counts only after the piece.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from typing import Final

from weft.emulator.ptx.expressions import integer
from weft.emulator.ptx.lexer import Words
from weft.emulator.ptx.names import FunctionNames
from weft.emulator.ptx.syntax import Source

_PIECE: Final = re.compile("// begin inline asm(.*?)// end inline asm", re.DOTALL)


class Lines:
    """The files of a module, and the source of the instruction that is read next."""

    def __init__(self, words: Words) -> None:
        self.files: dict[int, str] = {}
        self.current: Source | None = None
        self._names = FunctionNames(words.text)
        self._seen: dict[tuple[int, int, int], Source] = {}
        self._pieces = [match.span(1) for match in _PIECE.finditer(words.text)]
        """Where inline assembly begins and ends."""
        self._until = math.inf
        """Where the piece ends after which `_after` is the source."""
        self._after: Source | None = None
        start = words.at
        for _ in range(words.words.count(".file")):
            words.at = words.words.index(".file", words.at)
            self.file(words)
        words.at = start

    def enter(self) -> None:
        """A function begins."""
        self.current = None
        self._until = math.inf
        self._seen.clear()

    def at(self, position: int) -> Source | None:
        """The source of the instruction at a position of the text."""
        if position >= self._until:
            self.current, self._until = self._after, math.inf
        return self.current

    def file(self, words: Words) -> None:
        """Reads ``.file 1 "name", timestamp, size``. Compilers double the backslashes of Windows' paths."""
        words.take(".file")
        number = integer(words)
        self.files[number] = words.string().replace("\\\\", "\\")
        while words.accept(","):
            integer(words)

    def location(self, words: Words) -> None:
        """Reads ``.loc 1 20 3, function_name label+offset, inlined_at 1 10 2``."""
        at = words.starts[words.at]
        words.take(".loc")
        start = words.at
        place = self._place(words)
        outer: Source | None = None
        function = ""
        while words.accept(","):
            if words.accept("function_name"):
                label = words.name("a label")
                function = self._names.at(label, integer(words) if words.accept("+") else 0)
            elif words.accept("inlined_at"):
                at = words.at
                where = self._place(words)
                outer = self._seen.get(where) or self._source(words, at, where, None, "")
            else:
                words.unexpected("'function_name' or 'inlined_at'")
        found = self._source(words, start, place, outer, function)
        if (end := self._within(words.text, at)) is not None:
            self._until, self._after = end, found
            return
        self.current, self._until = found, math.inf
        if self.current is not None:
            self._seen[place] = self.current

    def _within(self, text: str, at: int) -> int | None:
        """The end of the piece of inline assembly in which a ``.loc`` stands behind an instruction."""
        piece = bisect_right(self._pieces, (at, at)) - 1
        if piece < 0:
            return None
        start, end = self._pieces[piece]
        return end if at < end and text[start:at].strip() else None

    def _place(self, words: Words) -> tuple[int, int, int]:
        return integer(words), integer(words), integer(words)

    def _source(
        self, words: Words, at: int, place: tuple[int, int, int], outer: Source | None, function: str
    ) -> Source | None:
        file, line, column = place
        if file not in self.files:
            words.fail(f"there is no .file {file}", at)
        return Source(self.files[file], line, column, outer, function) if line else outer
