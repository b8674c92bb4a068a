"""PTX text to syntax, construct by construct: what is written is stated as text, what it means as literal data."""

from __future__ import annotations

import pytest

from weft.emulator.ptx import parse
from weft.emulator.ptx.syntax import (
    Address,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Module,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Source,
    Symbol,
    Variable,
    Vector,
)

HEAD = ".version 8.4\n.target sm_90a\n.address_size 64\n"


def module(text: str) -> Module:
    return parse(HEAD + text)


def body(text: str, head: str = "") -> Function:
    """The function whose body the text is; registers a to d (b32), p to r (pred), x (b64) and f (f32) are declared."""
    registers = ".reg .b32 a, b, c, d; .reg .pred p, q, r; .reg .b64 x, y; .reg .f32 f, g;"
    return module(f"{head}.visible .entry k(.param .u64 arg)\n{{ {registers}\n{text}\n}}").functions["k"]


def one(text: str, head: str = "") -> Instruction:
    (instruction,) = body(text + ";", head).instructions
    return instruction


def operands(text: str) -> tuple[Operand, ...]:
    return one(text).operands


R = Register
Imm = Immediate


# ---- modules ---------------------------------------------------------------------------------------------------------


def test_head() -> None:
    read = parse(
        "// a comment\n.version 7.0 /* another\n one */ .target sm_80, texmode_independent\n.address_size 64\n"
    )
    assert (read.version, read.target, read.address_size) == ((7, 0), ("sm_80", "texmode_independent"), 64)
    assert read.variables == {} and read.functions == {} and read.files == {}
    assert read.text.startswith("// a comment")


def test_the_end_of_a_buffer_and_the_ends_of_lines() -> None:
    read = parse(HEAD.replace("\n", "\r\n") + ".entry k() {\r\n\tret; // übrigens\r\n}\r\n\0\0")
    assert read.functions["k"].instructions[0].line == 5
    assert read.text.endswith("}\r\n")


def test_addresses_have_32_bits_where_nothing_is_said() -> None:
    assert parse(".version 7.0 .target sm_80").address_size == 32


def test_variables_of_a_module() -> None:
    read = module(
        """
        .visible .global .align 16 .b8 a[3][5];
        .extern .shared .align 128 .b8 dynamic[];
        .weak .global .u32 b, c = 7;
        .common .global .s64 d;
        .const .v2 .f32 e[4];
        .global .attribute(.managed) .f64 g;
        .global .attribute(.unified(1, 2)) .f64 h;
        .shared .b16 s[8 * (2 + 2)];
        """
    )
    assert list(read.variables.values()) == [
        Variable("a", "global", "b8", 15, 16, array=True, line=5),
        Variable("dynamic", "shared", "b8", None, 128, external=True, array=True, line=6),
        Variable("b", "global", "u32", 1, 4, line=7),
        Variable("c", "global", "u32", 1, 4, initial=(Imm(7),), line=7),
        Variable("d", "global", "s64", 1, 8, line=8),
        Variable("e", "const", "f32", 4, 8, vector=2, array=True, line=9),
        Variable("g", "global", "f64", 1, 8, line=10),
        Variable("h", "global", "f64", 1, 8, line=11),
        Variable("s", "shared", "b16", 32, 2, array=True, line=12),
    ]


