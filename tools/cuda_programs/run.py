"""Runs CUDA programs, host code and all, with weft's emulator for a GPU.

    python tools/cuda_programs/run.py vectorAdd.cu --arch sm_80 -I Common
    python tools/cuda_programs/run.py gemm.cu --arch sm_90a -I cutlass/include --report -- --m=256 --n=256 --k=128

nvcc, which has to be installed, compiles the sources to a library and to PTX. The library finds the functions of CUDA's
runtime in `runtime.cpp`, a small one of our own, and its ``main`` is called in a process of its own. What it launches runs
in the emulator with all checks on, so that a program that verifies its results (as CUDA's samples and CUTLASS's examples
do) verifies the emulator, and a fault of a kernel is found. Device memory is memory of the host. Textures, graphs and what
else `runtime.cpp` does not have end the program with the name of the function.

The exit code is the program's, or 1 where a kernel faulted or was refused. ``--report`` prints what was launched.
"""

from __future__ import annotations

import argparse
import ctypes
import dataclasses
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator import Checks, Fault, LaunchError, Module, PTXError
from weft.emulator.arith.tensor_copy import Tensor
from weft.emulator.arith.tensor_elements import BY_NAME
from weft.emulator.machine.symbols import size_of
from weft.emulator.tensor_map import FILLS, PROMOTIONS, SIZE, SWIZZLES, Description, why_invalid

HERE: Final = Path(__file__).parent
PAGE: Final = 256
_SIZE, _ADDRESS, _INT, _TEXT = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_NUMBERS: Final = ctypes.POINTER(ctypes.c_uint)


_ELEMENTS: Final = (
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16"),
    *("f32.ftz", "tf32", "tf32.ftz", "b4x16", "b4x16_p64", "b6x16_p32"),
)
"""Types of elements by CUtensorMapDataType."""

_HOOKS: Final[dict[str, Any]] = {
    "allocate": ctypes.CFUNCTYPE(_ADDRESS, _SIZE),
    "release": ctypes.CFUNCTYPE(_INT, _ADDRESS),
    "function": ctypes.CFUNCTYPE(None, _ADDRESS, _TEXT),
    "variable": ctypes.CFUNCTYPE(None, _ADDRESS, _TEXT),
    "launch": ctypes.CFUNCTYPE(_INT, _ADDRESS, _NUMBERS, ctypes.POINTER(_ADDRESS), _SIZE, _INT),
    "symbol": ctypes.CFUNCTYPE(_ADDRESS, _ADDRESS, ctypes.POINTER(_SIZE)),
    "tensor_map": ctypes.CFUNCTYPE(_INT, _ADDRESS, _INT, _INT, *[_ADDRESS] * 5, ctypes.POINTER(_INT)),
}
"""What `runtime.cpp` calls: methods of `Device`."""


class _Hooks(ctypes.Structure):
    _fields_ = tuple(_HOOKS.items())


