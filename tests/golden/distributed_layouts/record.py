"""Rewrites the files here with what Triton 3.9.0 says; needs that package, and no GPU.

    python tests/golden/distributed_layouts/record.py

Each JSON file is a list of ``{"layout": <Gluon's class and constructor arguments>, "shapes": {"64x64": <answer>}}``. An answer is
the bases that ``GluonOpBuilder.to_linear_layout`` gives, ``r:`` register, ``l:`` lane, ``w:`` warp, ``b:`` block, one coordinate
per dimension of the shape; or the error, or for an abort of the process the first line it printed. To add a case, add its shape
with any answer and run this.

A line of ``tensor_memory.txt`` is "type shape block col_stride warps instruction | registers", as `compute_tmem_reg_layout` gives
them for a `TensorMemoryLayout`; None where it refuses.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def to_gluon(arguments: dict[str, Any]) -> Any:
    """The layout object of Gluon."""
    language: Any = import_module("triton.experimental.gluon.language")
    fields = dict(arguments)
    kind = fields.pop("kind")
    if "parent" in fields:
        fields["parent"] = to_gluon(fields["parent"])
    cls = getattr(language, kind, None) or getattr(language.amd, kind)
    return cls(**fields)


def make_builder() -> tuple[Any, Any]:
    """A context that knows all dialects, and a builder, which does not keep it alive."""
    binding: Any = import_module("triton._C.libtriton")
    context = binding.ir.context()
    for part in (binding.ir, binding.nvidia, binding.amd):
        part.load_dialects(context)
    return context, binding.gluon_ir.GluonOpBuilder(context)


def spell(bases: list[list[int]]) -> str:
    return " ".join(",".join(map(str, basis)) for basis in bases)


def record_tensor_memory(path: Path) -> None:
    """Ask again for every line of ``tensor_memory.txt``."""
    context, _ = make_builder()
    types: Any = import_module("triton.language")
    memory: Any = import_module("triton.experimental.gluon.language.nvidia.blackwell")
    compute: Any = import_module("triton._C.libtriton").gluon_ir.compute_tmem_reg_layout
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        case = line.split(" | ")[0]
        dtype, shape, block, stride, warps, variant = case.split()
        sizes = [int(size) for size in shape.split("x")]
        block_sizes = [int(size) for size in block.split("x")]
        layout = memory.TensorMemoryLayout(block=block_sizes, col_stride=int(stride))
        found = compute(getattr(types, dtype), sizes, sizes, layout, int(warps), variant)
        names = ("reg", "lane", "warp")
        text = found and "; ".join(f"{name[0]}:{spell(getattr(found, name + '_bases'))}" for name in names)
        lines.append(f"{case} | {text}")
    del context
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def answer(builder: Any, arguments: dict[str, Any], shape: list[int]) -> str:
    """What Triton says of one layout, asked in a process of its own, since it aborts on some."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.dup2(errors.fileno(), 2)
            try:
                layout = builder.to_linear_layout(to_gluon(arguments)._to_ir(builder), shape)
                names = ("reg", "lane", "warp", "block")
                text = "; ".join(f"{name[0]}:{spell(getattr(layout, name + '_bases'))}" for name in names)
            except Exception as error:  # what it says is the answer
                text = f"{type(error).__name__}: {str(error).strip()}"
            os.write(write, text.encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
        if status:
            errors.seek(0)
            text = "abort: " + (errors.readline().strip().removeprefix("python: ") or f"status {status}")
    return text


def record(path: Path) -> None:
    """Ask again for every shape in a file."""
    context, builder = make_builder()
    groups = json.loads(path.read_text(encoding="utf-8"))
    for group in groups:
        for shape in group["shapes"]:
            sizes = [int(size) for size in shape.split("x")]
            group["shapes"][shape] = answer(builder, group["layout"], sizes)
    del context
    path.write_text("[\n" + ",\n".join(json.dumps(group) for group in groups) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or ("layouts.json", "refusals.json", "tensor_memory.txt"):
        (record_tensor_memory if name.endswith(".txt") else record)(HERE / name)
