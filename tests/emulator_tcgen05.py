"""A kernel around tcgen05 instructions, and operands of tcgen05.mma in shared memory as the PTX ISA draws them.

The kernel copies an image into shared memory, fills tensor memory, lets thread 0 execute a text, waits for an mbarrier that it
commits to, and gives tensor memory back. For a pair of blocks both have an image and tensor memory of their own, and thread 0 of
one of them executes the text. In the text %t is the address of tensor memory, and %base where the image begins, shifted as a
matrix descriptor has it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.emulator import Checks, Module

CHUNK = 32
"""Columns that a tcgen05.ld or st of the kernel moves."""

SPANS = {"none": 16, "32B": 32, "64B": 64, "128B": 128}
MODES = {"none": 0, "128B_32B": 1, "128B": 2, "64B": 4, "32B": 6}


def kernel(
    text: str, image: int, width: int, declarations: str = "", commit: bool = True, issuer: int | None = None
) -> str:
    """The PTX, of an image of so many bytes and so many columns of tensor memory. ``issuer``: the rank of the block that executes
    the text, of a pair."""
    registers = ", ".join(f"%v{i}" for i in range(CHUNK))
    fill: list[str] = []
    read: list[str] = []
    for column in range(0, width, CHUNK):
        for i in range(CHUNK):
            fill.append(f"ld.global.b32 %v{i}, [%init+{4 * (column + i)}];")
        fill.append(f"tcgen05.st.sync.aligned.32x32b.x{CHUNK}.b32 [%mine+{column}], {{{registers}}};")
        read.append(f"tcgen05.ld.sync.aligned.32x32b.x{CHUNK}.b32 {{{registers}}}, [%mine+{column}];")
        read.append("tcgen05.wait::ld.sync.aligned;")
        for i in range(CHUNK):
            read.append(f"st.global.b32 [%to+{4 * (column + i)}], %v{i};")
    begin = "\n  ".join(fill)
    end = "\n  ".join(read)
    arrive = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];" if commit else ""
    pair, meet, cluster = "", "bar.sync 0;", ""
    if issuer is not None:
        arrive = (
            "mov.b16 %both, 3; tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
        )
        arrive += " [bar], %both;"
        pair = f"mov.u32 %i10, %cluster_ctarank; setp.eq.and.u32 %issues, %i10, {issuer}, %p1;"
        meet = "barrier.cluster.arrive; barrier.cluster.wait;"
        cluster = ".reqnctapercluster 2, 1, 1 "
    held = 1 << max(5, (width - 1).bit_length())
    ptx = f""".version 9.0
.target sm_100a
.address_size 64
.visible .entry test(.param .u64 p_image, .param .u64 p_init, .param .u64 p_out) {cluster}{{
  .reg .b32 %v<{CHUNK}>; .reg .b32 %i<12>; .reg .b32 %t; .reg .b32 %mine; .reg .b64 %init; .reg .b64 %to; .reg .b64 %l<12>;
  .reg .pred %p<8>; .reg .pred %yes; .reg .pred %no; .reg .b64 %base; .reg .b64 %a; .reg .b64 %b; .reg .b32 %w<8>;
  .reg .pred %issues; .reg .b16 %both;
  {declarations}
  .shared .align 1024 .b8 image[{max(image, 16)}];
  .shared .align 8 .b64 bar;
  .shared .align 4 .b32 slot;
  mov.u32 %i0, %tid.x;
  ld.param.u64 %l0, [p_image];
  mov.u32 %i9, %ctaid.x;
  mul.wide.u32 %l1, %i9, {image};
  add.u64 %l0, %l0, %l1;
  shl.b32 %i1, %i0, 4;
FILL:
  setp.ge.u32 %p0, %i1, {image};
  @%p0 bra FILLED;
  cvt.u64.u32 %l1, %i1;
  add.u64 %l1, %l1, %l0;
  ld.global.v4.b32 {{%i2, %i3, %i4, %i5}}, [%l1];
  mov.u32 %i6, image;
  add.u32 %i6, %i6, %i1;
  st.shared.v4.b32 [%i6], {{%i2, %i3, %i4, %i5}};
  add.u32 %i1, %i1, 2048;
  bra FILL;
FILLED:
  fence.proxy.async.shared::cta;
  setp.eq.u32 %p1, %i0, 0;
  setp.eq.u32 %issues, %i0, 0;
  {pair}
  @%p1 mbarrier.init.shared::cta.b64 [bar], 1;
  setp.lt.u32 %p2, %i0, 32;
  @%p2 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], {held};
  @%p2 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  bar.sync 0;
  ld.shared.b32 %t, [slot];
  shr.u32 %i7, %i0, 5;
  shl.b32 %i7, %i7, 21;
  add.u32 %mine, %t, %i7;
  ld.param.u64 %init, [p_init];
  mov.u32 %i9, %ctaid.x;
  mad.lo.u32 %i9, %i9, 128, %i0;
  mul.wide.u32 %l2, %i9, {4 * width};
  add.u64 %init, %init, %l2;
  {begin}
  tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync;
  {meet}
  tcgen05.fence::after_thread_sync;
  mov.u32 %i8, image;
  shr.u32 %i8, %i8, 4;
  and.b32 %i8, %i8, 0x3FFF;
  cvt.u64.u32 %base, %i8;
  setp.eq.u32 %yes, %i0, %i0;
  setp.ne.u32 %no, %i0, %i0;
  @!%issues bra DONE;
  {text}
  {arrive}
DONE:
  {"bar.sync 0; bra WAITED;" if not commit else ""}
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0;
  @!%p3 bra WAIT;
WAITED:
  tcgen05.fence::after_thread_sync;
  ld.param.u64 %to, [p_out];
  add.u64 %to, %to, %l2;
  {end}
  bar.sync 0;
  @%p2 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %t, {held};
  ret;
}}
"""
    return ptx if issuer is None else ptx.replace("cta_group::1", "cta_group::2")


def execute(
    text: str,
    image: NDArray[np.uint8],
    before: NDArray[np.uint32],
    declarations: str = "",
    checks: Checks | None = None,
) -> NDArray[np.uint32]:
    """Tensor memory (128, columns) after the text, which it was ``before``, with this image in shared memory."""
    out = np.zeros_like(before)
    padded = np.zeros(-(-max(image.size, 16) // 16) * 16, np.uint8)
    padded[: image.size] = image
    module = Module(kernel(text, padded.size, before.shape[1], declarations))
    module.launch("test", 1, 128, [padded, np.ascontiguousarray(before), out], checks=checks or Checks())
    return out


def execute_pair(
    text: str,
    images: list[NDArray[np.uint8]],
    before: NDArray[np.uint32],
    issuer: int = 0,
    checks: Checks | None = None,
) -> NDArray[np.uint32]:
    """Tensor memory (2, 128, columns) of a pair of blocks after the text, which the block of rank ``issuer`` executes."""
    out = np.zeros_like(before)
    size = -(-max(i.size for i in images) // 1024) * 1024
    padded = np.zeros((2, size), np.uint8)
    for rank, image in enumerate(images):
        padded[rank, : image.size] = image
    module = Module(kernel(text, size, before.shape[2], issuer=issuer))
    module.launch("test", 2, 128, [padded, np.ascontiguousarray(before), out], checks=checks or Checks())
    return out


def mma(
    kind: str, a: str, b: str, idesc: int, d: str = "%t", more: str = "%no", modifiers: str = "", metadata: str = ""
) -> str:
    """``tcgen05.mma`` whose operands a and b are bits to add to the image's address, or an address in brackets."""
    lines = [f"mov.b32 %w0, {idesc};"]
    for register, bits in (("%a", a), ("%b", b)):
        if not bits.startswith("["):
            lines.append(f"mov.b64 {register}, {bits}; add.u64 {register}, {register}, %base;")
    first = a if a.startswith("[") else "%a"
    prefix, rest = "tcgen05.mma", modifiers
    for word in (".ws", ".sp"):
        if rest.startswith(word):
            prefix, rest = prefix + word, rest.removeprefix(word)
    sparse = f"[{metadata}], " if metadata else ""
    lines.append(f"{prefix}.cta_group::1.kind::{kind}{rest} [{d}], {first}, %b, {sparse}%w0, {more};")
    return "\n  ".join(lines)


