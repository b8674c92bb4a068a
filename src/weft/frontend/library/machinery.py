"""Inline assembly, and what a kernel may know of the machine that runs it."""

from __future__ import annotations

from typing import Any

from weft import dtypes
from weft import language as tl
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import dtype_of, flag, integer
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, describe, ir_type, is_tuple
from weft.ir import tile
from weft.language import registers


@implements(tl.inline_asm_elementwise)
def _inline_asm(
    b: Builder, asm: Value, constraints: Value, args: Value, dtype: Value, is_pure: Value, pack: Value
) -> Value:
    for value, name in ((asm, "asm"), (constraints, "constraints")):
        if not isinstance(value, str):
            raise CompilationError(f"'{name}' is a string, found {describe(value)}", argument=name)
    count = integer(pack, "pack")
    if count < 1 or count & (count - 1):
        raise CompilationError(f"'pack' is a power of two, found {count}", argument="pack")
    given: tuple[Any, ...] = args if is_tuple(args) else (args,)
    tensors = b.broadcast(*(b.tensor(value, "args") for value in given)) if given else []
    shape = tensors[0].shape if tensors else ()
    kinds: tuple[Any, ...] = dtype if is_tuple(dtype) else (dtype,)
    if not kinds:
        raise CompilationError(
            "inline assembly has a result at least", hint="ask for one, and drop it", argument="dtype"
        )
    types = [dtype_of(kind, "dtype") for kind in kinds]
    op = tile.AssemblyOp(
        asm, constraints, [x.ssa for x in tensors], [ir_type(t, shape) for t in types],
        pack=count, pure=flag(is_pure, "is_pure"),
    )  # fmt: skip
    if (mismatch := op.mismatch()) is not None:
        what, found, wanted = mismatch
        raise CompilationError(
            f"the constraints name {found} registers for {what}, but the {what} of {count} elements are in {wanted}",
            hint="write a constraint for each register; elements narrower than 32 bits share one, as far as pack goes",
            argument="constraints",
        )
    b.emit(op)
    results = tuple(Tensor(ssa, t, shape) for ssa, t in zip(op.results, types, strict=True))
    return results if is_tuple(dtype) else results[0]


@implements(registers.globaltimer)
def _globaltimer(b: Builder) -> Tensor:
    return Tensor(b.emit(tile.ClockOp()).result, dtypes.int64, ())


@implements(registers.smid)
def _smid(b: Builder) -> Tensor:
    return Tensor(b.emit(tile.ProcessorOp()).result, dtypes.int32, ())


@implements(registers.num_threads)
def _num_threads(b: Builder) -> int:
    return 32 * b.warps


@implements(registers.num_warps)
def _num_warps(b: Builder) -> int:
    return b.warps
