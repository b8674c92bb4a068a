"""Tiles that are turned group by group between what loads and what stores them."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from host_targets import compiled_for
from sampling import at_night
from weft import dtypes
from weft.codegen import emit_llvm
from weft.codegen.cpu import turned
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget

AVX512 = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f", 512)


@weft.jit
def turn(x: Any, y: Any, out: Any, m: Any, n: Any, KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """A transpose, or what is done beside one."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inside, at = (rows < m)[:, None] & (columns < n)[None, :], rows[:, None] * n + columns[None, :]
    if KIND == "whole":
        part = tl.load(x + at)
    elif KIND == "other":
        part = tl.load(x + at, mask=inside, other=7)
    elif KIND == "of odd ones":
        part = tl.load(x + at, mask=inside & ((at & 1) == 1), other=0)
    else:
        part = tl.load(x + at, mask=inside)
    if KIND == "stored twice":
        tl.store(y + at, part, mask=inside)
    if KIND == "computed":
        part = part * 2
    if KIND == "long":
        part = tl.exp(tl.exp(tl.exp(tl.exp(part))))
    there, inside = columns[:, None] * m + rows[None, :], (columns < n)[:, None] & (rows < m)[None, :]
    if KIND == "by pointers":
        tl.store(out + columns[None, :] * m + rows[:, None], part, mask=(rows < m)[:, None] & (columns < n)[None, :])
    elif KIND == "whole":
        tl.store(out + there, tl.trans(part))
    elif KIND == "computed":
        tl.store(out + there, tl.trans(part) + tl.load(y + there, mask=inside, other=0), mask=inside)
    elif KIND == "two":
        tl.store(out + there, tl.trans(part), mask=inside)
        tl.store(y + there, tl.trans(part) + 1, mask=inside)
    else:
        tl.store(out + there, tl.trans(part), mask=inside)


def turns_of(
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    dtype: Any = dtypes.float32,
    target: CpuTarget = AVX512,
    bm: int = 64,
    *,
    disjoint: bool = True,
) -> tuple[int, str]:
    """How many turns a kernel has, in tiles of ``bm`` x 64, and its LLVM IR."""
    found: list[turned.Turn] = []
    emit = turned.emit_turn

    def noted(registers: Any, each: turned.Turn) -> None:
        found.append(each)
        emit(registers, each)

    monkeypatch.setattr("weft.codegen.cpu.emitter.emit_turn", noted)
    pointer, number = PointerArgument(dtype, aligned=True), ScalarArgument(dtypes.int32)
    signature: dict[str, Argument] = {**dict.fromkeys(("x", "y", "out"), pointer), "m": number, "n": number}
    constants: dict[str, Argument] = {"KIND": ConstantArgument(kind), "BM": ConstantArgument(bm)}
    module = build_module(KernelFunction(turn.fn), signature | constants | {"BN": ConstantArgument(64)})
    text = emit_llvm(module, target, Options(disjoint=disjoint))
    return len(found), text


@pytest.mark.parametrize(
    ("kind", "turns"),
    [
        ("", 1),
        ("whole", 1),
        ("other", 1),
        ("of odd ones", 0),  # masks that no scalar test decides
        ("stored twice", 0),  # what is loaded is stored in its layout, too
        ("computed", 1),
        ("long", 0),  # 16 times as many instructions as unrolled loops may have
        ("by pointers", 1),
    ],
)
def test_what_is_only_turned_goes_group_by_group(kind: str, turns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert turns_of(kind, monkeypatch)[0] == turns


def test_whole_groups_pass_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without masks nothing is stored but the 16 registers of a group."""
    _, text = turns_of("whole", monkeypatch)
    program = text[text.index(".program") :].split("\n}")[0]
    assert program.count("store <16 x float>") == program.count("load <16 x float>") == 16


def test_groups_keep_to_lines_registers_and_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """int16 has half a line in a register; AVX2's hold none; arrays that may overlap are loaded before they are stored to."""
    avx2 = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2", 256)
    assert turns_of("", monkeypatch, dtypes.float64)[0] == 1
    assert turns_of("", monkeypatch, dtypes.int16)[0] == 0
    assert turns_of("", monkeypatch, target=avx2)[0] == 0
    assert turns_of("", monkeypatch, disjoint=False)[0] == 0


@pytest.mark.parametrize(
    ("kind", "dtype", "level"),
    [
        ("", np.float64, "x86-64-v4"),
        ("", np.float32, "x86-64-v4,+streaming-stores"),
        ("stored twice", np.float32, "x86-64-v4"),
        ("computed", np.float32, "x86-64-v4"),
        ("by pointers", np.float32, "x86-64-v4"),
        ("two", np.float32, "x86-64-v4"),
    ],
)
def test_transposes_are_exact(kind: str, dtype: Any, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups that are whole, cut off in either direction, and beyond the end; of launches that stream, too. By day plain
    transposes have kernels of their own for whole groups."""
    chosen = replace(compiled_for(level, monkeypatch), cache=1)
    monkeypatch.setattr("weft.target.host", lambda: chosen)
    monkeypatch.setattr("weft.codegen.cpu.streaming.SHORT_ROW", 0)
    again = weft.jit(do_not_specialize=() if at_night() or not kind else ("m", "n"))(turn.fn)
    for m, n in ((130, 101), (64, 64), (3, 70)):
        x = np.random.default_rng(m).integers(-9, 9, (m, n)).astype(dtype)
        y = np.arange(m * n, dtype=dtype).reshape(n, m)
        out, seen = np.full((n + 1, m), 99, dtype), y.copy() if kind == "computed" else np.full((n + 1, m), 99, dtype)
        again[(weft.cdiv(m, 32), weft.cdiv(n, 64))](x, seen, out, m, n, KIND=kind, BM=32, BN=64)
        assert np.array_equal(out[:n], x.T * 2 + y if kind == "computed" else x.T)
        assert (out[n:] == 99).all()
        if kind == "two":
            assert np.array_equal(seen[:n], x.T + 1)
            assert (seen[n:] == 99).all()
