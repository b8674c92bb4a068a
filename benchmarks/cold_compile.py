"""How long a kernel takes to PTX in a fresh process, without caches: weft, and Triton 3.9 beside it as far as PTX, without ptxas.

Run as ``python benchmarks/cold_compile.py --triton PYTHON``, where PYTHON has triton 3.9 (no GPU is needed). A repeat compiles
every kernel by both, in turns, each in a process of its own (`cold_process.py`) with an empty cache on disk; bytecode of the
modules is there. Seconds are medians. "To PTX" is all from the start of Python, without its end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from gpu_counts import CASES, TARGETS, Case, show, triton_request

PROCESS: Final = Path(__file__).with_name("cold_process.py")
PARTS: Final = ("imports", "compilation", "to PTX")
CLOCKS: Final = ("processor", "wall")
OTHERS: Final = ("row ", "rows ", "column ", "transpose", "histogram", "prefix")
"""Starts of the names of cases that are no tutorial's."""


def tutorials() -> list[Case]:
    """The kernels of the tutorials, matmul also by the tiles that the tutorial's autotuner takes on large matrices."""
    named = {case.name: case for case in CASES}
    found = [case for case in CASES if not case.name.startswith(OTHERS)]
    matmul = named["matmul of the tutorial 128x64x32"]
    large = {"M": 128, "N": 256, "K": 64, "GROUP": 8, "ACTIVATION": 1}
    name = "matmul of the tutorial 128x256x64, 8 warps"
    options = {"num_stages": 3, "num_warps": 8}
    return [*found, replace(matmul, name=name, constants=large, options=options)]


def request_of(case: Case, target: str) -> dict[str, Any]:
    """What `cold_process.py` takes: Triton's request, and arguments for weft."""
    arguments = case.make()
    request = triton_request(case, target, arguments)
    shaped = [[a.dtype.name, a.shape] if isinstance(a, np.ndarray) else a for a in arguments]
    options = {name: value for name, value in request["options"].items() if name != "ptx_version"}
    return {**request, "arguments": shaped, "weft_target": target, "weft_options": options}


def measured(compiler: str, python: str, request: dict[str, Any]) -> dict[str, list[float]]:
    """Processor and wall seconds of each of `PARTS` in one cold process."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment |= {"WEFT_CACHE_DIR": empty, "TRITON_CACHE_DIR": empty}
        command = [python, str(PROCESS), compiler, str(time.perf_counter()), json.dumps(request)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{compiler} does not compile {request['kernel']}:\n{done.stderr}")
    return json.loads(done.stdout)


def rows(cases: Sequence[Case], compilers: dict[str, str], target: str, repeats: int) -> list[list[str]]:
    """A row for each case: for each clock the parts by compiler, and weft's seconds to PTX over Triton's."""
    requests = [request_of(case, target) for case in cases]
    found: defaultdict[tuple[int, str, str, int], list[float]] = defaultdict(list)
    for repeat in range(-1, repeats):
        for number, request in enumerate(requests[:1] if repeat < 0 else requests):  # the first writes bytecode
            for compiler, python in compilers.items():
                made = measured(compiler, python, request)
                for part, clock in ((part, clock) for part in PARTS for clock in range(2) if repeat >= 0):
                    found[number, compiler, part, clock].append(made[part][clock])
    made = []
    for number, case in enumerate(cases):
        cells = [case.name]
        for clock in range(2):
            medians = {
                (compiler, part): statistics.median(found[number, compiler, part, clock])
                for compiler in compilers
                for part in PARTS
            }
            cells += [" / ".join(f"{medians[compiler, part]:.2f}" for compiler in compilers) for part in PARTS]
            if "triton" in compilers:
                cells.append(f"{medians['weft', 'to PTX'] / medians['triton', 'to PTX']:.2f}")
        made.append(cells)
    return made


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="How long kernels take to PTX in a fresh process, without caches.")
    parser.add_argument("--triton", metavar="PYTHON", help="an interpreter with triton 3.9, to compare with")
    parser.add_argument("--target", default="sm_90", choices=TARGETS)
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--repeats", type=int, default=5, help="processes for each kernel and compiler (default: 5)")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    given = parser.parse_args()
    compilers = {"weft": sys.executable} | ({"triton": given.triton} if given.triton else {})
    cases = [case for case in tutorials() if given.only in case.name]
    if not cases:
        parser.error(f"no kernel has '{given.only}' in its name")
    heads = ["kernel"]
    for clock in CLOCKS:
        heads += [f"{clock}: {part}" for part in PARTS] + (["ratio"] if given.triton else [])
    title = f"Seconds to PTX on {given.target}, cold: {' / '.join(compilers)}"
    cells = rows(cases, compilers, given.target, given.repeats)
    show(title, heads, cells, names=1, markdown=given.markdown)


if __name__ == "__main__":
    main()
