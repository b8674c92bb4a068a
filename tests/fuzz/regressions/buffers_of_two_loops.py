"""Seed 1000265. The buffers of the second loop lie where those of the first do. Copies began while warps still read the last tiles
of the first loop: reads and copies whose slots have different numbers were taken for slots of one buffer."""

import weft
import weft.language as tl

SEED = 1000265
GRID = (1,)
MACHINES = ("native", "sm_80", "sm_90")
ARGUMENTS = {
    "a": ("input", "float64", 768, "small"),
    "b": ("input", "float32", 768, "small"),
    "c": ("input", "bfloat16", 1024, "small"),
    "d": ("input", "float8_e4m3fn", 512, "small"),
    "n": ("number", 48),
    "m": ("number", 32),
    "out": ("output", "float32", 256),
    "out2": ("output", "float32", 512),
}


@weft.jit
def kernel(a, b, c, d, n, m, out, out2):
    i = tl.arange(0, 16)
    j = tl.arange(0, 32)
    acc = tl.zeros((16, 16), tl.float32)
    at = b + i[None, :] + i[:, None] * 16
    for k in tl.range(0, n, 16):
        x = tl.load(a + i[:, None] * 48 + (k + i)[None, :])
        acc = tl.dot(x.to(tl.float32), tl.load(at), acc, input_precision="tf32")
        at += 256
    acc2 = tl.zeros((32, 16), tl.float32)
    at = d + i[None, :] * 32 + j[:, None]
    for k in tl.range(0, m, 32, num_stages=4):
        x = tl.load(c + j[:, None] * 32 + (k + j)[None, :])
        acc2 = tl.dot(x.to(tl.float8_e4m3fn), tl.load(at), acc2)
        at += 32
    tl.store(out + i[:, None] * 16 + i[None, :], acc)
    tl.store(out2 + j[:, None] * 16 + i[None, :], acc2)
