"""A name born in a loop that both branches of an ``if`` give to one tile had no origin: KeyError (seed 201863)."""

import weft
import weft.language as tl

SEED = 201863
GRID = (2,)
ARGUMENTS = {
    "in1": ("input", "int32", 16),
    "n2": ("number", 3),
    "out3": ("output", "int32", 16),
}


@weft.jit
def kernel(in1, n2, out3):
    offsets = tl.program_id(0) * 8 + tl.arange(0, 8)
    x = tl.load(in1 + offsets)
    for i in range(4):
        if i > n2 - 2:
            y = tl.ravel(x)
        else:
            y = x
        x += y
    tl.store(out3 + offsets, x)
