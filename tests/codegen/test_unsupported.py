"""What code generation does not support: the message names the op, the user's line and what to do.

An error that is not about the kernel gets the op and the line as a note.
"""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

import weft
import weft.language as tl
from weft import target as targets
from weft.codegen import emit_llvm
from weft.codegen.cpu import microkernel
from weft.codegen.cpu.access import Accesses
from weft.codegen.cpu.reduce import Reduction
from weft.codegen.llvm import arith
from weft.ir import tile
from weft.ir.location import Position, location
from weft.ir.unsupported import UnsupportedOpError, name_op
from weft.options import Options
from weft.runtime.jit import JITFunction

SUPPORTED = "help: compute with the elements alone: arithmetic, comparisons, 'if' and tl.static_range"


@weft.jit
def with_for(a: Any, b: Any) -> Any:
    total = a
    for _ in range(0, 3):
        total += b
    return total


@weft.jit
def with_while(a: Any, b: Any) -> Any:
    while a > b:
        a -= 1
    return a


@weft.jit
def with_tile(a: Any, b: Any) -> Any:
    return a + tl.sum(tl.arange(0, 4) + b, 0)


@weft.jit
def with_program_id(a: Any, b: Any) -> Any:
    return a + b * tl.program_id(0)


@weft.jit
def with_barrier(a: Any, b: Any) -> Any:
    tl.debug_barrier()
    return a + b


@weft.jit
def with_assumption(a: Any, b: Any) -> Any:
    tl.assume(a > b)
    return a + b


@weft.jit
def combined(x: Any, y: Any, combine: tl.constexpr) -> None:
    values = tl.load(x + tl.arange(0, 64))
    tl.store(y, tl.reduce(values, 0, combine))


def place(kernel: JITFunction, text: str) -> str:
    """How the start of a text in a kernel is shown; found in the file, not in the syntax tree."""
    lines, first = inspect.getsourcelines(kernel.fn)
    i, line = next((i, line.rstrip("\n")) for i, line in enumerate(lines) if text in line)
    column = line.index(text)
    return f"  {kernel.file}:{first + i}:{column + 1}, in {kernel.name}\n    {line}\n    {' ' * column}^"


@pytest.mark.jit
@pytest.mark.parametrize(
    ("combine", "op", "text"),
    [
        (with_for, "scf.for", "range(0, 3)"),
        (with_while, "scf.while", "a > b"),
        (with_tile, "tile.arange", "tl.arange"),
        (with_program_id, "tile.program_id", "tl.program_id"),
        (with_barrier, "tile.barrier", "tl.debug_barrier"),
        (with_assumption, "tile.assume", "tl.assume"),
    ],
)
def test_a_combine_function_does_arithmetic(combine: JITFunction, op: str, text: str) -> None:
    with pytest.raises(weft.CompilationError) as raised:
        combined[(1,)](np.zeros(64, np.int32), np.zeros(1, np.int32), combine)
    assert type(raised.value) is UnsupportedOpError
    assert str(raised.value).splitlines() == [
        f"{op} is not supported in the combine function of a reduction",
        *place(combine, text).splitlines(),
        *place(combined, "tl.reduce").splitlines(),
        SUPPORTED,
    ]
    assert str(raised.traceback[-1].path).endswith("jit.py")  # the compiler's own frames are cut off


@weft.jit
def scanned(x: Any, y: Any, combine: tl.constexpr) -> None:
    i = tl.arange(0, 64)
    tl.store(y + i, tl.associative_scan(tl.load(x + i), 0, combine))


@pytest.mark.jit
def test_the_combine_function_of_a_scan() -> None:
    with pytest.raises(weft.CompilationError) as raised:
        scanned[(1,)](np.zeros(64, np.int32), np.zeros(64, np.int32), with_program_id)
    assert str(raised.value).splitlines()[0] == "tile.program_id is not supported in the combine function of a scan"


def test_the_error_survives_pickling() -> None:
    op = tile.ProgramIdOp(0)
    op.location = location([Position("gone.py", 3, 0, "k")])
    error = UnsupportedOpError(op, "is not there", hint="leave it")
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is UnsupportedOpError
        assert str(other) == "tile.program_id is not there\n  gone.py:3:1, in k\nhelp: leave it"
    assert error.on_one_line() == "gone.py:3: tile.program_id is not there; leave it"
    assert UnsupportedOpError(tile.ProgramIdOp(0), "is not there").on_one_line() == "tile.program_id is not there"


def test_an_op_that_the_machine_does_not_know() -> None:
    """A combine region's end, where a kernel has ops: nothing that the frontend makes, so the kernel is tile IR."""
    op = tile.YieldOp()
    op.location = location([Position("gone.py", 12, 4, "kernel")])
    block = Block([op, func.ReturnOp()])
    module = ModuleOp([func.FuncOp("kernel", ([], []), Region(block))])
    with pytest.raises(UnsupportedOpError) as raised:
        emit_llvm(module, targets.host(), Options())
    assert str(raised.value) == "tile.yield has no code on the CPU\n  gone.py:12:5, in kernel"


# ---- errors that are not about the kernel ----------------------------------------------------------------------------


@weft.jit
def everything(x: Any, y: Any, n: Any) -> None:
    rows = tl.arange(0, 16)
    a = tl.load(x + rows[:, None] * 16 + rows[None, :])
    for _ in range(n):
        a = tl.dot(a, a)
    s = tl.sum(tl.exp(a), 1)
    tl.store(y + rows, s)


def fail(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("on purpose")


@pytest.mark.jit
@pytest.mark.parametrize(
    ("module", "name", "op", "text"),
    [
        (arith, "unary", "tile.unary", "tl.exp(a)"),
        (microkernel, "register_block", "tile.dot", "tl.dot(a, a)"),
        (Reduction, "step", "tile.reduce", "tl.sum("),
        (Reduction, "publish", "tile.reduce", "tl.sum("),
        (Accesses, "load", "tile.load", "tl.load("),
        (Accesses, "store", "tile.store", "tl.store("),
    ],
)
def test_other_errors_get_the_line_as_a_note(
    monkeypatch: pytest.MonkeyPatch, module: object, name: str, op: str, text: str, tmp_path: Path
) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(module, name, fail)
    arrays = np.zeros((16, 16), np.float32), np.zeros(16, np.float32)
    with pytest.raises(ZeroDivisionError) as raised:
        weft.jit(everything.fn)[(1,)](*arrays, 2)
    assert raised.value.__notes__ == [f"while weft compiled {op}\n{place(everything, text)}"]


def test_a_note_is_the_innermost_ops() -> None:
    error = ValueError("no")
    name_op(error, tile.ProgramIdOp(0))
    name_op(error, tile.NumProgramsOp(0))
    assert error.__notes__ == ["while weft compiled tile.program_id"]
    refused = weft.CompilationError("no")
    name_op(refused, tile.ProgramIdOp(0))
    assert not hasattr(refused, "__notes__")
