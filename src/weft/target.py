"""Machines as data.

The compiler never asks what machine it is on: it is handed a target, a value that says everything codegen may depend
on, and that the disk cache puts into its key. `host` describes this machine; a literal `CpuTarget` describes another
one.

A CPU is a GPU of another size (DESIGN.md, section 3): one warp of ``lanes`` SIMD lanes. ``lanes`` counts elements and
is the same for every type, so that one layout serves a whole kernel; LLVM splits a vector wider than ``vector_bits``.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from weft.nearest import did_you_mean

if TYPE_CHECKING:
    from weft.layout.planning.machine import MachineModel

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

_LEAST: Final[Mapping[str, str]] = {"x86_64": "sse2", "aarch64": "neon"}
"""Architecture -> the SIMD registers that each of its machines has, also where LLVM lists no features of the machine: it knows
none of Apple's."""

X86_LEVELS: Final[Mapping[str, str]] = {
    "x86-64": "64bit cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "cx16 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
"""The levels of x86-64 (System V ABI, AMD64 supplement, "Micro-Architecture Levels"), each with what it adds to the one before,
in LLVM's names."""


@dataclass(frozen=True)
class CpuTarget:
    """A CPU as LLVM names it: triple, CPU name, and features as ``+a,-b,...``; ``vector_bits`` is a SIMD register's
    width."""

    triple: str
    cpu: str
    features: str
    vector_bits: int
    lanes: int = 16
    tuning: tuple[str, ...] = ()
    """Names of `TUNING`, in order."""
    cache: int = 32 << 20
    """The bytes of the last cache that a launch may count on; see `cache_share`."""

    @cached_property
    def enabled(self) -> frozenset[str]:
        """The features that are present, spelled without sign (``avx512f``), and the target's tuning."""
        return frozenset(f[1:] for f in self.features.split(",") if f.startswith("+")) | frozenset(self.tuning)

    @property
    def addressing(self) -> tuple[str, str]:
        """LLVM's relocation and code models. On Windows addresses are absolute, of 64 bits: the linker there may put code and its
        constants more than 2 GiB apart."""
        return ("static", "large") if _is_windows(self.triple) else ("pic", "default")

    @property
    def sum_bytes(self) -> int:
        """The bytes of the vector registers that sums take in a loop: half of those that the machine has, which are 32 with
        AVX-512 and on AArch64, and 16 on other x86-64 machines."""
        many = self.vector_bits == 512 or architecture(self.triple) == "aarch64"
        return (16 if many else 8) * self.vector_bits // 8

    @property
    def model(self) -> MachineModel:
        """What the planner knows of the machine."""
        from weft.layout.planning import machine  # not at import: a launch of a cached kernel plans nothing

        return machine.vector_machine(self.lanes)


TUNING: Final[Mapping[str, tuple[str, ...]]] = {
    "fast-dpbf16ps": ("cooperlake", "znver4", "znver5"),
    "far-prefetches": ("znver4",),
    "halved-loads": ("znver4",),
    "loading-additions": ("x86_64",),
    "lone-rows": ("znver2", "znver3", "znver4"),
    "prefetch-results": ("znver4",),
    "prefetch-rows": ("x86_64",),
    "slow-gathers": ("znver4", "znver5"),
    "streaming-stores": ("x86_64",),
}
"""What decides between instructions that a machine has, beside LLVM's features, and the CPUs of which it holds, by LLVM's names,
or a whole architecture.

- ``fast-dpbf16ps``: one of AVX512-BF16 takes no longer than a multiply-add of float32. On Sapphire Rapids it takes four times as
  long, so that multiply-adds on operands cast to float32 are twice as fast.
- ``far-prefetches``: loops that sum rows which a launch reads from memory prefetch far ahead (`weft.codegen.cpu.far_ahead`).
  Measured on Zen 4 alone.
- ``halved-loads``: loops over several arrays load 64 bytes as two vectors of 32 (`weft.codegen.cpu.halved_loads`). Measured on
  Zen 4 alone.
- ``loading-additions``: instructions that add load one of their operands.
- ``lone-rows``: rows of a certain length that share registers are summed one by one (`weft.codegen.cpu.lone_rows`). Measured on
  Zen 4, and assumed of Zen 2 and 3, whose first cache has as many ways.
- ``prefetch-results``: products fetch the lines ahead that they store to (`weft.codegen.cpu.results_ahead`). Measured on Zen 4
  alone.
- ``prefetch-rows``: loops that take rows far apart fetch the next one ahead (`weft.codegen.cpu.rows_ahead`). Measured on Zen 4,
  with AVX-512 and with AVX2; assumed of others, since processors fetch ahead within a page.
- ``slow-gathers``: AVX-512's gathers and scatters at equal distances take longer than loads and stores of their elements one by
  one. Measured on Zen 4, and assumed of Zen 5.
- ``streaming-stores``: outputs beyond the cache are stored past it (`weft.codegen.cpu.streaming`)."""

CACHE_PER_CPU: Final = 16 << 20
"""The most bytes of the last cache that one CPU counts as its own. A virtual machine of two CPUs names the 480 MiB of its whole
host. There, copies and sums of what they leave took as long with both kinds of stores at 16 MiB (docs/benchmarks/memory.md)."""


def cache_share(reported: int | None, cpus: int) -> int:
    """The bytes of the last cache that a launch may count on, on a machine of so many CPUs: what is ``reported`` of it, but no
    more than `CACHE_PER_CPU` for each."""
    most = CACHE_PER_CPU * cpus
    return most if reported is None else min(reported, most)


_CACHES: Final = "/sys/devices/system/cpu/cpu0/cache"


def reported_cache(folder: str = _CACHES, cpus: int | None = None) -> int | None:
    """The bytes of all last caches of a machine of so many CPUs, as Linux tells them of the first one
    (Documentation/ABI/testing/sysfs-devices-system-cpu); None where it does not."""
    found: list[tuple[int, int]] = []
    with contextlib.suppress(OSError, ValueError):
        for entry in os.scandir(folder):
            if entry.name.startswith("index"):
                level, size, sharing = (_line(entry.path, name) for name in ("level", "size", "shared_cpu_map"))
                sharers = int(sharing.replace(",", ""), 16).bit_count()
                found.append((int(level), (int(size.removesuffix("K")) << 10) * (cpus or _cpus()) // max(sharers, 1)))
    return max(found)[1] if found else None


def _line(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="ascii") as file:
        return file.read().strip()


def _cpus() -> int:
    return os.cpu_count() or 1


@cache
def host_cache() -> int:
    """`cache_share` of this machine."""
    return cache_share(reported_cache(), _cpus())


class Product(NamedTuple):
    """An instruction that multiplies panels: the LLVM features that it ``needs``, and the types of the operands and of the
    sums by name. ``group`` products go into one sum at once.

    Instructions of tiles take tiles of ``rows`` by ``bytes``. Those of vectors have 0 rows: LLVM's ``intrinsic`` takes vectors
    of ``bits``, of which each sum takes ``bytes`` of either operand. ``unsigned``: it takes the left operand's numbers as
    unsigned ones. ``adds``: the sums are its first operand; else its results are added to them. ``square``: it multiplies two
    rows by two columns, of 8 bytes each, and adds to two by two sums. ``embeds`` is its name in assembly where its last operand
    may be a word in memory that it repeats, and LLVM does not find that."""

    name: str
    needs: frozenset[str] = frozenset()
    operands: str = ""
    sums: str = ""
    group: int = 1
    rows: int = 0
    bytes: int = 0
    bits: int = 0
    intrinsic: str = ""
    unsigned: bool = False
    adds: bool = True
    square: bool = False
    embeds: str = ""

    def fits(self, m: int, n: int) -> bool:
        """Whether a result of ``m`` by ``n`` has as many rows and columns as the instruction takes."""
        return min(m, n) >= self.rows and (m > 1 or not self.square)


FMA: Final = Product("fma")
"""The multiply-add of vectors, which any machine has, on operands of the type of the sums."""


def _vectors(
    name: str,
    needs: str,
    types: str,
    bits: int,
    intrinsic: str,
    unsigned: bool = False,
    adds: bool = True,
    square: bool = False,
    embeds: str = "",
) -> Product:
    operands, sums = types.split()
    size = 8 if square else 4
    group = size // {"bfloat16": 2, "int16": 2, "int8": 1}[operands]
    return Product(
        name, frozenset(needs.split()), operands, sums, group, 0, size, bits, intrinsic, unsigned, adds, square, embeds
    )


PRODUCTS: Final[Mapping[str, Product]] = {
    one.name: one
    for one in (
        Product("amx.bf16", frozenset({"amx-tile", "amx-bf16"}), "bfloat16", "float32", group=2, rows=16, bytes=64),
        Product("amx.int8", frozenset({"amx-tile", "amx-int8"}), "int8", "int32", group=4, rows=16, bytes=64),
        _vectors(
            "avx512.bf16",
            "avx512bf16 fast-dpbf16ps",
            "bfloat16 float32",
            512,
            "x86.avx512bf16.dpbf16ps.512",
            embeds="vdpbf16ps",
        ),
        _vectors("avx512.vnni", "avx512vnni", "int8 int32", 512, "x86.avx512.vpdpbusd.512", unsigned=True),
        _vectors("avx.vnni", "avxvnni", "int8 int32", 256, "x86.avx512.vpdpbusd.256", unsigned=True),
        _vectors("avx512.madd", "avx512bw", "int16 int32", 512, "x86.avx512.pmaddw.d.512", adds=False),
        _vectors("avx2.madd", "avx2", "int16 int32", 256, "x86.avx2.pmadd.wd", adds=False),
        _vectors("sse2.madd", "sse2", "int16 int32", 128, "x86.sse2.pmadd.wd", adds=False),
        _vectors("arm.bfmmla", "bf16", "bfloat16 float32", 128, "aarch64.neon.bfmmla", square=True),
        _vectors("arm.smmla", "i8mm", "int8 int32", 128, "aarch64.neon.smmla.v4i32.v16i8", square=True),
        _vectors("arm.bfdot", "bf16", "bfloat16 float32", 128, "aarch64.neon.bfdot.v4f32.v8bf16"),
        _vectors("arm.sdot", "dotprod", "int8 int32", 128, "aarch64.neon.sdot.v4i32.v16i8"),
        FMA,
    )
}
"""The instructions that multiply panels, best first. Those of bfloat16 take subnormal operands and sums as zeros, and have
exact products. Sums are rounded to float32 after each addition: by x86's to nearest (Intel SDM, TDPBF16PS, VDPBF16PS), by
AArch64's BFDOT and BFMMLA to odd (Arm ARM, BFDotAdd). Float32 numbers that are cast for them are rounded by ``vcvtneps2bf16``
where the CPU has that, which takes subnormal ones as zeros, too. Those of integers are exact: sums are those of int32, modulo
2^32."""

_WIDER: Final[Mapping[str, str]] = {"int8": "int16"}
"""The type that operands may be cast to where no instruction takes their own."""


def product_for(features: frozenset[str], operands: str, sums: str, m: int = 64, n: int = 64) -> Product:
    """The best instruction for operands and ``m`` by ``n`` sums of these types; else `FMA`, on operands cast to the type of the
    sums."""
    fitting = (one for one in PRODUCTS.values() if (one.operands, one.sums) == (operands, sums) and one.fits(m, n))
    return next((one for one in fitting if one.needs <= features), FMA)


def packed_type(features: frozenset[str], operands: str, sums: str) -> str | None:
    """The type in which a dot's operands are best multiplied: their own, or a wider one for which there is an instruction; None
    where there is none but `FMA`."""
    wanted = (operands, _WIDER.get(operands, operands))
    return next((each for each in wanted if product_for(features, each, sums) is not FMA), None)


def vector_bits(features: str, triple: str = "") -> int:
    """The width in bits of the widest SIMD register among LLVM ``features``, and at least of the one that every machine of the
    triple's architecture has; 64 where there is none."""
    named = features.split(",")
    if (least := _LEAST.get(architecture(triple))) and f"-{least}" not in named:
        named.append(f"+{least}")
    return next((bits for feature, bits in _VECTOR_BITS if feature in named), _SCALAR_BITS)


def object_triple(triple: str) -> str:
    """The triple that code is compiled for in a process of ``triple``: with Windows' calling convention, in ELF objects.

    RuntimeDyld, LLVM's linker there, fails on COFF: constants are symbols that it does not find. JITLink, which takes COFF, is
    not in llvmlite on Windows.
    """
    return f"{triple}-elf" if _is_windows(triple) and not triple.endswith("-elf") else triple


def _is_windows(triple: str) -> bool:
    return "-windows-" in f"{triple}-"


def architecture(triple: str) -> str:
    """The architecture of a triple by one name: Apple writes ``arm64`` and Windows ``amd64`` where others write ``aarch64`` and
    ``x86_64``."""
    name = triple.partition("-")[0].lower()
    return {"arm64": "aarch64", "arm64e": "aarch64", "amd64": "x86_64"}.get(name, name)


@cache
def chosen() -> str:
    """What ``WEFT_TARGET`` said when it was first asked."""
    return os.environ.get("WEFT_TARGET", "").strip()


@cache
def host() -> CpuTarget:
    """The CPU that kernels are compiled for: this machine, or what ``WEFT_TARGET`` makes of it when it is first asked.
    `ValueError` where that names a level or a feature that is unknown, or beyond what this machine has."""
    import llvmlite.binding as llvm  # 60 ms that a process without kernels need not pay

    triple, features = object_triple(llvm.get_process_triple()), llvm.get_host_cpu_features().flatten()
    if "+amx-tile" in features and not tiles_permitted():
        features = features.replace("+amx-", "-amx-")
    if architecture(triple) == "aarch64" and sys.platform.startswith("linux"):
        features = ",".join([*filter(None, [features]), *(f"+{name}" for name in arm_features(_auxiliary))])
    cpu = llvm.get_host_cpu_name()
    tuning = tuple(name for name, cpus in TUNING.items() if not {cpu, architecture(triple)}.isdisjoint(cpus))
    native = CpuTarget(triple, cpu, features, vector_bits(features, triple), tuning=tuning, cache=host_cache())
    return made_of(native, chosen())


def made_of(native: CpuTarget, text: str) -> CpuTarget:
    """What a value of ``WEFT_TARGET`` makes of this machine; `ValueError` as `host` says."""
    name, *changes = (part.strip() for part in text.split(","))
    is_level = name not in ("", "native")
    base = replace(level(name, native.triple, native.enabled), cache=native.cache) if is_level else native
    return changed(base, changes, native.enabled) if changes else base


_ARM_FEATURES: Final[Mapping[str, tuple[int, int]]] = {"dotprod": (16, 20), "i8mm": (26, 13), "bf16": (26, 14)}
"""What LLVM does not list of an AArch64 machine, and where Linux tells it: the entry of the auxiliary vector (AT_HWCAP,
AT_HWCAP2) and the bit (Documentation/arch/arm64/elf_hwcaps.rst)."""


def arm_features(auxiliary: Callable[[int], int]) -> list[str]:
    """LLVM's names of what an AArch64 machine has beyond NEON, as far as dots use it."""
    return [name for name, (entry, bit) in _ARM_FEATURES.items() if auxiliary(entry) >> bit & 1]


def _auxiliary(entry: int) -> int:
    """A word of the auxiliary vector of this process."""
    import ctypes

    read = ctypes.CDLL(None).getauxval
    read.argtypes, read.restype = [ctypes.c_ulong], ctypes.c_ulong
    return read(entry)


def changed(target: CpuTarget, changes: Sequence[str], present: frozenset[str]) -> CpuTarget:
    """The target with features of LLVM added (``+avx512vnni``) and taken away (``-amx-tile``), on a machine whose features
    are ``present``; `ValueError` for what the machine lacks or the target does not have. `TUNING` is added and taken away
    likewise, on any machine."""
    said, features, tuning = (
        f"WEFT_TARGET changes {target.cpu} by '{','.join(changes)}'",
        target.features,
        {*target.tuning},
    )
    for change in changes:
        sign, feature = change[:1], change[1:]
        if sign not in ("+", "-"):
            raise ValueError(f"{said}, expected +FEATURE or -FEATURE after a comma, found '{change}'")
        if sign == "-" and feature not in replace(target, features=features, tuning=tuple(tuning)).enabled:
            raise ValueError(f"{said}, which has no {feature}")
        if feature in TUNING:
            (tuning.add if sign == "+" else tuning.remove)(feature)
            continue
        if sign == "+" and feature not in present:
            raise ValueError(f"{said}, and this CPU lacks {feature}")
        if sign == "-" and any(feature in of_level.split() for of_level in X86_LEVELS.values()):
            raise ValueError(f"{said}, and {feature} is part of a level, which others build on: name a lower level")
        features = ",".join([*(f for f in features.split(",") if f[1:] != feature), change])
    bits = vector_bits(features, target.triple)
    return replace(target, features=features, vector_bits=bits, tuning=tuple(sorted(tuning)))


_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18
"""Linux's system call, its ``ARCH_REQ_XCOMP_PERM``, and the number of AMX's state (Documentation/arch/x86/xstate.rst)."""


@cache
def tiles_permitted() -> bool:
    """Asks Linux for this process's use of AMX's tile registers; their state makes signal frames larger, so it may refuse."""
    import ctypes

    if not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0


def level(name: str, triple: str, present: frozenset[str]) -> CpuTarget:
    """A level of x86-64 on the machine of the triple, whose features are ``present``; `ValueError` where it cannot run."""
    if architecture(triple) != "x86_64":
        raise ValueError(
            f"WEFT_TARGET is '{name}', expected native: levels are those of x86-64, this machine is {triple}"
        )
    if name not in X86_LEVELS:
        raise ValueError(f"WEFT_TARGET is '{name}', expected native, {', '.join(X86_LEVELS)}")
    names = list(X86_LEVELS)
    features = [f for each in names[: names.index(name) + 1] for f in X86_LEVELS[each].split()]
    if missing := [f for f in features if f not in present]:
        raise ValueError(f"WEFT_TARGET is '{name}', and this CPU lacks {', '.join(missing)}")
    text = ",".join(f"+{f}" for f in features)
    return CpuTarget(triple, name, text, vector_bits(text, triple))


@dataclass(frozen=True)
class GpuTarget:
    """An NVIDIA GPU by its compute capability: ``sm`` is 80, 86, 89 or 90. ``accelerated`` adds the instructions of one
    capability alone (``sm_90a``), whose code runs on no later one. Sizes, memory and prices are those of `model`."""

    sm: int
    accelerated: bool = False

    def __post_init__(self) -> None:
        if self.name not in _GPUS:
            raise ValueError(f"no data on {self.name}; known are {', '.join(_GPUS)}")

    @property
    def name(self) -> str:
        """As ptxas spells it: ``sm_90a``."""
        return f"sm_{self.sm}{'a' if self.accelerated else ''}"

    @property
    def model(self) -> MachineModel:
        """What the planner knows of the machine."""
        return _model(self.sm)

    @property
    def ptx_version(self) -> tuple[int, int]:
        """The first version of PTX that knows the target."""
        return _GPUS[self.name]

    def has(self, feature: str) -> bool:
        """Whether the machine has a feature of `GPU_FEATURES`; `KeyError` for another name."""
        least, accelerated = GPU_FEATURES[feature]
        return self.accelerated and self.sm == least if accelerated else self.sm >= least


@cache
def _model(sm: int) -> MachineModel:
    """The machine of a compute capability."""
    from weft.layout.planning import machine  # not at import, as for the CPU

    return {80: machine.AMPERE, 86: machine.AMPERE_CONSUMER, 89: machine.ADA, 90: machine.HOPPER}[sm]


def gpu(name: str) -> GpuTarget:
    """The GPU of this name: ``gpu("sm_90")``. `ValueError` names those that weft knows, and the nearest."""
    if name not in _GPUS:
        hint = did_you_mean(name, _GPUS)
        raise ValueError(f"unknown target '{name}'; weft compiles for {', '.join(_GPUS)}{hint and '; '}{hint}")
    return GpuTarget(int(name.removeprefix("sm_").removesuffix("a")), name.endswith("a"))


Target: TypeAlias = CpuTarget | GpuTarget

_GPUS: Final[Mapping[str, tuple[int, int]]] = {
    "sm_80": (7, 0),
    "sm_86": (7, 1),
    "sm_89": (7, 8),
    "sm_90": (7, 8),
    "sm_90a": (8, 0),
}
"""The targets that weft has data on, and the PTX version that introduced each (PTX ISA, release notes)."""

GPU_FEATURES: Final[Mapping[str, tuple[int, bool]]] = {
    "cp.async": (80, False),
    "mma.f16": (80, False),
    "mma.bf16": (80, False),
    "mma.i8": (80, False),
    "mma.tf32": (80, False),
    "mma.f64": (80, False),
    "redux.sync": (80, False),
    "atom.f16": (80, False),
    "mma.f8": (89, False),
    "mma.m16.f64": (90, False),
    "atom.bf16": (90, False),
    "stmatrix": (90, False),
    "tma": (90, False),
    "cluster": (90, False),
    "wgmma": (90, True),
    "setmaxnreg": (90, True),
}
"""What an instruction needs: the least compute capability, and whether only its accelerated target has it (PTX ISA, "Target ISA
notes" of each instruction)."""


class Accuracy(NamedTuple):
    """How far a function of float32 may be from its exact value, at most: ``ulps`` and ``slope * |x|`` units in the last place of
    the exact value, and ``relative`` times it. ``flushes``: subnormal operands and results are zeros of their sign."""

    ulps: float = 0.0
    slope: float = 0.0
    relative: float = 0.0
    flushes: bool = False


APPROXIMATIONS: Final[Mapping[str, Accuracy]] = {
    "exp": Accuracy(ulps=2, slope=1.23),
    "exp2": Accuracy(ulps=2, flushes=True),
    "sqrt": Accuracy(relative=2.0**-23, flushes=True),
    "rsqrt": Accuracy(relative=2.0**-22.9, flushes=True),
    "div": Accuracy(ulps=2),
}
"""The elementwise kinds that NVIDIA GPUs approximate on float32, as Triton has it. Sources: PTX ISA, ``ex2``, ``sqrt``,
``rsqrt`` and ``div``. ``exp(x)`` is ``ex2`` of a product. The roundings of the product and of log2 e are at most 7.3e-8 of it,
so up to 1.23 ``x`` units of the result. (CUDA's guide says 2 + floor(1.173 ``x``) of ``__expf``: some ``x`` near 88 exceed
that even where ``ex2`` is exact.)"""
