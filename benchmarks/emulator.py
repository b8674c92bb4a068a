"""What the emulator costs: PTX instructions per second, and how that scales with blocks.

Run as ``python benchmarks/emulator.py``. Each kernel is a loop of one kind of instruction, executed by a block of 128 threads and
by 64 blocks; an instruction that all four warps of a block execute counts once. Figures are medians of interleaved repeats, in
processor time of the one thread the emulator uses. The aims: at least 50,000 instructions per second for one block, checks
on, and 64 blocks for less than 8 times the time of one.

The floor is NumPy's: an instruction is at least one call on 128 elements, which the first line measures. The peer is Numba's CUDA
simulator (``NUMBA_ENABLE_CUDASIM=1``), the other way to run a CUDA kernel in Python from a pip install: a Python thread for each
CUDA thread. It is measured if numba is installed, on a kernel written for both.

The second table has a row for each goal, all checks on: with the native interpreter, and on NumPy alone in turns with it.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gpu_kernels
import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import weft
from weft.emulator import Checks, Module, Scratch
from weft.emulator.native import code

THREADS = 128
BLOCKS = 64

LOOPS = {
    "integer": "add.s32 %r7, %r6, %r2; mul.lo.s32 %r8, %r7, %r7; xor.b32 %r7, %r8, %r6; shl.b32 %r8, %r7, 3;",
    "float": "fma.rn.f32 %f2, %f1, %f1, %f1; add.f32 %f3, %f2, %f1; mul.f32 %f2, %f3, %f1; max.f32 %f3, %f2, %f1;",
    "mixed": "mad.lo.s32 %r7, %r6, 4, %r5; fma.rn.f32 %f2, %f1, %f1, %f2; cvt.rn.f32.s32 %f3, %r7;"
    "setp.gt.s32 %p2, %r7, %r2; selp.b32 %r8, %r7, %r6, %p2;",
    "predicated": "and.b32 %r7, %r2, 1; setp.eq.s32 %p2, %r7, 0; @%p2 add.s32 %r8, %r8, 3; @!%p2 add.s32 %r8, %r8, 5;",
    "shuffle": "shfl.sync.bfly.b32 %r7, %r6, 1, 31, -1; add.s32 %r8, %r8, %r7;",
    "shared": "ld.shared.u32 %r7, [%r5]; add.s32 %r7, %r7, 1; st.shared.u32 [%r5], %r7;",
    "shared, exchanged": "ld.shared.u32 %r7, [%r5]; bar.sync 0; st.shared.u32 [%r4], %r7; bar.sync 0;",
    "global": "ld.global.u32 %r7, [%rd5]; add.s32 %r7, %r7, 1; st.global.u32 [%rd5], %r7;",
    "fma": "fma.rn.f32 %f2, %f1, %f1, %f2; fma.rn.f32 %f3, %f2, %f1, %f3; fma.rn.f32 %f4, %f3, %f2, %f1;"
    "fma.rn.f32 %f5, %f4, %f1, %f5;",
    "mma": "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2,%f3,%f4,%f5},"
    " {%r10,%r11,%r12,%r13}, {%r10,%r11}, {%f2,%f3,%f4,%f5};",
}


def kernel(loop: str) -> str:
    return f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry loop(.param .u64 x, .param .u32 n)
{{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<12>; .reg .f32 %f<8>;
  .shared .align 4 .b8 room[{8 * THREADS}];
  ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.s32 %r9, %r3, %r4, %r2;
  mul.wide.s32 %rd4, %r9, 4; add.s64 %rd5, %rd1, %rd4;
  mov.u32 %r5, room; mad.lo.s32 %r5, %r2, 4, %r5; xor.b32 %r4, %r5, 64; st.shared.u32 [%r5], %r2;
  mov.u32 %r10, 0; mov.u32 %r11, 0; mov.u32 %r12, 0; mov.u32 %r13, 0;
  mov.u32 %r6, 0; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f3F800000; mov.f32 %f3, %f2; mov.f32 %f4, %f2; mov.f32 %f5, %f2;
  bar.sync 0;
L:
  {loop}
  add.s32 %r6, %r6, 1;
  setp.lt.s32 %p1, %r6, %r1;
  @%p1 bra L;
  ret;
}}"""


