"""Programs with a fault each, and their repaired twins. Every report names kernel, source line, PTX line, block, thread and
address; the twins run clean and compute what they should."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from emulator_programs import PROGRAMS, SOURCES, program
from weft.emulator import (
    BarrierFault,
    Checks,
    Fault,
    Misaligned,
    OutOfBounds,
    Race,
    Scratch,
    Trap,
    Uninitialised,
)

X = np.arange(256, dtype=np.float32)
COUNTING = np.arange(256, dtype=np.int32)


def out(n: int, dtype: Any = np.float32) -> Scratch:
    return Scratch(np.zeros(n, dtype))


@dataclass(frozen=True)
class Seeded:
    """A kernel, its launch, the report expected of the broken one, and what the repaired one's last array then holds."""

    kernel: str
    error: type[Fault]
    message: str
    """With {code} for the line of the source that has this code, {ptx} for the number of the PTX line in question."""
    code: str
    """What stands on the source line to blame."""
    instruction: str
    """The beginning of the instruction to blame."""
    where: str
    args: Callable[[], list[Any]]
    result: Any
    grid: int = 1
    block: int = 64
    shared: int = 0
    other: tuple[str, str] = ("", "")
    """The code, and the beginning of the instruction, that the message mentions beside."""


SEEDED = (
    Seeded(
        "off_by_one",
        OutOfBounds,
        "out of bounds: read of 4 bytes of global memory",
        "if (i IF_BROKEN(<=) IF_REPAIRED(<) n) out[i] = x[i];",
        "ld.global.f32",
        "  block (1, 0, 0), thread (72, 0, 0)\n  address 0x{address}: 0 bytes past the end of 'argument 0' (800 bytes)",
        lambda: [X[:200].copy(), out(200), 200],
        X[:200],
        grid=2,
        block=128,
    ),
    Seeded(
        "before_start",
        OutOfBounds,
        "out of bounds: read of 4 bytes of global memory",
        "out[i] = x[i] - (IF_REPAIRED(i == 0 ? 0 :) x[i - 1]);",
        "ld.global.f32",
        "  block (0, 0, 0), thread (0, 0, 0)\n  address 0x{address}: 4 bytes before 'argument 0' (1024 bytes)",
        lambda: [X.copy(), out(64)],
        np.ones(64) - (np.arange(64) == 0),
    ),
    Seeded(
        "shared_overrun",
        OutOfBounds,
        "out of bounds: write of 4 bytes of shared memory",
        "tile[threadIdx.x IF_BROKEN(+ 1)] = threadIdx.x;",
        "st.shared.f32",
        "  block (0, 0, 0), thread (63, 0, 0)\n  address 0x100 of the block's shared memory (256 bytes)",
        lambda: [out(64)],
        np.arange(63, -1, -1),
        shared=256,
    ),
    Seeded(
        "missing_barrier",
        Race,
        "race: thread (0, 0, 0) of block (0, 0, 0) reads shared 0x1fc..0x1ff, which thread (127, 0, 0) wrote at "
        "PTX line {other_ptx} (source faults.cu:{other}); nothing orders them: a barrier is missing between",
        "out[threadIdx.x] = tile[127 - threadIdx.x];",
        "ld.shared.f32",
        "  block (0, 0, 0), thread (0, 0, 0)\n  address 0x1fc of the block's shared memory",
        lambda: [X.copy(), out(128)],
        X[127::-1],
        block=128,
        other=("tile[threadIdx.x] = x[threadIdx.x];", "st.shared.f32"),
    ),
    Seeded(
        "missing_second_barrier",
        Race,
        "race: thread (0, 0, 0) of block (0, 0, 0) writes shared 0x0..0x3, which thread (127, 0, 0) read at "
        "PTX line {other_ptx} (source faults.cu:{other}); nothing orders them: a barrier is missing between",
        "tile[threadIdx.x] = x[round * 128 + threadIdx.x];",
        "st.shared.f32",
        "  block (0, 0, 0), thread (0, 0, 0)\n  address 0x0 of the block's shared memory",
        lambda: [X.copy(), out(128)],
        X[127::-1] + X[255:127:-1],
        block=128,
        other=("sum += tile[127 - threadIdx.x];", "ld.shared.f32"),
    ),
    Seeded(
        "missing_syncwarp",
        Race,
        "race: thread (0, 0, 0) of block (0, 0, 0) reads shared 0x4..0x7, which thread (1, 0, 0) wrote at "
        "PTX line {other_ptx} (source faults.cu:{other}); nothing orders them: a bar.warp.sync or a barrier is missing between",
        "out[threadIdx.x] = tile[threadIdx.x ^ 1];",
        "ld.shared.f32",
        "  block (0, 0, 0), thread (0, 0, 0)\n  address 0x4 of the block's shared memory",
        lambda: [X.copy(), out(64)],
        X[np.arange(64) ^ 1],
        other=("tile[threadIdx.x] = x[threadIdx.x];", "st.shared.f32"),
    ),
    Seeded(
        "same_word",
        Race,
        "race: threads (0, 0, 0) and (1, 0, 0) of block (0, 0, 0) write different values to shared 0x0..0x3 in one instruction",
        "IF_BROKEN(tile[threadIdx.x / 2] = x[threadIdx.x];)",
        "st.shared.f32",
        "  block (0, 0, 0), thread (1, 0, 0)\n  address 0x0 of the block's shared memory",
        lambda: [X.copy(), out(64)],
        np.arange(64) // 2 * 2,
    ),
    Seeded(
        "misaligned",
        Misaligned,
        "misaligned: read of 16 bytes at an address that is no multiple of 16",
        "out[i] = *(const float4 *)(x + IF_BROKEN(i) IF_REPAIRED(4 * i));",
        "ld.global.v4",
        "  block (0, 0, 0), thread (1, 0, 0)\n  address 0x{address}: byte 4 of 'argument 0' (1024 bytes)",
        lambda: [X.copy(), out(256)],
        X,
    ),
    Seeded(
        "uninitialised_shared",
        Uninitialised,
        "uninitialised read: read of 4 bytes of shared memory that has not been written\n"
        "    its value is an operand of PTX line {other_ptx} (source faults.cu:{other}): {other_text}",
        "out[threadIdx.x] = tile[63 - threadIdx.x];",
        "ld.shared.f32",
        "  block (0, 0, 0), thread (63, 0, 0)\n  address 0x0 of the block's shared memory (256 bytes)",
        lambda: [X.copy(), out(64)],
        X[63::-1],
        other=("out[threadIdx.x] = tile[63 - threadIdx.x];", "st.global.f32"),
    ),
    Seeded(
        "uninitialised_global",
        Uninitialised,
        "uninitialised read: read of 4 bytes of global memory that has not been written\n"
        "    its value is an operand of PTX line {other_ptx} (source faults.cu:{other}): {other_text}",
        "for (int i = 0; i < 4; i++) sums[threadIdx.x] += x[i * 64 + threadIdx.x];",
        "ld.global.f32",
        "  block (0, 0, 0), thread (0, 0, 0)\n  address 0x{address}: byte 0 of 'argument 1' (256 bytes)",
        lambda: [X.copy(), out(64)],
        X.reshape(4, 64).sum(axis=0),
        other=("for (int i = 0; i < 4; i++) sums[threadIdx.x] += x[i * 64 + threadIdx.x];", "st.global.f32"),
    ),
    Seeded(
        "divergent_barrier",
        BarrierFault,
        "barrier: threads wait for what will never come:\n"
        "    block (0, 0, 0): 32 of 64 threads have come to barrier 1; 32 wait at bar.sync, PTX line {ptx} "
        "(source faults.cu:{code})\n"
        "    block (0, 0, 0): 32 of 64 threads have come to barrier 0; 32 wait at bar.sync, PTX line {other_ptx} "
        "(source faults.cu:{other})",
        'IF_BROKEN(asm volatile("bar.sync 1, 64;" ::: "memory");)',
        "bar.sync 1, 64",
        "  block (0, 0, 0), thread (32, 0, 0)",
        lambda: [X.copy(), out(64)],
        X[:64] + (np.arange(64) >= 32),
        other=("IF_BROKEN(__syncthreads();)", "bar.sync 0"),
    ),
    Seeded(
        "forgotten_arrival",
        BarrierFault,
        "barrier: 32 threads repeat a loop that waits for another thread, and no thread changes anything",
        'asm volatile(WAIT ::"r"(address) : "memory");',
        "mbarrier.test_wait.parity.shared.b64 done,",
        "  block (0, 0, 0), thread (0, 0, 0)",
        lambda: [X.copy(), out(32)],
        X[:32],
        block=32,
    ),
    Seeded(
        "local_overrun",
        OutOfBounds,
        "out of bounds: read of 4 bytes of local memory",
        "out[threadIdx.x] = window[threadIdx.x IF_REPAIRED(% 4)];",
        "ld.local.",
        "  block (0, 0, 0), thread (4, 0, 0)\n  address 0x10 of the thread's local memory (16 bytes)",
        lambda: [COUNTING.copy(), out(32, np.int32)],
        np.arange(32) % 4,
        block=32,
    ),
    Seeded(
        "trapped",
        Trap,
        "trap: the program executes trap, as do 20 more threads",
        "if (x[threadIdx.x] > IF_BROKEN(1000) IF_REPAIRED(2000)) __trap();",
        "trap",
        "  block (0, 0, 0), thread (11, 0, 0)",
        lambda: [COUNTING + 990, out(32, np.int32)],
        np.arange(32) + 990,
        block=32,
    ),
    Seeded(
        "null_pointer",
        OutOfBounds,
        "out of bounds: read of 4 bytes of global memory",
        "IF_REPAIRED(if (x)) out[threadIdx.x] = x[threadIdx.x];",
        "ld.global.",
        "  block (0, 0, 0), thread (0, 0, 0)\n  address 0x0: {far} bytes before 'argument 1' (128 bytes)",
        lambda: [0, out(32, np.int32)],
        np.zeros(32),
        block=32,
    ),
)

