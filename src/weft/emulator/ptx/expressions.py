"""Constants and constant expressions (PTX ISA 4.5).

An integer constant is a 64-bit signed number, or an unsigned one where it says U or does not fit; operators compute in 64 bits
and say which of the two their result is. A float written by its bits (0f..., 0d...) keeps them: alone it becomes an `Immediate`
with its pattern, so that the NaN keeps its payload. In an expression 0d... is the number it is, 0f... may not stand.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from weft.emulator.ptx.lexer import Words
from weft.emulator.ptx.syntax import Immediate

_MASK: Final = (1 << 64) - 1


class Whole(NamedTuple):
    """An integer of 64 bits, signed or not."""

    number: int
    unsigned: bool


Value = Whole | float | Immediate


def whole(number: int, unsigned: bool) -> Whole:
    """An int brought to 64 bits."""
    number &= _MASK
    return Whole(number if unsigned or not number >> 63 else number - (1 << 64), unsigned)


def is_number(word: str) -> bool:
    """Whether a word is a numeric constant."""
    return word[:1].isdigit() or (word[:1] == "." and word[1:2].isdigit())


def constant(words: Words) -> Immediate:
    """Reads a constant expression: an operand, an initialiser."""
    value = _conditional(words)
    if isinstance(value, Immediate):
        return value
    return Immediate(value.number) if isinstance(value, Whole) else Immediate(value)


def integer(words: Words) -> int:
    """Reads a constant expression that must be an integer."""
    start = words.at
    value = _conditional(words)
    if not isinstance(value, Whole):
        words.fail("an integer is expected here, not a float", start)
    return value.number


def number(words: Words) -> int:
    """Reads one integer, no expression: what stands in ``%r<12>``."""
    start = words.at
    value = _literal(words) if is_number(words.word) else None
    if not isinstance(value, Whole):
        words.at = start
        words.unexpected("an integer")
    return value.number


_NUMBER: Final = re.compile(
    r"0[fF](?P<single>[0-9a-fA-F]{8}) | 0[dD](?P<double>[0-9a-fA-F]{16})"
    r"| 0[xX](?P<hex>[0-9a-fA-F]+)U? | 0[bB](?P<binary>[01]+)U? | (?P<octal>0[0-7]*)U? | (?P<decimal>[1-9][0-9]*)U?"
    r"| (?P<float>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)",
    re.VERBOSE,
)
_BASES: Final = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_WIDTHS: Final = {"single": 32, "double": 64}


def _literal(words: Words) -> Value:
    """A numeric word."""
    word = words.words[words.at]
    if word.isdigit() and len(word) < 19 and (word[0] != "0" or word == "0"):  # what nearly all of them are
        words.at += 1
        return Whole(int(word), False)
    match = _NUMBER.fullmatch(word)
    if match is None or match.lastgroup is None:
        words.fail(f"'{word}' is no number")
    kind, digits = match.lastgroup, match[match.lastgroup]
    if kind == "float" and digits.isdigit():  # 089
        words.fail(f"'{word}' is no number")
    words.at += 1
    if kind in _WIDTHS:
        return Immediate(int(digits, 16), _WIDTHS[kind])
    if kind == "float":
        return float(digits)
    value = int(digits, _BASES[kind])
    if value >> 64:
        words.fail(f"{word} does not fit 64 bits", words.at - 1)
    return Whole(value, unsigned=word[-1] == "U" or value >> 63 == 1)


def _whole(words: Words, value: Value) -> Whole:
    if not isinstance(value, Whole):
        words.fail("an operator of a constant expression needs an integer, not a float")
    return value


def _float(words: Words, value: Value) -> float:
    if isinstance(value, Whole):
        words.fail("a constant expression mixes an integer and a float")
    if not isinstance(value, Immediate):
        return value
    if value.bits == 32:
        words.fail("a 32-bit float (0f...) may not stand in a constant expression")
    (number,) = struct.unpack("<d", struct.pack("<Q", value.value))
    return number


def _primary(words: Words) -> Value:
    word = words.word
    if is_number(word):
        return _literal(words)
    if word == "WARP_SZ":
        words.at += 1
        return Whole(32, unsigned=False)
    if words.accept("("):
        if words.word in (".s64", ".u64"):
            unsigned = words.word == ".u64"
            words.at += 1
            words.take(")")
            return whole(_whole(words, _unary(words)).number, unsigned)
        value = _conditional(words)
        words.take(")")
        return value
    return words.unexpected("a constant")


def _unary(words: Words) -> Value:
    if words.accept("+"):
        return _unary(words)
    if words.accept("-"):
        value = _unary(words)
        if isinstance(value, Immediate):  # the pattern of the number negated
            return Immediate(int(value.value) ^ 1 << value.bits - 1, value.bits)
        return whole(-value.number, value.unsigned) if isinstance(value, Whole) else -value
    if words.accept("!"):
        return Whole(int(not _whole(words, _unary(words)).number), unsigned=False)
    if words.accept("~"):
        return whole(~_whole(words, _unary(words)).number, unsigned=True)
    return _primary(words)


def _quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


Rule = Callable[[Words, Value, Value], Value]


def _arithmetic(ints: Callable[[int, int], int], floats: Callable[[float, float], float]) -> Rule:
    """+ - * /: unsigned if one operand is."""

    def rule(words: Words, x: Value, y: Value) -> Value:
        if isinstance(x, Whole) and isinstance(y, Whole):
            unsigned = x.unsigned or y.unsigned
            return whole(ints(whole(x.number, unsigned).number, whole(y.number, unsigned).number), unsigned)
        return floats(_float(words, x), _float(words, y))

    return rule


def _comparison(compare: Callable[[float, float], bool]) -> Rule:
    """< == ...: of the operands brought to one signedness; a signed 0 or 1."""

    def rule(words: Words, x: Value, y: Value) -> Value:
        if isinstance(x, Whole) and isinstance(y, Whole):
            unsigned = x.unsigned or y.unsigned
            return Whole(int(compare(whole(x.number, unsigned).number, whole(y.number, unsigned).number)), False)
        return Whole(int(compare(_float(words, x), _float(words, y))), False)

    return rule


def _bits(compute: Callable[[int, int], int], unsigned: bool = True) -> Rule:
    """& ^ | %: of unsigned operands."""

    def rule(words: Words, x: Value, y: Value) -> Value:
        first, second = _whole(words, x).number & _MASK, _whole(words, y).number & _MASK
        return whole(compute(first, second), unsigned)

    return rule


def _shift(compute: Callable[[int, int], int]) -> Rule:
    """<< >>: the first operand's type; all bits are gone at 64."""

    def rule(words: Words, x: Value, y: Value) -> Value:
        value, amount = _whole(words, x), _whole(words, y).number & _MASK
        return whole(compute(value.number, min(amount, 64)), value.unsigned)

    return rule


