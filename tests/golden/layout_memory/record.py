"""Records the goldens of this directory from Triton 3.9.0's Python binding; no GPU is needed.

Usage: python record.py TABLES, in an environment that has Triton 3.9.0. TABLES holds goldens.json, layout_errors.json and
bank_conflicts.json, read off the same binding earlier: their questions are asked again, and the answers must agree. Some
layouts abort the process, so each is asked for in a child.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import triton.experimental.gluon.language as gl
from triton._C import libtriton
from triton._C.libtriton import gluon_ir, ir
from triton.experimental.gluon.language.nvidia import blackwell

HERE = Path(__file__).parent
SHARED_KINDS = {"SwizzledShared", "NVMMAShared", "PaddedShared", "SharedLinear", "TensorMemory", "TensorMemoryScales"}
context = ir.context()
ir.load_dialects(context)
libtriton.nvidia.load_dialects(context)
libtriton.amd.load_dialects(context)
builder = gluon_ir.GluonOpBuilder(context)

MAKERS: dict[str, Callable[..., Any]] = {
    "SwizzledShared": lambda p, _: gl.SwizzledSharedLayout(
        p["vec"], p["perPhase"], p["maxPhase"], p["order"], cga_layout=p.get("cga", [])
    ),
    "NVMMAShared": lambda p, _: gl.NVMMASharedLayout(
        p["swizzlingByteWidth"],
        p["elementBitWidth"],
        p["rank"],
        p["transposed"],
        p["fp4Padded"],
        cga_layout=p.get("cga", []),
    ),
    "SharedLinear": lambda p, _: gl.SharedLinearLayout(p["offset"]),
    "PaddedShared": lambda p, _: gl.PaddedSharedLayout(p["intervalPadding"], p["offset"], [], p["shape"]),
    "TensorMemory": lambda p, _: blackwell.TensorMemoryLayout(
        tuple(p["block"]), p["colStride"], cga_layout=p.get("cga", []), two_ctas=p["twoCTAs"]
    ),
    "TensorMemoryScales": lambda p, _: blackwell.TensorMemoryScalesLayout(cga_layout=p.get("cga", [])),
    "Blocked": lambda p, _: gl.BlockedLayout(p["sizePerThread"], p["threadsPerWarp"], p["warpsPerCTA"], p["order"]),
    "NvidiaMma": lambda p, _: gl.NVMMADistributedLayout(p["version"], p["warpsPerCTA"], p["instrShape"]),
    "DotOperand": lambda p, _: gl.DotOperandLayout(p["opIdx"], make(p["parent"], None), p["kWidth"]),
}


def make(params: dict[str, Any], shape: list[int] | None) -> Any:
    """Gluon's layout object."""
    return MAKERS[params["kind"]](params, shape)


def bases(params: dict[str, Any], shape: list[int]) -> dict[str, list[list[int]]]:
    """The bases Triton gives a layout."""
    found = builder.to_linear_layout(make(params, shape)._to_ir(builder), shape)
    if hasattr(found, "offset_bases"):
        return {"offset": found.offset_bases, "block": found.block_bases}
    if hasattr(found, "rows"):
        return {"row": found.rows, "col": found.cols}
    return {"register": found.reg_bases, "lane": found.lane_bases, "warp": found.warp_bases}


def ask(params: dict[str, Any], shape: list[int]) -> dict[str, Any]:
    """``bases``, or ``refused`` with what Triton says, from a child process."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if not child:
            os.dup2(errors.fileno(), 2)
            try:
                answer: dict[str, Any] = {"bases": bases(params, shape)}
            except Exception as error:
                answer = {"refused": str(error).strip() or type(error).__name__}
            os.write(writer, json.dumps(answer).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
        if status:
            errors.seek(0)
            message = errors.read().decode().strip().splitlines() or ["the process ended without a message"]
            return {"refused": message[0].split(": ", 3)[-1] if message[0].startswith("python:") else message[0]}
        return json.loads(text)


def nvmma(swizzle: int, bits: int, rank: int = 2, t: bool = False, fp4: bool = False, **cga: Any) -> dict[str, Any]:
    """Gluon's arguments."""
    width = {"swizzlingByteWidth": swizzle, "elementBitWidth": bits}
    return {"kind": "NVMMAShared", **width, "rank": rank, "transposed": t, "fp4Padded": fp4, **cga}


def tensor(block: list[int], stride: int = 1, two: bool = False, **cga: Any) -> dict[str, Any]:
    """Gluon's arguments."""
    return {"kind": "TensorMemory", "block": block, "colStride": stride, "twoCTAs": two, **cga}


