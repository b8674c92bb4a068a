"""Words of PTX text.

One compiled regular expression cuts the text into two lists: the words, and where they start. There are no token objects,
because a module of Triton's has a hundred thousand words and almost no word's position is needed. A word's kind follows from
its first character; its line is computed when an error needs it. An instruction's opcode and modifiers are one word
(``ld.global.v4.f32``), a label and its colon are one word.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final, NoReturn

from weft.emulator.errors import PTXError

_WORD: Final = re.compile(
    r"""
    (?: \s | // [^\n]* | /\* (?: [^*] | \*(?!/) )*+ \*/ )*+
    (
      (?: [a-zA-Z] | [_$%][\w$] ) [\w$]* (?: (?: \. | :: ) [\w$]+ )*+ (?: \s*+ : (?!:) )?   # a name, dotted; a label
    | \. [a-zA-Z_] [\w$]* (?: :: [\w$]+ )*+                                              # a directive or a type
    | (?: \d+\.\d* | \.\d+ ) (?: [eE][+-]?\d+ )? (?!\w) | \d+ [eE][+-]?\d+ (?!\w)            # a float
    | \d\w*                                                                                # any other number
    | " [^"\n]* "
    | /\* [\s\S]*                                                                        # a comment without an end
    | << | >> | == | != | <= | >= | && | \|\|
    | \S
    | \Z
    )
    """,
    re.VERBOSE | re.ASCII,
)

END: Final = ""
"""The word at the end of the text."""


class Words:
    """The words of a text, and a place among them. The parser reads ``words[at]`` and moves ``at``."""

    def __init__(self, text: str) -> None:
        self.text = text
        matches = list(_WORD.finditer(text))
        self.words = [match[1] for match in matches]
        self.starts = [match.start(1) for match in matches]
        self.words += (END, END)  # so that looking one word ahead is always possible
        self.starts += (len(text), len(text))
        self.at = 0
        self.structure = [at for at, word in enumerate(self.words) if word[-1:] in "{:}"]
        """Where braces and labels are, and the end."""
        self._lines = [match.end() for match in re.finditer("\n", text)]

    @property
    def word(self) -> str:
        """The word that is next."""
        return self.words[self.at]

    @property
    def done(self) -> bool:
        """Whether there is no next word."""
        return self.words[self.at] == END

    def line(self, at: int | None = None) -> int:
        """The line, from 1, of the word at an index (of the next word)."""
        return bisect_right(self._lines, self.starts[self.at if at is None else at]) + 1

    def line_text(self, line: int) -> str:
        """What stands on a line, without its indentation."""
        start = self._lines[line - 2] if line > 1 else 0
        end = self._lines[line - 1] if line <= len(self._lines) else len(self.text)
        return " ".join(self.text[start:end].split())

    def between(self, start: int, end: int) -> str:
        """The text from the word at ``start`` up to the word at ``end``, on one line and without comments."""
        text = self.text[self.starts[start] : self.starts[end]]
        if "/" in text and ("//" in text or "/*" in text):
            text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
        return " ".join(text.split())

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raises with the line of the word at an index (of the next word) and what stands there."""
        line = self.line(at)
        raise PTXError(message, line, self.line_text(line))

    def unexpected(self, wanted: str) -> NoReturn:
        """Raises: the next word is not what is wanted."""
        word = self.word
        if word == END:
            self.fail(f"the text ends where {wanted} is expected")
        if word == '"':
            self.fail("a string without an end")
        if word.startswith("/*"):
            self.fail("a comment without an end")
        self.fail(f"expected {wanted}, not '{word}'")

    def accept(self, word: str) -> bool:
        """Goes past the next word if it is this one."""
        if self.words[self.at] == word:
            self.at += 1
            return True
        return False

    def take(self, word: str) -> None:
        """Goes past the next word, which must be this one."""
        if self.words[self.at] != word:
            self.unexpected(f"'{word}'")
        self.at += 1

    def name(self, what: str) -> str:
        """Goes past a name (``_`` too) and returns it."""
        word = self.words[self.at]
        if not is_name(word) and word != "_":
            self.unexpected(what)
        self.at += 1
        return word

    def string(self) -> str:
        """Goes past a string and returns what is in it."""
        word = self.words[self.at]
        if len(word) < 2 or word[0] != '"':
            self.unexpected("a string")
        self.at += 1
        return word[1:-1]


def is_name(word: str) -> bool:
    """Whether a word is a name (no label, no directive, no number)."""
    return len(word) > 0 and (word[0].isalpha() or (word[0] in "_$%" and len(word) > 1)) and word[-1] != ":"


def is_label(word: str) -> bool:
    """Whether a word is a label with its colon."""
    return len(word) > 1 and word[-1] == ":"
