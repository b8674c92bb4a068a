"""Register files: how elements of 64 bits come from words."""

from __future__ import annotations

import re

import pytest
from llvmlite import ir

from weft.codegen.llvm.types import F64, I32, I64
from weft.codegen.nvidia.files import from_words


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        ([0, 1, 2, 3], ["x.0", "x.1"]),  # as they lie in the vector: its elements
        ([2, 3, 0, 1], ["x.1", "x.0"]),
        ([1, 2, 0, 3], ["1 2", "0 3"]),  # neighbours, but of two elements
        ([1, 0, 3, 2], ["1 0", "3 2"]),
        ([0, 5, 4, 1], ["0 5", "4 1"]),  # of two vectors
        ([0, 1, 6, 7], ["x.0", "y.1"]),
        ([0, 3, 4, 7], ["0 3", "4 7"]),
    ],
)
@pytest.mark.parametrize("element", [F64, I64], ids=str)
def test_words_of_one_element_are_taken_together(words: list[int], parts: list[str], element: ir.Type) -> None:
    """Words 0 to 3 are those of vector x, 4 to 7 those of y. ``x.1`` is element 1 of x, ``1 2`` a move of two words."""
    module = ir.Module("test")
    vector = ir.VectorType(I32, 4)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [vector, vector]), "f")
    function.args[0].name, function.args[1].name = "x", "y"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    each = [
        builder.extract_element(function.args[place // 4], ir.Constant(I32, place % 4), name=f"w{place}_")
        for place in range(8)
    ]
    (file,) = from_words(builder, [each[place] for place in words], element, 2)
    assert file.type == ir.VectorType(element, 2)
    text = str(function)
    found: list[str] = []
    wide = dict(re.findall(r"(%\S+) = bitcast <4 x i32> %\"(\w)\"", text))
    pattern = r"lohi\.i2d\"?\(i32 %\"w(\d)_\", i32 %\"w(\d)_\"\)|extractelement <2 x \w+> (%\S+), i32 (\d)"
    for low, high, taken, place in re.findall(pattern, text):
        found.append(f"{low} {high}" if low else f"{wide[taken]}.{place}")
    assert found == parts
