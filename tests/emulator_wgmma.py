"""An independent model of wgmma, for its tests: matrices are laid into shared memory line by line, as the pictures of the PTX ISA
show (9.7.15.5.1.2), and into registers by its formulas (9.7.15.5.1.1)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from emulator_harness import run
from weft.emulator import Checks
from weft.emulator.machine.launch import Outcome

Matrix = NDArray[Any]

DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
    "b1": np.uint8,  # 0 or 1: packed when stored
    "f32": np.float32,
    "s32": np.int32,
}
DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}

# Which 16-byte cell of a 128-byte line lies at each place, line by line (tables of section 5.5.7).
CELLS = {
    0: ["01234567"],
    32: ["01234567", "10325476"],
    64: ["01234567", "10325476", "23016745", "32107654"],
    128: ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"],
}
MODE = {0: 0, 128: 1, 64: 2, 32: 3}


def packed_bytes(matrix: Matrix, kind: str) -> NDArray[np.uint8]:
    """Rows of elements as rows of bytes."""
    if kind == "b1":
        return np.packbits(matrix, axis=-1, bitorder="little")
    return np.ascontiguousarray(matrix).view(np.uint8)


@dataclass
class Operand:
    """A matrix (rows, K) in shared memory: A, or B transposed. ``leading`` and ``stride`` in bytes, as the ISA defines them."""

    kind: str
    base: int
    swizzle: int = 128
    transposed: bool = False
    leading: int = 16
    stride: int = 1024
    skip: int = 0
    """Bytes that the descriptor starts after the base."""
    pattern: int = 0
    """Where the swizzle's pattern begins."""

    @property
    def descriptor(self) -> int:
        start = (self.base + self.skip & 0x3FFFF) >> 4
        base_offset = self.pattern >> 7 & 7
        return start | self.leading >> 4 << 16 | self.stride >> 4 << 32 | base_offset << 49 | MODE[self.swizzle] << 62

    def store(self, image: NDArray[np.uint8], matrix: Matrix) -> None:
        """Lays the matrix into the image of a shared memory."""
        if not self.transposed:
            self._store_lines(image, packed_bytes(matrix, self.kind), self.stride, self.leading)
        elif self.swizzle:
            self._store_lines(image, packed_bytes(matrix.T, self.kind), self.stride, self.leading)
        else:  # the interleaved one: LBO goes along K, SBO along M or N
            self._store_lines(image, packed_bytes(matrix.T, self.kind), self.leading, self.stride)

    def _store_lines(self, image: NDArray[np.uint8], lines: NDArray[np.uint8], down: int, along: int) -> None:
        """Tiles of 8 lines, as wide as the swizzle: ``down`` bytes to the next 8 lines, ``along`` to the tile beside."""
        width = self.swizzle or 16
        for line, cell in itertools.product(range(lines.shape[0]), range(lines.shape[1] // 16)):
            tile, place = divmod(16 * cell, width)
            address = self.base + line // 8 * down + line % 8 * width + tile * along + place
            image[self.cell(address) :][:16] = lines[line, 16 * cell : 16 * cell + 16]

    def cell(self, address: int) -> int:
        """Where the cell that would be at an address is."""
        table = CELLS[self.swizzle]
        line, place = divmod((address - self.pattern) // 16, 8)
        return self.pattern + 128 * line + 16 * table[line % len(table)].index(str(place))


def d_places(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows and columns of the elements of D, of which each thread of the warpgroup has ``count``."""
    thread, i = np.arange(128)[:, None], np.arange(count)[None, :]
    warp, lane = np.divmod(thread, 32)
    return 16 * warp + lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2


def to_d(matrix: Matrix) -> Matrix:
    """(64, N) to the elements of each thread (128, N / 2)."""
    return matrix[d_places(matrix.shape[1] // 2)]


def from_d(elements: Matrix) -> Matrix:
    """The inverse."""
    matrix = np.zeros((64, elements.shape[1] * 2), elements.dtype)
    matrix[d_places(elements.shape[1])] = elements
    return matrix


def to_a(matrix: Matrix, kind: str) -> NDArray[np.uint32]:
    """(64, K) to the four registers of each thread (128, 4): word c of a row, 4 bytes, is that of thread c % 4 of the row's."""
    words = packed_bytes(matrix, kind).view(np.uint32)
    registers = np.zeros((128, 4), np.uint32)
    for row, word in itertools.product(range(64), range(8)):
        thread = row // 16 * 32 + row % 8 * 4 + word % 4
        registers[thread, word // 4 * 2 + row // 8 % 2] = words[row, word]
    return registers


@dataclass
class Kernel:
    """A kernel in which each warpgroup loads D, does ``body`` and stores D. The body names {d} and {a} (lists of registers), %da
    and %db (descriptors), %s (a predicate), %m (metadata). Shared memory of ``size`` bytes comes from an image for each block."""

    n: int
    d: str
    body: str
    size: int
    groups: int = 1
    blocks: int = 1
    before: str = "fence.proxy.async; bar.sync 0;"
    after: str = ""
    in_registers: bool = False

    @property
    def registers(self) -> int:
        return self.n // (4 if self.d == "f16" else 2)

    @property
    def ptx(self) -> str:
        d = ", ".join(f"%d{i}" for i in range(self.registers))
        loads = "\n".join(f"ld.global.b32 %d{i}, [%pd + {4 * i}];" for i in range(self.registers))
        stores = "\n".join(f"st.global.b32 [%pd + {4 * i}], %d{i};" for i in range(self.registers))
        fragments = "\n".join(f"ld.global.b32 %a{i}, [%pa + {4 * i}];" for i in range(4)) if self.in_registers else ""
        return f"""
.version 8.7
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 p_image, .param .u64 p_desc, .param .u64 p_d, .param .u64 p_a, .param .u64 p_m)
{{
  .reg .b32 %d<{self.registers}>; .reg .b32 %a<4>; .reg .b32 %t<12>; .reg .b32 %m;
  .reg .b64 %x<8>; .reg .b64 %pd, %pa, %pm, %da, %db;
  .reg .pred %s, %more, %p;
  .shared .align 1024 .b8 memory[{self.size}];
  mov.u32 %t0, %tid.x; mov.u32 %t1, %ctaid.x; mov.u32 %t2, memory;
  ld.param.u64 %x0, [p_image];
  mul.wide.u32 %x1, %t1, {self.size}; add.s64 %x0, %x0, %x1;
  mul.lo.u32 %t3, %t0, 16;
copy:
  mul.wide.u32 %x2, %t3, 1; add.s64 %x3, %x0, %x2; add.u32 %t4, %t2, %t3;
  ld.global.v4.b32 {{%t5, %t6, %t7, %t8}}, [%x3];
  st.shared.v4.b32 [%t4], {{%t5, %t6, %t7, %t8}};
  add.u32 %t3, %t3, {128 * self.groups * 16};
  setp.lt.u32 %more, %t3, {self.size};
@%more bra copy;
  mad.lo.u32 %t9, %t1, {128 * self.groups}, %t0;
  ld.param.u64 %pd, [p_d]; mul.wide.u32 %x4, %t9, {4 * self.registers}; add.s64 %pd, %pd, %x4;
  ld.param.u64 %pa, [p_a]; mul.wide.u32 %x5, %t9, 16; add.s64 %pa, %pa, %x5;
  ld.param.u64 %pm, [p_m]; mul.wide.u32 %x5, %t9, 4; add.s64 %pm, %pm, %x5; ld.global.b32 %m, [%pm];
  ld.param.u64 %x6, [p_desc]; shr.u32 %t10, %t9, 7; mul.wide.u32 %x7, %t10, 32; add.s64 %x6, %x6, %x7;
  ld.global.v2.u64 {{%da, %db}}, [%x6];
  ld.global.u32 %t11, [%x6 + 16]; setp.ne.u32 %s, %t11, 0;
  {loads}
  {fragments}
  {self.before}
  wgmma.fence.sync.aligned;
  {self.body.format(d="{" + d + "}", a="{%a0, %a1, %a2, %a3}")}
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  {self.after}
  {stores}
  ret;
}}
"""


def launch(
    kernel: Kernel,
    images: NDArray[np.uint8],
    descriptors: Sequence[tuple[int, int]],
    d: Sequence[Matrix],
    a: Sequence[Matrix] | None = None,
    scale: Sequence[int] | None = None,
    kind: str = "",
    metadata: Sequence[NDArray[np.uint32]] | None = None,
    checks: Checks | None = None,
) -> tuple[list[Matrix], Outcome]:
    """Runs it: one image (blocks, size) for each block; for each warpgroup of the grid a pair of descriptors, D before and, in
    registers, A, and ``metadata`` (128,). The D's after, and what was counted."""
    count = kernel.groups * kernel.blocks
    before = np.ascontiguousarray(np.stack([to_d(np.asarray(m, DTYPES[kernel.d])) for m in d]))
    assert before.shape == (count, 128, kernel.n // 2)
    rows = np.zeros((count, 4), np.uint64)
    rows[:, :2] = descriptors
    rows[:, 2] = 1 if scale is None else scale
    fragments = np.zeros((count, 128, 4), np.uint32)
    if a is not None:
        fragments = np.stack([to_a(m, kind) for m in a])
    words = np.zeros((count, 128), np.uint32) if metadata is None else np.stack(metadata)
    outcome = run(
        kernel.ptx,
        [np.ascontiguousarray(images), rows, before, fragments, words],
        kernel.blocks,
        128 * kernel.groups,
        checks=checks,
    )
    return [from_d(elements) for elements in before], outcome
