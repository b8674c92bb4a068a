"""Triton answers, without a device: its own front end makes the IR of one kernel for a batch of questions.

The kernel is one call of a builtin, which asks the code generator for each operation as if it stood in the kernel's text. A
value is what Triton's own passes fold an operation of constants to; what they do not fold is no answer.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import common
import numpy as np
import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.code_generator import CodeGenerator
from triton.compiler.compiler import ASTSource, make_backend
from triton.compiler.errors import CompilationError
from triton.language.extra.cuda import libdevice

TYPES = {
    **{"bool": tl.int1, "int8": tl.int8, "int16": tl.int16, "int32": tl.int32, "int64": tl.int64},
    **{"uint8": tl.uint8, "uint16": tl.uint16, "uint32": tl.uint32, "uint64": tl.uint64},
    **{"float8_e4m3fn": tl.float8e4nv, "float8_e5m2": tl.float8e5, "float8_e4m3fnuz": tl.float8e4b8},
    **{"float8_e5m2fnuz": tl.float8e5b16, "float8_e4m3b15": tl.float8e4b15, "float16": tl.float16},
    **{"bfloat16": tl.bfloat16, "float32": tl.float32, "float64": tl.float64},
}
NAMES = {t.name: name for name, t in TYPES.items()}
BINARY = {
    **{"+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod, "**": ast.Pow},
    **{"<<": ast.LShift, ">>": ast.RShift, "&": ast.BitAnd, "|": ast.BitOr, "^": ast.BitXor, "==": ast.Eq},
    **{"!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE, "and": ast.And, "or": ast.Or},
}
UNARY = {"neg": ast.USub, "pos": ast.UAdd, "not": ast.Not, "~": ast.Invert}
FUNCTIONS = {
    **{name: getattr(tl, name) for name in ("minimum", "maximum", "fdiv", "cdiv", "clamp", "abs", "sqrt", "rsqrt")},
    **{name: getattr(tl, name) for name in ("exp", "exp2", "log", "log2", "sin", "cos", "erf", "sigmoid", "floor")},
    **{name: getattr(tl, name) for name in ("ceil", "sum", "cumsum", "max", "min", "argmax", "argmin")},
    **{name: getattr(libdevice, name) for name in ("cbrt", "log10", "tan", "tanh")},
    **{name: getattr(libdevice, name) for name in ("log1p", "expm1", "sinh", "cosh", "asin", "acos", "atan", "asinh")},
    **{name: getattr(libdevice, name) for name in ("acosh", "atanh", "erfc", "lgamma", "rint", "round", "trunc")},
    **{name: getattr(libdevice, name) for name in ("hypot", "copysign", "isnan", "isinf", "signbit")},
    "matmul": tl.dot,
}
ALONG = ("argmax", "argmin")
NODE = ast.parse("x").body[0]

asked: list[common.Question] = []
answered: list[Any] = []


@triton.jit
def load(pointer):
    """A tile and a scalar."""
    rows = tl.arange(0, 32)[:, None]
    columns = tl.arange(0, 32)[None, :]
    return tl.load(pointer + rows * 32 + columns), tl.load(pointer)


@triton.jit
def mask():
    """A condition."""
    return (tl.arange(0, 32)[:, None] + tl.arange(0, 32)[None, :]) % 2 == 0


@tl.core.builtin
def ask(pointers, _semantic=None, _generator=None):
    """Answers what is asked, where the call stands."""
    tiles: dict[str, Any] = {}
    named = {text.removesuffix("[]") for question in asked for text in question[1:]}
    for name, pointer in zip(TYPES, pointers, strict=True):
        if name in named:
            tiles[name], tiles[f"{name}[]"] = _generator.call_JitFunction(load, [pointer], {})
    condition = _generator.call_JitFunction(mask, [], {}) if any(q[0] == "where" for q in asked) else None
    for number, question in enumerate(asked):
        answered.append(answer(number, question, tiles, condition, _semantic, _generator))


@triton.jit
def kernel(pointers):
    """The questions."""
    ask(pointers)


def answer(number: int, question: common.Question, tiles: Any, condition: Any, semantic: Any, generator: Any) -> Any:
    """The type, an error, or for values the type and how many prints follow."""
    op, *texts = question
    if op == "tree":
        return tree(number, question, semantic, generator)
    try:
        if not common.has_data(question):
            operands = [tiles.get(text) or constant(text, semantic) for text in texts]
            result = call(op, operands, condition, generator)
            return "?" if result is None else NAMES[result.type.scalar.name]
        size = max(common.operand(text).data.size for text in texts if "@" in text)
        dtype = ""
        for at in range(size):
            operands = [element(text, at, semantic) for text in texts]
            result = call(op, operands, element("bool@" + "0100" * size, at, semantic), generator)
            if result is None:
                return "?"
            dtype = NAMES[result.type.scalar.name]
            tl.device_print(f"q{number}_{at}:", result, _semantic=semantic)
        return (dtype, size)
    except CompilationError as error:
        return common.refusal(error.__cause__ or error)
    except (TypeError, ValueError, AttributeError, RuntimeError, AssertionError, KeyError) as error:
        return common.refusal(error)


def tree(number: int, question: common.Question, semantic: Any, generator: Any) -> Any:
    """For each node of a tree what `answer` gives for values: a node's values are printed under ``qNUMBERnNODE``."""
    size = max(common.operand(text).data.size for text in question[2:])
    found: list[Any] = []
    for at in range(size):
        condition = element("bool@" + "0100" * size, at, semantic)

        def apply(op: str, *operands: Any, condition: Any = condition) -> Any:
            numbers = [tl.constexpr(o) if isinstance(o, (bool, int, float)) else o for o in operands]
            result = call(op, numbers, condition, generator)
            if result is None:
                raise NotImplementedError(f"the probe has no {op}")
            return result

        found = []
        results = common.tree(question, lambda text, at=at: element(text, at, semantic), apply, ERRORS)
        for node, made in enumerate(results):
            if isinstance(made, str):
                found.append("?" if made.startswith("!NotImplementedError: the probe") else made)
                continue
            result = semantic.to_tensor(made) if isinstance(made, tl.constexpr) else made
            tl.device_print(f"q{number}n{node}_{at}:", result, _semantic=semantic)
            found.append((NAMES[result.type.scalar.name], size))
    return ("tree", found)


