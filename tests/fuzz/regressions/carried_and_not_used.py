"""A loop carries a tile that it does not use, since it was simplified to 0 (seed 91000094): ValueError."""

import weft
import weft.language as tl
from weft.language.extra import libdevice

SEED = 91000094
GRID = (2, 2)
ARGUMENTS = {
    "in1": ("input", "int32", 32),
    "n5": ("number", 48),
    "out6": ("output", "int32", 48),
    "ROWS": ("constant", 4),
}
COLS = tl.constexpr(1)


@weft.jit
def kernel(in1, n5, out6, ROWS: tl.constexpr):
    pid = tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)
    v2 = tl.load(in1 + (tl.multiple_of(pid * 8, 8) + tl.arange(0, ROWS) * 2))
    for i3 in range(pid & 3):
        v2 ^= v2
    offset4 = pid * 12 + (3 - tl.arange(0, 4)) * 3
    tl.store(out6 + offset4, v2, mask=offset4 < n5)
