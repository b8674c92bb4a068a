"""Triton kernels, and their compilation to the PTX beside this file: ``PYTHON tests/emulator/programs/make_triton.py`` with the
interpreter of an environment that has triton 3.9 (a GPU is not needed; ``make oracles`` makes such an environment).

Each PTX says in its first line which compiler made it, with which options, and how much dynamic shared memory it needs.
"""

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.language.extra import libdevice

HERE = Path(__file__).parent


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask, -float("inf"))
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + at, e / tl.sum(e, 0), mask)


@triton.jit
def layer_norm(x, weight, bias, out, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask, 0.0)
    mean = tl.sum(value, 0) / columns
    centred = tl.where(mask, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    result = centred * scale * tl.load(weight + at, mask) + tl.load(bias + at, mask)
    tl.store(out + row * columns + at, result, mask)


@triton.jit
def reduce_rows(x, total, largest, where, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    value = tl.load(x + rows[:, None] * COLUMNS + columns[None, :])
    tl.store(total + columns, tl.sum(value, 0))
    tl.store(largest + rows, tl.max(value, 1))
    tl.store(where + rows, tl.argmin(value, 1))


@triton.jit
def cumulative(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), 1))


@triton.jit
def histogram(x, bins, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.atomic_add(bins + tl.load(x + at, mask, 0), 1, mask)


@triton.jit
def matmul(a, b, c, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        x = tl.load(a + rows[:, None] * k + (start + depth)[None, :])
        y = tl.load(b + (start + depth)[:, None] * n + columns[None, :])
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def matmul_descriptor(a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        total = tl.dot(a.load([row, start]), b.load([start, column]), total)
    c.store([row, column], total)


@triton.jit
def matmul_made_descriptors(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    result = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        total = tl.dot(left.load([row, start]), right.load([start, column]), total)
    result.store([row, column], total.to(tl.float16))
    result.atomic_add([row, column], total.to(tl.float16))


@triton.jit
def matmul_specialized(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PROGRAMS: tl.constexpr):
    across = tl.cdiv(n, N)
    for tile in tl.range(tl.program_id(0), tl.cdiv(m, M) * across, PROGRAMS, warp_specialize=True):
        row, column = tile // across * M, tile % across * N
        total = tl.zeros((M, N), tl.float32)
        for start in tl.range(0, k, K):
            total = tl.dot(a.load([row, start]), b.load([start, column]), total)
        c.store([row, column], total.to(tl.float16))


@triton.jit
def attention(q, k, v, out, keys, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns, dims = tl.arange(0, N), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + dims[None, :])
    largest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    for start in range(0, keys, N):
        key = tl.load(k + (start + columns)[None, :] * D + dims[:, None])
        score = tl.dot(query, key) * (scale * 1.44269504)
        following = tl.maximum(largest, tl.max(score, 1))
        weight = tl.exp2(score - following[:, None])
        shrink = tl.exp2(largest - following)
        total = total * shrink + tl.sum(weight, 1)
        value = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
        result = tl.dot(weight.to(tl.float16), value, result * shrink[:, None])
        largest = following
    tl.store(out + rows[:, None] * D + dims[None, :], result / total[:, None])


@triton.jit
def attention_specialised(q, k, v, out, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Causal, by descriptors, with warps that copy and warps that multiply: registers go from the former to the latter."""
    block = tl.program_id(0)
    query = q.load([block * M, 0])
    rows = block * M + tl.arange(0, M)
    largest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    for start in tl.range(0, (block + 1) * M, N, warp_specialize=True):
        score = tl.dot(query, k.load([start, 0]).T) * (scale * 1.44269504)
        score = tl.where(rows[:, None] >= (start + tl.arange(0, N))[None, :], score, -1e30)
        following = tl.maximum(largest, tl.max(score, 1))
        weight = tl.exp2(score - following[:, None])
        shrink = tl.exp2(largest - following)
        total = total * shrink + tl.sum(weight, 1)
        result = tl.dot(weight.to(tl.float16), v.load([start, 0]), result * shrink[:, None])
        largest = following
    out.store([block * M, 0], (result / total[:, None]).to(tl.float16))


@triton.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr, PRECISION: tl.constexpr):
    """One tile, of a (K, M) transposed and b (N, K) transposed."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left, right = tl.load(a + k[:, None] * M + m[None, :]), tl.load(b + n[:, None] * K + k[None, :])
    result = tl.dot(tl.trans(left), tl.trans(right), input_precision=PRECISION, out_dtype=KIND)
    tl.store(c + m[:, None] * N + n[None, :], result)


@triton.jit
def product_scaled(
    a,
    a_scale,
    b,
    b_scale,
    c,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    LEFT: tl.constexpr,
    RIGHT: tl.constexpr,
):
    """One tile of microscaled numbers: e2m1 in pairs, e4m3; a scale for each 32 of them."""
    m, n, scales = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    packed, k = tl.arange(0, K // 2), tl.arange(0, K)
    left, right = tl.load(a + m[:, None] * (K // 2) + packed[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    left_scale = tl.load(a_scale + m[:, None] * (K // 32) + scales[None, :])
    right_scale = tl.load(b_scale + n[:, None] * (K // 32) + scales[None, :])
    result = tl.dot_scaled(left, left_scale, LEFT, right, right_scale, RIGHT)
    tl.store(c + m[:, None] * N + n[None, :], result)


@triton.jit
def sort(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), 1))


@triton.jit
def mathematics(x, out, n: tl.constexpr):
    at = tl.arange(0, n)
    value = tl.load(x + at)
    tl.store(out + at, tl.erf(value))
    tl.store(out + n + at, tl.sin(value))
    tl.store(out + 2 * n + at, tl.log(tl.abs(value) + 1))
    tl.store(out + 3 * n + at, tl.sigmoid(value))
    tl.store(out + 4 * n + at, libdevice.tanh(value))
    tl.store(out + 5 * n + at, libdevice.pow(tl.abs(value), 1.7))
    tl.store(out + 6 * n + at, libdevice.atan2(value, 0.3))
    tl.store(out + 7 * n + at, tl.cos(value * 1000))


@triton.jit
def atomics(total, largest, least, bits, count, x, n: tl.constexpr):
    at = tl.arange(0, n)
    value = tl.load(x + at)
    tl.atomic_add(total + at % 3, value)
    tl.atomic_max(largest + at % 5, value)
    tl.atomic_min(least + at % 7, (value * 100).to(tl.int32))
    tl.atomic_xor(bits + at * 0, at)
    tl.atomic_cas(count, 0, 5)
    tl.atomic_xchg(count + 1, 7)
    tl.atomic_add(count + 2, 1, sem="acq_rel")


@triton.jit
def talkative(x, out, n: tl.constexpr):
    at = tl.arange(0, n)
    value = tl.load(x + at)
    tl.device_print("value", value)
    tl.device_assert(value < 100, "too large")
    tl.store(out + at, value)


@triton.jit
def unmasked(x, out, n, BLOCK: tl.constexpr):
    """A mask for the store, none for the load."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + at, value * 2, at < n)


@dataclass(frozen=True)
class Recipe:
    """A kernel, its arguments' types, its constants, and how it is compiled."""

    kernel: object
    signature: str
    constants: dict
    architectures: tuple = (80,)
    options: dict = field(default_factory=lambda: {"num_warps": 4})
    suffix: str = ""

    def compile(self, architecture: int) -> tuple[str, str]:
        """The name of the fixture, and its PTX."""
        names = [name for name in self.kernel.arg_names if name not in self.constants]
        kinds = dict(zip(names, self.signature.split(), strict=True))
        aligned = {
            (self.kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in names if kinds[name][0] == "*"
        }
        for name in ("n", "k"):
            if self.constants.get("K") and name in kinds and kinds[name] == "i32":
                aligned[(self.kernel.arg_names.index(name),)] = [["tt.divisibility", 16]]
        kinds |= dict.fromkeys(self.constants, "constexpr")
        source = ASTSource(fn=self.kernel, signature=kinds, constexprs=self.constants, attrs=aligned)
        compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=self.options)
        options = " ".join(f"{name}={value}" for name, value in (self.options | self.constants).items())
        head = f"// Compiled by triton {triton.__version__} for sm_{architecture}: {options} shared={compiled.metadata.shared}\n"
        return f"triton_{self.kernel.__name__}{self.suffix}_sm{architecture}", head + without_paths(compiled.asm["ptx"])


RECIPES = (
    Recipe(vector_add, "*fp32 *fp32 *fp32 i32", {"BLOCK": 256}, (80, 90)),
    Recipe(softmax, "*fp32 *fp32 i32", {"BLOCK": 256}, (80,)),
    Recipe(layer_norm, "*fp32 *fp32 *fp32 *fp32 i32 fp32", {"BLOCK": 256}, (80,)),
    Recipe(reduce_rows, "*fp32 *fp32 *fp32 *i32", {"ROWS": 16, "COLUMNS": 64}, (80,)),
    Recipe(cumulative, "*i32 *i32", {"ROWS": 4, "COLUMNS": 128}, (80,)),
    Recipe(histogram, "*i32 *i32 i32", {"BLOCK": 256}, (80,)),
    Recipe(
        matmul, "*fp16 *fp16 *fp32 i32 i32", {"M": 64, "N": 32, "K": 32}, (80, 90), {"num_warps": 4, "num_stages": 3}
    ),
    Recipe(
        matmul_descriptor,
        "tensordesc<fp16[64,64]> tensordesc<fp16[64,64]> tensordesc<fp32[64,64]> i32",
        {"M": 64, "N": 64, "K": 64},
        (90,),
        {"num_warps": 4, "num_stages": 3},
    ),
    Recipe(
        matmul_made_descriptors,
        "*fp16 *fp16 *fp16 i32 i32 i32",
        {"M": 64, "N": 64, "K": 64},
        (90,),
    ),
    Recipe(
        matmul_specialized,
        "tensordesc<fp16[64,64]> tensordesc<fp16[64,64]> tensordesc<fp16[64,64]> i32 i32 i32",
        {"M": 64, "N": 64, "K": 64, "PROGRAMS": 2},
        (90, 100),
        {"num_warps": 4, "num_stages": 3},
    ),
    Recipe(
        attention,
        "*fp16 *fp16 *fp16 *fp32 i32 fp32",
        {"M": 64, "N": 32, "D": 32},
        (80, 90, 100),
        {"num_warps": 4, "num_stages": 2},
    ),
    Recipe(
        attention_specialised,
        f"{'tensordesc<fp16[64,64]> ' * 4} fp32",
        {"M": 64, "N": 64, "D": 64},
        (90,),
        {"num_warps": 4, "num_stages": 2},
    ),
    *(
        Recipe(
            product,
            f"*{left} *{right} *{out}",
            {"M": 64, "N": 32, "K": 64, "KIND": getattr(tl, tl_out), "PRECISION": precision},
            architectures,
            suffix=f"_{left}_{precision}",
        )
        for left, right, out, tl_out, precision, architectures in (
            ("bf16", "bf16", "fp32", "float32", "ieee", (80, 90)),
            ("i8", "i8", "i32", "int32", "ieee", (80, 90)),
            ("fp32", "fp32", "fp32", "float32", "tf32", (80, 90)),
            ("fp32", "fp32", "fp32", "float32", "tf32x3", (80,)),
            ("fp64", "fp64", "fp64", "float64", "ieee", (80,)),
            ("fp8e5", "fp8e4nv", "fp32", "float32", "ieee", (90,)),
        )
    ),
    Recipe(
        product_scaled,
        "*u8 *u8 *fp8e4nv *u8 *fp32",
        {"M": 64, "N": 32, "K": 64, "LEFT": "e2m1", "RIGHT": "e4m3"},
        (90,),
    ),
    Recipe(sort, "*i32 *i32", {"ROWS": 2, "COLUMNS": 64}),
    Recipe(mathematics, "*fp32 *fp32", {"n": 128}),
    Recipe(atomics, "*fp32 *fp32 *i32 *i32 *i32 *fp32", {"n": 256}),
    Recipe(talkative, "*i32 *i32", {"n": 8}, (80,), {"num_warps": 1, "debug": True}),
    Recipe(unmasked, "*fp32 *fp32 i32", {"BLOCK": 256}),
)


def without_paths(ptx: str) -> str:
    """The text with directories cut off: those of ``.file`` lines, of its debugging data, and of assertions."""
    ptx = re.sub(r'(?m)^(\s*\.file\s+\d+\s+")[^"]*/', r"\1", ptx)
    ptx = re.sub(r"(assertFile_\d+)\[\d+\] = \{([\d, ]+)\}", _file_alone, ptx)
    return re.sub(r"(?m)^\.b8 \d+( +// DW_AT_comp_dir\n)(?:\.b8 [1-9]\d*\n)+", r".b8 46\1", ptx)


def _file_alone(match: re.Match) -> str:
    path = bytes(map(int, match[2].split(", "))).decode()
    name = path.rpartition("/")[2].encode()
    return f"{match[1]}[{len(name) + 1}] = {{{', '.join(map(str, name))}}}"


def main() -> None:
    """Writes every fixture, or those of the kernels named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, default=HERE, help="write into this folder, not beside this file"
    )
    parser.add_argument("kernels", nargs="*", help="kernels; all of them if none is named")
    chosen = parser.parse_args()
    for recipe in RECIPES:
        if not chosen.kernels or recipe.kernel.__name__ in chosen.kernels:
            for architecture in recipe.architectures:
                name, ptx = recipe.compile(architecture)
                (chosen.out / f"{name}.ptx").write_text(ptx)


if __name__ == "__main__":
    main()
