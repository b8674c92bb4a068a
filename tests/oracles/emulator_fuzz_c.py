"""Random functions in the C++ of ``emulator_fuzz.h``: the same text is a kernel for nvcc and a loop over the threads for g++.

A function reads its thread's inputs, declares variables of random types, runs random statements (branches, loops with trip
counts of their own, switches, arrays, calls, recursion), and stores every variable. Nothing in it is undefined in C.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Final

INTEGERS: Final = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
FLOATS: Final = ("f32", "f64")
HALVES: Final = ("f16", "bf16")
TYPES: Final = (*INTEGERS, *FLOATS, *HALVES)
WEIGHTS: Final = (1, 1, 1, 1, 4, 4, 3, 3, 4, 3, 1, 1)
BITS: Final = {name: int(name.lstrip("iufb")) for name in TYPES}

INPUTS: Final[dict[str, str]] = {
    **{"c": "u64", "C": "u64", "d": "i64", "D": "i64", "q": "f64", "Q": "f64", "a": "u32", "A": "u32", "b": "i32"},
    **{"B": "i32", "p": "f32", "P": "f32", "e": "u16", "g": "i16", "h": "f16", "H": "f16", "w": "bf16", "W": "bf16"},
    **{"j": "u8", "J": "u8", "k": "i8", "K": "i8"},
}
"""The fields of ``In``, in order."""

_COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")
_BINARY: Final = ("add", "sub", "mul", "quo", "rem", "least", "most")
_NUMBERS: Final = ("0.0", "-0.0", "1.0", "0.5", "-3.0", "1e-3", "65504.0", "3.5e38", "1.1", "-7.25", "4294967296.0")
_MODES: Final = ("RN", "RZ", "RU", "RD")

# What only some types have: result type -> calls, with the type of each argument in braces.
_CALLS: Final[dict[str, tuple[str, ...]]] = {
    "u32": (
        *("popcount({u32})", "popcount({u64})", "leading({u32})", "leading({u64})", "first({u32})", "first({u64})"),
        *("reverse({u32})", "high({u32}, {u32})", "bytes({u32}, {u32}, {u32})", "sad({i32}, {i32}, {u32})"),
        *("funnel_l({u32}, {u32}, {u32})", "funnel_r({u32}, {u32}, {u32})", "funnel_lc({u32}, {u32}, {u8})"),
        *("funnel_rc({u32}, {u32}, {u8})", "sad({u32}, {u32}, {u32})", "mul24({u32}, {u32})"),
        *("half_sum({u32}, {u32})", "half_sum_up({u32}, {u32})", "dot4({u32}, {u32}, {u32})"),
        *("dot2({u32}, {u32}, {u32})", "field({u32}, {u8}, {u8})", "insert({u32}, {u32}, {u8}, {u8})"),
        *("find({u32})", "find({i32})", "find({u64})", "find({i64})", "lop({u32}, {u32}, {u32})"),
        *("field({u32}, {u32} & 31, {u32} & 31)", "insert({u32}, {u32}, {u32} & 31, {u32} & 31)"),
        *("simd(%0, {u32}, {u32})",) * 4,
        *("h_u32<%M>({f16})", "h_u32<%M>({bf16})", "(u32)rows[{u32} % 3].z[{u32} % 3]"),
        *("to_u32<%M>({f32})", "to_u32<%M>({f64})", "(u32)bits({f32})", "(u32)bits({f16})", "(u32)(bits({f64}) >> 29)"),
    ),
    "i32": (
        *("high({i32}, {i32})", "mul24({i32}, {i32})", "half_sum({i32}, {i32})", "half_sum_up({i32}, {i32})"),
        *("dot4({i32}, {i32}, {i32})", "dot2({i32}, {i32}, {i32})", "field({i32}, {u8}, {u8})"),
        *("field({i32}, {u32} & 31, {u32} & 31)", "wide({i16}, {i16}, {i32})", "mad_hi_sat({i32}, {i32}, {i32})"),
        "table_i32[{u32} & 7]",
        *("add_sat({i32}, {i32})", "sub_sat({i32}, {i32})", "to_i32<%M>({f32})", "to_i32<%M>({f64})"),
        *(
            "(i32)(ilogbf({f32}) & 511)",
            "(i32)std::isinf({f32})",
            "(i32)std::isnan({f64})",
            "(i32)lroundf(unit({f32}))",
        ),
        *("h_lt({f16}, {f16})", "h_ne({bf16}, {bf16})", "h_geu({f16}, {f16})", "h_equ({bf16}, {bf16})"),
    ),
    "u64": (
        *("reverse({u64})", "high({u64}, {u64})", "field({u64}, {u8}, {u8})", "insert({u64}, {u64}, {u8}, {u8})"),
        *("wide({u32}, {u32}, {u64})", "sum_top({u64}, {u64}, {u64}, {u64})", "to_u64<%M>({f32})", "to_u64<%M>({f64})"),
        *("difference_top({u64}, {u64}, {u64}, {u64})", "(u64){u32} * {u32}", "bits({f64})"),
        *(
            "product128({u64}, {u64}, {u32})",
            "mixed128({u64}, {u64}, {u64}, {u32})",
            "quotient128({u64}, {u64}, {u64})",
        ),
        "remainder128({u64}, {u64}, {u64}, {u64})",
    ),
    "i64": (
        *("high({i64}, {i64})", "field({i64}, {u8}, {u8})", "wide({i32}, {i32}, {i64})", "(i64){i32} * {i32}"),
        *("to_i64<%M>({f32})", "to_i64<%M>({f64})", "h_i64<%M>({f16})", "h_i64<%M>({bf16})", "table_i64[{u32} & 7]"),
        "shifted128({i64}, {u64}, {u32})",
    ),
    "i16": ("h_short({f16})", "h_short({bf16})", "saturated<i16, i32>({i32})"),
    "i8": ("saturated<i8, i32>({i32})", "table_i8[{u32} & 7]", "rows[{u32} % 3].x"),
    "u8": ("saturated<u8, i64>({i64})",),
    "u16": (
        "table_u16[{u32} & 7]",
        *("saturated<u16, i64>({i64})", "(u16)bits({f16})", "(u16)bits({bf16})"),
    ),
    "f32": (
        *("sum<%M>({f32}, {f32})", "difference<%M>({f32}, {f32})", "product<%M>({f32}, {f32})", "root<%M>({f32})"),
        *("quotient<%M>({f32}, {f32})", "inverse<%M>({f32})", "fused<%M>({f32}, {f32}, {f32})", "unit({f32})"),
        *("to_f32<%M>({f64})", "to_f32<%M>({i32})", "to_f32<%M>({u32})", "to_f32<%M>({i64})", "to_f32<%M>({u64})"),
        *(
            "widen({f16})",
            "widen({bf16})",
            "sqrtf({f32})",
            "fmaf({f32}, {f32}, {f32})",
            "floorf({f32})",
            "ceilf({f32})",
        ),
        *("truncf({f32})", "rintf({f32})", "roundf({f32})", "with_sign({f32}, {f32})", "fabsf({f32})"),
        *("ldexpf({f32}, {i8})", "nextafterf({f32}, {f32})", "fmodf({f32}, {f32})", "remainderf({f32}, {f32})"),
        *(
            "float_of({u32})",
            "fdimf({f32}, {f32})",
            "lower({f32}, {f32})",
            "upper({f32}, {f32})",
            "table_f32[{u32} & 7]",
        ),
    ),
    "f64": (
        *("sum<%M>({f64}, {f64})", "difference<%M>({f64}, {f64})", "product<%M>({f64}, {f64})", "root<%M>({f64})"),
        *("quotient<%M>({f64}, {f64})", "inverse<%M>({f64})", "fused<%M>({f64}, {f64}, {f64})", "(f64){f32} * {f32}"),
        *("to_f64<%M>({i64})", "to_f64<%M>({u64})", "sqrt({f64})", "fma({f64}, {f64}, {f64})", "floor({f64})"),
        *("ceil({f64})", "trunc({f64})", "rint({f64})", "round({f64})", "with_sign({f64}, {f64})", "fabs({f64})"),
        *("table_f64[{u32} & 7]", "rows[{u32} % 3].y"),
        *("ldexp({f64}, {i16})", "fmod({f64}, {f64})", "float_of({u64})", "lower({f64}, {f64})", "upper({f64}, {f64})"),
    ),
    "f16": ("to_f16<%M>({f32})",),
    "bf16": ("to_bf16<%M>({f32})",),
}
_EXACT: Final = re.compile("f64|f16|(mod|der|after|dexp|ilogb|floor|ceil|round|rint|trunc|fdim)f")
"""Calls that do not flush subnormal numbers on the host, or have other types."""

_ATOMICS: Final = tuple(
    (name, kind)
    for name, kinds in {
        **{
            "inc": "u32",
            "dec": "u32",
            "plus": "u32 i32 u64 f32 f64",
            "lowest": "u32 i32 u64 i64",
            "highest": "u32 i32 u64 i64",
        },
        **{"all_bits": "u32", "any_bits": "u64", "odd_bits": "u32 u64", "exch": "u32 u64 f32", "cas": "u32 u64 u16"},
    }.items()
    for kind in kinds.split()
)

_HALF: Final = (
    *("h_add({H}, {H})", "h_sub({H}, {H})", "h_mul({H}, {H})", "h_fma({H}, {H}, {H})", "h_relu({H}, {H}, {H})"),
    *("h_neg({H})", "h_abs({H})", "h_min({H}, {H})", "h_max({H}, {H})", "h_max_nan({H}, {H})", "h_sat({H}, {H})"),
    *(
        "h_floor({H})",
        "h_rint({H})",
        "h_pair({H}, {H}, {H}, {H})",
        "h_of<H>({i32})",
        "h_of<H>({u32})",
        "h_of<H>({i64})",
        "h_double<H>({f64})",
    ),
    *("narrow<H>({f32})",) * 4,
)


@dataclass
class Maker:
    """Writes one function; everything it calls is named after it."""

    rng: random.Random
    name: str
    outside: list[str] = field(default_factory=list[str])
    """Definitions before the function."""
    scope: dict[str, str] = field(default_factory=dict[str, str])
    """The variables that can be read, with their types."""
    arrays: dict[str, str] = field(default_factory=dict[str, str])
    """Arrays of eight elements."""
    functions: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list[tuple[str, str, tuple[str, ...]]])
    """Functions that can be called: name, result, arguments."""
    top: bool = False
    """Whether this is the kernel, which has memory of its own: ``near`` (shared) and ``far`` (a result)."""
    count: int = 0

    flush: bool = False
    """Whether subnormal f32 are zero: only what the host does alike is used, integers and f32 with their basic operations."""

    def type(self) -> str:
        kinds = len(INTEGERS) + 1 if self.flush else len(TYPES)
        return self.rng.choices(TYPES[:kinds], WEIGHTS[:kinds])[0]

    def fresh(self) -> str:
        self.count += 1
        return f"{self.name}_{self.count}"

    # ---- expressions ------------------------------------------------------------------------------------------------

    def literal(self, kind: str) -> str:
        rng, size = self.rng, BITS[kind]
        if kind in HALVES:
            return f"narrow<{kind}>({self.literal('f32')})"
        if kind in FLOATS:
            if rng.random() < 0.3:
                return f"float_of((u{size}){hex(rng.getrandbits(size))})"
            return f"({kind}){rng.choice(_NUMBERS)}"
        value = rng.choice([0, 1, 2, 3, 7, 31, 255, 2**size - 1, 2 ** (size - 1), rng.getrandbits(size)]) % 2**size
        return f"({kind}){hex(value)}u" if size < 64 else f"({kind}){hex(value)}ull"

    def leaf(self, kind: str) -> str:
        known = [name for name, other in self.scope.items() if other == kind]
        if known and self.rng.random() < 0.85:
            return self.rng.choice(known)
        arrays = [name for name, other in self.arrays.items() if other == kind]
        if arrays and self.rng.random() < 0.5:
            return f"{self.rng.choice(arrays)}[{self.rng.choice(list(self.scope_of('u32')))} & 7]"
        return self.literal(kind)

    def scope_of(self, kind: str) -> list[str]:
        return [name for name, other in self.scope.items() if other == kind] or [self.literal(kind)]

    def condition(self, depth: int) -> str:
        rng = self.rng
        if depth > 0 and rng.random() < 0.25:
            return f"({self.condition(depth - 1)} {rng.choice(['&&', '||', '!='])} {self.condition(depth - 1)})"
        kind = rng.choice((*INTEGERS, "f32") if self.flush else (*INTEGERS, *FLOATS))
        prefix = rng.choice(["", "", "!"])
        return f"{prefix}({self.expression(kind, depth - 1)} {rng.choice(_COMPARISONS)} {self.expression(kind, depth - 1)})"

    def filled(self, template: str, depth: int, kind: str) -> str:
        """A call's text with its arguments."""
        rng = self.rng
        text = template.replace("%M", rng.choice(_MODES)).replace("%0", str(rng.randrange(22)))
        text = text.replace("{H}", "{" + kind + "}").replace("<H>", f"<{kind}>")
        parts = text.split("{")
        result = parts[0]
        for part in parts[1:]:
            name, _, rest = part.partition("}")
            result += self.expression(name, depth - 1) + rest
        return f"({result})"

    def converted(self, kind: str, depth: int) -> str:
        other = self.type()
        value = self.expression(other, depth - 1)
        if other in HALVES:
            value, other = f"widen({value})", "f32"
        if kind in HALVES:
            return f"narrow<{kind}>((f32)({value}))"
        if kind in INTEGERS and other in FLOATS:
            return f"whole<{kind}, {other}>({value})"
        return f"({kind})({value})"

    def expression(self, kind: str, depth: int) -> str:
        """An expression of a type."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.1:
            return self.leaf(kind)
        chance = rng.random()
        if chance < 0.1:
            return f"({self.condition(depth - 1)} ? {self.expression(kind, depth - 1)} : {self.expression(kind, depth - 1)})"
        if chance < 0.22:
            return self.converted(kind, depth)
        if chance < 0.28 and (callees := [f for f in self.functions if f[1] == kind]):
            name, _, arguments = rng.choice(callees)
            return f"{name}({', '.join(self.expression(a, depth - 1) for a in arguments)})"
        calls = _CALLS.get(kind, ())
        if self.flush:
            calls = tuple(call for call in calls if not _EXACT.search(call))
        if kind in HALVES:
            return self.filled(rng.choice((*_HALF, *calls)), depth, kind)
        if calls and chance < 0.62:
            return self.filled(rng.choice(calls), depth, kind)
        left, right = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        if kind in FLOATS:
            match rng.randrange(6):
                case 0:
                    return f"(-{left})"
                case 1:
                    return f"({left} / {right})"
                case _:
                    return f"({left} {rng.choice('+-*')} {right})"
        match rng.randrange(12):
            case 0 | 1:
                return f"{rng.choice(['shl', 'shr', 'rotate'])}<{kind}>({left}, {self.expression('u32', depth - 1)})"
            case 2:
                return f"{rng.choice(['shl', 'shr', 'rotate'])}<{kind}>({left}, {rng.randrange(BITS[kind])})"
            case 3 | 4:
                return f"({kind})({left} {rng.choice('&|^')} {right})"
            case 5:
                return f"({kind})(~{left})"
            case 6:
                return f"{rng.choice(['neg', 'size', 'swap_bytes'])}<{kind}>({left})"
            case 7:
                return f"({kind})({left} {rng.choice(_COMPARISONS)} {right})"
            case _:
                return f"{rng.choice(_BINARY)}<{kind}>({left}, {right})"

    # ---- statements -------------------------------------------------------------------------------------------------

    def statements(self, depth: int, count: int) -> list[str]:
        """Some statements; declarations inside are forgotten at the end."""
        scope, arrays = dict(self.scope), dict(self.arrays)
        lines = [line for _ in range(count) for line in self.statement(depth)]
        self.scope, self.arrays = scope, arrays
        return lines

    def targets(self) -> list[str]:
        return [name for name in self.scope if name.startswith("v")]

    def statement(self, depth: int) -> list[str]:
        rng = self.rng
        match rng.randrange(15) if depth > 0 else rng.randrange(3):
            case 0 | 1 | 5:
                name = rng.choice(self.targets())
                return [f"{name} = {self.expression(self.scope[name], 3)};"]
            case 2 if self.arrays:
                name = rng.choice(list(self.arrays))
                return [f"{name}[{self.expression('u32', 1)} & 7] = {self.expression(self.arrays[name], 2)};"]
            case 3 | 4:
                lines = [f"if ({self.condition(2)}) {{", *self.statements(depth - 1, 2)]
                return [*lines, "} else {", *self.statements(depth - 1, rng.randrange(3)), "}"]
            case 6:
                return self.loop(depth)
            case 7:
                lines = [f"switch ({self.expression('u32', 2)} & 7) {{"]
                for case in rng.sample(range(8), rng.randrange(2, 7)):
                    lines += [f"case {case}: {{", *self.statements(depth - 1, 1), "}", *rng.choice([["break;"], []])]
                return [*lines, "default: {", *self.statements(0, 1), "} }"]
            case 8:
                name, kind = f"v{self.fresh()}", self.type()
                line = f"{kind} {name} = {self.expression(kind, 3)};"
                self.scope[name] = kind
                return [line]
            case 9:
                name, kind = f"m{self.fresh()}", self.type()
                line = f"{kind} {name}[8]; for (int z = 0; z < 8; z++) {name}[z] = {self.expression(kind, 2)};"
                self.arrays[name] = kind
                return [line]
            case 10 if self.top:
                return self.atomics()
            case 11 if self.top:
                name, first, second = f"b{self.fresh()}", rng.choice(INTEGERS), self.type()
                target = [v for v in self.targets() if self.scope[v] == second]
                lines = [f"Bytes {name} = {{}}; for (u32 z = 0; z < 32; z++) {name}.b[z] = z * 37;"]
                lines += [f"store<{first}>({name}, {self.expression('u32', 2)}, {self.expression(first, 2)});"] * 2
                lines += [f"{v} = load<{second}>({name}, {self.expression('u32', 2)});" for v in target]
                return [*lines, f"far[0] ^= load<u64>({name}, {self.expression('u32', 1)});"]
            case 12 if self.top and self.arrays:
                return self.through_pointer()
            case 13:
                return self.irreducible(depth)
            case _:
                name = rng.choice(self.targets())
                return [f"{name} = {self.expression(self.scope[name], 2)};"]

    def atomics(self) -> list[str]:
        """Atomic operations of the thread alone, on memory of its own, whose last value goes to the results."""
        rng, place = self.rng, self.rng.choice(("near", "far"))
        name, kind = rng.choice([a for a in _ATOMICS if not (self.flush and a[1] in FLOATS)])
        lines = [f"*{place} = {self.expression('u64', 2)};"]
        if name != "cas":
            lines += [
                f"u64 a{self.fresh()} = bits({name}(({kind}*){place}, {self.expression(kind, 2)}));" for _ in range(2)
            ]
        else:
            lines += [
                f"u64 a{self.fresh()} = cas(({kind}*){place}, {self.expression(kind, 1)}, {self.expression(kind, 2)});",
                f"u64 a{self.fresh()} = cas(({kind}*){place}, *({kind}*){place}, {self.expression(kind, 2)});",
            ]
        olds = " * 3 + ".join(line.split()[1] for line in lines[1:])
        after = "bits(*(f32*)near)" if kind == "f32" else "bits(*(f64*)near)" if kind == "f64" else f"*({kind}*)near"
        return ["{", *lines, f"*far = {olds} + {after.replace('near', place)};", "}"]

    def through_pointer(self) -> list[str]:
        """An array as a function's argument, which it changes."""
        rng = self.rng
        name, kind = rng.choice(list(self.arrays.items()))
        inner = Maker(rng, self.fresh(), self.outside, flush=self.flush)
        inner.scope, inner.arrays = {"v0": "u32", "v1": kind}, {"m": kind}
        body = [
            *inner.statements(1, 2),
            f"m[v0 & 7] = {inner.expression(kind, 2)};",
            f"return {inner.expression('u32', 2)};",
        ]
        self.outside.extend([f"SLOW u32 p{inner.name}({kind}* m, u32 v0) {{ {kind} v1 = m[1];", *body, "}"])
        return [f"*far += p{inner.name}({name}, {self.expression('u32', 2)});"]

    def irreducible(self, depth: int) -> list[str]:
        """A loop with two ways in."""
        label, count = f"L{self.fresh()}", f"n{self.fresh()}"
        body, rest = self.statements(depth - 1, 1), self.statements(0, 1)
        lines = ["{", f"u32 {count} = {self.expression('u32', 2)} & 3;", f"if ({self.condition(2)}) goto {label};"]
        lines += [
            f"while ({count}++ < 4) {{",
            "{",
            *body,
            "}",
            f"{label}:;",
            "{",
            *rest,
            "}",
            f"if ({self.condition(1)}) {count}++;",
        ]
        return [*lines, "} }"]

    def loop(self, depth: int) -> list[str]:
        rng = self.rng
        name = f"n{self.fresh()}"
        trips = rng.choice([str(rng.randrange(2, 5)), f"({self.expression('u32', 2)} & 7)"])
        outside = dict(self.scope)
        head = f"for (u32 {name} = 0; {name} < {trips}; {name}++) {{"
        self.scope[name] = "u32"
        lines = self.statements(depth - 1, 1)
        if rng.random() < 0.5:
            lines += [f"if ({self.condition(1)}) {rng.choice(['break', 'continue'])};"]
        lines += self.statements(0, 1)
        self.scope = outside
        return [head, *lines, "}"]

    # ---- functions --------------------------------------------------------------------------------------------------

    def function(self) -> None:
        """Defines a function that is not inlined: of numbers, of a structure, or recursive."""
        rng = self.rng
        inner = Maker(rng, self.fresh(), self.outside, functions=list(self.functions), flush=self.flush)
        result, arguments = self.type(), tuple(self.type() for _ in range(rng.randrange(1, 4)))
        inner.scope = {f"v{i}": kind for i, kind in enumerate(arguments)}
        given = ", ".join(f"{kind} {name}" for name, kind in inner.scope.items())
        name = f"f{inner.name}"
        match rng.randrange(4):
            case 0:
                fields = " ".join(f"{kind} {v};" for v, kind in inner.scope.items())
                self.outside.append(f"struct S{name} {{ {fields} }};")
                body = [f"S{name} r = s;", *(f"{kind} {v} = s.{v};" for v, kind in inner.scope.items())]
                body += [
                    *inner.statements(1, 1),
                    *(f"r.{v} = {inner.expression(inner.scope[v], 2)};" for v in inner.scope),
                ]
                text = [f"SLOW S{name} g{name}(S{name} s) {{", *body, "return r; }"]
                text += [f"SLOW {result} {name}({given}) {{ S{name} s;", *(f"s.{v} = {v};" for v in inner.scope)]
                text += [f"s = g{name}(s); {'; '.join(f'{v} = s.{v}' for v in inner.scope)};"]
                text += [f"return {inner.expression(result, 2)}; }}"]
            case 1:
                text = [
                    f"SLOW {result} g{name}({given}, u32 left) {{",
                    f"if (left == 0) return {inner.expression(result, 2)};",
                ]
                again = ", ".join(inner.expression(kind, 1) for kind in arguments)
                inner.scope["v_r"] = result
                text += [f"{result} v_r = g{name}({again}, left - 1);", *inner.statements(1, 1)]
                text += [f"return {inner.expression(result, 2)}; }}"]
                del inner.scope["v_r"]
                again = f"{', '.join(inner.scope)}, {inner.expression('u32', 1)} & 3"
                text += [f"SLOW {result} {name}({given}) {{ return g{name}({again}); }}"]
            case _:
                text = [
                    f"SLOW {result} {name}({given}) {{",
                    *inner.statements(2, 2),
                    f"return {inner.expression(result, 3)}; }}",
                ]
        self.outside.extend(text)
        self.functions.append((name, result, arguments))