ERRORS = (CompilationError, TypeError, ValueError, AttributeError, RuntimeError, AssertionError, KeyError)


def constant(text: str, semantic: Any) -> Any:
    """A number as a literal."""
    read = common.operand(text)
    if read.kind == "number":
        return tl.constexpr(read.number)
    raise ValueError(f"Triton has no {text}")


def element(text: str, at: int, semantic: Any) -> Any:
    """One element of an array, as a constant of its type."""
    read = common.operand(text)
    if read.data is None:
        return constant(text, semantic)
    value = read.data[at % read.data.size]
    if (
        read.dtype == "bfloat16"
    ):  # its own constants lose what is below 2**-124: ``tl.full((), 4e-38, tl.bfloat16)`` is 0
        wide = tl.full((), float(value), tl.float32, _semantic=semantic)
        return semantic.cast(wide, tl.bfloat16)
    return tl.full(
        (), value.item() if value.dtype.kind in "biuf" else float(value), TYPES[read.dtype], _semantic=semantic
    )


def call(op: str, operands: list[Any], condition: Any, generator: Any) -> Any:
    """The operation as the code generator does it; None for one that is not here."""
    if op in BINARY:
        operator = CodeGenerator._operators[BINARY[op]]
        return generator._apply_binary_method(NODE, operator, *operands)
    if op in UNARY:
        method = CodeGenerator._method_name_for_unary_op[UNARY[op]]
        found, result = generator._call_operator(NODE, operands[0], method)
        if not found:
            raise TypeError(f"AST unary operator '{method}' is not implemented")
        return result
    if op == "where":
        return generator.call_Function(NODE, tl.where, [condition, *operands], {})
    if op.startswith("cast "):
        return generator.call_Function(NODE, operands[0].to, [TYPES[op.removeprefix("cast ")]], {})
    if op not in FUNCTIONS:
        return None
    extra = [tl.constexpr(0)] if op in ALONG else []
    return generator.call_Function(NODE, FUNCTIONS[op], [*operands, *extra], {})