DIVERGENT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry loop(.param .u64 x, .param .u32 n)
{
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [x]; ld.param.u32 %r7, [n];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r3, %r2, %r3, %r1;
  mov.u32 %r4, %r3; mov.u32 %r5, 0; mov.u32 %r9, 0;
NEXT:
  mad.lo.u32 %r4, %r4, 1664525, 1013904223; shr.u32 %r6, %r4, 29;
INNER:
  setp.eq.u32 %p1, %r6, 0;
  @%p1 bra OUT;
  add.u32 %r5, %r5, %r6; sub.u32 %r6, %r6, 1;
  bra.uni INNER;
OUT:
  and.b32 %r8, %r4, 65536; setp.eq.u32 %p2, %r8, 0;
  @%p2 bra EVEN;
  xor.b32 %r5, %r5, %r4;
  bra.uni JOIN;
EVEN:
  add.u32 %r5, %r5, 1;
JOIN:
  add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, %r7;
  @%p3 bra NEXT;
  mul.wide.u32 %rd2, %r3, 4; add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r5;
  ret;
}"""
"""Random numbers say how often each lane goes round an inner loop, and which way it goes then."""


def straight(number: int, instructions: int = 2000) -> str:
    """A kernel without loops of so many instructions, each kind of which a compiled one has; no two numbers have one text."""
    lines: list[str] = []
    for i in range(instructions // 16):
        r, f = 20 + 6 * i, 20 + 6 * i
        lines.append(f"""
  add.s32 %r{r}, %r2, {number + i}; mul.lo.s32 %r{r + 1}, %r{r}, %r2; xor.b32 %r{r + 2}, %r{r + 1}, {i};
  shl.b32 %r{r + 3}, %r{r + 2}, 3; setp.lt.s32 %p1, %r{r + 3}, %r2; selp.b32 %r{r + 4}, %r{r}, %r{r + 3}, %p1;
  mov.b32 %f{f}, %r{r + 4}; cvt.rn.f32.s32 %f{f + 1}, %r{r + 1}; fma.rn.f32 %f{f + 2}, %f{f + 1}, %f{f + 1}, %f1;
  mul.f32 %f{f + 3}, %f{f + 2}, %f1; ld.global.f32 %f{f + 4}, [%rd5]; add.f32 %f{f + 5}, %f{f + 3}, %f{f + 4};
  st.shared.f32 [%r5], %f{f + 5}; ld.shared.f32 %f1, [%r5]; shfl.sync.bfly.b32 %r{r + 5}, %r{r + 4}, {1 << i % 5}, 31, -1;
  ex2.approx.ftz.f32 %f1, %f1;""")
    text = kernel("".join(lines))
    return text.replace("%r<16>", f"%r<{30 + 6 * len(lines)}>").replace("%f<8>", f"%f<{30 + 6 * len(lines)}>")


@dataclass
class Timing:
    seconds: float
    instructions: int


def measure(module: Module, blocks: int, rounds: int, checks: Checks) -> Timing:
    x = np.zeros(blocks * THREADS, np.uint32)
    start = time.process_time()
    profile = module.launch("loop", blocks, THREADS, [x, rounds], checks=checks)
    seconds = time.process_time() - start
    return Timing(seconds, profile.total("executions") // (blocks * THREADS // 32))


def floor() -> float:
    """Seconds of one NumPy call on the registers of a block."""
    a = np.zeros(THREADS, np.uint32)
    start = time.process_time()
    for _ in range(20_000):
        np.add(a, a, out=a)
    return (time.process_time() - start) / 20_000


SIMULATED = """
import time, numpy as np
from numba import cuda
@cuda.jit
def loop(x, n):
    i = cuda.grid(1)
    room = cuda.shared.array({threads}, np.float32)
    room[cuda.threadIdx.x] = x[i]
    value = x[i]
    for k in range(n):
        value = value * np.float32(0.5) + room[cuda.threadIdx.x]
    x[i] = value