BY_NAME = pytest.mark.parametrize("seeded", SEEDED, ids=lambda seeded: seeded.kernel)


def source_line(file: str, function: str, code: str) -> int:
    """The line, from 1, on which code stands, from a function's beginning on."""
    lines = (SOURCES / file).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if f"{function}(" in line and line[0] not in "/ ")
    return next(i for i in range(start, len(lines)) if code in lines[i]) + 1


def instructions(name: str, kernel: str) -> dict[int, str]:
    """What stands on each line of a kernel's PTX."""
    lines = list(enumerate((PROGRAMS / f"{name}.ptx").read_text().splitlines(), 1))
    start = next(number for number, line in lines if f".entry {kernel}(" in line)
    end = next(number for number, line in lines if number > start and line == "}")
    return {number: " ".join(line.split()) for number, line in lines[start:end]}


def launch(module: str, seeded: Seeded, checks: Checks | None = None) -> list[Any]:
    args = seeded.args()
    program(module).launch(seeded.kernel, seeded.grid, seeded.block, args, shared=seeded.shared, checks=checks)
    return args


def filled(template: str, reported: str, lines: dict[int, str], instruction: str, other: str) -> str:
    """The template with the numbers of PTX lines and the addresses that the report has: what a compiler or the emulator chose.
    What stands on those lines is checked."""
    ((number, text),) = re.findall(r"^  PTX line (\d+): (.*)$", reported, re.MULTILINE)
    assert f"{text};" in lines[int(number)] and text.startswith(instruction)
    names = {"ptx": number, "text": text}
    mentioned = {n for n in re.findall(r"PTX line (\d+)", reported) if n != number}
    if mentioned:
        (names["other_ptx"],) = mentioned
        assert lines[int(names["other_ptx"])].startswith(other)
        names["other_text"] = lines[int(names["other_ptx"])].rstrip(";")
    (names["address"],) = re.findall(r"  address 0x([0-9a-f]{8,}): ", reported) or [""]
    (names["far"],) = re.findall(r"  address 0x0: (\d+) bytes before", reported) or [""]
    for name, value in names.items():
        template = template.replace(f"{{{name}}}", value)
    return template


