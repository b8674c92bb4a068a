"""What native code computes: a table of handlers, each one form of one instruction on the 32 lanes of a warp.

Compiling each kernel would cost 0.2 to 0.7 ms an instruction, more than most launches take. Here LLVM compiles a fixed table
once; a kernel is data, *rows* that name a handler and the arrays of its operands (`weft.emulator.native.rows`). A handler is
straight-line code on vectors of 32 lanes; the interpreter that calls it has the mask (`weft.emulator.native.interpreter`).

    "add.32": result V32, operands V32 V32, body  %r = add V32 %a, %b

In a body ``V32`` stands for ``<32 x i32>``, ``VF`` and ``VD`` for floats and doubles, ``V1`` for predicates.
What a handler computes is what the NumPy function of the same form does, bit by bit; only the payload of an f64's NaN may differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

VECTORS: Final = {
    "V8": "i8",
    "V16": "i16",
    "V32": "i32",
    "V64": "i64",
    "VF": "float",
    "VD": "double",
    "V1": "i1",
}
"""What the names of vectors stand for."""

BITS: Final = {"V8": 8, "V16": 16, "V32": 32, "V64": 64, "VF": 32, "VD": 64, "V1": 1}
"""Bits of an element: of the registers that an operand or a result may be."""


@dataclass(frozen=True)
class Handler:
    """``body`` defines ``%r`` of type ``result`` from ``%a``, ``%b``, ``%c`` of the types of ``operands``."""

    result: str
    operands: tuple[str, ...]
    body: str


WIDTHS: Final = (16, 32, 64)
FLOATS: Final = {"f32": "VF", "f64": "VD"}
COMPARED: Final = {
    "eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge",
    "equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge", "num": "ord", "nan": "uno",
}  # fmt: skip
"""Comparisons of floats by PTX's names: LLVM's."""

NAN32: Final = "splat (i32 2147483647)"
NAN64: Final = "splat (double 0x7FF8000000000000)"


def _canonical(name: str = "%n") -> str:
    """The f32 ``name`` with the canonical NaN in place of any other: ``%r``. It is told by its bits: with ``fcmp uno``, LLVM 22's
    optimised code of sqrt left some NaNs as they were."""
    return (
        f"%cb = bitcast VF {name} to V32\n%ca = and V32 %cb, {NAN32}\n%cn = icmp ugt V32 %ca, splat (i32 2139095040)\n"
        f"%cs = select V1 %cn, V32 {NAN32}, V32 %cb\n%r = bitcast V32 %cs to VF"
    )


def _flush(source: str, target: str) -> str:
    """Subnormal f32s as zeros of their sign."""
    tag = target[1:]
    return (
        f"%m{tag} = call VF @llvm.fabs.v32f32(VF {source})\n"
        f"%t{tag} = fcmp olt VF %m{tag}, splat (float 0x3810000000000000)\n"
        f"%z{tag} = call VF @llvm.copysign.v32f32(VF zeroinitializer, VF {source})\n"
        f"{target} = select V1 %t{tag}, VF %z{tag}, VF {source}"
    )


def _f32(operation: str, operands: int, ftz: bool) -> Handler:
    """``operation`` defines ``%n`` from ``%x``, ``%y``, ``%z``."""
    lines: list[str] = []
    for name, source in zip("xyz"[:operands], "abc", strict=False):
        operation = operation.replace(f"%{name}", f"%f{name}" if ftz else f"%{source}")
        if ftz:
            lines.append(_flush(f"%{source}", f"%f{name}"))
    if ftz:
        operation = operation.replace("%n ", "%nn ")
        lines += [operation, _flush("%nn", "%n")]
    else:
        lines.append(operation)
    return Handler("VF", ("VF",) * operands, "\n".join([*lines, _canonical()]))


ARITHMETIC: Final = {
    "add": ("%n = fadd VF %x, %y", 2),
    "sub": ("%n = fsub VF %x, %y", 2),
    "mul": ("%n = fmul VF %x, %y", 2),
    "div": ("%n = fdiv VF %x, %y", 2),
    "min": ("%n = call VF @llvm.minimumnum.v32f32(VF %x, VF %y)", 2),
    "max": ("%n = call VF @llvm.maximumnum.v32f32(VF %x, VF %y)", 2),
    "sqrt": ("%n = call VF @llvm.sqrt.v32f32(VF %x)", 1),
    "rcp": ("%n = fdiv VF splat (float 1.0), %x", 1),
}
"""f32 operations of one rounding."""


def _f64(operation: str, operands: int) -> Handler:
    body = operation.replace("VF", "VD").replace("v32f32", "v32f64").replace("float", "double").replace("%n ", "%r ")
    for name, source in zip("xyz", "abc", strict=True):
        body = body.replace(f"%{name}", f"%{source}")
    if "num." in body:  # of NaNs always the same
        body = body.replace("%r ", "%m ") + f"\n%u = fcmp uno VD %m, %m\n%r = select V1 %u, VD {NAN64}, VD %m"
    return Handler("VD", ("VD",) * operands, body)


_RSQRT: Final = (
    "%w = fpext VF %x to VD\n%q = call VD @llvm.sqrt.v32f64(VD %w)\n%i = fdiv VD splat (double 1.0), %q\n"
    "%n = fptrunc VD %i to VF"
)


def _floating() -> dict[str, Handler]:
    found: dict[str, Handler] = {}
    for name, (operation, operands) in ARITHMETIC.items():
        found[f"{name}.f32"] = _f32(operation, operands, False)
        found[f"{name}.ftz.f32"] = _f32(operation, operands, True)
        found[f"{name}.f64"] = _f64(operation, operands)
    fused = "%n = call VF @llvm.fma.v32f32(VF %x, VF %y, VF %z)"
    found["fma.f32"], found["fma.ftz.f32"] = _f32(fused, 3, False), _f32(fused, 3, True)
    found["fma.f64"] = _f64(fused, 3)
    found["rsqrt.f32"], found["rsqrt.ftz.f32"] = _f32(_RSQRT, 1, False), _f32(_RSQRT, 1, True)
    for name, vector in FLOATS.items():
        for compare, code in COMPARED.items():
            found[f"setp.{compare}.{name}"] = Handler("V1", (vector, vector), f"%r = fcmp {code} {vector} %a, %b")
        found[f"neg.{name}"] = Handler(vector, (vector,), f"%r = fneg {vector} %a")
        function = "v32f32" if name == "f32" else "v32f64"
        found[f"abs.{name}"] = Handler(vector, (vector,), f"%r = call {vector} @llvm.fabs.{function}({vector} %a)")
    return found


def _integer() -> dict[str, Handler]:
    found: dict[str, Handler] = {}
    for w in WIDTHS:
        v = f"V{w}"
        for name in ("add", "sub", "mul", "and", "or", "xor"):
            found[f"{name}.{w}"] = Handler(v, (v, v), f"%r = {name} {v} %a, %b")
        found[f"not.{w}"] = Handler(v, (v,), f"%r = xor {v} %a, splat (i{w} -1)")
        found[f"neg.{w}"] = Handler(v, (v,), f"%r = sub {v} zeroinitializer, %a")
        found[f"abs.{w}"] = Handler(v, (v,), f"%r = call {v} @llvm.abs.v32i{w}({v} %a, i1 false)")
        found[f"mad.{w}"] = Handler(v, (v, v, v), f"%p = mul {v} %a, %b\n%r = add {v} %p, %c")
        found[f"mov.{w}"] = Handler(v, (v,), f"%r = freeze {v} %a")
        found[f"selp.{w}"] = Handler(v, (v, v, "V1"), f"%r = select V1 %c, {v} %a, {v} %b")
        for sign in "us":
            found[f"min.{sign}{w}"] = Handler(v, (v, v), f"%r = call {v} @llvm.{sign}min.v32i{w}({v} %a, {v} %b)")
            found[f"max.{sign}{w}"] = Handler(v, (v, v), f"%r = call {v} @llvm.{sign}max.v32i{w}({v} %a, {v} %b)")
            for compare in ("lt", "le", "gt", "ge"):
                found[f"setp.{compare}.{sign}{w}"] = Handler("V1", (v, v), f"%r = icmp {sign}{compare} {v} %a, %b")
        for compare in ("eq", "ne"):
            found[f"setp.{compare}.{w}"] = Handler("V1", (v, v), f"%r = icmp {compare} {v} %a, %b")
        # The width or more shifts everything out.
        most = f"%k = call V32 @llvm.umin.v32i32(V32 %b, V32 splat (i32 {w - 1}))\n"
        amount = {16: "%s = trunc V32 %k to V16", 32: "%s = freeze V32 %k", 64: "%s = zext V32 %k to V64"}[w]
        out = f"\n%o = icmp ugt V32 %b, splat (i32 {w - 1})\n%r = select V1 %o, {v} zeroinitializer, {v} %h"
        found[f"shl.{w}"] = Handler(v, (v, "V32"), f"{most}{amount}\n%h = shl {v} %a, %s{out}")
        found[f"shr.u{w}"] = Handler(v, (v, "V32"), f"{most}{amount}\n%h = lshr {v} %a, %s{out}")
        found[f"shr.s{w}"] = Handler(v, (v, "V32"), f"{most}{amount}\n%r = ashr {v} %a, %s")
    for w, wide in ((16, 32), (32, 64)):
        for sign, extend in (("u", "zext"), ("s", "sext")):
            both = f"%x = {extend} V{w} %a to V{wide}\n%y = {extend} V{w} %b to V{wide}\n"
            found[f"mul.wide.{sign}{w}"] = Handler(f"V{wide}", (f"V{w}",) * 2, f"{both}%r = mul V{wide} %x, %y")
            found[f"mad.wide.{sign}{w}"] = Handler(
                f"V{wide}", (f"V{w}", f"V{w}", f"V{wide}"), f"{both}%p = mul V{wide} %x, %y\n%r = add V{wide} %p, %c"
            )
            found[f"mul.hi.{sign}{w}"] = Handler(
                f"V{w}",
                (f"V{w}",) * 2,
                f"{both}%p = mul V{wide} %x, %y\n%h = lshr V{wide} %p, splat (i{wide} {w})\n%r = trunc V{wide} %h to V{w}",
            )
    for w in (32, 64):
        v, narrow = f"V{w}", "%r = trunc V64 %n to V32" if w == 64 else "%r = freeze V32 %n"
        found[f"popc.{w}"] = Handler("V32", (v,), f"%n = call {v} @llvm.ctpop.v32i{w}({v} %a)\n{narrow}")
        found[f"clz.{w}"] = Handler("V32", (v,), f"%n = call {v} @llvm.ctlz.v32i{w}({v} %a, i1 false)\n{narrow}")
        found[f"brev.{w}"] = Handler(v, (v,), f"%r = call {v} @llvm.bitreverse.v32i{w}({v} %a)")
    for sign, to, back in (("u", "uitofp", "fptoui"), ("s", "sitofp", "fptosi")):
        # As NumPy's: float64 quotients of 32-bit integers truncate right (`weft.emulator.arith.integer`). All ones over 0.
        quotient = (
            "%o = icmp eq V32 %b, zeroinitializer\n%y = select V1 %o, V32 splat (i32 1), V32 %b\n"
            f"%fx = {to} V32 %a to VD\n%fy = {to} V32 %y to VD\n%fq = fdiv VD %fx, %fy\n"
            f"%iq = {back} VD %fq to V64\n%q = trunc V64 %iq to V32\n"
        )
        found[f"div.{sign}32"] = Handler(
            "V32", ("V32", "V32"), quotient + "%r = select V1 %o, V32 splat (i32 -1), V32 %q"
        )
        found[f"rem.{sign}32"] = Handler(
            "V32",
            ("V32", "V32"),
            quotient + "%p = mul V32 %q, %y\n%d = sub V32 %a, %p\n%r = select V1 %o, V32 splat (i32 -1), V32 %d",
        )
    for name in ("and", "or", "xor"):
        found[f"{name}.pred"] = Handler("V1", ("V1", "V1"), f"%r = {name} V1 %a, %b")
    found["not.pred"] = Handler("V1", ("V1",), "%r = xor V1 %a, splat (i1 true)")
    found["mov.pred"] = Handler("V1", ("V1",), "%r = freeze V1 %a")
    found["lop3"] = Handler("V32", ("V32", "V32", "V32"), _lop3())
    for side, function in (("l", "fshl"), ("r", "fshr")):
        call = f"%r = call V32 @llvm.{function}.v32i32(V32 %b, V32 %a, V32 %c)"
        found[f"shf.{side}.wrap"] = Handler("V32", ("V32", "V32", "V32"), call)
        whole = "%a" if side == "l" else "%b"
        found[f"shf.{side}.clamp"] = Handler(
            "V32",
            ("V32", "V32", "V32"),
            call.replace("%r ", "%n ")
            + f"\n%o = icmp ugt V32 %c, splat (i32 31)\n%r = select V1 %o, V32 {whole}, V32 %n",
        )
    found["prmt"] = Handler("V32", ("V32", "V32", "V32"), _prmt())
    return found


def _lop3() -> str:
    """The function of three words whose table is the row's number (`%immediate`), as a sum of minterms."""
    lines = ["%na = xor V32 %a, splat (i32 -1)", "%nb = xor V32 %b, splat (i32 -1)", "%nc = xor V32 %c, splat (i32 -1)"]
    total = "zeroinitializer"
    for i in range(8):
        a, b, c = ("%a" if i & 4 else "%na"), ("%b" if i & 2 else "%nb"), ("%c" if i & 1 else "%nc")
        lines += [
            f"%s{i} = shl i64 %immediate, {63 - i}",
            f"%t{i} = ashr i64 %s{i}, 63",
            f"%u{i} = trunc i64 %t{i} to i32",
            f"%i{i} = insertelement V32 poison, i32 %u{i}, i32 0",
            f"%v{i} = shufflevector V32 %i{i}, V32 poison, V32 zeroinitializer",
            f"%w{i} = and V32 {a}, {b}",
            f"%x{i} = and V32 %w{i}, {c}",
            f"%y{i} = and V32 %x{i}, %v{i}",
            f"%z{i} = or V32 {total}, %y{i}",
        ]
        total = f"%z{i}"
    return "\n".join([*lines, "%r = freeze V32 %z7"])