x = np.ones({blocks} * {threads}, np.float32)
loop[1, {threads}](x, 1)
start = time.perf_counter()
loop[{blocks}, {threads}](x, {rounds})
print(time.perf_counter() - start)
"""

SAME = "mul.f32 %f2, %f2, 0f3F000000; ld.shared.f32 %f3, [%r5]; add.f32 %f2, %f2, %f3;"


def simulator(blocks: int, rounds: int) -> float | None:
    """Seconds that Numba's simulator takes for the loop `SAME`; None where numba is not installed."""
    if importlib.util.find_spec("numba") is None:
        return None
    program = SIMULATED.format(blocks=blocks, threads=THREADS, rounds=rounds)
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    return float(found.stdout)


PROGRAMS = Path(__file__).parents[1] / "tests" / "emulator" / "programs"


def first_launch() -> Callable[[], float]:
    """Text to result, of a text that was never seen."""
    x, numbers = np.zeros(THREADS, np.uint32), itertools.count()

    def run() -> float:
        text = straight(next(numbers))
        start = time.process_time()
        Module(text).launch("loop", 1, THREADS, [x, 1])
        return time.process_time() - start

    return run


def divergent(blocks: int) -> Callable[[], float]:
    """Thread instructions a second."""
    module, x = Module(DIVERGENT), np.zeros(blocks * THREADS, np.uint32)

    def run() -> float:
        start = time.process_time()
        profile = module.launch("loop", blocks, THREADS, [x, 1000 if blocks == 1 else 200])
        return profile.total("threads") / (time.process_time() - start)

    return run


def loop(name: str, rounds: int) -> Callable[[], float]:
    """Instructions a second of a loop in a block."""
    module = Module(kernel(LOOPS[name]))

    def run() -> float:
        timing = measure(module, 1, rounds, Checks())
        return timing.instructions / timing.seconds

    return run