@BY_NAME
def test_faults_are_reported(seeded: Seeded) -> None:
    with pytest.raises(seeded.error) as caught:
        launch("faults", seeded)
    code, instruction = seeded.other
    template = (
        f"{seeded.message}\n  kernel {seeded.kernel}\n  source faults.cu:{{code}}\n  PTX line {{ptx}}: {{text}}\n"
    )
    template += seeded.where
    template = template.replace("{code}", str(source_line("faults.cu", seeded.kernel, seeded.code)))
    if code:
        template = template.replace("{other}", str(source_line("faults.cu", seeded.kernel, code)))
    lines = instructions("faults", seeded.kernel)
    assert str(caught.value) == filled(template, str(caught.value), lines, seeded.instruction, instruction)


@BY_NAME
def test_repaired_programs_are_clean(seeded: Seeded) -> None:
    (scratch,) = [arg for arg in launch("faults_repaired", seeded) if isinstance(arg, Scratch)]
    assert np.array_equal(scratch.array.reshape(-1), seeded.result)


@pytest.mark.parametrize(
    "kernel", ["missing_barrier", "missing_syncwarp", "uninitialised_shared", "misaligned", "off_by_one"]
)
def test_checks_can_be_switched_off(kernel: str) -> None:
    (seeded,) = [each for each in SEEDED if each.kernel == kernel]
    launch("faults", seeded, Checks.none())


