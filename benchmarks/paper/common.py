"""What the scripts of the paper's tables share: tile IR to PTX to counts, Triton's PTX, tables.

Triton's PTX is compiled by the interpreter that ``--triton`` names, which has triton 3.9; no GPU is needed. Both are executed in
`weft.emulator` on the same data, with all checks on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from weft.codegen import machine_for
from weft.codegen.kernel import GpuKernel
from weft.dtypes import DType
from weft.emulator import Module, Profile
from weft.ir import tile
from weft.ir.types import pointer
from weft.layout import LinearLayout
from weft.options import Options
from weft.target import gpu as target_of
from weft.transforms.axis import DIVISIBILITY
from weft.transforms.nvidia.barriers import PlaceBarriers
from weft.transforms.nvidia.scratch import AllocateScratch

Array = NDArray[Any]
WARPS: Final = 4
ALIGNED: Final = 16
"""Bytes that the address of an argument is a multiple of; Triton is told the same."""
KERNELS: Final = Path(__file__).with_name("triton_kernels.py")


@dataclass(frozen=True)
class Made:
    """A compiled kernel and what a launch of it did."""

    profile: Profile
    arrays: list[Array]
    seconds: float
    """Weft's to PTX in this process, Triton's with ptxas, which its compiler calls."""

    def count(self, metric: str) -> int:
        """A metric's total of the launch."""
        return self.profile.total(metric)

    @property
    def spills(self) -> str:
        """Bytes that ptxas spills, and its registers; "-" without ptxas."""
        found = self.profile.resources
        return "-" if found is None else f"{found.spill_stores + found.spill_loads} ({found.registers} registers)"


class Kernel:
    """A kernel written in tile IR whose tiles have layouts. Its arguments are arrays."""

    def __init__(self) -> None:
        self.block = Block()
        self.arrays: list[Array] = []

    def emit(self, op: Operation) -> SSAValue:
        """Adds an op; returns its first result."""
        self.block.add_op(op)
        return op.results[0]

    def argument(self, data: Array, dtype: DType, layout: LinearLayout | None = None) -> SSAValue:
        """A tile of pointers to the elements of a new argument, row by row."""
        base = self.block.insert_arg(pointer(dtype), len(self.block.args))
        self.arrays.append(data.copy())
        index = self.emit(tile.ArangeOp(0, data.size, layout))
        return self.emit(tile.AddPtrOp(self.emit(tile.SplatOp(base, (data.size,), layout)), index))

    def kernel(self) -> ModuleOp:
        """The module."""
        self.block.add_op(ReturnOp())
        facts = ArrayAttr([DictionaryAttr({DIVISIBILITY: IntegerAttr(ALIGNED, i64)})] * len(self.arrays))
        types = (list(self.block.arg_types), [])
        module = ModuleOp([FuncOp("kernel", types, Region(self.block), arg_attrs=facts)])
        module.verify()
        return module

    def run(self, target: str, warps: int = WARPS) -> Made:
        """Compiles and executes. The tiles have layouts, and no pass changes them."""
        gpu, module = target_of(target), self.kernel()
        options = Options(disjoint=True, launch=(("num_warps", warps),))
        machine, started = machine_for(gpu), time.perf_counter()
        for one in (AllocateScratch(gpu.name), PlaceBarriers(gpu.name, disjoint=True)):
            one.apply(Context(), module)
        made = machine.finish(machine.emit(next(op for op in module.ops if isinstance(op, FuncOp)), options))
        assert isinstance(made, GpuKernel), "compiled for a GPU"
        seconds = time.perf_counter() - started
        profile = Module(made.ptx).launch("kernel", 1, made.threads, self.arrays, shared=made.shared)
        return Made(profile, self.arrays, seconds)


def by_weft(
    kernel: Any,
    arrays: Sequence[Array],
    target: str,
    constants: dict[str, Any],
    numbers: Sequence[int] = (),
    **options: int,
) -> Made:
    """What weft makes of a kernel of one program, and what a launch of it does with copies of the arrays, and numbers after
    them. Options are those of a launch."""
    copies = [array.copy() for array in arrays]
    started = time.perf_counter()
    made = kernel.compile(*copies, *numbers, **constants, target=target, num_warps=WARPS, **options)
    seconds = time.perf_counter() - started
    profile = Module(made.ptx).launch(made.symbol, 1, made.threads, [*copies, *numbers], shared=made.shared)
    return Made(profile, copies, seconds)


def by_triton(python: str, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """PTX, shared memory and seconds for each request to `triton_kernels.py`."""
    with tempfile.TemporaryDirectory() as empty:  # Triton keeps what it compiled
        done = subprocess.run(
            [python, str(KERNELS)],
            input=json.dumps(requests),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "TRITON_CACHE_DIR": empty},
        )
    if done.returncode:
        raise SystemExit(f"{python} does not compile the kernels with Triton:\n{done.stderr}")
    return json.loads(done.stdout)


def launched(
    other: dict[str, Any], name: str, arrays: Sequence[Array], warps: int = WARPS, numbers: Sequence[int] = ()
) -> Made:
    """What Triton's PTX does with copies of the arrays, and numbers after them."""
    copies = [array.copy() for array in arrays]
    profile = Module(other["ptx"]).launch(name, 1, 32 * warps, [*copies, *numbers, 0, 0], shared=other["shared"])
    return Made(profile, copies, other["seconds"])


def equal(found: Array, expected: Array) -> bool:
    """Whether two arrays have the same bits."""
    return np.array_equal(found.view(f"u{found.itemsize}"), expected.view(f"u{expected.itemsize}"))


def parser(about: str) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--triton", metavar="PYTHON", help="an interpreter with triton 3.9, to compare with")
    made.add_argument("--target", default="sm_90", choices=("sm_80", "sm_90"))
    made.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return made


def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[object]], *, markdown: bool) -> None:
    """Prints a table."""
    if markdown:
        lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
        print("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines))
        return
    console = Console()
    if not console.is_terminal:
        console.width = 200
    table = Table(*heads, title=title)
    for row in rows:
        table.add_row(*map(str, row))
    console.print(table)


def finish(wrong: Sequence[str]) -> None:
    """Exits with 1 where a result is wrong, after naming it."""
    for each in wrong:
        print(f"wrong: {each}", file=sys.stderr)
    raise SystemExit(bool(wrong))
