"""What the parser says about text that is no PTX, word for word: message, line and the text of that line."""

from __future__ import annotations

import pytest

from weft.emulator.errors import PTXError
from weft.emulator.ptx import parse

HEAD = ".version 8.4\n.target sm_90a\n.address_size 64\n"


def message(text: str) -> str:
    with pytest.raises(PTXError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "PTX line 1: the text ends where '.version' is expected"),
        ("hello", "PTX line 1: expected '.version', not 'hello'\n    hello"),
        (".version x", "PTX line 1: expected a version, not 'x'\n    .version x"),
        (".version 8", "PTX line 1: expected a version, not '8'\n    .version 8"),
        (".version 8.0\n\n  .target\t90", "PTX line 3: expected a target, not '90'\n    .target 90"),
        (".version 8.0 .target sm_80\n/* no end", "PTX line 2: a comment without an end\n    /* no end"),
        (".version 8.0 .target sm_80\n#define X", "PTX line 2: expected a directive, not '#'\n    #define X"),
    ],
)
def test_heads(text: str, expected: str) -> None:
    assert message(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".texture .b32 x;", "unknown directive '.texture'"),
        (".tex .u64 x;", "unknown directive '.tex'"),
        (".reg .b32 x;", "unknown directive '.reg'"),
        ("add.s32 a, b, c;", "expected a directive, not 'add.s32'"),
        (".global .b32 .wide x;", "unknown directive '.wide' in a declaration"),
        (".global .b32 .s32 x;", "unknown directive '.s32' in a declaration"),
        (".global .align 4 x;", "expected a type, not 'x'"),
        (".global .b32 5;", "expected a name, not '5'"),
        (".global .b32 x", "the text ends where ',' is expected"),
        (".global .b32 x y;", "expected ',', not 'y'"),
        (".global .align 3 .b32 x;", "an alignment is a power of two, not 3"),
        (".global .attribute(.wrong) .b32 x;", "unknown attribute '.wrong'"),
        (".global .b32 x[;", "expected a constant, not ';'"),
        (".global .b32 x[1.5];", "an integer is expected here, not a float"),
        (".global .b32 x[2] = {1, 2, 3};", "3 initialisers for 2 elements"),
        (".global .b32 x[2] = {{1}, 2};", "an initialiser has more levels than its variable has dimensions"),
        (".global .b32 x = {1};", "a list of initialisers for a variable that is no array"),
        (".global .b32 x = ;", "expected a constant, not ';'"),
        (".global .b8 x[2] = {0xff(3), 0};", "a mask is not 0, and of an address"),
        (".global .u8 y; .global .b8 x[2] = {0(y), 0};", "a mask is not 0, and of an address"),
        (".func .attribute(.frobnicated) f() { ret; }", "unknown attribute '.frobnicated'"),
        (".global .b32 x = 1/0;", "a constant expression divides by zero"),
        (".global .b32 x = 1 % 0;", "a constant expression divides by zero"),
        (".global .f64 x = 1.0/0.0;", "a constant expression divides by zero"),
        (".global .f32 x = 0f3F800000 + 1.0;", "a 32-bit float (0f...) may not stand in a constant expression"),
        (".global .f64 x = 1.0 + 1;", "a constant expression mixes an integer and a float"),
        (".global .b32 x = 1.0 | 1;", "an operator of a constant expression needs an integer, not a float"),
        (".global .b32 x = 089;", "'089' is no number"),
        (".global .b32 x = 12abc;", "'12abc' is no number"),
        (".global .b32 x = 0x1_0000;", "'0x1_0000' is no number"),
        (".global .b32 x = 1_0;", "'1_0' is no number"),
        (".global .f32 x = 0f3F80;", "'0f3F80' is no number"),
        (".global .b64 x = 18446744073709551616;", "18446744073709551616 does not fit 64 bits"),
        ('.file 1 "a', "a string without an end"),
        (".file 1 a", "expected a string, not 'a'"),
        (".pragma nounroll;", "expected a string, not 'nounroll'"),
        (".section .debug_info { .b8 1", "a section has no end"),
        (".alias f, g;", "'g' is not declared"),
        (".func f(.shared .b32 x) { ret; }", "expected '.param', not '.shared'"),
        (".func f(.param .b32 x .param .b32 y) { ret; }", "expected ',', not '.param'"),
        (".func 5 { ret; }", "expected a function's name, not '5'"),
        (".entry k() .fast { ret; }", "unknown directive '.fast'"),
        (".entry k() .maxntid { ret; }", "expected a constant, not '{'"),
        (".entry k() ret;", "expected a function's body, not 'ret'"),
        (".entry k() { ret;", "a function's body has no end"),
        (".loc 1 2 3", "there is no .file 1"),
    ],
)
def test_modules(text: str, expected: str) -> None:
    assert message(HEAD + text) == f"PTX line 4: {expected}\n    {text}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add.s32 a, b, nothing;", "'nothing' is not declared"),
        ("mov.u32 a, %tid_x;", "'%tid_x' is not declared"),
        ("ld.global.u32 a, [nothing+4];", "'nothing' is not declared"),
        ("bra NOWHERE;", "'NOWHERE' is not declared"),
        ("@nothing bra L; L:", "expected a predicate register, not 'nothing'"),
        ("@L bra L; L:", "expected a predicate register, not 'L'"),
        ("add.s32 a, b c;", "expected ',' or ';', not 'c'"),
        ("add.s32 a, , c;", "expected an operand, not ','"),
        ("add.s32 a, b, -c;", "expected a constant, not 'c'"),
        ("add.s32 a, b,;", "expected an operand, not ';'"),
        ("add.s32 a, b, .x;", "expected an operand, not '.x'"),
        ("mov.b64 x, {a, b; }", "expected ',', not ';'"),
        ("ld.global.u32 a, [b;", "expected ']', not ';'"),
        ("ld.global.u32 a, [];", "expected a constant, not ']'"),
        ("ld.global.u32 a, [x, b];", "expected ',', not ']'"),  # a texture and its sampler, and then where
        ("ld.global.u32 a, [b+c];", "expected a constant, not 'c'"),
        ("ld.global.u32 a, [b+1.5];", "an integer is expected here, not a float"),
        ("setp.eq.and.s32 p, a, b, !L; L:", "only a predicate can be negated"),
        ("L: ret; L: ret;", "label 'L' is defined twice"),
        (".reg .b32 a;", "'a' is declared twice"),
        (".reg .b32 t; .shared .b32 t;", "'t' is declared twice"),
        (".reg .b32 t<1+1>;", "expected '>', not '+'"),
        (".reg .b32 t<n>;", "expected an integer, not 'n'"),
        (".fancy 1;", "unknown directive '.fancy'"),
        ("T: .fancytargets a;", "unknown directive '.fancytargets'"),
        ("5;", "expected an instruction, not '5'"),
        ("T: .branchtargets a;", "a label or a function is expected"),
        ("T: .branchtargets M;", "'M' is not declared"),
        ("P: .callprototype f;", "expected '_', not 'f'"),
        ("P: .callprototype _ .often;", "expected ';', not '.often'"),
        ("call (a), k, (b), P Q; P:", "expected ';', not 'Q'"),
        ("call (a) k;", "expected ',', not 'k'"),
        (".loc 7 1 1", "there is no .file 7"),
        (".loc 1 1 1, called_from 3", "expected 'function_name' or 'inlined_at', not 'called_from'"),
        ("ret; }", "expected a directive, not '}'"),
    ],
)
def test_bodies(text: str, expected: str) -> None:
    registers = ".reg .b32 a, b, c; .reg .pred p; .reg .b64 x;"
    whole = f'{HEAD}.file 1 "a.cu"\n.entry k() {{ {registers}\n\n  {text}\n}}'
    line = 8 if text == "ret; }" else 7
    assert message(whole) == f"PTX line {line}: {expected}\n    {text if line == 7 else '}'}"


def test_the_line_of_an_error_is_where_its_word_stands() -> None:
    text = HEAD + ".entry k() {\n.reg .b32 a;\nadd.s32 a,\n  a,\n\n  nothing;\n}"
    assert message(text) == "PTX line 9: 'nothing' is not declared\n    nothing;"