def _prmt() -> str:
    """Bytes of the pair {b, a} that the nibbles of c name; with a nibble's highest bit, the byte's sign eight times."""
    lines = ["%lo = zext V32 %a to V64", "%hi = zext V32 %b to V64", "%up = shl V64 %hi, splat (i64 32)"]
    lines += ["%ab = or V64 %up, %lo"]
    total = "zeroinitializer"
    for i in range(4):
        lines += [
            f"%n{i} = lshr V32 %c, splat (i32 {4 * i})",
            f"%k{i} = and V32 %n{i}, splat (i32 7)",
            f"%j{i} = shl V32 %k{i}, splat (i32 3)",
            f"%w{i} = zext V32 %j{i} to V64",
            f"%s{i} = lshr V64 %ab, %w{i}",
            f"%t{i} = trunc V64 %s{i} to V8",
            f"%g{i} = ashr V8 %t{i}, splat (i8 7)",
            f"%m{i} = and V32 %n{i}, splat (i32 8)",
            f"%q{i} = icmp ne V32 %m{i}, zeroinitializer",
            f"%c{i} = select V1 %q{i}, V8 %g{i}, V8 %t{i}",
            f"%x{i} = zext V8 %c{i} to V32",
            f"%y{i} = shl V32 %x{i}, splat (i32 {8 * i})",
            f"%z{i} = or V32 {total}, %y{i}",
        ]
        total = f"%z{i}"
    return "\n".join([*lines, "%r = freeze V32 %z3"])


