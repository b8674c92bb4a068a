"""Machines as data.

The compiler never asks what machine it is on: it is handed a target, a value that says everything codegen may depend
on, and that the disk cache puts into its key. `host` describes this machine; a literal `CpuTarget` describes another
one.

A CPU is a GPU of another size (DESIGN.md, section 3): one warp of ``lanes`` SIMD lanes. ``lanes`` counts elements and
is the same for every type, so that one layout serves a whole kernel; LLVM splits a vector wider than ``vector_bits``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

_VECTOR_BITS: Final[tuple[tuple[str, int], ...]] = (
    ("+avx512f", 512),
    ("+avx", 256),
    ("+sse2", 128),
    ("+neon", 128),
    ("+vsx", 128),
    ("+v", 128),
)
"""LLVM feature -> width of a SIMD register, widest first; the first one present decides."""

_SCALAR_BITS: Final = 64


@dataclass(frozen=True)
class CpuTarget:
    """A CPU as LLVM names it: triple, CPU name, and features as ``+a,-b,...``; ``vector_bits`` is a SIMD register's
    width."""

    triple: str
    cpu: str
    features: str
    vector_bits: int
    lanes: int = 16

    @cached_property
    def enabled(self) -> frozenset[str]:
        """The features that are present, spelled without sign (``avx512f``)."""
        return frozenset(f[1:] for f in self.features.split(",") if f.startswith("+"))


def vector_bits(features: str) -> int:
    """The width in bits of the widest SIMD register among LLVM ``features``; 64 where there is none."""
    present = set(features.split(","))
    return next((bits for feature, bits in _VECTOR_BITS if feature in present), _SCALAR_BITS)


@cache
def host() -> CpuTarget:
    """This machine."""
    import llvmlite.binding as llvm  # 60 ms that a process without kernels need not pay

    features = llvm.get_host_cpu_features().flatten()
    return CpuTarget(llvm.get_process_triple(), llvm.get_host_cpu_name(), features, vector_bits(features))
