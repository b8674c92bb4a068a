"""The process that `cold_compile.py` measures: it compiles a kernel of `gpu_kernels.py` to PTX, and prints as JSON what it took.

Run as ``python cold_process.py weft|triton STARTED REQUEST``; STARTED is `time.perf_counter` of the process that starts it. The
interpreter of "triton" has triton 3.9 and need not have weft. An import counts as such wherever it happens: both compilers load
parts of themselves while they compile.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import time
from importlib import _bootstrap  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).with_name("gpu_kernels.py")
Clocks = tuple[float, float]


def clocks() -> Clocks:
    """Seconds of the processor in this process and those it waited for, and of the clock on the wall."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system, time.perf_counter()


def since(before: Clocks) -> Clocks:
    """The seconds since `clocks` said ``before``."""
    cpu, wall = clocks()
    return cpu - before[0], wall - before[1]


class Imports:
    """Adds up the time in which modules are found and executed. Python calls it for each module that is not loaded yet."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0
        self._inside = False
        self._find = _bootstrap._find_and_load
        _bootstrap._find_and_load = self

    def __call__(self, name: str, importer: Any) -> Any:
        if self._inside:  # its time is in that of the module which imports it
            return self._find(name, importer)
        self._inside, started = True, clocks()
        try:
            return self._find(name, importer)
        finally:
            cpu, wall = since(started)
            self.cpu, self.wall, self._inside = self.cpu + cpu, self.wall + wall, False


def by_weft(request: dict[str, Any]) -> Any:
    """A function that compiles the kernel with weft and returns its PTX."""
    import ml_dtypes
    import numpy as np

    sys.path.insert(0, str(KERNELS.parent))
    kernel = getattr(importlib.import_module(KERNELS.stem), request["kernel"])
    arguments = [
        np.zeros(found[1], getattr(ml_dtypes, found[0], found[0])) if isinstance(found, list) else found
        for found in request["arguments"]
    ]
    named = {"target": request["weft_target"], **request["weft_options"], **request["constants"]}
    return lambda: kernel.compile(*arguments, **named).ptx


def by_triton(request: dict[str, Any]) -> Any:
    """A function that compiles the kernel with Triton as far as PTX, and returns that."""
    from triton import knobs

    def stop_at_ptx(*given: Any) -> Any:
        if not given:  # what the name in Triton's cache gets from this
            return "no ptxas", "no ptxas"
        given[1]["cubin"] = lambda ptx, metadata: b""
        return None

    knobs.runtime.add_stages_inspection_hook = stop_at_ptx
    spec = importlib.util.spec_from_file_location("gpu_kernels_of_triton", KERNELS)
    assert spec is not None and spec.loader is not None, "a Python file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return lambda: module.compile_with_triton(request)["ptx"]


def main(compiler: str, started: float, request: dict[str, Any]) -> dict[str, Any]:
    """Seconds as ``[processor, wall]``: in imports, in the compilation outside imports, and from the start of Python to PTX."""
    imports = Imports()
    before = clocks()
    compiled = {"weft": by_weft, "triton": by_triton}[compiler](request)
    loaded = since(before)  # modules, decorators, arguments
    late, before = (imports.cpu, imports.wall), clocks()
    text = compiled()
    inside, (cpu, now) = since(before), clocks()
    late = imports.cpu - late[0], imports.wall - late[1]
    assert ".visible .entry" in text, "PTX"
    return {
        "imports": [loaded[0] + late[0], loaded[1] + late[1]],
        "compilation": [inside[0] - late[0], inside[1] - late[1]],
        "to PTX": [cpu, now - started],
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3]))))