def _converted() -> dict[str, Handler]:
    """Sources are of 8 to 64 bits in registers as wide or wider, results fill their registers."""
    found: dict[str, Handler] = {}
    for sign, extend in (("u", "zext"), ("s", "sext")):
        for bits, register in ((8, 16), (8, 32), (16, 16), (16, 32), (32, 32), (64, 64)):
            low = f"%n = trunc V{register} %a to V{bits}" if bits < register else f"%n = freeze V{bits} %a"
            for to in WIDTHS:
                change = extend if to > bits else "trunc"
                last = f"%r = {change} V{bits} %n to V{to}" if to != bits else f"%r = freeze V{bits} %n"
                found[f"cvt.{to}.{sign}{bits}.{register}"] = Handler(f"V{to}", (f"V{register}",), f"{low}\n{last}")
        for w in (32, 64):
            for name, vector in FLOATS.items():
                code = "uitofp" if sign == "u" else "sitofp"
                found[f"cvt.{name}.{sign}{w}"] = Handler(vector, (f"V{w}",), f"%r = {code} V{w} %a to {vector}")
        saturating = "fptoui" if sign == "u" else "fptosi"
        for mode, function in (("rni", "roundeven"), ("rzi", "trunc"), ("rmi", "floor"), ("rpi", "ceil")):
            found[f"cvt.{mode}.{sign}32.f32"] = Handler(
                "V32",
                ("VF",),
                f"%n = call VF @llvm.{function}.v32f32(VF %a)\n%r = call V32 @llvm.{saturating}.sat.v32i32.v32f32(VF %n)",
            )
    found["cvt.f32.f16"] = Handler("VF", ("V16",), _FROM_HALF + _canonical())
    found["cvt.f64.f32"] = Handler("VD", ("VF",), "%r = fpext VF %a to VD")
    found["cvt.f32.f64"] = Handler("VF", ("VD",), "%n = fptrunc VD %a to VF\n" + _canonical())
    found["cvt.f16.f32"] = Handler("V16", ("VF",), _half("%a", "%r"))
    found["cvt.bf16.f32"] = Handler("V16", ("VF",), _bfloat("%a", "%r"))
    found["cvt.f32.bf16"] = Handler(
        "VF",
        ("V16",),
        "%w = zext V16 %a to V32\n%s = shl V32 %w, splat (i32 16)\n%n = bitcast V32 %s to VF\n" + _canonical(),
    )
    for name, narrow in (("f16x2", _half), ("bf16x2", _bfloat)):
        found[f"cvt.{name}.f32"] = Handler(
            "V32",
            ("VF", "VF"),
            f"{narrow('%a', '%up')}\n{narrow('%b', '%lo')}\n%wu = zext V16 %up to V32\n%wl = zext V16 %lo to V32\n"
            "%su = shl V32 %wu, splat (i32 16)\n%r = or V32 %su, %wl",
        )
    return found


