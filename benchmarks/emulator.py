"""What the emulator costs: PTX instructions per second, and how that scales with blocks.

Run as ``python benchmarks/emulator.py``. Each kernel is a loop of one kind of instruction, executed by a block of 128 threads and
by 64 blocks; an instruction that all four warps of a block execute counts once. Figures are medians of interleaved repeats, in
processor time of the one thread the emulator uses. The aims: at least 50,000 instructions per second for one block, checks
on, and 64 blocks for less than 8 times the time of one.

The floor is NumPy's: an instruction is at least one call on 128 elements, which the first line measures. The peer is Numba's CUDA
simulator (``NUMBA_ENABLE_CUDASIM=1``), the other way to run a CUDA kernel in Python from a pip install: a Python thread for each
CUDA thread. It is measured if numba is installed, on a kernel written for both.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from weft.emulator import Checks, Module

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


def main() -> None:
    parser = argparse.ArgumentParser(description="What the emulator costs.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=300, help="of each loop")
    options = parser.parse_args()
    console = Console(width=120)
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
