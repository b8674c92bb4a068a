"""PTX instructions that LLVM's IR has no words for: shuffles, byte permutes, barriers, matrices, predicated accesses.

Intrinsics where LLVM has them, so that it can move and combine them; else inline assembly. Sources: PTX ISA, the section of each
instruction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from llvmlite import ir

from weft.codegen.llvm.types import I32, intrinsic
from weft.layout.planning.machine import Scope
from weft.layout.planning.matrix import AccessKind

GLOBAL: Final = 1
SHARED: Final = 3
"""LLVM's address spaces of NVPTX."""

_ALL_LANES: Final = ir.Constant(I32, -1)
_CLAMP: Final = ir.Constant(I32, 31)


def shuffle_bfly(builder: ir.IRBuilder, word: ir.Value, mask: int) -> ir.Value:
    """The word of the lane whose number differs by ``mask``: ``shfl.sync.bfly.b32``."""
    operands = [_ALL_LANES, word, ir.Constant(I32, mask), _CLAMP]
    return intrinsic(builder, "nvvm.shfl.sync.bfly.i32", operands, I32, [])


def shuffle_idx(builder: ir.IRBuilder, word: ir.Value, lane: ir.Value) -> ir.Value:
    """The word of lane ``lane``: ``shfl.sync.idx.b32``."""
    return intrinsic(builder, "nvvm.shfl.sync.idx.i32", [_ALL_LANES, word, lane, _CLAMP], I32, [])


def shuffle_along(
    builder: ir.IRBuilder, word: ir.Value, distance: int, width: int, above: bool
) -> tuple[ir.Value, ir.Value]:
    """The word of the lane ``distance`` below (or above) in the same ``width`` lanes, or else the own, and whether there is such
    a lane: ``shfl.sync.up.b32``, ``shfl.sync.down.b32``."""
    bounds = ir.Constant(I32, (32 - width) << 8 | (31 if above else 0))
    operands = [_ALL_LANES, word, ir.Constant(I32, distance), bounds]
    result = ir.LiteralStructType([I32, ir.IntType(1)])
    pair = intrinsic(builder, f"nvvm.shfl.sync.{'down' if above else 'up'}.i32p", operands, result, [])
    return builder.extract_value(pair, 0), builder.extract_value(pair, 1)


def reduce_lanes(builder: ir.IRBuilder, kind: str, word: ir.Value, *, signed: bool) -> ir.Value:
    """``kind`` (one of `weft.transforms.nvidia.scratch.REDUX`) of the words of all lanes: ``redux.sync``."""
    sign = "u" if kind in ("min", "max") and not signed else ""
    return intrinsic(builder, f"nvvm.redux.sync.{sign}{kind}", [word, _ALL_LANES], I32, [])


def permute(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, selector: ir.Value) -> ir.Value:
    """The bytes of ``a`` and ``b`` that the selector's nibbles name: ``prmt.b32``."""
    return intrinsic(builder, "nvvm.prmt", [a, b, selector], I32, [])


def barrier(builder: ir.IRBuilder, scope: Scope) -> None:
    """All threads of the block, or of the warp, wait for each other, and see what the others wrote before."""
    text = "bar.sync 0;" if scope == "block" else "bar.warp.sync 0xffffffff;"
    assembly(builder, ir.VoidType(), text, "~{memory}", [], convergent=True)


def assembly(
    builder: ir.IRBuilder,
    result: ir.Type,
    text: str,
    constraints: str,
    operands: Sequence[ir.Value],
    *,
    convergent: bool = False,
    effects: bool = True,
) -> Any:
    """Inline assembly, with side ``effects`` unless told. ``convergent``: LLVM may not make its execution depend on further
    conditions."""
    function = ir.FunctionType(result, [operand.type for operand in operands])
    call = builder.asm(function, text, constraints, operands, side_effect=effects)
    if convergent:
        call.attributes.add("convergent")
    return call


MATRIX_SUFFIXES: Final[Mapping[AccessKind, str]] = {"matrix": "", "transposed": ".trans", "bytes": ".trans.b8"}
"""What ``ldmatrix`` and ``stmatrix`` are called for each kind of access."""


