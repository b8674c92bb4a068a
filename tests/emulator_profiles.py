"""A profile made by hand, for tests of what is done with profiles: a kernel of two source lines in one file, one in another."""

from __future__ import annotations

from weft.emulator.profile.counters import Counters
from weft.emulator.profile.profile import Launch, Profile
from weft.emulator.ptx.syntax import Instruction, Source

SOURCE = """\
__global__ void k(float* out) {
  __shared__ float t[32][32];
  float x = t[threadIdx.x & 31][0] < 1 ? "a" : 0; // <b>
  out[8 * threadIdx.x] = square(x);
}
"""
"""Of ``/src/kernel.cu``."""


def instruction(text: str, line: int, source: Source | None = None) -> Instruction:
    """An instruction without operands: a profile shows its text and asks for its modifiers."""
    opcode, *modifiers = text.split(maxsplit=1)[0].split(".")
    return Instruction(opcode, tuple(modifiers), (), None, line, source, text)


KERNEL, HEADER = "/src/kernel.cu", "/src/include/square.h"

INSTRUCTIONS = (
    instruction("mov.u32 %r1, %tid.x", 10, Source(KERNEL, 3)),
    instruction("ld.shared.f32 %f1, [%r2]", 11, Source(KERNEL, 3)),
    instruction("mul.f32 %f2, %f1, %f1", 12, Source(HEADER, 3, 0, Source(KERNEL, 4))),
    instruction("st.global.f32 [%rd1], %f2", 13, Source(KERNEL, 4)),
    instruction("ret", 14),
    instruction("(the end of the function)", 8),
    instruction("ret", 20),
)
FUNCTIONS = ("k", "k", "k", "k", "k", "k", "other")


def made(conflicts: int = 31, line: int = 3) -> Profile:
    """Four warps of which each executes everything once; a column of shared memory, a strided store."""
    counters = Counters(len(INSTRUCTIONS))
    for site in range(5):
        counters.executed(site, 4, 128 if site != 3 else 96)
    for metric, amount in (("requests", 4), ("bytes", 512), ("wavefronts", 4 + 4 * conflicts), ("ideal_wavefronts", 4)):
        counters.add(1, f"shared_load_{metric}", amount)
    for metric, amount in (("requests", 4), ("bytes", 384), ("sectors", 96), ("ideal_sectors", 12)):
        counters.add(3, f"global_store_{metric}", amount)
    checks = {"bounds": True, "alignment": True, "uninitialised": True, "races": False}
    launch = Launch("k", (2, 1, 1), (64, 1, 1), "sm_90", 4096, 256, checks)
    rows = (
        INSTRUCTIONS
        if line == 3
        else (*INSTRUCTIONS[:1], instruction("ld.shared.f32 %f1, [%r2]", 11, Source(KERNEL, line)), *INSTRUCTIONS[2:])
    )
    return Profile.of(launch, rows, FUNCTIONS, counters, "// the PTX", "hello\n")