def descriptor(start: int, leading: int, stride: int, mode: str) -> str:
    """A matrix descriptor of addresses in the image."""
    return str(start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | MODES[mode] << 61)


def instruction(
    m: int,
    n: int,
    a: int = 0,
    b: int = 0,
    d: int = 1,
    *,
    negate: tuple[int, int] = (0, 0),
    turn: tuple[int, int] = (0, 0),
) -> int:
    """An instruction descriptor without scales."""
    signs = negate[0] << 13 | negate[1] << 14 | turn[0] << 15 | turn[1] << 16
    return d << 4 | a << 7 | b << 10 | signs | n >> 3 << 17 | m >> 4 << 24


def place_k_major(rows: NDArray[np.uint8], mode: str, leading: int, stride: int) -> NDArray[np.uint8]:
    """Rows of 32 bytes as the ISA draws them, one byte after the other: 8 rows to an atom, 16-byte units exchanged in it."""
    span = SPANS[mode]
    image = np.zeros(rows.shape[0] // 8 * stride + leading + 1024, np.uint8)
    for r in range(rows.shape[0]):
        for byte in range(rows.shape[1]):
            unit, rest = divmod(byte, 16)
            at = r // 8 * stride + r % 8 * span + (unit * leading if mode == "none" else unit * 16) + rest
            image[swizzled(at, mode)] = rows[r, byte]
    return image


def place_mn_major(lines: NDArray[np.uint8], mode: str, leading: int, stride: int) -> NDArray[np.uint8]:
    """The bytes of each line of an MN-major matrix."""
    span = {**SPANS, "128B_32B": 128}[mode]
    depth = 4 if mode == "128B_32B" else 8
    image = np.zeros(65536, np.uint8)
    for k in range(lines.shape[0]):
        for byte in range(lines.shape[1]):
            if mode == "none":
                at = k % 8 * 16 + k // 8 * leading + byte // 16 * stride + byte % 16
            else:
                at = k % depth * span + k // depth * stride + byte // span * leading + byte % span
            image[swizzled(at, mode)] = lines[k, byte]
    return image[: int(np.flatnonzero(image).max(initial=0)) + 1]


def swizzled(at: int, mode: str) -> int:
    """Where a byte goes (PTX ISA 5.5.7), in a pattern that begins at 0."""
    row = at // 128 % 8
    match mode:
        case "32B":
            return at ^ row % 2 << 4
        case "64B":
            return at ^ row % 4 << 4
        case "128B":
            return at ^ row << 4
        case "128B_32B":
            return at ^ row % 4 << 5
        case _:
            return at


def bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Rows of numbers as rows of bytes."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(values.shape[0], -1)
