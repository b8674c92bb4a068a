"""Runs random C functions in the emulator, and compares with the same functions on this processor.

Nobody here wrote what the expected results come from: the text of each function (``emulator_fuzz_c``, over ``emulator_fuzz.h``)
is compiled by nvcc to PTX, which the emulator runs, and by g++ to machine code. Both get the same inputs, edge values and
random ones, 256 threads of them; results agree bit for bit, NaNs as NaNs. nvcc compiles each file several ways: as usual for
sm_80 and sm_90, without optimisations (``-G``: every variable in local memory, every function called), with its middle end off.
Some functions are compiled with ``-ftz=true``, and run on the host with subnormal f32 flushed. Programs of warps
(``emulator_fuzz_warp``: shuffles, votes and the like where lanes diverge) are compared with a model of a warp.

    python tests/oracles/emulator_fuzz.py --programs 300 --seed 0
    python tests/oracles/emulator_fuzz.py --programs 0 --warps 0 --flush 1 --only 17 --variants debug --keep build/fuzz

It needs nvcc and g++ on PATH and an x86-64 processor, takes about half a second for a function and a variant, and is no part of
``make test``. What it found is in ``tests/emulator/test_emu_found.py``. The exit status is 1 if anything differs.

One difference is known, and says nothing of who is right: with flushed subnormals an x86 processor makes zero of
0x1p-126 * 0x1.fffffep-1, which is below the least normal number, and the emulator the least normal number, to which it rounds.
The PTX ISA does not say.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from oracles import emulator_fuzz_c, emulator_fuzz_warp
from oracles.emulator_fuzz_c import Function
from oracles.emulator_fuzz_warp import WarpProgram
from weft.emulator import Checks, Module, PTXError, Scratch

HERE: Final = Path(__file__).parent
THREADS: Final = 256
FILE: Final = 40
"""Functions in a file: what one call of nvcc compiles."""

_NVCC: Final = ("nvcc", "-ptx", "-std=c++17", "-w", "-fmad=false", "-prec-div=true", "-prec-sqrt=true", f"-I{HERE}")
VARIANTS: Final[dict[str, tuple[str, ...]]] = {
    "sm_80": ("-arch=sm_80",),
    "sm_90": ("-arch=sm_90", "-lineinfo"),
    "debug": ("-arch=sm_80", "-G"),
    "O0": ("-arch=sm_90", "-Xcicc", "-O0"),
}
CHECKS: Final = {"O0": Checks(uninitialised=False), "debug": Checks(uninitialised=False)}
"""Without optimisations nvcc copies structures with the padding, which was never written."""
_GCC: Final = ("g++", "-std=c++17", "-w", "-O1", "-ffp-contract=off", "-frounding-math", "-fno-fast-math", "-fPIC")
HOST: Final = (*_GCC, "-shared", f"-I{HERE}")

FIELDS: Final = {
    **{"i8": "i1", "u8": "u1", "i16": "i2", "u16": "u2", "i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8"},
    **{"f32": "f4", "f64": "f8", "f16": "u2", "bf16": "u2"},
}
RECORD: Final = np.dtype([(name, FIELDS[kind]) for name, kind in emulator_fuzz_c.INPUTS.items()], align=True)
"""``In`` as NumPy sees it."""

HEADS: Final = {
    "programs": '#include "emulator_fuzz.h"\n',
    "flush": '#define FLUSH\n#include "emulator_fuzz.h"\n',
    "warps": "",
}
"""Kinds of files, and how each begins: functions, functions whose subnormal f32 are zero (``-ftz=true``), programs of warps."""

_EDGES: Final[dict[str, tuple[int, ...]]] = {
    "f32": (0, 1 << 31, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000)
    + (0x4F000000, 0x4EFFFFFF, 0xCF000000, 0x4F800000, 0x5F000000, 0x3F7FFFFF, 0x34000000, 0x477FF000, 0x38800000),
    "f64": (0, 1 << 63, 1, 1 << 52, 0x3FF << 52, 0xBFF << 52, (0x7FF << 52) - 1, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48)
    + (0x41E << 52, 0x43E << 52, 0x380 << 52, 0x36A << 52, (0x47F << 52) - 1, 0x3FE << 52, (0x3FF << 52) - 1),
    "f16": (0, 0x8000, 1, 0x3FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0x3555),
    "bf16": (0, 0x8000, 1, 0x7F, 0x80, 0x3F80, 0xBF80, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0, 0x3EAB),
}


def inputs(seed: int) -> NDArray[Any]:
    """A record for each thread: a third of the values are edges, a third are small or near 1, a third are any bits."""
    rng = np.random.default_rng(seed)
    records = np.zeros(THREADS, RECORD)
    for name, kind in emulator_fuzz_c.INPUTS.items():
        size = emulator_fuzz_c.BITS[kind]
        unsigned = np.dtype(f"u{size // 8}")
        anything = (
            rng.integers(0, 2**size, THREADS, np.uint64, endpoint=False)
            if size < 64
            else rng.bit_generator.random_raw(THREADS)
        )
        if kind in emulator_fuzz_c.INTEGERS:
            edges = [0, 1, 2, 2**size - 1, 2**size - 2, 2 ** (size - 1), 2 ** (size - 1) - 1, 31, 32, 63]
            near = rng.integers(-20, 20, THREADS).astype(np.uint64)
        else:
            edges = list(_EDGES[kind])
            wide = rng.normal(0, 1, THREADS) * 2.0 ** rng.integers(-12, 12, THREADS)
            near = _pattern(wide, kind)
        chosen = rng.choice(np.array(edges, np.uint64), THREADS)
        which = rng.integers(0, 3, THREADS)
        values = np.select([which == 0, which == 1], [chosen, near], np.asarray(anything, np.uint64)).astype(unsigned)
        records[name] = values.view(records[name].dtype)
    return records


def _pattern(values: NDArray[np.float64], kind: str) -> NDArray[np.uint64]:
    if kind == "f64":
        return values.view(np.uint64)
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.uint64)
    bits = values.astype(np.float32).view(np.uint32)
    return (bits >> 16 if kind == "bf16" else bits).astype(np.uint64)


def compiled(folder: Path, name: str, text: str, variants: list[str]) -> tuple[dict[str, str], ctypes.CDLL | None]:
    """The PTX of a file in each variant, and the host's library if the text is for both."""
    source = folder / f"{name}.cu"
    source.write_text(text)
    flush = ["-ftz=true"] if "#define FLUSH" in text else []
    commands = [[*_NVCC, *flush, *VARIANTS[v], str(source), "-o", str(folder / f"{name}.{v}.ptx")] for v in variants]
    library = folder / f"{name}.so"
    both = "KERNEL(" in text
    if both:
        commands.append([*HOST, "-x", "c++", str(source), "-o", str(library)])
    with ThreadPoolExecutor(2) as pool:
        for command, done in zip(commands, pool.map(_silent, commands), strict=True):
            if done.returncode:
                raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return {v: (folder / f"{name}.{v}.ptx").read_text() for v in variants}, ctypes.CDLL(str(library)) if both else None