class Device:
    """The memory and the modules of a program."""

    def __init__(self, modules: Sequence[Module], log: Path, checks: Checks | None = None) -> None:
        self._modules = {name: module for module in modules for name in module.kernels}
        self._variables = {name: module for module in modules for name in module.symbols}
        self._arrays: dict[int, NDArray[np.uint8]] = {}
        self._names: dict[int, str] = {}
        """Of kernels and variables, by the address that host code has for them."""
        self._log = log
        self._checks = checks or Checks()
        self._hooks = _Hooks(*(kind(_guarded(getattr(self, name))) for name, kind in _HOOKS.items()))

    def start(self, runtime: ctypes.CDLL, capability: int, processors: int) -> None:
        """Gives the runtime its hooks."""
        runtime.weft_start(ctypes.byref(self._hooks), capability, processors)

    # ---- hooks ------------------------------------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Memory at a multiple of 256, as CUDA's is."""
        whole = np.zeros(max(size, 1) + PAGE, np.uint8)
        array = whole[-whole.ctypes.data % PAGE :][: max(size, 1)]
        self._arrays[array.ctypes.data] = array
        return array.ctypes.data

    def release(self, address: int) -> int:
        """Whether there was no such memory."""
        return int(self._arrays.pop(address, None) is None)

    def function(self, host: int, name: bytes) -> None:
        """A kernel's name."""
        self._names[host] = name.decode()

    variable = function

    def symbol(self, host: int, size: Any) -> int:
        """The address of a variable's memory, and its size."""
        name = self._names[host]
        array = self._variables[name].symbols[name]
        size[0] = array.nbytes
        return array.ctypes.data

    def launch(self, host: int, shape: Any, arguments: Any, shared: int, cooperative: int) -> int:
        """Runs a kernel. Whether it failed."""
        name = self._names[host]
        module = self._modules[name]
        grid, block, cluster = (tuple(shape[3 * i : 3 * i + 3]) for i in range(3))
        parameters = module.syntax.functions[name].parameters
        given = [ctypes.string_at(arguments[i], size_of(parameter)) for i, parameter in enumerate(parameters)]
        options: dict[str, Any] = {
            "checks": self._checks,
            "shared": shared,
            "memory": list(self._arrays.values()),
            "cooperative": bool(cooperative),
        }
        if cluster[0] and "reqnctapercluster" not in module.syntax.functions[name].directives:
            options["cluster"] = cluster
        started, problem = time.perf_counter(), ""
        try:
            sys.stdout.write(module.launch(name, grid, block, given, **options).output)
            sys.stdout.flush()
        except (Fault, LaunchError, PTXError) as error:
            problem = str(error)
            sys.stderr.write(f"{problem}\n")
        seconds = time.perf_counter() - started
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps({"kernel": name, "seconds": seconds, "problem": problem}) + "\n")
        return int(bool(problem))

    def tensor_map(
        self, where: int, code: int, rank: int, address: int, sizes: int, strides: int, box: int, steps: int, modes: Any
    ) -> int:
        """Encodes a tensor map at ``where``. Whether there is none such; as for the driver the tensor may exceed its memory."""
        element = BY_NAME[_ELEMENTS[code]]
        numbers: list[int] = modes[:4]
        interleave, swizzle, promotion, fill = numbers
        lengths, parts = _numbers(sizes, ctypes.c_uint64, rank), _numbers(box, ctypes.c_uint32, rank)
        tensor = Tensor(
            address,
            element.bytes,
            (lengths[0] // element.group, *lengths[1:]),
            (element.bytes, *_numbers(strides, ctypes.c_uint64, rank - 1)),
            (parts[0] // element.group, *parts[1:]),
            (1, *_numbers(steps, ctypes.c_uint32, rank)[1:]),
        )
        found = Description(tensor, element, list(SWIZZLES.values())[swizzle], FILLS[fill], PROMOTIONS[promotion])
        if reason := "interleaved tensors are not known" if interleave else why_invalid(found):
            sys.stderr.write(f"cuTensorMapEncodeTiled: {reason}\n")
            return 1
        ctypes.memmove(where, found.encode(), SIZE)
        return 0


def _numbers(address: int, kind: Any, count: int) -> tuple[int, ...]:
    """An array of C."""
    return tuple((kind * count).from_address(address)) if count else ()


def _guarded(hook: Callable[..., Any]) -> Callable[..., Any]:
    """An exception in a hook has nowhere to go: it ends the process."""

    def call(*given: Any) -> Any:
        try:
            return hook(*given)
        except BaseException:
            sys.stderr.write(traceback.format_exc())
            os._exit(70)

    return call


def build(sources: Sequence[Path], folder: Path, arch: str, flags: Sequence[str]) -> tuple[Path, Path, list[Path]]:
    """Compiles the runtime and a program; the library of each, and the program's PTX. Raises: CalledProcessError."""
    runtime, program = folder / "libweft_cudart.so", folder / "program.so"
    nvcc = subprocess.run(["sh", "-c", "command -v nvcc"], capture_output=True, text=True, check=True).stdout.strip()
    common = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-cudart", "none", "-std=c++17"]
    subprocess.run([*common, "-O1", "-o", str(runtime), str(HERE / "runtime.cpp")], check=True)
    virtual = arch.replace("sm_", "compute_")
    command = [*common, f"-gencode=arch={virtual},code={virtual}", "--keep", "--keep-dir", str(folder), *flags]
    subprocess.run([*command, "-o", str(program), *map(str, sources)], check=True)
    return runtime, program, sorted(folder.glob("*.ptx"))


def call(folder: Path, arch: str, processors: int, checks: Checks, arguments: Sequence[str]) -> int:
    """Calls the program that was built in a folder; its exit code."""
    modules = [Module(path.read_text(encoding="utf-8", errors="replace")) for path in sorted(folder.glob("*.ptx"))]
    device = Device(modules, folder / "launches", checks)
    runtime = ctypes.CDLL(str(folder / "libweft_cudart.so"), ctypes.RTLD_GLOBAL)
    device.start(runtime, int(re.sub(r"\D", "", arch)), processors)
    program = ctypes.CDLL(str(folder / "program.so"), os.RTLD_LAZY | ctypes.RTLD_GLOBAL)
    given = (ctypes.c_char_p * (len(arguments) + 2))(b"program", *(a.encode() for a in arguments), None)
    return program.main(len(arguments) + 1, given)


def report(folder: Path) -> str:
    """What was launched, in lines."""
    log = folder / "launches"
    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []
    counts = Counter(entry["kernel"] for entry in entries)
    failed = sum(bool(entry["problem"]) for entry in entries)
    seconds = sum(entry["seconds"] for entry in entries)
    lines = [f"{count:6} {name[:120]}" for name, count in counts.items()]
    return "\n".join(
        [*lines, f"{len(entries)} launches of {len(counts)} kernels, {failed} failed, {seconds:.1f} s in the emulator"]
    )


def main() -> int:
    """Builds a program and runs it. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Runs a CUDA program with weft's emulator for a GPU.")
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("-I", dest="include", action="append", default=[])
    parser.add_argument("--flag", action="append", default=[], help="of nvcc, for example --flag=-DNDEBUG")
    parser.add_argument("--processors", type=int, default=16, help="multiprocessors that the device says it has")
    switches = [field.name for field in dataclasses.fields(Checks) if field.type == "bool"]
    parser.add_argument("--without", action="append", default=[], choices=switches, help="a check that is switched off")
    parser.add_argument("--report", action="store_true", help="print what was launched")
    parser.add_argument("--folder", type=Path, help="where to build, and to look for what is built")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    options, arguments = parser.parse_args(words[:end]), words[end + 1 :]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "program.so").exists():
            build(options.sources, folder, options.arch, [*(f"-I{path}" for path in options.include), *options.flag])
        (folder / "launches").unlink(missing_ok=True)
        if (child := os.fork()) == 0:
            checks = Checks(**dict.fromkeys(options.without, False))
            code = call(folder, options.arch, options.processors, checks, arguments)
            sys.stdout.flush()
            ctypes.CDLL(None).exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = report(folder)
        if options.report:
            sys.stdout.write(f"{said}\n")
    return status or int(" 0 failed" not in said)


if __name__ == "__main__":
    sys.exit(main())
