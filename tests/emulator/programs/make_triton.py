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


@dataclass(frozen=True)
class Recipe:
    """A kernel, its arguments' types, its constants, and how it is compiled."""

    kernel: object
    signature: str
    constants: dict
    architectures: tuple = (80,)
    options: dict = field(default_factory=lambda: {"num_warps": 4})

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
        return f"triton_{self.kernel.__name__}_sm{architecture}", head + without_paths(compiled.asm["ptx"])


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
        attention,
        "*fp16 *fp16 *fp16 *fp32 i32 fp32",
        {"M": 64, "N": 32, "D": 32},
        (80, 90),
        {"num_warps": 4, "num_stages": 2},
    ),
)


def without_paths(ptx: str) -> str:
    """The text with the directories of its ``.file`` lines, and of its debugging data, cut off."""
    ptx = re.sub(r'(?m)^(\s*\.file\s+\d+\s+")[^"]*/', r"\1", ptx)
    return re.sub(r"(?m)^\.b8 \d+( +// DW_AT_comp_dir\n)(?:\.b8 [1-9]\d*\n)+", r".b8 46\1", ptx)


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