@pytest.mark.parametrize(
    ("declaration", "count", "initial"),
    [
        (".u32 x = 5", 1, (Imm(5),)),
        (".s32 x[] = {1, -2, 3}", 3, (Imm(1), Imm(-2), Imm(3))),
        (".s32 x[5] = {1, 2}", 5, (Imm(1), Imm(2))),
        (".s32 x[2][3] = {{1, 2, 3}, {4, 5, 6}}", 6, tuple(map(Imm, (1, 2, 3, 4, 5, 6)))),
        (".s32 x[2][3] = {{1}, {4, 5}}", 6, tuple(map(Imm, (1, 0, 0, 4, 5, 0)))),
        (".s32 x[][2] = {{1}, {4, 5}, {6}}", 6, tuple(map(Imm, (1, 0, 4, 5, 6, 0)))),
        (".s32 x[2][2][2] = {{{1}, {2}}, {{3, 4}}}", 8, tuple(map(Imm, (1, 0, 2, 0, 3, 4, 0, 0)))),
        (".f32 x[2] = {0f3F800000, 0f7FC00001}", 2, (Imm(0x3F800000, 32), Imm(0x7FC00001, 32))),
        (".f64 x[3] = {1.5, -2e3, 0d3FF0000000000000}", 3, (Imm(1.5), Imm(-2000.0), Imm(0x3FF0000000000000, 64))),
        (".u64 x = generic(other)", 1, (Symbol("other", 0, generic=True),)),
        (".u64 x[2] = {generic(other)+8, other}", 2, (Symbol("other", 8, generic=True), Symbol("other"))),
        (".u64 x[2] = {other+4, other-4}", 2, (Symbol("other", 4), Symbol("other", -4))),
        (".f64 x[2] = {.5, -.25e1}", 2, (Imm(0.5), Imm(-2.5))),
        (".v2 .u32 x = {1, 2}", 1, (Imm(1), Imm(2))),
        (".v2 .u32 x[] = {{1, 2}, {3, 4}, {5, 6}}", 3, tuple(map(Imm, (1, 2, 3, 4, 5, 6)))),
        (
            ".u8 x[2] = {0xff(other), 0xff00(generic(other)+4)}",
            2,
            (Symbol("other", 0, mask=0xFF), Symbol("other", 4, generic=True, mask=0xFF00)),
        ),
    ],
)
def test_initialisers(declaration: str, count: int, initial: tuple[Operand, ...]) -> None:
    variable = module(f".global .u32 other; .global {declaration};").variables["x"]
    assert (variable.count, variable.initial) == (count, initial)


def test_opaque_variables_have_properties_that_the_driver_reads() -> None:
    text = ".global .texref t = { width = 4, depth = 1 }; .global .samplerref s = { addr_mode_0 = wrap };"
    assert module(text).variables["t"] == Variable("t", "global", "texref", 1, 8, line=4)


def test_the_oldest_form_of_debugging_data_is_skipped_line_by_line() -> None:
    read = module("@@DWARF .byte 0x2b, 0x00\n@@DWARF .4byte .debug_abbrev\n.global .u32 x;")
    assert list(read.variables) == ["x"]


def test_names_of_the_module_are_hidden_by_a_functions_signature() -> None:
    f, k = module(
        """.global .u32 t; .func (.reg .u32 u) f(.reg .u32 t) { mov.u32 u, t; }
        .entry k(.param .u32 t) { .reg .u32 r; ld.param.u32 r, [t]; }"""
    ).functions.values()
    assert f.instructions[0].operands == (R("u"), R("t"))
    assert k.instructions[0].operands == (R("r"), Address(Symbol("t")))


def test_sections_hold_data_of_a_debugger_and_are_skipped() -> None:
    read = module('.section .debug_str\n{\n$L: .b8 1,2\n.b32 $L+4\n}\n.section .debug_macinfo { }\n.file 1 "a.cu"')
    assert (read.variables, read.functions, read.files) == ({}, {}, {1: "a.cu"})


def test_an_alias_is_its_function_under_another_name() -> None:
    read = module(".func f() { ret; }\n.func g();\n.alias g, f;")
    assert read.functions["g"].name == "g"
    assert read.functions["g"].instructions == read.functions["f"].instructions
    assert not read.functions["g"].declared


# ---- functions -------------------------------------------------------------------------------------------------------


def test_parameters_of_a_kernel() -> None:
    read = module(
        """.visible .entry k(
            .param .u64 .ptr .global .align 16 a,
            .param .align 8 .b8 b[24],
            .param .f32 c,
            .param .u64 .ptr .align 1 d
        ) { ret; }"""
    )
    kernel = read.functions["k"]
    assert kernel.entry and not kernel.declared and kernel.line == 4
    assert kernel.results == ()
    assert kernel.parameters == (
        Variable("a", "param", "u64", 1, 8, pointer=True, line=5),
        Variable("b", "param", "b8", 24, 8, array=True, line=6),
        Variable("c", "param", "f32", 1, 4, line=7),
        Variable("d", "param", "u64", 1, 8, pointer=True, line=8),
    )