def load_matrices(
    builder: ir.IRBuilder, address: ir.Value, immediate: int, count: int, kind: AccessKind
) -> list[ir.Value]:
    """``ldmatrix`` of ``count`` matrices, ``immediate`` bytes behind an address; of bytes, two words each."""
    suffix = MATRIX_SUFFIXES[kind]
    words = 2 * count if kind == "bytes" else count
    shape = "m16n16" if kind == "bytes" else "m8n8"
    trans = ".trans" if suffix else ""
    type_ = "b8" if kind == "bytes" else "b16"
    outputs = ", ".join(f"${i}" for i in range(words))
    text = f"ldmatrix.sync.aligned.{shape}.x{count}{trans}.shared.{type_} {{{outputs}}}, [${words}+{immediate}];"
    result = ir.LiteralStructType([I32] * words) if words > 1 else I32
    found = assembly(
        builder,
        result,
        text,
        ",".join(["=r"] * words + ["r", "~{memory}"]),
        [_narrow(builder, address)],
        convergent=True,
    )
    return [builder.extract_value(found, i) for i in range(words)] if words > 1 else [found]


def store_matrices(
    builder: ir.IRBuilder, address: ir.Value, immediate: int, words: Sequence[ir.Value], kind: AccessKind
) -> None:
    """``stmatrix`` of as many matrices as words, ``immediate`` bytes behind an address."""
    suffix = MATRIX_SUFFIXES[kind]
    inputs = ", ".join(f"${i + 1}" for i in range(len(words)))
    text = f"stmatrix.sync.aligned.m8n8.x{len(words)}{suffix}.shared.b16 [$0+{immediate}], {{{inputs}}};"
    constraints = ",".join(["r"] * (1 + len(words)) + ["~{memory}"])
    assembly(builder, ir.VoidType(), text, constraints, [_narrow(builder, address), *words], convergent=True)


def add_shared(builder: ir.IRBuilder, address: ir.Value, word: ir.Value, enabled: ir.Value) -> None:
    """``red.shared.add.u32``: adds ``word`` to what is at an address in shared memory, if ``enabled``."""
    operands = [_narrow(builder, address), word, enabled]
    assembly(builder, ir.VoidType(), "@$2 red.shared.add.u32 [$0], $1;", "r,r,b,~{memory}", operands)


def copy_async(
    builder: ir.IRBuilder,
    target: ir.Value,
    immediate: int,
    source: tuple[ir.Value, int],
    size: int,
    enabled: ir.Value,
    mask: ir.Value | None,
    cache: str,
) -> None:
    """``cp.async`` of 4, 8 or 16 bytes from ``source``, a global address and the bytes behind it, to ``immediate`` bytes behind
    ``target``, if ``enabled``. Zeros are written where ``mask`` is false. Copies of 16 bytes bypass the first cache, unless
    ``cache`` asks for it."""
    level = "cg" if size == 16 and cache != ".ca" else "ca"
    operands = [_narrow(builder, target), source[0], enabled]
    constraints = "r,l,b"
    text = f"@$2 cp.async.{level}.shared.global [$0+{immediate}], [$1+{source[1]}], {size}"
    if mask is not None:
        operands.append(builder.select(mask, ir.Constant(I32, size), ir.Constant(I32, 0)))
        constraints += ",r"
        text += ", $3"
    assembly(builder, ir.VoidType(), f"{text};", f"{constraints},~{{memory}}", operands)


def commit(builder: ir.IRBuilder) -> None:
    """The copies begun since the last commit become a group."""
    assembly(builder, ir.VoidType(), "cp.async.commit_group;", "~{memory}", [])


def wait(builder: ir.IRBuilder, pending: int) -> None:
    """Waits until at most the latest ``pending`` groups of the thread's copies are under way."""
    assembly(builder, ir.VoidType(), f"cp.async.wait_group {pending};", "~{memory}", [])


def _narrow(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    """A pointer to shared memory as the 32-bit address that instructions take."""
    return builder.ptrtoint(address, I32)
