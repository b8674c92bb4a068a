"""The order of a block's instructions: what matrix instructions read is computed just before them.

Ops are emitted one after another, each for its whole tile: all fragments of an operand are loaded, then multiplied; all weights
of attention become float16, then multiplied. In that order they are in registers together. Here an instruction goes to its first
reader. Readers come in the order of the *anchors*: what acts on memory or other threads, and matrix instructions.

    emitted                                       ordered
    a0 = ldmatrix; a1 = ldmatrix; b0; b1          a0; b0; mma a0, b0; a1; b1; mma a1, b1
    mma a0, b0; mma a1, b1

ptxas orders a block's instructions itself, but it begins from the order of the PTX, which is LLVM's and so this one. Attention
forward with rows of 128 elements, blocks of 128 x 64 and 4 warps spilled 4 bytes on ``sm_80`` and 72 on ``sm_90`` without it.

Law: the results are the same. Anchors keep their order. A load stays behind the anchor that it was behind, and before the next,
matrix instructions apart. Shuffles move in their block, which all threads execute together.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

_MULTIPLY: Final = "mma.sync"
_READ: Final = "ldmatrix"
_ACTS: Final = frozenset({"store", "atomicrmw", "cmpxchg", "fence", "phi", "alloca"})


def order(function: ir.Function) -> None:
    """Orders the blocks of a function that have matrix instructions."""
    for block in function.blocks:
        if any(_assembly(instruction).startswith(_MULTIPLY) for instruction in block.instructions):
            block.instructions[:] = _ordered(block.instructions, block.terminator)


def _assembly(instruction: ir.Instruction) -> str:
    """The text of inline assembly; empty for other instructions."""
    if isinstance(instruction, ir.CallInstr) and isinstance(instruction.callee, ir.InlineAsm):
        return instruction.callee.asm
    return ""


def _loads(instruction: ir.Instruction) -> bool:
    return instruction.opname == "load" or _assembly(instruction).startswith(_READ)


def _acts(instruction: ir.Instruction) -> bool:
    """Whether an instruction that is no load does more than give its result."""
    if isinstance(instruction, ir.CallInstr):
        return isinstance(instruction.callee, ir.InlineAsm) or not instruction.callee.name.startswith("llvm.")
    return instruction.opname in _ACTS


def _ordered(instructions: list[ir.Instruction], terminator: ir.Instruction | None) -> list[ir.Instruction]:
    """The instructions in their new order, by a walk from the anchors back to what they need; then what no anchor needs, the
    terminator last."""
    needs, anchors = _needs(instructions)
    if terminator is not None:
        assert instructions[-1] is terminator, "a block ends with its terminator"
    found: list[int] = []
    done: set[int] = set()
    for root in [*anchors, *range(len(instructions))]:
        pending = [root]
        while pending:
            missing = next((each for each in needs[pending[-1]] if each not in done), None)
            if missing is not None:
                pending.append(missing)
            elif (at := pending.pop()) not in done:
                done.add(at)
                found.append(at)
    return [instructions[at] for at in found]


def _needs(instructions: list[ir.Instruction]) -> tuple[list[list[int]], list[int]]:
    """For each instruction those that it has to come behind, by their places; and the anchors. What stands behind an anchor is
    needed by later anchors only, so it stays behind it.
    """
    place: dict[ir.Value, int] = {instruction: at for at, instruction in enumerate(instructions)}
    needs: list[list[int]] = []
    anchors: list[int] = []
    loads: list[int] = []
    for at, instruction in enumerate(instructions):
        own = sorted({place[each] for each in instruction.operands if place.get(each, at) < at})
        if _loads(instruction):
            loads.append(at)
        elif _acts(instruction):
            anchors.append(at)
            if not _assembly(instruction).startswith(_MULTIPLY):
                own += loads
                loads = []
        needs.append(own)
    return needs, anchors