# Without F16C LLVM calls functions for half precision that no library of the process need have: both ways are spelled out.

_FROM_HALF: Final = (
    "%w = zext V16 %a to V32\n%sg = and V32 %w, splat (i32 32768)\n%sh = shl V32 %sg, splat (i32 16)\n"
    "%em = and V32 %w, splat (i32 32767)\n%up = shl V32 %em, splat (i32 13)\n%no = add V32 %up, splat (i32 939524096)\n"
    "%li = icmp ugt V32 %em, splat (i32 31743)\n%sp = or V32 %up, splat (i32 2139095040)\n"
    "%ti = icmp ult V32 %em, splat (i32 1024)\n%fi = uitofp V32 %em to VF\n"
    "%fs = fmul VF %fi, splat (float 0x3E70000000000000)\n%sb = bitcast VF %fs to V32\n"
    "%r1 = select V1 %li, V32 %sp, V32 %no\n%r2 = select V1 %ti, V32 %sb, V32 %r1\n%r3 = or V32 %r2, %sh\n"
    "%n = bitcast V32 %r3 to VF\n"
)
"""``%n``, the f32 of the bits of an f16: normal numbers have another bias (112 more), subnormal ones are integers times 2^-24."""


def _half(source: str, target: str) -> str:
    """An f32 as the bits of an f16, to nearest; NaN is 0x7fff. Results below the normal range are counted in units of 2^-24,
    which adding 0.5 leaves."""
    t = target[1:]
    return (
        f"%b{t} = bitcast VF {source} to V32\n%a{t} = and V32 %b{t}, splat (i32 2147483647)\n"
        f"%e{t} = lshr V32 %a{t}, splat (i32 13)\n%o{t} = and V32 %e{t}, splat (i32 1)\n"
        f"%p{t} = add V32 %a{t}, splat (i32 -939520001)\n%q{t} = add V32 %p{t}, %o{t}\n%m{t} = lshr V32 %q{t}, splat (i32 13)\n"
        f"%f{t} = bitcast V32 %a{t} to VF\n%h{t} = fadd VF %f{t}, splat (float 0.5)\n%i{t} = bitcast VF %h{t} to V32\n"
        f"%j{t} = sub V32 %i{t}, splat (i32 1056964608)\n%k{t} = icmp ult V32 %a{t}, splat (i32 947912704)\n"
        f"%l{t} = select V1 %k{t}, V32 %j{t}, V32 %m{t}\n%x{t} = icmp ugt V32 %a{t}, splat (i32 1199570943)\n"
        f"%y{t} = select V1 %x{t}, V32 splat (i32 31744), V32 %l{t}\n%s{t} = lshr V32 %b{t}, splat (i32 16)\n"
        f"%z{t} = and V32 %s{t}, splat (i32 32768)\n%v{t} = or V32 %y{t}, %z{t}\n%w{t} = trunc V32 %v{t} to V16\n"
        f"%u{t} = icmp ugt V32 %a{t}, splat (i32 2139095040)\n"
        f"{target} = select V1 %u{t}, V16 splat (i16 32767), V16 %w{t}"
    )


