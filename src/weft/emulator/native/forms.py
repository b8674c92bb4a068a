"""Which instructions have handlers: opcode and modifiers, as written, to a handler and the types of its operands.

Instructions whose modifiers stand in another order, and all others, are bound to NumPy functions
(`weft.emulator.machine.binding`): the table need not be complete, and what is in it needs no checks but those of its operands.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.emulator.native.handlers import COMPARED, NUMBERS


class Form(NamedTuple):
    """``operands`` are the types of the instruction's operands, the result's first; ``immediate`` says that one more follows,
    an integer constant that the handler takes from the row."""

    handler: int
    operands: tuple[str, ...]
    immediate: bool = False


FORMS: Final[dict[str, Form]] = {}
"""By the instruction's dotted name."""


def _enter(name: str, handler: str, *operands: str, immediate: bool = False) -> None:
    FORMS[name] = Form(NUMBERS[handler], operands, immediate)


def _integers() -> None:
    for w in (16, 32, 64):
        for sign in "us":
            t = f"{sign}{w}"
            for name in ("add", "sub"):
                _enter(f"{name}.{t}", f"{name}.{w}", t, t, t)
            _enter(f"mul.lo.{t}", f"mul.{w}", t, t, t)
            _enter(f"mad.lo.{t}", f"mad.{w}", t, t, t, t)
            for name in ("min", "max"):
                _enter(f"{name}.{t}", f"{name}.{t}", t, t, t)
            for compare in ("eq", "ne"):
                _enter(f"setp.{compare}.{t}", f"setp.{compare}.{w}", "pred", t, t)
            for compare in ("lt", "le", "gt", "ge"):
                _enter(f"setp.{compare}.{t}", f"setp.{compare}.{t}", "pred", t, t)
            _enter(f"shr.{t}", f"shr.{t}", t, t, "u32")
            if w < 64:
                wide = f"{sign}{2 * w}"
                _enter(f"mul.wide.{t}", f"mul.wide.{t}", wide, t, t)
                _enter(f"mad.wide.{t}", f"mad.wide.{t}", wide, t, t, wide)
                _enter(f"mul.hi.{t}", f"mul.hi.{t}", t, t, t)
        for compare, name in (("lo", "lt"), ("ls", "le"), ("hi", "gt"), ("hs", "ge")):
            _enter(f"setp.{compare}.u{w}", f"setp.{name}.u{w}", "pred", f"u{w}", f"u{w}")
        for name in ("abs", "neg"):
            _enter(f"{name}.s{w}", f"{name}.{w}", f"s{w}", f"s{w}")
        b = f"b{w}"
        for name in ("and", "or", "xor"):
            _enter(f"{name}.{b}", f"{name}.{w}", b, b, b)
        _enter(f"not.{b}", f"not.{w}", b, b)
        _enter(f"shl.{b}", f"shl.{w}", b, b, "u32")
        _enter(f"shr.{b}", f"shr.u{w}", b, b, "u32")
        for compare in ("eq", "ne"):
            _enter(f"setp.{compare}.{b}", f"setp.{compare}.{w}", "pred", b, b)
        for kind in "usb":
            _enter(f"mov.{kind}{w}", f"mov.{w}", f"{kind}{w}", f"{kind}{w}")
            _enter(f"selp.{kind}{w}", f"selp.{w}", f"{kind}{w}", f"{kind}{w}", f"{kind}{w}", "pred")
    for w in (32, 64):
        _enter(f"popc.b{w}", f"popc.{w}", "u32", f"b{w}")
        _enter(f"clz.b{w}", f"clz.{w}", "u32", f"b{w}")
        _enter(f"brev.b{w}", f"brev.{w}", f"b{w}", f"b{w}")
    for t in ("u32", "s32"):
        for name in ("div", "rem"):
            _enter(f"{name}.{t}", f"{name}.{t}", t, t, t)
    for name in ("and", "or", "xor"):
        _enter(f"{name}.pred", f"{name}.pred", "pred", "pred", "pred")
    for name in ("not", "mov"):
        _enter(f"{name}.pred", f"{name}.pred", "pred", "pred")
    _enter("lop3.b32", "lop3", "b32", "b32", "b32", "b32", immediate=True)
    _enter("prmt.b32", "prmt", "b32", "b32", "b32", "b32")
    for side in "lr":
        for mode in ("wrap", "clamp"):
            _enter(f"shf.{side}.{mode}.b32", f"shf.{side}.{mode}", "b32", "b32", "b32", "u32")


