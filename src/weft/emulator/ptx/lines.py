"""Where PTX comes from: ``.file`` and ``.loc`` (PTX ISA 11.5).

Compilers write ``.file`` before the functions or after them, so the files are looked for first. A ``.loc`` holds until the next;
what is inlined says where, and if a ``.loc`` of that place said where *it* was inlined, so does this one. Line 0 is a compiler's
word for code that no line stands for: it becomes no source at all.
"""

from __future__ import annotations

from weft.emulator.ptx.expressions import integer
from weft.emulator.ptx.lexer import Words
from weft.emulator.ptx.syntax import Source


class Lines:
    """The files of a module, and the source of the instruction that is read next."""

    def __init__(self, words: Words) -> None:
        self.files: dict[int, str] = {}
        self.current: Source | None = None
        self._seen: dict[tuple[int, int, int], Source] = {}
        start = words.at
        for _ in range(words.words.count(".file")):
            words.at = words.words.index(".file", words.at)
            self.file(words)
        words.at = start

    def enter(self) -> None:
        """A function begins."""
        self.current = None
        self._seen.clear()

    def file(self, words: Words) -> None:
        """Reads ``.file 1 "name", timestamp, size``."""
        words.take(".file")
        number = integer(words)
        self.files[number] = words.string()
        while words.accept(","):
            integer(words)

    def location(self, words: Words) -> None:
        """Reads ``.loc 1 20 3, function_name label+offset, inlined_at 1 10 2``."""
        words.take(".loc")
        start = words.at
        place = self._place(words)
        outer: Source | None = None
        while words.accept(","):
            if words.accept("function_name"):
                words.name("a label")
                if words.accept("+"):
                    integer(words)
            elif words.accept("inlined_at"):
                at = words.at
                where = self._place(words)
                outer = self._seen.get(where) or self._source(words, at, where, None)
            else:
                words.unexpected("'function_name' or 'inlined_at'")
        self.current = self._source(words, start, place, outer)
        if self.current is not None:
            self._seen[place] = self.current

    def _place(self, words: Words) -> tuple[int, int, int]:
        return integer(words), integer(words), integer(words)

    def _source(self, words: Words, at: int, place: tuple[int, int, int], outer: Source | None) -> Source | None:
        file, line, column = place
        if file not in self.files:
            words.fail(f"there is no .file {file}", at)
        return Source(self.files[file], line, column, outer) if line else None