def test_functions_with_results_in_parameters_or_registers() -> None:
    read = module(
        """.func (.param .b32 out) f(.param .b32 in);
        .func (.reg .u32 out) g(.reg .u32 in, .reg .f32 more) { mov.u32 out, in; ret; }
        .func h { ret; }"""
    )
    f, g, h = read.functions.values()
    assert f.declared and f.results == (Variable("out", "param", "b32", 1, 4, line=4),)
    assert g.results == (Variable("out", "reg", "u32", 1, 4, line=5),)
    assert [parameter.name for parameter in g.parameters] == ["in", "more"]
    assert g.registers == {"out": "u32", "in": "u32", "more": "f32"}
    assert g.instructions[0].operands == (R("out"), R("in"))
    assert (h.parameters, h.results, h.entry) == ((), (), False)


def test_a_definition_takes_a_declarations_place_and_no_declaration_a_definitions() -> None:
    read = module(".func f(.param .b32 a); .func f(.param .b32 b) { ret; } .func f(.param .b32 c);")
    assert read.functions["f"].parameters[0].name == "b"


def test_external_functions_are_declared() -> None:
    text = ".extern .func (.param .b32 out) vprintf(.param .b64 format, .param .b64 arguments);"
    assert module(text).functions["vprintf"].declared


def test_directives_of_a_functions_head() -> None:
    read = module(
        """.func .noreturn f() { exit; }
        .entry k() .maxntid 128, 1, 1 .minnctapersm 2 .maxnreg 64 .pragma "nounroll"; { ret; }
        .entry l() .reqntid 256 .reqnctapercluster 2, 1, 1 .explicitcluster .maxclusterrank 8 .maxnctapersm 4 { ret; }
        .func .attribute(.unified(1, 2)) g() .abi_preserve 8 { ret; }"""
    )
    assert read.functions["f"].directives == {"noreturn": ()}
    assert read.functions["k"].directives == {"maxntid": (128, 1, 1), "minnctapersm": (2,), "maxnreg": (64,)}
    assert read.functions["l"].directives == {
        "reqntid": (256,),
        "reqnctapercluster": (2, 1, 1),
        "explicitcluster": (),
        "maxclusterrank": (8,),
        "maxnctapersm": (4,),
    }
    assert read.functions["g"].directives == {"abi_preserve": (8,)}


# ---- bodies ----------------------------------------------------------------------------------------------------------


def test_registers() -> None:
    function = module(".entry k() { .reg .b32 %r<3>, t; .reg .pred %p<2>; .reg .b128 w; .reg .v4 .f32 v; }").functions[
        "k"
    ]
    assert function.registers == {
        **{"%r0": "b32", "%r1": "b32", "%r2": "b32", "t": "b32", "%p0": "pred", "%p1": "pred", "w": "b128"},
        **{"v.x": "f32", "v.y": "f32", "v.z": "f32", "v.w": "f32"},
    }


def test_a_vector_register_is_its_elements() -> None:
    text = ".entry k() { .reg .v2 .f32 v; .reg .f32 f; ld.global.v2.f32 v, [0]; add.f32 f, v.x, v.g; }"
    load, add = module(text).functions["k"].instructions
    assert load.operands == (Vector((R("v.x"), R("v.y"))), Address(Imm(0)))
    assert add.operands == (R("f"), R("v.x"), R("v.y"))


def test_variables_of_a_function() -> None:
    function = body(".shared .align 4 .b8 tile[4][33]; .local .b8 depot[8]; .param .b64 out; mov.u32 a, tile+8;")
    assert function.variables == (
        Variable("tile", "shared", "b8", 132, 4, array=True, line=6),
        Variable("depot", "local", "b8", 8, 1, array=True, line=6),
        Variable("out", "param", "b64", 1, 8, line=6),
    )
    assert function.instructions[0].operands == (R("a"), Symbol("tile", 8))