def _floats() -> None:
    for t in ("f32", "f64"):
        flushes = ("", ".ftz") if t == "f32" else ("",)
        for ftz in flushes:
            for name in ("add", "sub", "mul"):
                for rounding in ("", ".rn"):
                    _enter(f"{name}{rounding}{ftz}.{t}", f"{name}{ftz}.{t}", t, t, t)
            for name in ("min", "max"):
                _enter(f"{name}{ftz}.{t}", f"{name}{ftz}.{t}", t, t, t)
            for name in ("fma", "mad"):
                _enter(f"{name}.rn{ftz}.{t}", f"fma{ftz}.{t}", t, t, t, t)
            _enter(f"div.rn{ftz}.{t}", f"div{ftz}.{t}", t, t, t)
            for name in ("sqrt", "rcp"):
                _enter(f"{name}.rn{ftz}.{t}", f"{name}{ftz}.{t}", t, t)
        for name in ("neg", "abs"):
            _enter(f"{name}.{t}", f"{name}.{t}", t, t)
        _enter(f"mov.{t}", f"mov.{t[1:]}", t, t)
        _enter(f"selp.{t}", f"selp.{t[1:]}", t, t, t, "pred")
        for compare in COMPARED:
            _enter(f"setp.{compare}.{t}", f"setp.{compare}.{t}", "pred", t, t)
    for ftz in ("", ".ftz"):
        _enter(f"div.full{ftz}.f32", f"div{ftz}.f32", "f32", "f32", "f32")
        for name in ("rcp", "sqrt", "rsqrt"):  # the float64 result rounded once more is the rounded one
            _enter(f"{name}.approx{ftz}.f32", f"{name}{ftz}.f32", "f32", "f32")


def _conversions() -> None:
    for to in (16, 32, 64):
        for kind in "us":
            for bits in (16, 32, 64):
                for sign in "us":
                    name = f"cvt.{kind}{to}.{sign}{bits}"
                    _enter(name, f"cvt.{to}.{sign}{bits}.{bits}", f"{kind}{to}", f"{sign}{bits}")
    for sign in "us":
        for w in (32, 64):
            for t in ("f32", "f64"):
                _enter(f"cvt.rn.{t}.{sign}{w}", f"cvt.{t}.{sign}{w}", t, f"{sign}{w}")
        for mode in ("rni", "rzi", "rmi", "rpi"):
            _enter(f"cvt.{mode}.{sign}32.f32", f"cvt.{mode}.{sign}32.f32", f"{sign}32", "f32")
    _enter("cvt.f32.f16", "cvt.f32.f16", "f32", "f16")
    _enter("cvt.f32.bf16", "cvt.f32.bf16", "f32", "bf16")
    _enter("cvt.f64.f32", "cvt.f64.f32", "f64", "f32")
    _enter("cvt.rn.f32.f64", "cvt.f32.f64", "f32", "f64")
    _enter("cvt.rn.f16.f32", "cvt.f16.f32", "f16", "f32")
    _enter("cvt.rn.bf16.f32", "cvt.bf16.f32", "bf16", "f32")
    for t in ("f16x2", "bf16x2"):
        _enter(f"cvt.rn.{t}.f32", f"cvt.{t}.f32", t, "f32", "f32")


_integers()
_floats()
_conversions()

WIDER: Final = {
    (f"cvt.{kind}{to}.{sign}{bits}", register): NUMBERS[f"cvt.{to}.{sign}{bits}.{register}"]
    for kind in "us"
    for to in (16, 32, 64)
    for sign in "us"
    for bits, register in ((8, 16), (8, 32), (16, 32))
}
"""Conversions from the low part of a register of so many bits."""