@dataclass(frozen=True)
class Function:
    """A generated function: its text, and the types of what it stores."""

    name: str
    text: str
    results: tuple[str, ...]


def generate(seed: int, flush: bool = False, statements: int = 5) -> Function:
    """The function of a seed."""
    rng = random.Random(seed)
    maker = Maker(rng, f"k{seed}", top=True, flush=flush)
    for _ in range(rng.choice([0, 0, 1, 2])):
        maker.function()
    maker.scope = {f"in.{name}": kind for name, kind in INPUTS.items()}
    lines: list[str] = []
    kept = [maker.type() for _ in range(rng.randrange(3, 7))]
    for index, kind in enumerate(kept):
        lines.append(f"{kind} v{index} = {maker.expression(kind, 4)};")
        maker.scope[f"v{index}"] = kind
    if rng.random() < 0.3:
        kind = maker.type()
        lines.append(f"{kind} m0[8]; for (int z = 0; z < 8; z++) m0[z] = {maker.expression(kind, 2)};")
        maker.arrays["m0"] = kind
    lines += maker.statements(2, rng.randrange(statements))
    lines += [f"out[{index}] = bits(v{index});" for index in range(len(kept))]
    lines.insert(0, "*far = 0;")
    kept += ["u64"] * (8 - len(kept))  # the last is what is far
    text = [*maker.outside, f"KERNEL({maker.name}) {{", *("  " + line for line in lines), "}", f"END({maker.name})"]
    return Function(maker.name, "\n".join(text) + "\n", tuple(kept))