def test_an_instruction() -> None:
    text = "@!p  cp.async.ca.shared.global.L2::128B\n  [a + 4], // where to\n [x], /* bytes */ 16"
    assert one(text) == Instruction(
        "cp",
        ("async", "ca", "shared", "global", "L2::128B"),
        (Address(R("a"), 4), Address(R("x")), Imm(16)),
        Guard("p", negated=True),
        6,
        None,
        "@!p cp.async.ca.shared.global.L2::128B [a + 4], [x], 16",
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ret", "ret"),
        ("bar.sync 0", "bar.sync"),
        ("fence.proxy.async.shared::cta", "fence.proxy.async.shared::cta"),
        ("add .rn .f32 f, f, g", "add.rn.f32"),
        ("@p bra.uni L; L: ret", "bra.uni"),
    ],
)
def test_opcodes_and_modifiers(text: str, name: str) -> None:
    instruction = body(text + ";").instructions[0]
    assert instruction.name == name
    assert (instruction.opcode, *instruction.modifiers) == tuple(name.split("."))


def test_guards() -> None:
    first, second, third = body("@p mov.u32 a, b; @!q mov.u32 a, b; mov.u32 a, b;").instructions
    assert (first.guard, second.guard, third.guard) == (Guard("p", False), Guard("q", True), None)
    assert first.text == "@p mov.u32 a, b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mov.u32 a, %tid.x", (R("a"), R("%tid.x"))),
        ("mov.u32 a, WARP_SZ", (R("a"), Imm(32))),
        ("mov.b64 x, {a, b}", (R("x"), Vector((R("a"), R("b"))))),
        ("mov.b64 {a, _}, x", (Vector((R("a"), Sink())), R("x"))),
        ("mov.b64 x, k", (R("x"), Symbol("k"))),
        ("ld.param.u32 a, arg[1]", (R("a"), Address(Symbol("arg"), 8))),
        ("mov.b64 x, arg[1]", (R("x"), Symbol("arg", 8))),
        ("ld.u32 a, arg[b]", (R("a"), Address(Symbol("arg"), 0, index=R("b")))),
        ("ld.u32 a, arg[b+1]", (R("a"), Address(Symbol("arg"), 8, index=R("b")))),
        (
            "tex.1d.v4.f32.s32 {f, g, f, g}|p, [x, {a}]",
            (Pair(Vector((R("f"), R("g"), R("f"), R("g"))), R("p")), Address(R("x"), 0, (R("a"),))),
        ),
        ("mov.b64 x, arg", (R("x"), Symbol("arg"))),
        ("setp.lt.and.s32 p|q, a, b, !r", (Pair(R("p"), R("q")), R("a"), R("b"), Not(R("r")))),
        ("setp.lt.s32 p | _, a, 3", (Pair(R("p"), Sink()), R("a"), Imm(3))),
        ("elect.sync _|p, 0xffffffff", (Pair(Sink(), R("p")), Imm(0xFFFFFFFF))),
        ("mbarrier.arrive.shared.b64 _, [a]", (Sink(), Address(R("a")))),
        ("ld.param.u64 x, [arg]", (R("x"), Address(Symbol("arg")))),
        ("ld.param.u64 x, [arg+8]", (R("x"), Address(Symbol("arg"), 8))),
        ("ld.shared.u32 a, [b+-4]", (R("a"), Address(R("b"), -4))),
        ("ld.shared.u32 a, [b-4]", (R("a"), Address(R("b"), -4))),
        ("ld.shared.u32 a, [b + 0x10 + 4]", (R("a"), Address(R("b"), 20))),
        ("ld.shared.u32 a, [16]", (R("a"), Address(Imm(16)))),
        ("ld.shared.u32 a, [4*4+1]", (R("a"), Address(Imm(17)))),
        ("ld.global.v4.b32 {a,b,c,d}, [x]", (Vector((R("a"), R("b"), R("c"), R("d"))), Address(R("x")))),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [a], [x, {b, c}], [d]",
            (Address(R("a")), Address(R("x"), 0, (R("b"), R("c"))), Address(R("d"))),
        ),
        (
            "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [x, {0}], [d]",
            (Address(R("x"), 0, (Imm(0),)), Address(R("d"))),
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {f, g}, x, y, p, 1, -1, 0, 1",
            (Vector((R("f"), R("g"))), R("x"), R("y"), R("p"), Imm(1), Imm(-1), Imm(0), Imm(1)),
        ),
    ],
)
def test_operands(text: str, expected: tuple[Operand, ...]) -> None:
    assert operands(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", Imm(0)),
        ("-5", Imm(-5)),
        ("5U", Imm(5)),
        ("4294967295", Imm(4294967295)),
        ("18446744073709551615", Imm(2**64 - 1)),
        ("0x8000000000000000", Imm(2**63)),
        ("0xFFu".upper().replace("X", "x"), Imm(255)),
        ("0b101", Imm(5)),
        ("0b101U", Imm(5)),
        ("0777", Imm(511)),
        ("1.5", Imm(1.5)),
        ("1.", Imm(1.0)),
        ("1e3", Imm(1000.0)),
        ("2.5E-1", Imm(0.25)),
        ("-1.5", Imm(-1.5)),
        ("0f3F800000", Imm(0x3F800000, 32)),
        ("0F7fc00001", Imm(0x7FC00001, 32)),
        ("-0f3F800000", Imm(0xBF800000, 32)),
        ("0dFFF8000000000001", Imm(0xFFF8000000000001, 64)),
        ("0D3FF0000000000000", Imm(0x3FF0000000000000, 64)),
    ],
)
def test_constants(text: str, expected: Immediate) -> None:
    assert operands(f"mov.b64 x, {text}")[1] == expected


