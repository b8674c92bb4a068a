"""The mask of a scalar load decided the version of a loop, and its index facts have no axis: ValueError (seed 100687)."""

import weft
import weft.language as tl
from weft.language.extra import libdevice

SEED = 100687
GRID = (2,)
ARGUMENTS = {
    "scalar1": ("number", 0),
    "scalar2": ("number", -1099511627776),
    "in3": ("input", "uint32", 32),
    "n6": ("number", 5),
    "in7": ("input", "bool", 2),
    "n9": ("number", 1),
    "in10": ("input", "bool", 1),
    "in14": ("input", "float8_e5m2", 64),
    "out18": ("output", "float8_e5m2", 32),
    "out20": ("output", "uint32", 4),
    "out22": ("output", "uint32", 32),
    "ROWS": ("constant", 1),
    "COLS": ("constant", 16),
}


@weft.jit
def kernel(scalar1, scalar2, in3, n6, in7, n9, in10, in14, out18, out20, out22, ROWS: tl.constexpr, COLS: tl.constexpr):
    pid = tl.program_id(0)
    v4 = tl.load(in3 + (pid * 16 + tl.arange(0, 1)[:, None] % 2 * 1 + (15 - tl.arange(0, 16))[None, :]))
    offset5 = pid * ROWS
    v8 = tl.load(in7 + offset5, offset5 < n6, other=True)
    v11 = tl.load(
        in10 + (pid * 48 + (15 - tl.arange(0, 16))[None, :] * 3 + tl.arange(0, 1)[:, None] * 48),
        pid * 48 + (15 - tl.arange(0, 16))[None, :] * 3 + tl.arange(0, 1)[:, None] * 48 < n9,
        other=True,
    )
    v12 = tl.permute(v4 & scalar1, 1, 0)
    offset13 = tl.multiple_of(pid * 32, 32) + tl.arange(0, 16) * 2
    v15 = tl.load(in14 + offset13, v8, other=float("-inf"))
    v16 = tl.max(v4, axis=1)
    v17 = v4.to(tl.uint32, bitcast=True)
    tl.store(out18 + (pid * 16 + tl.arange(0, COLS)), v15)
    offset19 = pid * 2 + tl.arange(0, 1) * 2
    tl.store(out20 + offset19, v16)
    offset21 = tl.multiple_of(pid * 16, 16) + (15 - tl.arange(0, COLS))[None, :] + tl.arange(0, 1)[:, None] * COLS
    tl.store(out22 + offset21, v17)