def _silent(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, capture_output=True, text=True)


def compare(function: Function, ptx: dict[str, Module], host: ctypes.CDLL, data: NDArray[Any]) -> list[str]:
    """What differs, a line for each result of each variant."""
    expected = np.zeros((THREADS, 8), np.uint64)
    getattr(host, function.name)(
        data.ctypes.data_as(ctypes.c_void_p), expected.ctypes.data_as(ctypes.c_void_p), THREADS
    )
    count = len(function.results)
    problems: list[str] = []
    for variant, module in ptx.items():
        results = np.zeros((THREADS, 8), np.uint64)
        args, checks = [data.view(np.uint8), Scratch(results)], CHECKS.get(variant, Checks())
        if error := _attempt(lambda m=module, a=args, c=checks: m.launch(function.name, 2, THREADS // 2, a, checks=c)):
            problems.append(f"{variant}: {error}")
            continue
        for index in range(count):
            wrong = np.flatnonzero(results[:, index] != expected[:, index])
            if wrong.size:
                thread = int(wrong[0])
                got, right = int(results[thread, index]), int(expected[thread, index])
                problems.append(
                    f"{variant}: v{index} ({function.results[index]}): {wrong.size} threads; "
                    f"thread {thread} has {got:#x}, expected {right:#x}; inputs {data[thread]}"
                )
    return problems


def _attempt(launch: Callable[[], object]) -> str:
    """The error of a launch, in a line, or nothing."""
    try:
        launch()
    except Exception as error:
        return f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}"
    return ""


def compare_warps(program: WarpProgram, ptx: dict[str, Module]) -> list[str]:
    """As `compare`, for a program of warps."""
    problems: list[str] = []
    given, expected = program.inputs(), program.expected()
    for variant, module in ptx.items():
        results = np.zeros_like(expected)
        if error := _attempt(lambda m=module, r=results: m.launch(program.name, 1, expected.shape[0], [given, r])):
            problems.append(f"{variant}: {error}")
            continue
        wrong = np.argwhere(results != expected)
        if wrong.size:
            thread, index = map(int, wrong[0])
            got, right = int(results[thread, index]), int(expected[thread, index])
            problems.append(
                f"{variant}: v{index}: {len(wrong)} values; thread {thread} has {got:#x}, expected {right:#x}"
            )
    return problems


def campaign(seeds: list[int], variants: list[str], folder: Path, kind: str) -> int:
    """Compares the functions of all seeds; returns how many differ."""
    failed = 0
    for start in range(0, len(seeds), FILE):
        part = seeds[start : start + FILE]
        name = f"{kind}{part[0]}"
        made = [
            emulator_fuzz_warp.generate(s) if kind == "warps" else emulator_fuzz_c.generate(s, flush=kind == "flush")
            for s in part
        ]
        head = HEADS[kind]
        texts, host = compiled(folder, name, head + "\n".join(one.text for one in made), variants)
        modules: dict[str, Module] = {}
        for variant, text in texts.items():
            try:
                modules[variant] = Module(text)
            except PTXError as error:
                say(f"{name} {variant}: {error}")
                failed += 1
        for seed, one in zip(part, made, strict=True):
            if isinstance(one, WarpProgram):
                problems = compare_warps(one, modules)
            else:
                assert host is not None
                problems = compare(one, modules, host, inputs(seed))
            failed += bool(problems)
            for problem in problems:
                say(f"{one.name}: {problem}")
    return failed


def say(text: str) -> None:
    """Writes a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """0 if everything agrees."""
    parser = argparse.ArgumentParser(description="Compare the emulator with this processor on random C functions.")
    parser.add_argument("--programs", type=int, default=100, help="how many functions (default 100)")
    parser.add_argument("--warps", type=int, default=100, help="how many programs of warps (default 100)")
    parser.add_argument("--flush", type=int, default=50, help="how many functions with -ftz=true (default 50)")
    parser.add_argument("--seed", type=int, default=0, help="of the first function (default 0)")
    parser.add_argument("--only", type=int, help="only the function of this seed")
    parser.add_argument("--variants", default=",".join(VARIANTS), help=f"of {', '.join(VARIANTS)} (default all)")
    parser.add_argument("--keep", type=Path, help="keep sources and PTX in this folder")
    options = parser.parse_args(arguments)
    variants = options.variants.split(",")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        failed = 0
        for kind, count in (("programs", options.programs), ("flush", options.flush), ("warps", options.warps)):
            seeds = list(range(options.seed, options.seed + count))
            if options.only is not None:
                seeds = [options.only] if count else []
            failed += campaign(seeds, variants, folder, kind)
            say(f"{kind}: {len(seeds)} in {len(variants)} variants")
    say(f"{failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