def _bfloat(source: str, target: str) -> str:
    """An f32 as the bits of a bf16, to nearest; NaN is 0x7fff. (LLVM's own instruction may flush subnormal numbers.)"""
    t = target[1:]
    return (
        f"%b{t} = bitcast VF {source} to V32\n%h{t} = lshr V32 %b{t}, splat (i32 16)\n%o{t} = and V32 %h{t}, splat (i32 1)\n"
        f"%p{t} = add V32 %o{t}, splat (i32 32767)\n%q{t} = add V32 %b{t}, %p{t}\n%g{t} = lshr V32 %q{t}, splat (i32 16)\n"
        f"%i{t} = trunc V32 %g{t} to V16\n%u{t} = fcmp uno VF {source}, zeroinitializer\n"
        f"{target} = select V1 %u{t}, V16 splat (i16 32767), V16 %i{t}"
    )


def _moved() -> dict[str, Handler]:
    """Halves of registers: joined, and taken apart."""
    found: dict[str, Handler] = {}
    for w, wide in ((16, 32), (32, 64)):
        found[f"pack.{wide}"] = Handler(
            f"V{wide}",
            (f"V{w}", f"V{w}"),
            f"%x = zext V{w} %a to V{wide}\n%y = zext V{w} %b to V{wide}\n%s = shl V{wide} %y, splat (i{wide} {w})\n"
            f"%r = or V{wide} %x, %s",
        )
        found[f"low.{wide}"] = Handler(f"V{w}", (f"V{wide}",), f"%r = trunc V{wide} %a to V{w}")
        found[f"high.{wide}"] = Handler(
            f"V{w}", (f"V{wide}",), f"%s = lshr V{wide} %a, splat (i{wide} {w})\n%r = trunc V{wide} %s to V{w}"
        )
    return found


HANDLERS: Final[dict[str, Handler]] = {**_integer(), **_floating(), **_converted(), **_moved()}
"""All handlers by name; their order is their number."""

NUMBERS: Final = {name: number for number, name in enumerate(HANDLERS)}
"""A handler's place in the table."""
