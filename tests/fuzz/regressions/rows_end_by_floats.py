"""A store whose mask compares floats, as if a loop over its registers could end with them: LLVM refused to extend a double (seed
69000163)."""

import weft
import weft.language as tl

SEED = 69000163
GRID = (1,)
ARGUMENTS = {
    "n4": ("number", 3),
    "in5": ("input", "float64", 1),
    "in24": ("input", "float64", 8),
    "out28": ("alias", "float64", 1, "in24", 5),
}


@weft.jit
def element_7(p0_0, p1_0, p2_0):
    e0 = ~p1_0
    return e0


@weft.jit
def kernel(n4, in5, in24, out28):
    pid = tl.program_id(0)
    offset3 = pid * 1 + tl.arange(0, 1)
    v6 = tl.load(in5 + offset3, (tl.arange(0, 1) != 0) & (n4 > 0), other=float("-inf"), cache_modifier=".cg")
    v8 = tl.map_elementwise(element_7, tl.sum(offset3, axis=None), offset3, pid)
    v15 = v8 * v8 > v8
    v17 = tl.where(v15, v6, v6)
    v18 = v15 >= v17
    v22 = tl.broadcast_to(v6, (1,))
    offset27 = pid * 1 + tl.arange(0, 1)
    tl.store(out28 + offset27, v22, mask=v18)