def product() -> Callable[[], float]:
    """512^3 of bfloat16 by wgmma, by blocks of 64 x 64: `matmul_wgmma` of the tests' programs with another type."""
    text = (PROGRAMS / "hopper.ptx").read_text(encoding="utf-8").replace("f32.f16.f16", "f32.bf16.bf16")
    module, n = Module(text), 512
    a, b = (np.random.default_rng(i).integers(-3, 4, (n, n)).astype(ml_dtypes.bfloat16) for i in range(2))
    c = np.zeros((n, n), np.float32)

    def run() -> float:
        start = time.process_time()
        module.launch("matmul_wgmma", (n // 64, n // 64), 128, [a, b, Scratch(c), n, n])
        return time.process_time() - start

    return run


def softmax() -> Callable[[], float]:
    """4096 x 4096, by weft's own kernel for sm_90."""
    n = 4096
    x = np.random.default_rng(0).standard_normal((n, n), np.float32)
    out = np.zeros_like(x)

    def run() -> float:
        with weft.emulate("sm_90"):
            start = time.process_time()
            gpu_kernels.softmax[(n,)](x, out, n, BLOCK=n)
            return time.process_time() - start

    return run


GOALS: Final = (
    ("first launch of a kernel of 2,000 instructions", first_launch, "ms", "< 100 ms"),
    ("shared memory, a thread's own", lambda: loop("shared", 1000), "instructions/s", "> 100,000"),
    ("shared memory, exchanged", lambda: loop("shared, exchanged", 1000), "instructions/s", "> 100,000"),
    ("fma", lambda: loop("fma", 1000), "instructions/s", "10 times"),
    ("divergent lanes, a block", lambda: divergent(1), "thread instructions/s", "10 times"),
    ("divergent lanes, 64 blocks", lambda: divergent(64), "thread instructions/s", "10 times"),
    ("matmul 512^3 of bf16, wgmma", product, "ms", "< 150 ms"),
    ("softmax 4096 x 4096", softmax, "ms", "< 500 ms"),
)
"""What, how to measure it, in what, and the goal."""


def goals(repeats: int) -> Table:
    """Each goal natively and on NumPy, medians of repeats in turns."""
    table = Table(title="goals, all checks on; medians of processor time")
    for i, column in enumerate(("", "native", "NumPy alone", "times as fast", "goal")):
        table.add_column(column, justify="left" if i == 0 else "right")
    for name, prepare, unit, goal in GOALS:
        run = prepare()
        found: tuple[list[float], list[float]] = [], []
        for repeat in range(repeats + 1):
            native = run()
            with code.only_numpy():
                numpy = run()
            if repeat:
                found[0].append(native)
                found[1].append(numpy)
        native, numpy = (statistics.median(times) for times in found)
        ratio = numpy / native if unit == "ms" else native / numpy
        shown = [f"{1e3 * v:,.0f} ms" if unit == "ms" else f"{v:,.0f} {unit}" for v in (native, numpy)]
        table.add_row(name, *shown, f"{ratio:.1f}", goal)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description="What the emulator costs.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=300, help="of each loop")
    parser.add_argument("--goals", action="store_true", help="only the table of goals")
    options = parser.parse_args()
    console = Console(width=140)
    code.compiled()
    if options.goals:
        console.print(goals(options.repeats))
        return
    each = floor()
    console.print(f"the floor: one NumPy call on {THREADS} elements, {each * 1e6:.2f} us: {1 / each:,.0f} a second\n")
    modules = {name: Module(kernel(loop)) for name, loop in LOOPS.items()}
    watched, blind = Checks(), Checks.none()
    found: dict[tuple[str, int, bool], list[Timing]] = {}
    for repeat in range(options.repeats + 1):
        for name, module in modules.items():
            for blocks in (1, BLOCKS):
                for checks in (watched, blind):
                    timing = measure(module, blocks, options.rounds, checks)
                    if repeat:  # the first warms up
                        found.setdefault((name, blocks, checks is watched), []).append(timing)
    table = Table(title=f"blocks of {THREADS} threads, {options.rounds} rounds of each loop")
    columns = (
        "loop",
        "instructions/s",
        "without checks",
        f"{BLOCKS} blocks / one",
        "without checks",
        "thread instructions/s",
    )
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")

    def median(name: str, blocks: int, checked: bool) -> float:
        return statistics.median(t.seconds for t in found[name, blocks, checked])

    for name in modules:
        count = found[name, 1, True][0].instructions
        one, many = median(name, 1, True), median(name, BLOCKS, True)
        free, many_free = median(name, 1, False), median(name, BLOCKS, False)
        table.add_row(
            name,
            f"{count / one:,.0f}",
            f"{count / free:,.0f}",
            f"{many / one:.1f}",
            f"{many_free / free:.1f}",
            f"{count * BLOCKS * THREADS / many:,.0f}",
        )
    console.print(table)
    console.print(goals(options.repeats))
    same = Module(kernel(SAME))
    for blocks in (1, 16):
        if (simulated := simulator(blocks, options.rounds)) is not None:
            ours = statistics.median(measure(same, blocks, options.rounds, watched).seconds for _ in range(5))
            console.print(
                f"a loop of a multiplication, a shared load and an addition, {blocks} blocks: weft {ours:.3f} s, "
                f"Numba's simulator {simulated:.3f} s, {simulated / ours:.1f} times as long"
            )


if __name__ == "__main__":
    main()
