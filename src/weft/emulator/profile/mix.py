"""What class each instruction is of, and how many operations of arithmetic a thread does with it.

A table by opcode; arithmetic, whose opcodes are shared, is told apart by its type. The classes are useful to a reader of a
profile (for example integer arithmetic, which computes addresses). They are not the hardware's pipelines, which PTX does not
determine.
"""

from __future__ import annotations

from typing import Final

from weft.emulator.ptx.syntax import Instruction

CLASSES: Final[dict[str, str]] = {
    "integer": "integers and addresses",
    "logic": "logic, shifts, bit fields",
    "compare": "comparisons and selections",
    "move": "moves",
    "float32": "arithmetic of 32-bit floats",
    "float64": "arithmetic of 64-bit floats",
    "float16": "arithmetic of 16-bit floats",
    "special": "sqrt, rcp, sin, ex2 and their like",
    "conversion": "conversions",
    "matrix": "matrices",
    "global": "global memory",
    "shared": "shared memory, ldmatrix, stmatrix",
    "local": "local memory",
    "generic": "memory of no named space",
    "constant": "constants and parameters",
    "atomic": "atomics",
    "copy": "asynchronous copies",
    "texture": "textures and surfaces",
    "warp": "shuffles, votes, matches",
    "barrier": "barriers and fences",
    "control": "branches, calls, exits",
    "other": "everything else",
}
"""Each class and what it has."""

_BY_OPCODE: Final[dict[str, str]] = {
    opcode: name
    for name, opcodes in {
        "logic": "and or xor not cnot lop3 shf shl shr bfe bfi bfind brev clz popc fns prmt bmsk szext",
        "compare": "setp set selp slct testp isspacep",
        "move": "mov cvta mapa getctarank alloca stacksave stackrestore",
        "special": "sqrt rsqrt rcp sin cos ex2 lg2 tanh",
        "conversion": "cvt",
        "matrix": "mma wgmma wmma tcgen05 movmatrix",
        "shared": "ldmatrix stmatrix",
        "atomic": "atom red multimem",
        "copy": "cp prefetch prefetchu applypriority discard createpolicy tensormap",
        "texture": "tex tld4 txq suld sust sured suq istypep",
        "warp": "shfl vote match redux elect activemask",
        "barrier": "bar barrier mbarrier membar fence griddepcontrol clusterlaunchcontrol",
        "control": "bra brx call ret exit trap brkpt nanosleep pmevent setmaxnreg",
        "integer": "mad24 mul24 sad dp4a dp2a addc subc madc rem vadd vsub vmin vmax vabsdiff vshl vshr vmad vset",
    }.items()
    for opcode in opcodes.split()
}

_MEMORY: Final = {"global": "global", "shared": "shared", "local": "local", "const": "constant", "param": "constant"}

_FLOATS: Final = {
    "f32": "float32",
    "f32x2": "float32",
    "f64": "float64",
    "f16": "float16",
    "f16x2": "float16",
    "bf16": "float16",
    "bf16x2": "float16",
}

_ARITHMETIC: Final = {"add": 1, "sub": 1, "mul": 1, "fma": 2, "mad": 2, "div": 1, "sqrt": 1, "rsqrt": 1, "rcp": 1}
"""Operations of arithmetic on floats, for each of a pair."""


EXECUTIONS: Final[dict[str, str]] = {
    "shfl": "shuffles",
    "vote": "votes",
    "match": "votes",
    "redux": "votes",
    "bar": "barriers",
    "barrier": "barriers",
}
"""Opcodes whose executions are a metric of their own."""


def class_of(instruction: Instruction) -> str:
    """The class of an instruction, a key of `CLASSES`."""
    if (name := _BY_OPCODE.get(instruction.opcode)) is not None:
        return name
    if instruction.opcode in ("ld", "ldu", "st"):
        spaces = (modifier.partition("::")[0] for modifier in instruction.modifiers)
        return next((_MEMORY[space] for space in spaces if space in _MEMORY), "generic")
    if (kind := _float_of(instruction)) is not None:
        return _FLOATS[kind]
    if any(modifier[:1] in ("u", "s") and modifier[1:3].isdigit() for modifier in instruction.modifiers):
        return "integer"
    return "other"


def flops_of(instruction: Instruction) -> int:
    """Operations of arithmetic on floats that one thread does: an fma is two, a pair counts twice, matrices not at all."""
    kind = _float_of(instruction)
    if kind is None:
        return 0
    return _ARITHMETIC.get(instruction.opcode, 0) * (2 if kind.endswith("x2") else 1)


def _float_of(instruction: Instruction) -> str | None:
    return next((modifier for modifier in instruction.modifiers if modifier in _FLOATS), None)
