"""The emulator beside a GPU: the same PTX, the same arguments, results bit for bit, and counters beside Nsight Compute's.

Run as ``python benchmarks/gpu_check.py`` on a machine with an NVIDIA GPU, from the repository's root, with weft's test extra.
It runs the program tests (``tests/emulator/test_emu_programs_*.py``); every launch that the emulator completes there is repeated
on the GPU, through the driver API, with copies of its arguments. Kernels for an architecture that the GPU does not have are left
out, and listed. Where ``ncu`` is on the PATH and the user may read counters, the launches are repeated once more under it.

What must agree: every bit of every array, but for kernels named in `APPROXIMATE`, whose approximations the ISA leaves to the
hardware (there the largest difference is listed). Counters: executed warp instructions differ, for PTX is not the machine's
code; wavefronts and sectors should not, except where ptxas merges or removes accesses.

``--out FILE`` writes the tables as Markdown, with date, device and driver.
"""

from __future__ import annotations

import argparse
import copy
import csv
import ctypes
import datetime
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from weft.emulator import Module, Scratch, TensorMap
from weft.emulator.machine.launch import dim3
from weft.emulator.tensor_map import FILLS, SWIZZLES

ROOT = Path(__file__).parents[1]
TESTS = sorted((ROOT / "tests" / "emulator").glob("test_emu_programs_*.py"))

APPROXIMATE = {
    "softmax",
    "transcendental",
    "attention",
    "attention_mma",
    "layer_norm",
    "matmul",
}
"""Kernels with ex2.approx and its like, or tensor-core sums of floats: the last bits are the hardware's."""

UNORDERED = {"compact"}
"""Kernels whose results are in the order in which warps happen to come: compared as sets."""

DRIVER_ELEMENTS = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz")
"""CUtensorMapDataType, in the driver's order."""

METRICS = {
    "smsp__inst_executed.sum": "executions",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": "shared_wavefronts",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "global_load_sectors",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "global_store_sectors",
}
"""Nsight Compute's metrics and the profile's."""


class DriverError(RuntimeError):
    """The driver refused."""


