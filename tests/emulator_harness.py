"""Runs a few PTX instructions over arrays: each thread loads its element of every input, runs the text, and stores its results.

execute("add.s32 %d, %a, %b;", {"a": ("s32", x), "b": ("s32", y)}, {"d": "s32"})["d"]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.emulator import Checks, ops
from weft.emulator.machine.launch import Outcome, launch
from weft.emulator.machine.program import Program
from weft.emulator.ptx import parse
from weft.emulator.ptx.types import TYPES

_REGISTERS = {8: "b16", 16: "b16", 32: "b32", 64: "b64", 128: "b128"}


def kernel(
    text: str,
    inputs: dict[str, str],
    outputs: dict[str, str],
    declarations: str = "",
    target: str = "sm_90a",
    guard: bool = False,
    module: str = "",
) -> str:
    """The PTX of a kernel ``test`` around ``text``: parameters are a pointer for each input and each output (types by register
    name, without %; "pred" is a byte). ``guard`` adds a first parameter: a byte per thread, those with 0 skip the text."""
    lines: list[str] = []
    parameters = (["p_active"] if guard else []) + [f"p_{name}" for name in (*inputs, *outputs)]
    registers = {name: kind for name, kind in (*inputs.items(), *outputs.items())}
    for name, kind in registers.items():
        lines.append(f".reg .{'pred' if kind == 'pred' else _REGISTERS[TYPES[kind].bits]} %{name};")
    lines.append(".reg .b64 %at<4>; .reg .b32 %at_i<5>; .reg .b16 %at_h; .reg .pred %active;")
    lines.append(declarations)
    lines.append("mov.u32 %at_i0, %tid.x; mov.u32 %at_i1, %ctaid.x; mov.u32 %at_i2, %ntid.x;")
    lines.append("mad.lo.s32 %at_i3, %at_i1, %at_i2, %at_i0;")

    def at(parameter: str, size: int) -> None:
        lines.append(f"ld.param.u64 %at0, [{parameter}]; mul.wide.u32 %at1, %at_i3, {size}; add.s64 %at2, %at0, %at1;")

    if guard:
        at("p_active", 1)
        lines.append("ld.global.u8 %at_h, [%at2]; setp.ne.s16 %active, %at_h, 0;")
    for name, kind in inputs.items():
        bits = 8 if kind == "pred" else TYPES[kind].bits
        at(f"p_{name}", bits // 8)
        if kind == "pred":
            lines.append(f"ld.global.u8 %at_h, [%at2]; setp.ne.s16 %{name}, %at_h, 0;")
        else:
            lines.append(f"ld.global.b{bits} %{name}, [%at2];")
    if guard:
        lines.append("@!%active bra SKIP;")
    lines.append(text)
    if guard:
        lines.append("SKIP:")
    for name, kind in outputs.items():
        bits = 8 if kind == "pred" else TYPES[kind].bits
        at(f"p_{name}", bits // 8)
        if kind == "pred":
            lines.append(f"selp.u16 %at_h, 1, 0, %{name}; st.global.u8 [%at2], %at_h;")
        else:
            lines.append(f"st.global.b{bits} [%at2], %{name};")
    lines.append("ret;")
    body = "\n  ".join(lines)
    given = ", ".join(f".param .u64 {p}" for p in parameters)
    return (
        f".version 8.7\n.target {target}\n.address_size 64\n{module}\n.visible .entry test({given})\n{{\n  {body}\n}}\n"
    )


def run(
    ptx: str, args: list[Any], grid: int = 1, block: int = 32, shared: int = 0, checks: Checks | None = None
) -> Outcome:
    """Launches ``test``."""
    ops.load()
    return launch(Program(parse(ptx)), "test", (grid, 1, 1), (block, 1, 1), args, shared, checks or Checks())


def execute(
    text: str,
    inputs: dict[str, tuple[str, Any]],
    outputs: dict[str, str],
    declarations: str = "",
    block: int | None = None,
    active: NDArray[np.bool_] | None = None,
    module: str = "",
    shared: int = 0,
) -> dict[str, NDArray[Any]]:
    """What the outputs are after the text: arrays of the types' NumPy dtypes (bool for predicates). Inputs are arrays of one
    length (reinterpreted, not converted). Where ``active`` is False the text is not run; outputs there are 0."""
    arrays = {name: np.ascontiguousarray(values) for name, (_, values) in inputs.items()}
    count = max((a.shape[0] for a in arrays.values()), default=32)
    size = block or min(count, 256)
    assert count % size == 0, "a whole number of blocks"
    results = {
        name: np.zeros((count, 2), np.uint64) if TYPES[kind].bits == 128 else np.zeros(count, TYPES[kind].numpy)
        for name, kind in outputs.items()
    }
    kinds = {name: kind for name, (kind, _) in inputs.items()}
    for name, kind in kinds.items():
        expected = 1 if kind == "pred" else TYPES[kind].bytes
        assert arrays[name].nbytes == count * expected, (
            f"{name}: {arrays[name].nbytes} bytes, expected {count * expected}"
        )
    ptx = kernel(text, kinds, outputs, declarations, guard=active is not None, module=module)
    args: list[Any] = [] if active is None else [np.ascontiguousarray(active, np.uint8)]
    run(ptx, [*args, *arrays.values(), *results.values()], count // size, size, shared)
    return results
