"""Shared by the tests of the reference: exact rounding by search, and running textual tile IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.parser import Parser

from weft import reference
from weft.ir.tile import Tile

# name: exponent bits, mantissa bits, bias (IEEE 754; Micikevicius et al., "FP8 formats for deep learning", 2022)
FORMATS = {
    "float8_e4m3fn": (4, 3, 7),
    "float8_e5m2": (5, 2, 15),
    "float16": (5, 10, 15),
    "bfloat16": (8, 7, 127),
    "float32": (8, 23, 127),
    "float64": (11, 52, 1023),
}
FIRST_BEYOND = {  # the least positive pattern that is no finite number: infinity, or NaN in the finite-only format
    "float8_e4m3fn": 0x7F,
    "float8_e5m2": 0x7C,
    "float16": 0x7C00,
    "bfloat16": 0x7F80,
    "float32": 0x7F800000,
    "float64": 0x7FF0000000000000,
}

Decode: TypeAlias = Callable[[str, int], Fraction]
Nearest: TypeAlias = Callable[[Fraction, str], int]
Execute: TypeAlias = Callable[..., None]


def decode_bits(name: str, pattern: int) -> Fraction:
    """The number a non-negative pattern stands for, as if the top exponent were one like the others."""
    _, mantissa_bits, bias = FORMATS[name]
    exponent, mantissa = divmod(pattern, 1 << mantissa_bits)
    if exponent == 0:
        return Fraction(mantissa) * Fraction(2) ** (1 - bias - mantissa_bits)
    return Fraction((1 << mantissa_bits) + mantissa) * Fraction(2) ** (exponent - bias - mantissa_bits)


def nearest_bits(value: Fraction, name: str) -> int:
    """The pattern of the nearest number, ties to the even pattern, found by bisection over all patterns of a sign.

    Beyond the largest finite number the first pattern that is none stands for the next number, so ties there work, too.
    """
    exponent_bits, mantissa_bits, _ = FORMATS[name]
    low, high = 0, FIRST_BEYOND[name]
    sign = int(value < 0) << (exponent_bits + mantissa_bits)
    magnitude = abs(value)
    if magnitude >= decode_bits(name, high):
        return sign | high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if decode_bits(name, middle) <= magnitude else (low, middle)
    below, above = magnitude - decode_bits(name, low), decode_bits(name, high) - magnitude
    if below == above:
        return sign | (low if low % 2 == 0 else high)
    return sign | (low if below < above else high)


@pytest.fixture(scope="session")
def decode() -> Decode:
    """``decode(name, pattern)``: the number a pattern of a float format stands for."""
    return decode_bits


@pytest.fixture(scope="session")
def nearest() -> Nearest:
    """``nearest(value, name)``: the pattern of the nearest number of a float format."""
    return nearest_bits


@pytest.fixture(scope="session")
def execute() -> Execute:
    """``execute(parameters, body, arguments, grid=(1,))``: runs the body of a function in textual tile IR."""
    context = Context()
    for dialect in (Builtin, Func, Scf, Tile):
        context.load_dialect(dialect)

    def run(parameters: str, body: str, arguments: Sequence[Any], grid: tuple[int, ...] = (1,)) -> None:
        module = Parser(context, f"func.func @kernel({parameters}) {{\n{body}\nfunc.return\n}}").parse_module()
        module.verify()
        reference.run(module, arguments, grid)

    return run


@pytest.fixture(scope="session")
def apply(execute: Execute) -> Callable[..., NDArray[Any]]:
    """``apply(text, result, *inputs)``: what ``text`` computes as ``%r`` from ``%a``, ``%b``, ...; each of ``result`` (filled
    and returned) and ``inputs`` is an element type and an array."""

    def tile(element: str, shape: tuple[int, ...]) -> str:
        return f"tensor<{'x'.join(map(str, shape))}x{element}>" if shape else element

    def access(name: str, element: str, array: NDArray[Any]) -> str:
        """``%p`` + name: pointers to all elements of the array, in its shape."""
        pointer, shape, n = f"!tile.ptr<{element}>", array.shape, array.size
        if not shape:
            return ""
        flat = tile("i32", (n,))
        return (
            f"%i{name} = tile.arange 0 {n} : {flat}\n"
            f"%j{name} = tile.reshape %i{name} : {flat} to {tile('i32', shape)}\n"
            f"%s{name} = tile.splat %{name}0 : {pointer} to {tile(pointer, shape)}\n"
            f"%p{name} = tile.addptr %s{name}, %j{name} : {tile(pointer, shape)}, {tile('i32', shape)} "
            f"to {tile(pointer, shape)}\n"
        )

    def run(text: str, result: tuple[str, NDArray[Any]], *inputs: tuple[str, NDArray[Any]]) -> NDArray[Any]:
        names = "abcdefg"[: len(inputs)]
        operands = [*zip(names, inputs, strict=True), ("r", result)]
        parameters = ", ".join(f"%{name}0: !tile.ptr<{element}>" for name, (element, _) in operands)
        lines: list[str] = []
        for name, (element, array) in operands:
            lines.append(access(name, element, array))
            address = f"%p{name}" if array.shape else f"%{name}0"
            pointers, values = tile(f"!tile.ptr<{element}>", array.shape), tile(element, array.shape)
            if name == "r":
                lines.append(f"{text}\ntile.store {address}, %r : {pointers}, {values}")
            else:
                lines.append(f"%{name} = tile.load {address} : {pointers} to {values}")
        execute(parameters, "\n".join(lines), [array for _, (_, array) in operands])
        return result[1]

    return run
