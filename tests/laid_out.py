"""Functions in laid-out tile IR, with layouts drawn at random, compiled to PTX and run in the emulator.

The modules are written in laid-out tile IR, so that layouts are free. The emulator checks bounds, races and barriers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from weft import dtypes, emulator
from weft.codegen import machine_for
from weft.codegen.kernel import GpuKernel
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import pointer
from weft.layout import LinearLayout
from weft.options import Options
from weft.target import GpuTarget
from weft.transforms.nvidia.barriers import PlaceBarriers
from weft.transforms.nvidia.scratch import AllocateScratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

TARGETS = (GpuTarget(80), GpuTarget(90))
DTYPES = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64)


@st.composite
def layouts(draw: st.DrawFn, bits: int, warps: int) -> LinearLayout:
    """Any distributed layout of 2**bits elements: each bit of lanes and warps is one of the tensor's or none, the rest are
    registers, in any order and with at most one copy."""
    places = 5 + warps
    units = draw(st.permutations([1 << bit for bit in range(bits)]))
    taken = draw(st.lists(st.booleans(), min_size=places, max_size=places))
    left = list(units)
    threads = [left.pop() if take and left else 0 for take in taken]
    copy = draw(st.integers(0, len(left) * 4))
    if copy < len(left):
        left.insert(copy, 0)
    columns = {"register": tuple(left), "lane": tuple(threads[:5]), "warp": tuple(threads[5:])}
    return LinearLayout.from_columns(columns, [("dim0", bits)])


class Laid:
    """A function in laid-out tile IR, for a GPU."""

    def __init__(self) -> None:
        self.block = Block()
        self.outputs: list[NDArray[Any]] = []

    def emit(self, op: Operation) -> SSAValue:
        """Adds an op; returns its first result."""
        self.block.add_op(op)
        return op.results[0]

    def numbers(self, size: int, layout: LinearLayout, dtype: DType) -> SSAValue:
        """Each element's number, modulo what the type holds."""
        index = self.emit(tile.ArangeOp(0, size, layout))
        if dtype.is_float:
            least = self.emit(tile.BinaryOp("and", index, self.emit(tile.ConstantOp(1023, index.type))))
            return self.emit(tile.CastOp(least, dtype))
        return self.emit(tile.CastOp(index, dtype))

    def load(self, data: NDArray[Any], layout: LinearLayout, dtype: DType) -> SSAValue:
        """The elements of a new argument that has ``data``."""
        base = self.block.insert_arg(pointer(dtype), len(self.block.args))
        self.outputs.append(data.copy())
        index = self.emit(tile.ArangeOp(0, data.size, layout))
        return self.emit(
            tile.LoadOp(self.emit(tile.AddPtrOp(self.emit(tile.SplatOp(base, (data.size,), layout)), index)))
        )

    def store(self, value: SSAValue, size: int, layout: LinearLayout, dtype: DType) -> None:
        """A new argument that takes the value, element by element."""
        base = self.block.insert_arg(pointer(dtype), len(self.block.args))
        self.outputs.append(np.zeros(size, dtype.numpy))
        index = self.emit(tile.ArangeOp(0, size, layout))
        pointers = self.emit(tile.AddPtrOp(self.emit(tile.SplatOp(base, (size,), layout)), index))
        self.block.add_op(tile.StoreOp(pointers, value))

    def compiled(self, target: GpuTarget, warps: int) -> GpuKernel:
        """Its PTX."""
        self.block.add_op(ReturnOp())
        function = FuncOp("kernel", (list(self.block.arg_types), []), Region(self.block))
        module = ModuleOp([function])
        module.verify()
        for one in (AllocateScratch(target.name), PlaceBarriers(target.name, disjoint=True)):
            one.apply(Context(), module)
        machine = machine_for(target)
        options = Options(disjoint=True, launch=(("num_warps", 1 << warps),))
        kernel = machine.finish(machine.emit(function, options))
        assert isinstance(kernel, GpuKernel)
        return kernel

    def run(self, target: GpuTarget, warps: int) -> list[NDArray[Any]]:
        """Compiles and runs it; what the arguments hold."""
        kernel = self.compiled(target, warps)
        emulator.Module(kernel.ptx).launch("kernel", 1, kernel.threads, self.outputs, shared=kernel.shared)
        return self.outputs


def expected(size: int, dtype: DType) -> NDArray[Any]:
    """The numbers of `Laid.numbers`."""
    index = np.arange(size)
    return (index & 1023).astype(dtype.numpy) if dtype.is_float else index.astype(dtype.numpy)