class Device:
    """The first GPU, through the CUDA driver API."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        major, minor, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
        self.call("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.name = name.value.decode()
        self.capability = 10 * major.value + minor.value
        self.driver = f"CUDA {version.value // 1000}.{version.value % 1000 // 10}"
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.modules: dict[str, ctypes.c_void_p] = {}

    def call(self, function: str, *args: Any) -> None:
        code = getattr(self.cuda, function)(*args)
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(code, ctypes.byref(text))
            said = text.value.decode() if text.value else code
            raise DriverError(f"{function}: {said}")

    def runs(self, target: str) -> bool:
        """Whether PTX for this target runs here: architecture-specific PTX (sm_90a) only on its own."""
        number = int("".join(c for c in target if c.isdigit()))
        return number == self.capability if target[-1] in "af" else number <= self.capability

    def launch(self, ptx: str, kernel: str, grid: Any, block: Any, args: Sequence[Any], shared: int) -> None:
        """Runs a kernel; arrays among the arguments are copied to the GPU and back."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.module(ptx), kernel.encode())
        if shared > 48 << 10:
            self.call("cuFuncSetAttribute", function, 8, shared)
        owned: dict[int, tuple[ctypes.c_uint64, np.ndarray]] = {}
        values: list[Any] = []
        for argument in args:
            array = argument.array if isinstance(argument, Scratch | TensorMap) else argument
            if isinstance(array, np.ndarray):
                address = self.upload(array, owned)
                values.append(
                    self.tensor_map(argument, address) if isinstance(argument, TensorMap) else ctypes.c_uint64(address)
                )
            else:
                values.append(argument)
        parameters = [self.parameter(v, k) for v, k in zip(values, self.kinds(ptx, kernel), strict=True)]
        pointers = (ctypes.c_void_p * len(parameters))(*(ctypes.addressof(p) for p in parameters))
        self.call("cuLaunchKernel", function, *dim3("grid", grid), *dim3("block", block), shared, None, pointers, None)
        self.call("cuCtxSynchronize")
        for address, array in owned.values():
            if array.flags.writeable and array.nbytes:
                self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), address, ctypes.c_size_t(array.nbytes))
            self.call("cuMemFree_v2", address)

    def module(self, ptx: str) -> ctypes.c_void_p:
        if ptx not in self.modules:
            module = ctypes.c_void_p()
            self.call("cuModuleLoadData", ctypes.byref(module), ptx.encode() + b"\0")
            self.modules[ptx] = module
        return self.modules[ptx]

    def upload(self, array: np.ndarray, owned: dict[int, tuple[ctypes.c_uint64, np.ndarray]]) -> int:
        """The address on the GPU of a contiguous array; the same for an array given twice."""
        if not array.flags.c_contiguous:
            raise DriverError("arrays that are not contiguous are not copied")
        key = array.ctypes.data
        if key not in owned:
            address = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 1)))
            self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
            owned[key] = (address, array)
        return owned[key][0].value

    def kinds(self, ptx: str, kernel: str) -> list[str]:
        return [parameter.type for parameter in Module(ptx).syntax.functions[kernel].parameters]

    @staticmethod
    def parameter(value: Any, kind: str) -> Any:
        """A ctypes object with the bytes of a parameter."""
        if isinstance(value, ctypes._SimpleCData | ctypes.Array):  # pyright: ignore[reportPrivateUsage]
            return value
        if isinstance(value, np.generic):
            data = value.tobytes()
        elif isinstance(value, bytes):
            data = value
        elif isinstance(value, float) or kind in ("f32", "f64"):
            data = np.array(value, f"f{int(kind[1:]) // 8}").tobytes()
        else:
            size = int(kind[1:]) // 8
            data = (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        return ctypes.create_string_buffer(data, len(data))

    def tensor_map(self, given: TensorMap, address: int) -> Any:
        """The driver's encoding of a tensor map: dimensions, strides and box the innermost first."""
        found = given._description
        tensor, rank = found.tensor, found.tensor.rank
        buffer = ctypes.create_string_buffer(128 + 64)
        aligned = (ctypes.c_uint8 * 128).from_buffer(buffer, -ctypes.addressof(buffer) % 64)
        self.call(
            "cuTensorMapEncodeTiled",
            ctypes.byref(aligned),
            DRIVER_ELEMENTS.index(found.element.name),
            rank,
            ctypes.c_void_p(address + given.offset),
            (ctypes.c_uint64 * rank)(*tensor.sizes),
            (ctypes.c_uint64 * max(rank - 1, 1))(*tensor.strides[1:]),
            (ctypes.c_uint32 * rank)(*tensor.box),
            (ctypes.c_uint32 * rank)(*tensor.steps),
            0,
            list(SWIZZLES.values()).index(found.swizzle),
            0,
            FILLS.index(found.fill),
        )
        return aligned


@dataclass
class Row:
    """One launch: what the emulator counted, and how the GPU's results compare."""

    kernel: str
    target: str
    launch: str
    counts: dict[str, int]
    verdict: str = ""
    difference: float = 0.0
    measured: dict[str, int] = field(default_factory=dict[str, int])


class Comparison:
    """Takes the place of `Module.launch` while the tests run."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.rows: list[Row] = []
        self.original = Module.launch

    def launch(
        self, module: Module, kernel: str, grid: Any, block: Any, args: Sequence[Any] = (), **options: Any
    ) -> Any:
        copies = copy.deepcopy(list(args))  # one memo for all: arrays given twice stay one
        profile = self.original(module, kernel, grid, block, args, **options)
        target = module.syntax.target[0]
        counts = {name: profile.total(name) for name in METRICS.values()}
        row = Row(kernel, target, f"{grid} x {block}", counts)
        if not self.device.runs(target):
            row.verdict = "not for this GPU"
        else:
            try:
                self.device.launch(module.ptx, kernel, grid, block, copies, options.get("shared", 0))
                row.difference, row.verdict = compare(args, copies, kernel)
            except DriverError as error:
                row.verdict = str(error)
        self.rows.append(row)
        return profile


def compare(ours: Sequence[Any], theirs: Sequence[Any], kernel: str) -> tuple[float, str]:
    """The largest difference of two launches' arrays, and what to call it."""
    largest = 0.0
    for mine, other in zip(ours, theirs, strict=True):
        a, b = (x.array if isinstance(x, Scratch | TensorMap) else x for x in (mine, other))
        if kernel in UNORDERED and isinstance(a, np.ndarray):
            a, b = np.sort(a, axis=None), np.sort(b, axis=None)
        if isinstance(a, np.ndarray) and a.tobytes() != b.tobytes():
            with np.errstate(all="ignore"):
                apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
            largest = max(largest, float(np.nanmax(apart)) if apart.size else 0.0, np.finfo(np.float64).tiny)
    return largest, "equal" if not largest else "near" if kernel in APPROXIMATE else "DIFFERENT"


def run(device: Any) -> list[Row]:
    """All launches of the program tests, on both."""
    comparison = Comparison(device)
    Module.launch = lambda self, *args, **options: comparison.launch(self, *args, **options)  # pyright: ignore
    try:
        code = pytest.main(
            [
                "-q",
                "-W",
                "ignore::pytest.PytestAssertRewriteWarning",
                "-p",
                "no:xdist",
                "-p",
                "no:cacheprovider",
                *map(str, TESTS),
            ]
        )
    finally:
        Module.launch = comparison.original
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise SystemExit(f"the tests could not be run: {code!r}")
    return comparison.rows


def counters() -> tuple[list[dict[str, int]], str]:
    """Nsight Compute's metrics of each launch on the GPU, in order; [] and the reason where there are none."""
    ncu = shutil.which("ncu")
    if ncu is None:
        return [], "ncu is not on the PATH"
    command = [ncu, "--csv", "--metrics", ",".join(METRICS), sys.executable, __file__, "--child"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ, check=False)
    start = done.stdout.find('"ID"')
    if start < 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERR" in line] or ["no output"]
        return [], f"ncu: {lines[0].strip()}"
    found: dict[int, dict[str, int]] = {}
    for line in csv.DictReader(io.StringIO(done.stdout[start:])):
        if line.get("Metric Name") in METRICS:
            value = line["Metric Value"].replace(",", "")
            found.setdefault(int(line["ID"]), {})[METRICS[line["Metric Name"]]] = int(float(value))
    return [found[key] for key in sorted(found)], ""


def tables(device: Any, rows: list[Row], reason: str) -> str:
    """The comparison as Markdown."""
    today = datetime.date.today().isoformat()
    out = [f"## {device.name}, {device.driver}, {today}", ""]
    compared = [r for r in rows if r.verdict in ("equal", "near", "DIFFERENT")]
    equal = sum(r.verdict == "equal" for r in compared)
    out += [
        f"{len(compared)} launches: {equal} equal in every bit, {sum(r.verdict == 'near' for r in compared)} near.",
        "",
    ]
    out += ["| kernel | target | grid x block | results | largest difference |", "|---|---|---|---|---|"]
    for r in rows:
        out.append(
            f"| {r.kernel} | {r.target} | {r.launch} | {r.verdict} | {f'{r.difference:.3g}' if r.difference else ''} |"
        )
    if reason:
        return "\n".join([*out, "", f"No counters: {reason}.", ""])
    out += ["", "| kernel | " + " | ".join(f"{name}: emulator, ncu" for name in METRICS.values()) + " |"]
    out.append("|---|" + "---|" * len(METRICS))
    for r in rows:
        if r.measured:
            cells = [f"{r.counts[name]:,}, {r.measured.get(name, 0):,}" for name in METRICS.values()]
            out.append(f"| {r.kernel} | " + " | ".join(cells) + " |")
    return "\n".join([*out, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description="The emulator beside a GPU.")
    parser.add_argument("--out", type=Path, help="write the tables here, as Markdown")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    console = Console(width=140)
    try:
        device = Device()
    except (OSError, AttributeError, DriverError) as error:
        console.print(f"There is no GPU to compare with: {error}")
        return 2
    rows = run(device)
    if options.child:
        return 0
    measured, reason = counters()
    launched = [r for r in rows if r.verdict in ("equal", "near", "DIFFERENT")]
    if measured and len(measured) != len(launched):
        reason = f"ncu saw {len(measured)} launches, {len(launched)} were made"
    elif measured:
        for r, m in zip(launched, measured, strict=True):
            r.measured = m
    text = tables(device, rows, reason)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    table = Table("kernel", "target", "results", "difference", *METRICS.values())
    for r in rows:
        cells = [
            f"{r.counts[n]:,} / {r.measured[n]:,}" if n in r.measured else f"{r.counts[n]:,}" for n in METRICS.values()
        ]
        table.add_row(r.kernel, r.target, r.verdict, f"{r.difference:.3g}" if r.difference else "", *cells)
    console.print(table)
    console.print(json.dumps({"device": device.name, "launches": len(rows), "ncu": reason or "measured"}))
    return 1 if any(r.verdict == "DIFFERENT" for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
