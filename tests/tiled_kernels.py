"""Modules of kernels of arrays ``a``, ``out`` and ``row``, numbers ``m`` and ``n``, and tiles of ``BM`` by ``BN``."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from weft import target as targets
from weft.codegen import lay_out
from weft.dtypes import DType, int32
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.transforms.join_programs import Joined, joined_of


def module_of(kernel: Any, dtype: DType, tile: tuple[int, int]) -> ModuleOp:
    """The kernel in tile IR, for arrays of one type."""
    constants: dict[str, Argument] = {"BM": ConstantArgument(tile[0]), "BN": ConstantArgument(tile[1])}
    signature: dict[str, Argument] = {name: PointerArgument(dtype) for name in ("a", "out", "row")}
    signature |= {name: ScalarArgument(int32) for name in ("m", "n")} | constants
    return build_module(KernelFunction(kernel.fn), signature)


def joined(kernel: Any, dtype: DType, tile: tuple[int, int]) -> Joined | None:
    """How programs of the kernel run together on this machine, if they do."""
    module = module_of(kernel, dtype, tile)
    lay_out(module, targets.host(), Options(disjoint=True))
    module.verify()
    found = joined_of(next(op for op in module.ops if isinstance(op, func.FuncOp)))
    return found and found[1]