ALL = 2**64 - 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("10-4-3", 3),
        ("-7/2", -3),  # towards zero, as in C
        ("7/-2", -3),
        ("-1/2U", ALL // 2),  # unsigned where one operand is
        ("17 % 5", 2),
        ("-1 % 10", 5),  # % takes its operands unsigned: 2**64 - 1 is 18446744073709551615
        ("1<<4", 16),
        ("1<<63", -(2**63)),  # a signed constant
        ("1U<<63", 2**63),
        ("1<<64", 0),
        ("-16>>2", -4),
        ("-16>>70", -1),
        ("0x8000000000000000>>63", 1),
        ("0xF0|0x0F", 255),
        ("0xFF&0x3C^1", 0x3D),  # & before ^
        ("1|2^3&4", 3),
        ("~0", ALL),
        ("~0U", ALL),
        ("!5", 0),
        ("!0", 1),
        ("-(-3)", 3),
        ("+3", 3),
        ("1<2", 1),
        ("-1<1U", 0),
        ("2>=2", 1),
        ("3<=2", 0),
        ("2>1", 1),
        ("1==1", 1),
        ("1!=1", 0),
        ("2&&3", 1),
        ("2&&0||0", 0),
        ("1?2:3", 2),
        ("0?2:3", 3),
        ("0?2:0?3:4", 4),
        ("(.u64)-1", ALL),
        ("(.s64)0xFFFFFFFFFFFFFFFF", -1),
        ("9223372036854775807+1", -(2**63)),
        ("WARP_SZ-1", 31),
        ("1.5+2.0", 3.5),
        ("0d3FF8000000000000*2.0", 3.0),
        ("1.0<2.0", 1),
        ("1.0/4.0-0.5", -0.25),
        ("1?0d3FF8000000000000:2.0", 1.5),
    ],
)
def test_constant_expressions(text: str, expected: float) -> None:
    (value,) = operands(f"mov.b64 x, {text}")[1:]
    assert value == Imm(expected)
    assert isinstance(value, Immediate) and type(value.value) is type(expected)


