"""Writes docs/triton-names.md: each public name of Triton 3.9, and what weft does with it.

    python tools/conformance.py

``triton_names.json`` has the names (module or class -> names), read off an installed Triton 3.9.0. A name is looked up where a
program would: in `weft.triton`, for methods of kernel values in the tables of the frontend. `IGNORED` and `REFUSED` hold what a
look-up cannot tell.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from weft import dtypes
from weft.frontend import attributes, descriptors
from weft.language.core import Absent
from weft.triton.knobs import OBEYED

PAGE = Path(__file__).parents[1] / "docs" / "triton-names.md"
NAMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("triton_names.json").read_text(encoding="utf-8"))

IGNORED = {
    "triton.AsyncCompileMode": "kernels are compiled one at a time, where they are launched",
    "triton.FutureKernel": "made by no launch",
    "triton.set_allocator": "kernels need no memory from it",
    "triton.runtime.RemoteCacheBackend": "kernels are kept on this machine; files of programs and autotuning can be elsewhere",
    "triton.testing.cuda_memcheck": "the emulator checks every access",
    "triton.testing.get_dram_gbps": "returns 0",
    "triton.testing.get_max_simd_tflops": "returns 0",
    "triton.testing.get_max_tensorcore_tflops": "returns 0",
    "triton.testing.set_gpu_clock": "there is no clock to set",
    "triton.InterpreterError": "never raised",
    "triton.runtime.InterpreterError": "never raised",
}
"""What is accepted without an effect, and why."""

REFUSED = {
    "triton.testing.cublas": "weft has no cuBLAS",
    "triton.testing.nvsmi": "weft asks no card",
    "triton.testing.cuda_graph_without_gc": "there are no CUDA graphs",
    "triton.testing.do_bench_proton": "weft has no Proton",
    "triton.testing.do_bench_cudagraph_proton": "weft has no Proton",
    "triton.compiler.IRSource": "weft does not read Triton's IR",
    "triton.runtime.RedisRemoteCacheBackend": "weft keeps compiled kernels on this machine only",
}
"""What raises when it is called."""

_TABLES: dict[str, tuple[Any, ...]] = {
    "triton.language.tensor": (attributes.METHODS, attributes._TENSOR, ("T",)),
    "triton.language.dtype": (attributes._DTYPE, dtypes.QUESTIONS, dtypes.BOUNDS),
    "triton.language.pointer_type": (attributes._POINTER, attributes._POINTER_QUESTIONS),
    "triton.language.block_type": (attributes._BLOCK, attributes._BLOCK_QUESTIONS),
    "triton.language.tensor_descriptor": (
        descriptors.TensorDescriptor.attributes,
        descriptors.TensorDescriptor.methods,
    ),
}
"""Methods and attributes of values in kernels."""


def _object(path: str) -> Any:
    """A module or class of `weft.triton` by Triton's path."""
    parts = path.split(".")
    for i in range(len(parts), 0, -1):
        try:
            found = importlib.import_module("weft." + ".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for name in parts[i:]:
            found = getattr(found, name)
        return found
    raise LookupError(path)


def status(path: str, name: str) -> str:
    """What weft does with a name, in words."""
    whole = f"{path}.{name}"
    if whole in IGNORED:
        return f"accepted, ignored: {IGNORED[whole]}"
    if whole in REFUSED:
        return f"refused: {REFUSED[whole]}"
    if path.startswith("triton.knobs."):
        return "supported" if whole.removeprefix("triton.knobs.") in OBEYED else "accepted, ignored"
    owner = _object(path)
    if (tables := _TABLES.get(path)) is not None:
        if any(name in table for table in tables) or hasattr(owner, name) and path != "triton.language.tensor":
            return "supported"
        return f"refused: has no attribute '{name}'"
    try:
        value = getattr(owner, name)
    except AttributeError as error:
        return f"refused: {error}"
    return f"refused: weft does not have tl.{value.name} yet" if isinstance(value, Absent) else "supported"


def page() -> str:
    """The page."""
    rows: list[str] = []
    counts = {"supported": 0, "accepted, ignored": 0, "refused": 0}
    for path, names in NAMES.items():
        found = {name: status(path, name) for name in names}
        for text in found.values():
            counts[text.partition(":")[0]] += 1
        rows += ["", f"## {path}", ""]
        good = [f"`{name}`" for name, text in found.items() if text == "supported"]
        rows += [f"Supported ({len(good)}): {' '.join(good) or 'none'}"]
        others = [f"| `{name}` | {text} |" for name, text in found.items() if text != "supported"]
        if others:
            rows += ["", "| name | weft |", "|---|---|", *others]
    total = sum(counts.values())
    head = [
        "# The names of Triton 3.9",
        "",
        f"Written by `tools/conformance.py`. Of {total} public names {counts['supported']} are supported, "
        f"{counts['accepted, ignored']} are accepted and ignored,",
        f"and {counts['refused']} are refused with the message in the table. Modules that weft does not have",
        "(`triton.experimental`, `triton.profiler`) raise `ModuleNotFoundError`.",
        "A supported name may still differ: docs/triton.md and docs/language.md say where.",
    ]
    return "\n".join([*head, *rows]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
