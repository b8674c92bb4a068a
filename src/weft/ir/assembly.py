"""What a kernel asks of the machine itself: inline PTX, a clock, the processor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.ir.base import TileOp
from weft.ir.classes import GridFact
from weft.ir.types import dtype_of, is_pointer, scalar, shape_of
from weft.ir.unsupported import UnsupportedOpError

REGISTER: Final = 32
"""The bits that several narrow elements share."""


@irdl_op_definition
class AssemblyOp(TileOp):
    """PTX with LLVM's ``constraints``, executed for ``pack`` elements at a time of tensors of one shape, or once for scalars.

    Elements narrower than 32 bits share registers, as far as ``pack`` goes: the first in the lowest bits. The constraints name
    the registers of each result, then those of each operand. Which elements are taken together is not specified. ``pure``: the
    text has no effect besides its results; else it may access any memory.
    """

    name = "tile.inline_asm"
    text = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    pack = prop_def(IntegerAttr[I64])
    pure = opt_prop_def(UnitAttr)
    sources = var_operand_def()
    results_ = var_result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$text $constraints `pack` $pack (`pure` $pure^)? (`(` $sources^ `:` type($sources) `)`)? attr-dict "
        "`to` type($results_)"
    )

    def __init__(
        self,
        text: str,
        constraints: str,
        sources: Sequence[SSAValue],
        results: Sequence[Attribute],
        *,
        pack: int = 1,
        pure: bool = False,
    ):
        super().__init__(
            operands=sources,
            properties={
                "text": StringAttr(text),
                "constraints": StringAttr(constraints),
                "pack": IntegerAttr(pack, i64),
                "pure": UnitAttr() if pure else None,
            },
            result_types=results,
        )

    def verify_(self) -> None:
        if not self.results:
            raise VerifyException("tile.inline_asm has a result at least")
        pack = self.pack.value.data
        if pack < 1 or pack & (pack - 1):
            raise VerifyException(f"tile.inline_asm: pack is a power of two, found {pack}")
        values = [*self.sources, *self.results]
        if len({shape_of(value) for value in values}) > 1:
            raise VerifyException("tile.inline_asm: operands and results have different shapes")
        if not self.sources and shape_of(self.results[0]):
            raise VerifyException(f"tile.inline_asm without operands gives scalars, found {self.results[0].type}")
        if (mismatch := self.mismatch()) is not None:
            what, found, wanted = mismatch
            raise VerifyException(
                f"tile.inline_asm: the constraints name {found} registers for {what}, which have {wanted}"
            )

    def mismatch(self) -> tuple[str, int, int] | None:
        """The first of results and operands whose registers the constraints do not name: which, how many are named, how many
        there are."""
        outputs, inputs = registers_of(self.constraints.data)
        for what, found, held in (("results", outputs, self.results), ("operands", inputs, self.sources)):
            wanted = sum(register_count(value, self.pack.value.data) for value in held)
            if len(found) != wanted:
                return what, len(found), wanted
        return None


def needs_gpu(op: AssemblyOp) -> UnsupportedOpError:
    """The error of a machine that does not execute PTX."""
    return UnsupportedOpError(
        op,
        "is PTX, which a CPU does not execute",
        hint="use functions of tl and tl.extra.libdevice, or launch on a GPU or in the emulator: kernel.on('sm_90')[grid](...)",
    )


def registers_of(constraints: str) -> tuple[list[str], list[str]]:
    """The letters of the results and of the operands, without ``=`` and ``&``; what is clobbered is left out."""
    words = [word.strip() for word in constraints.split(",")]
    outputs = [word.lstrip("=&") for word in words if word.startswith("=")]
    return outputs, [word for word in words if word and word[0] not in "=~"]


def bits_of(value: SSAValue) -> int:
    """The bits of an element as assembly sees it; a bool is a byte."""
    return 64 if is_pointer(value) else max(8, dtype_of(value).bits)


def shared_by(value: SSAValue, pack: int) -> int:
    """How many elements of a value share a register."""
    return max(1, min(REGISTER // bits_of(value), pack))


def register_count(value: SSAValue, pack: int) -> int:
    """How many registers the elements of one execution are in."""
    return pack // shared_by(value, pack)


@irdl_op_definition
class ClockOp(TileOp):
    """The time in nanoseconds, int64, of a clock that never goes back; its beginning is not specified."""

    name = "tile.clock"
    result = result_def(scalar(dtypes.int64))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[scalar(dtypes.int64)])


@irdl_op_definition
class ProcessorOp(TileOp):
    """The number of the multiprocessor that runs the program, int32; 0 on a machine that has none."""

    name = "tile.processor"
    result = result_def(scalar(dtypes.int32))
    traits = traits_def(Pure(), GridFact())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[scalar(dtypes.int32)])