def _logical(compute: Callable[[bool, bool], bool]) -> Rule:
    """&& ||: a signed 0 or 1."""

    def rule(words: Words, x: Value, y: Value) -> Value:
        return Whole(int(compute(_whole(words, x).number != 0, _whole(words, y).number != 0)), unsigned=False)

    return rule


_LEVELS: Final[tuple[dict[str, Rule], ...]] = (
    {"||": _logical(lambda x, y: x or y)},
    {"&&": _logical(lambda x, y: x and y)},
    {"|": _bits(lambda x, y: x | y)},
    {"^": _bits(lambda x, y: x ^ y)},
    {"&": _bits(lambda x, y: x & y)},
    {"==": _comparison(lambda x, y: x == y), "!=": _comparison(lambda x, y: x != y)},
    {
        "<": _comparison(lambda x, y: x < y),
        ">": _comparison(lambda x, y: x > y),
        "<=": _comparison(lambda x, y: x <= y),
        ">=": _comparison(lambda x, y: x >= y),
    },
    {"<<": _shift(lambda x, y: x << y), ">>": _shift(lambda x, y: x >> y)},
    {
        "+": _arithmetic(lambda x, y: x + y, lambda x, y: x + y),
        "-": _arithmetic(lambda x, y: x - y, lambda x, y: x - y),
    },
    {
        "*": _arithmetic(lambda x, y: x * y, lambda x, y: x * y),
        "/": _arithmetic(_quotient, lambda x, y: x / y),
        "%": _bits(lambda x, y: x % y, unsigned=False),
    },
)
"""Binary operators, those that bind least first."""
_OPERATORS: Final = frozenset(name for level in _LEVELS for name in level) | {"?"}


def _binary(words: Words, level: int) -> Value:
    if level == len(_LEVELS):
        return _unary(words)
    value = _binary(words, level + 1)
    rules = _LEVELS[level]
    while (rule := rules.get(words.word)) is not None:
        at = words.at
        words.at += 1
        right = _binary(words, level + 1)
        try:
            value = rule(words, value, right)
        except ZeroDivisionError:
            words.fail("a constant expression divides by zero", at)
    return value


def _conditional(words: Words) -> Value:
    at = words.at
    if words.words[at][:1].isdigit() and words.words[at + 1] not in _OPERATORS:
        return _literal(words)
    condition = _binary(words, 0)
    if not words.accept("?"):
        return condition
    chosen = bool(_whole(words, condition).number)
    yes = _conditional(words)
    words.take(":")
    no = _conditional(words)
    if isinstance(yes, Whole) and isinstance(no, Whole):
        return whole((yes if chosen else no).number, yes.unsigned or no.unsigned)
    return _float(words, yes if chosen else no)