# ---- calls -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call fun", (Group(()), Symbol("fun"), Group(()))),
        ("call.uni fun, (a, 5)", (Group(()), Symbol("fun"), Group((R("a"), Imm(5))))),
        ("call (a), fun, (b)", (Group((R("a"),)), Symbol("fun"), Group((R("b"),)))),
        ("call (_), fun, (b)", (Group((Sink(),)), Symbol("fun"), Group((R("b"),)))),
        ("call (a), fun", (Group((R("a"),)), Symbol("fun"), Group(()))),
        ("call (a), x, (b), P", (Group((R("a"),)), R("x"), Group((R("b"),)), Symbol("P"))),
        ("call x, P", (Group(()), R("x"), Group(()), Symbol("P"))),
        ("call x, (), P", (Group(()), R("x"), Group(()), Symbol("P"))),
    ],
)
def test_calls(text: str, expected: tuple[Operand, ...]) -> None:
    head = ".extern .func (.reg .b32 out) fun(.reg .b32 in);\n"
    prototype = "P: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[24]) .noreturn;"
    function = body(f"{prototype} {text};", head)
    assert function.instructions[0].operands == expected
    assert function.prototypes["P"] == Function(
        "P",
        False,
        (Variable("_", "param", "b64", 1, 8, line=7), Variable("_", "param", "b8", 24, 8, array=True, line=7)),
        (Variable("_", "param", "b32", 1, 4, line=7),),
        {},
        (),
        (),
        {},
        directives={"noreturn": ()},
        declared=True,
        line=7,
    )
    assert function.labels == {}


def test_prototypes_without_results_or_parameters() -> None:
    prototypes = body("P: .callprototype _ ; Q: .callprototype () _ (.param .b32 _) .abi_preserve 4;").prototypes
    assert [(p.results, len(p.parameters), p.directives) for p in prototypes.values()] == [
        ((), 0, {}),
        ((), 1, {"abi_preserve": (4,)}),
    ]


def test_tables_of_targets() -> None:
    text = "T: .branchtargets L, M, L; F: .calltargets fun, k; brx.idx a, T; L: ret; M: exit;"
    function = body(text, ".extern .func fun();")
    assert function.tables == {"T": ("L", "M", "L"), "F": ("fun", "k")}
    assert function.instructions[0].operands == (R("a"), Symbol("T"))
    assert function.labels == {"L": 1, "M": 2}


# ---- labels and scopes -----------------------------------------------------------------------------------------------


def test_labels() -> None:
    function = body("A: B:\nmov.u32 a, b; C : bra A; D:")
    assert function.labels == {"A": 0, "B": 0, "C": 1, "D": 2}
    assert function.instructions[1].operands == (Symbol("A"),)


def test_an_inner_name_hides_the_outer_one_and_is_renamed() -> None:
    function = body(
        """.reg .u32 t; .shared .b32 s;
        mov.u32 t, s;
        { .reg .f32 t; .shared .b64 s; mov.u32 t, s; { .reg .pred t; mov.pred t, p; } ld.shared.f32 t, [s]; }
        mov.u32 t, s;
        { .reg .u64 t; mov.u64 t, x; }"""
    )
    assert [instruction.operands for instruction in function.instructions] == [
        (R("t"), Symbol("s")),
        (R("t$1"), Symbol("s$1")),
        (R("t$2"), R("p")),
        (R("t$1"), Address(Symbol("s$1"))),
        (R("t"), Symbol("s")),
        (R("t$3"), R("x")),
    ]
    types = {name: type for name, type in function.registers.items() if name.startswith("t")}
    assert types == {"t": "u32", "t$1": "f32", "t$2": "pred", "t$3": "u64"}
    assert [variable.name for variable in function.variables] == ["s", "s$1"]


def test_a_renamed_name_keeps_away_from_one_that_is_written() -> None:
    function = body(".reg .u32 t, t$1; { .reg .u32 t; mov.u32 t, t$1; }")
    assert function.instructions[0].operands == (R("t$2"), R("t$1"))