TARGET = GPUTarget("cuda", 90, 32)
BACKEND = make_backend(TARGET)
FP8 = tuple(t.name for t in TYPES.values() if t.is_fp8())
OPTIONS = BACKEND.parse_options({"supported_fp8_dtypes": FP8, "sanitize_overflow": False})
BYTES = "float8_e4m3b15"
"""The type that the IR keeps as bytes, so that only the verifier sees what is wrong."""


def make(questions: list[common.Question]) -> tuple[Any, list[Any]]:
    """The IR of a kernel that asks them, and the answers."""
    asked[:] = questions
    answered.clear()
    context = ir.context()
    ir.load_dialects(context)
    BACKEND.load_dialects(context)
    source = ASTSource(kernel, {"pointers": tuple(map(pointer, TYPES.values()))})
    codegen, modules = BACKEND.get_codegen_implementation(OPTIONS), BACKEND.get_module_map()
    return source.make_ir(TARGET, OPTIONS, codegen, modules, context), list(answered)


def pointer(dtype: Any) -> str:
    """A pointer to that type, as signatures spell it."""
    return "*" + re.sub(r"^(u?)int", lambda found: found[1] or "i", dtype.name)


def constants(module: Any) -> dict[str, str]:
    """What is printed, by its prefix: the constants among the operands of the prints."""
    BACKEND.make_ttir(module, {}, OPTIONS, 90)
    text = str(module)
    known = dict(re.findall(r"(%\S+) = arith\.constant (\S+)(?: : \S+)?", text))
    printed = re.findall(r'tt\.print "\s*(q[\dn]+_\d+):\s*".*: (%\S+) :', text)
    return {prefix: known[value] for prefix, value in printed if value in known}


def number_of(text: str, dtype: np.dtype) -> np.ndarray:
    """A constant of MLIR's text."""
    if text in ("true", "false"):
        return np.array(text == "true").astype(dtype)
    if text.startswith("0x"):
        return np.array(int(text, 16), f"u{dtype.itemsize}").view(dtype)
    if dtype.kind in "iu":
        return np.array(int(text) % (1 << 8 * dtype.itemsize), f"u{dtype.itemsize}").view(dtype)
    return np.array(float(text)).astype(dtype)


def answers(questions: list[common.Question]) -> list[str]:
    """The answers of a batch, those about `BYTES` apart."""
    apart = [any(BYTES in text for text in question) for question in questions]
    halves = [iter(batch([q for q, a in zip(questions, apart, strict=True) if a is side])) for side in (False, True)]
    return [next(halves[a]) for a in apart]


def batch(questions: list[common.Question]) -> list[str]:
    """The answers of one kernel. Where the verifier refuses it, what the front end accepts is asked again, by halves."""
    if not questions:
        return []
    try:
        module, found = make(questions)
        sound = module.verify()
    except RuntimeError:
        module, found, sound = None, list(answered), False
        if len(found) < len(questions):
            raise
    if not sound:
        if len(questions) == 1:
            return ["!verifier"]
        accepted = [q for q, a in zip(questions, found, strict=True) if isinstance(a, tuple) or a[0] not in "!?"]
        middle = max(len(accepted) // 2, 1)
        again = iter(batch(accepted[:middle]) + batch(accepted[middle:]))
        return [next(again) if isinstance(a, tuple) or a[0] not in "!?" else a for a in found]
    values = constants(module) if any(isinstance(a, tuple) for a in found) else {}
    return [finish(number, a, values) for number, a in enumerate(found)]


def finish(number: int | str, found: Any, values: dict[str, str]) -> str:
    """An answer as text."""
    if not isinstance(found, tuple):
        return found
    name, size = found
    if name == "tree":
        return common.joined(finish(f"{number}n{node}", part, values) for node, part in enumerate(size))
    dtype = common.dtype(name)
    texts = [values.get(f"q{number}_{at}") for at in range(size)]
    array = np.array([number_of(t, dtype) if t is not None else np.zeros((), dtype) for t in texts]).astype(dtype)
    unknown = ",".join(str(at) for at, text in enumerate(texts) if text is None)
    return name + common.with_data(array) + f"%{unknown}" * bool(unknown)


if __name__ == "__main__":
    common.main(lambda _: answers)