def swizzled(vec: int, per_phase: int, max_phase: int, order: list[int], **cga: Any) -> dict[str, Any]:
    """Gluon's arguments."""
    return {
        "kind": "SwizzledShared",
        "vec": vec,
        "perPhase": per_phase,
        "maxPhase": max_phase,
        "order": order,
        **cga,
    }


SCALES = {"kind": "TensorMemoryScales"}
ROWS, COLUMNS, QUARTERS = [[1, 0]], [[0, 1]], [[0, 1], [1, 0]]
FURTHER: list[tuple[dict[str, Any], list[list[int]]]] = [
    (nvmma(128, 16), [[512, 128], [1024, 64], [512, 512], [4, 64], [2, 128], [1, 64], [16, 32]]),
    (nvmma(128, 16, t=True), [[64, 512], [128, 512], [64, 4]]),
    (nvmma(0, 16), [[512, 512], [4, 4], [64, 2], [512, 64], [16, 1024], [256, 1]]),
    (nvmma(0, 16, t=True), [[512, 512], [16, 512], [1024, 16]]),
    (nvmma(0, 16, 1), [[2], [4], [512], [1024]]),
    (nvmma(128, 16, 1), [[64]]),
    (nvmma(128, 16, 3), [[2, 4, 64], [2, 512, 64], [512, 2, 128], [8, 1, 64], [512, 512, 64]]),
    (nvmma(0, 16, 3), [[32, 4, 8], [512, 512, 2], [512, 2, 512], [512, 512, 512]]),
    (nvmma(128, 16, 4), [[2, 2, 16, 64]]),
    (nvmma(32, 16, 5), [[2, 2, 2, 16, 32]]),
    (nvmma(128, 8, fp4=True), [[4, 64], [64, 128], [64, 32]]),
    (nvmma(128, 8, t=True, fp4=True), [[64, 64], [32, 64]]),
    (nvmma(64, 8, fp4=True), [[32, 32]]),
    (nvmma(128, 16, fp4=True), [[64, 64]]),
    (nvmma(16, 16), [[64, 64]]),
    (nvmma(128, 4), [[64, 256]]),
    (nvmma(128, 16, cga=COLUMNS), [[64, 64]]),
    (nvmma(128, 16, cga=ROWS), [[8, 64]]),
    (nvmma(128, 16, cga=[[1, 0], [2, 0]]), [[256, 64]]),
    (nvmma(32, 8, cga=[[0, 1], [0, 2]]), [[8, 128]]),
    (nvmma(0, 16, cga=QUARTERS), [[1024, 1024]]),
    (tensor([128, 64]), [[64, 64], [128, 32], [512, 64], [128, 256], [512, 512]]),
    (tensor([64, 64]), [[128, 64], [64, 32], [256, 64], [128, 128], [32, 64], [64, 256]]),
    (tensor([128, 64], 8), [[128, 64]]),
    (tensor([32, 64]), [[32, 64]]),
    (tensor([128, 16]), [[128, 16]]),
    (tensor([128, 128]), [[128, 1024]]),
    (tensor([128, 128], two=True, cga=ROWS), [[256, 256], [512, 128]]),
    (tensor([64, 64], two=True, cga=ROWS), [[128, 128], [256, 64], [256, 128]]),
    (tensor([64, 64], 2, two=True, cga=ROWS), [[128, 64]]),
    (tensor([128, 64], cga=ROWS), [[256, 64]]),
    (tensor([64, 64], cga=ROWS), [[128, 64]]),
    (tensor([64, 64], cga=COLUMNS), [[64, 128]]),
    (tensor([128, 64], two=True), [[256, 64]]),
    (tensor([128, 64], two=True, cga=COLUMNS), [[128, 128]]),
    (tensor([128, 64], two=True, cga=[[1, 0], [0, 1]]), [[256, 128]]),
    (tensor([128, 64], cga=[[1, 0], [2, 0]]), [[512, 64]]),
    (SCALES, [[256, 4], [256, 16], [512, 4], [128, 2], [128, 1], [16, 4], [32, 8], [64, 8], [64, 16], [32, 16]]),
    ({**SCALES, "cga": ROWS}, [[256, 4]]),
    ({**SCALES, "cga": [[0, 0]]}, [[128, 4]]),
    (swizzled(8, 1, 8, [1, 0]), [[1, 64], [64, 1], [64, 4], [2, 2]]),
    (swizzled(8, 1, 8, [0]), [[64]]),
    (swizzled(8, 1, 8, [1, 0], cga=[[1, 0], [2, 0]]), [[2, 64]]),
    (swizzled(8, 2, 8, [2, 0, 1]), [[8, 8, 32]]),
    (swizzled(16, 1, 16, [0, 1]), [[64, 64]]),
    (swizzled(8, 0, 8, [1, 0]), [[64, 64]]),
    (swizzled(8, 1, 8, [1, 1]), [[64, 64]]),
]
"""Shapes and arguments that the tables lack."""


