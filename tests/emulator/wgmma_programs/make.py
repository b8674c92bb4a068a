"""A Triton kernel, and its compilation to the PTX beside this file: ``PYTHON tests/emulator/wgmma_programs/make.py`` with the
interpreter of an environment that has triton 3.9 (a GPU is not needed; ``make oracles`` makes such an environment).

Each PTX says in its first line how it was made, and how much dynamic shared memory it needs.
"""

import os
from pathlib import Path

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent

CASES = (
    # type, accumulator, M, N, K, A has M fastest, B has K fastest
    ("fp16", "fp32", 64, 32, 32, False, False),
    ("bf16", "fp32", 64, 32, 16, True, True),
    ("fp32", "fp32", 64, 32, 16, False, True),
    ("fp8e5", "fp32", 64, 64, 128, False, True),
    ("i8", "i32", 128, 32, 64, False, True),
)


@triton.jit
def matmul(
    a,
    b,
    c,
    k,
    lda,
    ldb,
    ldc,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    M_FASTEST: tl.constexpr,
    K_FASTEST: tl.constexpr,
):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    total = tl.zeros((M, N), c.dtype.element_ty)
    for start in range(0, k, K):
        at = start + depth
        x = tl.load(a + (rows[:, None] + at[None, :] * lda if M_FASTEST else rows[:, None] * lda + at[None, :]))
        y = tl.load(b + (at[:, None] + columns[None, :] * ldb if K_FASTEST else at[:, None] * ldb + columns[None, :]))
        total = tl.dot(x, y, total)
    tl.store(c + rows[:, None] * ldc + columns[None, :], total)


def main() -> None:
    """Writes every fixture."""
    for kind, accumulator, m, n, k, m_fastest, k_fastest in CASES:
        constants = {"M": m, "N": n, "K": k, "M_FASTEST": m_fastest, "K_FASTEST": k_fastest}
        types = {
            "a": f"*{kind}",
            "b": f"*{kind}",
            "c": f"*{accumulator}",
            **dict.fromkeys(("k", "lda", "ldb", "ldc"), "i32"),
        }
        signature = types | dict.fromkeys(constants, "constexpr")
        source = ASTSource(
            matmul, signature, constants, attrs={(i,): [["tt.divisibility", 16]] for i in range(len(types))}
        )
        options = {"num_warps": 4, "num_stages": 2}
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        said = " ".join(f"{name}={int(value)}" for name, value in (options | constants).items())
        head = f"// Compiled by triton {triton.__version__} for sm_90: {said} shared={compiled.metadata.shared}\n"
        (HERE / f"matmul_{kind}.ptx").write_text(head + compiled.asm["ptx"])


if __name__ == "__main__":
    main()
