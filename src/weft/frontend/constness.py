"""Pointers through which a kernel must not write: those derived from a parameter annotated with ``tl.const``.

They are found by walking from a pointer to what it is made of. The argument of a block has no origin while the loop around the
block is being built, so the builder keeps such arguments beside the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import OpResult, SSAValue

from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.values import Tensor, Value, describe, is_tuple
from weft.ir.types import is_pointer


def is_const(b: Builder, pointer: Tensor) -> bool:
    """Whether some pointer of a tile comes from a ``const`` parameter."""
    if not b.const:  # as in most kernels: nothing to walk for
        return False
    pending = [pointer.ssa]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in b.const:
            return True
        if value not in seen:
            seen.add(value)
            pending.extend(_sources(value))
    return False


def described(b: Builder, value: Value) -> str:
    """A value in a message about types: `describe`, and whether it is a pointer that only reads."""
    if is_tuple(value):
        return f"({', '.join(described(b, item) for item in value)}{',' if len(value) == 1 else ''})"
    reads = isinstance(value, Tensor) and value.is_pointer and is_const(b, value)
    return f"const {describe(value)}" if reads else describe(value)


def refuse_const(b: Builder, pointer: Tensor) -> None:
    """`CompilationError`, with Triton's words, for a write through pointers that come from a ``const`` parameter."""
    if is_const(b, pointer):
        raise CompilationError(
            "Cannot store to a constant pointer",
            hint="leave tl.const out where the parameter is declared, or write to another array",
            argument="pointer",
        )


def _sources(value: SSAValue) -> Iterator[SSAValue]:
    """The pointers that a pointer is made of."""
    if not isinstance(value, OpResult):
        return
    if isinstance(value.op, (scf.IfOp, scf.ForOp)):
        for region in value.op.regions:
            if region.blocks and isinstance(end := region.block.last_op, scf.YieldOp):
                yield end.operands[value.index]
        return
    if isinstance(value.op, scf.WhileOp):
        if isinstance(end := value.op.before_region.block.last_op, scf.ConditionOp):
            yield end.args[value.index]
        return
    yield from (operand for operand in value.op.operands if is_pointer(operand))