def text(entry: dict[str, list[list[int]]], shape: list[int]) -> str:
    """A layout in the form that weft prints and parses."""

    def basis(vector: list[int]) -> str:
        return str(vector[0]) if len(vector) == 1 else f"({','.join(map(str, vector))})"

    inputs = ", ".join(f"{dim}: [{','.join(map(basis, vectors))}]" for dim, vectors in entry.items())
    return f"{{{inputs}}} -> [{', '.join(f'dim{axis}: {size}' for axis, size in enumerate(shape))}]"


def memory_entries(tables: Path) -> Iterator[dict[str, Any]]:
    """Each memory layout of the tables, then the further ones."""
    for entry in json.loads((tables / "goldens.json").read_text()):
        if entry["params"]["kind"] in SHARED_KINDS:
            found = ask(entry["params"], entry["shape"])
            if found != {"bases": entry["in_dims"]}:
                raise SystemExit(f"the binding says {found}, the table {entry}")
            layout = text(found["bases"], entry["shape"])
            yield {"params": entry["params"], "shape": entry["shape"], "layout": layout}
    for entry in json.loads((tables / "layout_errors.json").read_text()):
        if entry["params"]["kind"] in SHARED_KINDS:
            if entry["params"]["kind"] == "PaddedShared":
                found = {"refused": entry["error"].split("LLVM ERROR: ")[-1]}
            else:
                found = ask(entry["params"], entry["shape"])
            yield {"params": entry["params"], "shape": entry["shape"], "refused": found["refused"]}
    for params, shapes in FURTHER:
        for shape in shapes:
            found = ask(params, shape)
            answer = {"layout": text(found["bases"], shape)} if "bases" in found else {"refused": found["refused"]}
            yield {"params": params, "shape": shape, **answer}


def conflict_tables(tables: Path) -> dict[str, Any]:
    """``ttgl.bank_conflicts`` of the tables, with both layouts as the binding gives them now."""
    layouts: dict[str, int] = {}
    seen: dict[str, str | None] = {}

    def place(params: dict[str, Any], shape: list[int]) -> int | None:
        key = json.dumps([params, shape])
        if key not in seen:
            found = ask(params, shape)
            seen[key] = text(found["bases"], shape) if "bases" in found else None
        spelled = seen[key]
        return None if spelled is None else layouts.setdefault(spelled, len(layouts))

    entries: list[Any] = []
    refused: list[Any] = []
    for entry in json.loads((tables / "bank_conflicts.json").read_text()):
        memory = place(entry["shared"], entry["shape"])
        if (memory is None) != ("error" in entry):
            raise SystemExit(f"the table and the binding differ in what they refuse: {entry}")
        if memory is None:
            refused.append({"params": entry["shared"], "shape": entry["shape"]})
        else:
            numbers = [entry["bits"], entry["vec_bits"], entry["conflicts"], entry["model"]]
            entries.append([place(entry["reg"], entry["shape"]), memory, *numbers])
    return {"layouts": list(layouts), "entries": entries, "refused": refused}


def write(name: str, provenance: str, content: dict[str, list[Any]]) -> None:
    """One line per entry."""
    parts = [f'"provenance": {json.dumps(provenance)}']
    for key, rows in content.items():
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
        parts.append(f'"{key}": [\n{lines}\n]')
    (HERE / name).write_text("{" + ",\n".join(parts) + "}\n")


if __name__ == "__main__":
    where = Path(sys.argv[1])
    write(
        "memory.json",
        "Read off the Python binding of Triton 3.9.0 (GluonOpBuilder.to_linear_layout) by record.py. params are Gluon's "
        "constructor arguments; layout is the answer in weft's text form, refused the error's first line.",
        {"entries": list(memory_entries(where))},
    )
    write(
        "bank_conflicts.json",
        "ttgl.bank_conflicts of Triton 3.9.0: (distributed layout, memory layout, bits of an element, bits of its vector, "
        "Triton's count, a brute-force count with 32 banks of 4 bytes), both layouts read off the binding by record.py and "
        "numbered; a count is the wavefronts of a phase less one. refused: arguments of a memory layout that Triton aborts on.",
        conflict_tables(where),
    )