def test_a_fault_leaves_the_arrays_as_they_were() -> None:
    x, sums = X.copy(), np.full(128, 7, np.float32)
    with pytest.raises(Race):
        program("faults").launch("missing_barrier", 1, 128, [x, sums])
    assert np.array_equal(x, X) and (sums == 7).all()


def integers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float16)


def test_a_missing_proxy_fence_is_a_race() -> None:
    """wgmma reads shared memory by the async proxy, which ordinary stores reach after fence.proxy.async only; the program with
    the fence is run, clean, with the other programs for sm_90a."""
    a, b, c = integers(1, 64, 64), integers(2, 64, 64), np.zeros((64, 64), np.float32)
    with pytest.raises(Race) as caught:
        program("hopper_unfenced").launch("matmul_wgmma", 1, 128, [a, b, Scratch(c), 64, 64])
    wrote = source_line("hopper.cu", "__launch_bounds__", "*(uint4 *)&left[row][place] =")
    template = (
        "race: an asynchronous operation of thread (0, 0, 0) of block (0, 0, 0) reads shared 0x0..0x3, "
        f"which thread (0, 0, 0) wrote at PTX line {{other_ptx}} (source hopper.cu:{wrote}): "
        "a generic write that no fence.proxy.async follows\n"
        "  kernel matmul_wgmma\n"
        f"  source hopper.cu:{source_line('hopper.cu', '__launch_bounds__', 'multiply(d, left, right);')}\n"
        f"    inlined multiply, hopper.cu:{source_line('hopper.cu', 'multiply', 'wgmma(d, descriptor(&a')}\n"
        f"    inlined wgmma, hopper.cu:{source_line('hopper.cu', 'wgmma', ': ROW(0), ROW(1)')}\n"
        "  PTX line {ptx}: {text}\n"
        "  block (0, 0, 0), thread (0, 0, 0)\n"
        "  address 0x0 of the block's shared memory"
    )
    lines = instructions("hopper_unfenced", "matmul_wgmma")
    expected = filled(template, str(caught.value), lines, "wgmma.mma_async.sync.aligned.m64n64k16", "st.shared.v4.u32")
    assert str(caught.value) == expected