def test_a_variable_named_as_one_of_the_module_is_renamed() -> None:
    function = body(".shared .b32 s[4]; mov.u32 a, s;", head=".shared .b32 s[8];\n")
    assert function.instructions[0].operands == (R("a"), Symbol("s$1"))
    assert function.variables[0].name == "s$1"


def test_each_copy_of_inline_assembly_has_its_own_labels() -> None:
    copy = "{ .reg .pred p; WAIT: setp.eq.u32 p, a, b; @p bra DONE; bra WAIT; DONE: }"
    function = body(f"{copy}\n{copy}\nWAIT: ret;")
    branches = [instruction.operands[0] for instruction in function.instructions if instruction.opcode == "bra"]
    # The outermost braces are looked at first, so that the label outside keeps its name.
    assert branches == [Symbol("DONE"), Symbol("WAIT$1"), Symbol("DONE$1"), Symbol("WAIT$2")]
    assert function.labels == {"WAIT$1": 0, "DONE": 3, "WAIT$2": 3, "DONE$1": 6, "WAIT": 6}


def test_a_branch_out_of_a_scope_goes_to_the_outer_label() -> None:
    function = body("{ @p bra OUT; { bra OUT; } }\nOUT: ret;")
    assert [instruction.operands for instruction in function.instructions[:2]] == [(Symbol("OUT"),)] * 2
    assert function.labels == {"OUT": 2}


# ---- where it comes from ---------------------------------------------------------------------------------------------


def test_source_lines() -> None:
    function = module(
        """.entry k() {
        ret;
        .loc 1 10 4
        ret; ret;
        .loc 2 3 0
        ret;
        .loc 1 0 0
        ret;
        }
        .entry l() { ret; }
        .file 1 "dir/a.cu"
        .file 2 "b.cuh", 1700000000, 99
        """
    )
    assert [instruction.source for instruction in function.functions["k"].instructions] == [
        None,
        Source("dir/a.cu", 10, 4),
        Source("dir/a.cu", 10, 4),
        Source("b.cuh", 3),
        None,
    ]
    assert function.functions["l"].instructions[0].source is None
    assert function.files == {1: "dir/a.cu", 2: "b.cuh"}


def test_inlined_source_lines_form_a_chain() -> None:
    read = module(
        """.file 1 "a.py"
        .entry k() {
        .loc 1 30 2
        nop;
        .loc 1 20 3, function_name $L__info_string0, inlined_at 1 30 2
        nop;
        .loc 1 10 4, function_name $L__info_string1+12, inlined_at 1 20 3
        nop;
        .loc 1 11 4, function_name $L__info_string1, inlined_at 1 99 1
        nop;
        }"""
    )
    outer = Source("a.py", 30, 2)
    middle = Source("a.py", 20, 3, outer)
    assert [instruction.source for instruction in read.functions["k"].instructions] == [
        outer,
        middle,
        Source("a.py", 10, 4, middle),
        Source("a.py", 11, 4, Source("a.py", 99, 1)),
    ]


def test_inline_assembly_belongs_to_the_line_it_begins_with() -> None:
    """As LLVM writes three lines of assembly on line 10 of the source: the locations 11 and 12 are its own count."""
    read = module(
        """.file 1 "a.py"
        .entry k() {
        .loc 1 9 1
        // begin inline asm
        .loc 1 10 4
        nop;
        .loc 1 11 4
        nop;
        .loc 1 12 4
        nop;
        // end inline asm
        nop;
        .loc 1 13 1
        nop;
        // begin inline asm
        nop;
        .loc 1 14 1
        nop;
        // end inline asm
        nop;
        }"""
    )
    lines = [i.source.line for i in read.functions["k"].instructions if i.source]
    assert lines == [10, 10, 10, 12, 13, 13, 13, 14]  # behind the piece, LLVM says nothing where its count is right


def test_lines_count_through_comments() -> None:
    first, second = body("/* one\ntwo */ ret; // three\n\nret;").instructions
    assert (first.line, second.line, first.text) == (7, 9, "ret")
