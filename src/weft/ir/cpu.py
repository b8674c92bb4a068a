"""The ops that only a CPU has; the dialect ``cpu`` beside ``tile``.

Passes of `weft.transforms` make them; the frontend never does.

# Programs together

A function that runs neighbouring programs as one (`weft.transforms.join_programs`) has tiles for the most of them. ``present``
is how many it runs in a call.

# Panels

A panel is local memory for one operand of a dot over many steps of a loop: ``depth`` elements of the contracted axis by all
of the other. The elements of a step's tile lie in the order in which the multiplication reads them (`Panel`). Panels outlive
a program: a thread keeps the latest ``slots`` of them, each under the numbers of which it is a function, its *keys*.

    claim      the address of the panel of these keys, and whether it must be filled: none of the thread's panels has them
    pack       writes a step's tile
    multiply   adds the product of two panels to an accumulator
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import (
    AnyAttr,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.ir.base import TileOp
from weft.ir.types import dtype_of, is_pointer, scalar, shape_of

ADDRESS = scalar(dtypes.int64)
PITCH_PAD = 64
"""Bytes between the rows of a panel by rows, so that rows at one depth do not meet in one set of a cache."""


@dataclass(frozen=True)
class Panel:
    """Where an operand's elements lie. ``axis`` is the contracted one of a tile, and ``depth``, a power of two, is how far the
    panel goes along it. At depth k and other coordinate x the offset, in elements, is

        width 0:           x * (depth + padding) + k
        width w, group g:  ((x // w) * (depth // g) + k // g) * w * g + (x % w) * g + k % g

    ``unsigned``: signed integers lie there with their sign bit flipped, which are unsigned numbers that are greater by half of
    their range.
    """

    axis: int
    depth: int
    width: int
    group: int = 1
    unsigned: bool = False

    def pitch(self, itemsize: int) -> int:
        """Elements between rows, by rows."""
        return self.depth + PITCH_PAD // itemsize

    def bytes(self, size: int, itemsize: int) -> int:
        """The bytes of a panel of ``size`` elements across."""
        return size * (self.depth if self.width else self.pitch(itemsize)) * itemsize


def _number(attribute: IntegerAttr[I64]) -> int:
    return attribute.value.data


def _panel_properties(prefix: str, panel: Panel) -> dict[str, IntegerAttr[I64]]:
    numbers = {"axis": panel.axis, "depth": panel.depth, "width": panel.width, "group": panel.group}
    return {f"{prefix}{name}": IntegerAttr(number, i64) for name, number in numbers.items()}


@irdl_op_definition
class PresentOp(TileOp):
    """How many programs a call of a function runs: at least one."""

    name = "cpu.present"
    result = result_def(scalar(dtypes.int32))
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[scalar(dtypes.int32)])


@irdl_op_definition
class ClaimOp(TileOp):
    """A panel of ``bytes`` for ``keys``, one of the ``slots`` that a thread keeps, and whether the caller must fill it.
    Without keys it must always be filled."""

    name = "cpu.claim"
    keys = var_operand_def()
    bytes = prop_def(IntegerAttr[I64])
    slots = prop_def(IntegerAttr[I64])
    address = result_def(ADDRESS)
    stale = result_def(scalar(dtypes.bool_))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$keys attr-dict `:` type($keys)"

    def __init__(self, keys: Sequence[SSAValue], bytes_: int, slots: int):
        super().__init__(
            operands=keys,
            properties={"bytes": IntegerAttr(bytes_, i64), "slots": IntegerAttr(slots, i64)},
            result_types=[ADDRESS, scalar(dtypes.bool_)],
        )

    def verify_(self) -> None:
        if any(shape_of(key) for key in self.keys):
            raise VerifyException("cpu.claim: keys are scalars")
        slots = _number(self.slots)
        if slots < 1 or slots & (slots - 1):
            raise VerifyException(f"cpu.claim: {slots} slots, expected a power of two")


@irdl_op_definition
class PackOp(TileOp):
    """Writes the tile of step ``at`` into a panel: its depth begins at ``at`` times the tile's own. Of the other axis only the
    first ``size`` elements are wanted; further ones may be left out."""

    name = "cpu.pack"
    value = operand_def()
    panel = operand_def(ADDRESS)
    at = operand_def(scalar(dtypes.int64))
    size = operand_def(scalar(dtypes.int64))
    axis = prop_def(IntegerAttr[I64])
    depth = prop_def(IntegerAttr[I64])
    width = prop_def(IntegerAttr[I64])
    group = prop_def(IntegerAttr[I64])
    unsigned = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryWriteEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$value `to` $panel `[` $at `]` `of` $size attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, panel: SSAValue, at: SSAValue, size: SSAValue, geometry: Panel):
        unsigned = {"unsigned": UnitAttr()} if geometry.unsigned else {}
        super().__init__(operands=[value, panel, at, size], properties={**_panel_properties("", geometry), **unsigned})

    @property
    def geometry(self) -> Panel:
        """Where the elements go."""
        numbers = (_number(each) for each in (self.axis, self.depth, self.width, self.group))
        return Panel(*numbers, unsigned=self.unsigned is not None)

    def verify_(self) -> None:
        if self.unsigned is not None and not dtype_of(self.value).is_integer:
            raise VerifyException(f"cpu.pack writes integers as unsigned ones, found {self.value.type}")
        if len(shape_of(self.value)) != 2 or is_pointer(self.value):
            raise VerifyException(f"cpu.pack writes tiles of numbers of rank 2, found {self.value.type}")


@irdl_op_definition
class MultiplyOp(TileOp):
    """``acc`` plus the product of two panels over the first ``depth`` elements of the contracted axis, by an instruction of
    `weft.target.PRODUCTS`. Only the first ``rows`` and ``columns`` are wanted; other elements may have any value."""

    name = "cpu.multiply"
    T: ClassVar = VarConstraint("T", AnyAttr())
    left = operand_def(ADDRESS)
    right = operand_def(ADDRESS)
    depth = operand_def(scalar(dtypes.int64))
    rows = operand_def(scalar(dtypes.int64))
    columns = operand_def(scalar(dtypes.int64))
    acc = operand_def(T)
    left_depth = prop_def(IntegerAttr[I64])
    left_width = prop_def(IntegerAttr[I64])
    right_depth = prop_def(IntegerAttr[I64])
    right_width = prop_def(IntegerAttr[I64])
    right_group = prop_def(IntegerAttr[I64])
    instruction = prop_def(StringAttr)
    multiple = prop_def(IntegerAttr[I64])
    result = result_def(T)
    traits = traits_def(MemoryReadEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$left `,` $right `,` $acc `over` $depth `of` $rows `x` $columns attr-dict `:` type($acc)"

    def __init__(
        self,
        left: SSAValue,
        right: SSAValue,
        depth: SSAValue,
        wanted: tuple[SSAValue, SSAValue],
        acc: SSAValue,
        panels: tuple[Panel, Panel],
        multiple: int,
        instruction: str,
    ):
        """``wanted`` are the rows and columns, ``multiple`` is the depth of a step."""
        numbers = {
            "left_depth": panels[0].depth,
            "left_width": panels[0].width,
            "right_depth": panels[1].depth,
            "right_width": panels[1].width,
            "right_group": panels[1].group,
            "multiple": multiple,
        }
        super().__init__(
            operands=[left, right, depth, *wanted, acc],
            properties={
                "instruction": StringAttr(instruction),
                **{name: IntegerAttr(number, i64) for name, number in numbers.items()},
            },
            result_types=[acc.type],
        )

    @property
    def panels(self) -> tuple[Panel, Panel]:
        """Where the operands' elements are."""
        return (
            Panel(1, _number(self.left_depth), _number(self.left_width)),
            Panel(0, _number(self.right_depth), _number(self.right_width), _number(self.right_group)),
        )

    def verify_(self) -> None:
        if len(shape_of(self.acc)) != 2 or is_pointer(self.acc):
            raise VerifyException(f"cpu.multiply accumulates tiles of numbers of rank 2, found {self.acc.type}")
        if dtype_of(self.acc).kind is dtypes.bool_.kind:
            raise VerifyException(f"cpu.multiply accumulates numbers, found {self.acc.type}")


Cpu = Dialect("cpu", [PresentOp, ClaimOp, PackOp, MultiplyOp])
"""The dialect."""
