"""Targets as data: what each GPU has, and that the planner's model of it agrees."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import llvmlite.binding as llvm
import pytest

from weft.codegen import machine_for
from weft.codegen.nvidia.machine import GpuMachine
from weft.layout import vector_machine
from weft.target import (
    GPU_FEATURES,
    TUNING,
    X86_LEVELS,
    CpuTarget,
    GpuTarget,
    arm_features,
    cache_share,
    gpu,
    level,
    made_of,
    object_triple,
    reported_cache,
    vector_bits,
)

GPUS = {"sm_80": (80, False), "sm_86": (86, False), "sm_89": (89, False), "sm_90": (90, False), "sm_90a": (90, True)}

AMPERE = "cp.async mma.f16 mma.bf16 mma.i8 mma.tf32 mma.f64 redux.sync atom.f16"
HOPPER = f"{AMPERE} mma.f8 mma.m16.f64 atom.bf16 stmatrix tma cluster"

EXPECTED = {
    "sm_80": AMPERE,
    "sm_86": AMPERE,
    "sm_89": f"{AMPERE} mma.f8",
    "sm_90": HOPPER,
    "sm_90a": f"{HOPPER} wgmma setmaxnreg",
}


@pytest.mark.parametrize("name", GPUS)
def test_a_gpu_has_its_features(name: str) -> None:
    target = GpuTarget(*GPUS[name])
    assert target.name == name
    assert [feature for feature in GPU_FEATURES if target.has(feature)] == EXPECTED[name].split()


@pytest.mark.parametrize("name", GPUS)
def test_the_planners_model_is_of_the_same_machine(name: str) -> None:
    target = GpuTarget(*GPUS[name])
    assert target.model.name == name.removesuffix("a")
    assert target.model.lanes == 32
    assert target.model.stmatrix == target.has("stmatrix")
    assert target.model.redux == target.has("redux.sync")


def test_ptx_versions() -> None:
    """PTX ISA, release notes: 7.0 introduced sm_80, 7.1 sm_86, 7.8 sm_89 and sm_90, 8.0 sm_90a."""
    versions = {name: GpuTarget(*GPUS[name]).ptx_version for name in GPUS}
    assert versions == {"sm_80": (7, 0), "sm_86": (7, 1), "sm_89": (7, 8), "sm_90": (7, 8), "sm_90a": (8, 0)}


@pytest.mark.parametrize(("sm", "accelerated"), [(75, False), (80, True), (100, False)])
def test_a_gpu_without_data_is_refused(sm: int, accelerated: bool) -> None:
    name = f"sm_{sm}{'a' if accelerated else ''}"
    message = f"^no data on {name}; known are sm_80, sm_86, sm_89, sm_90, sm_90a$"
    with pytest.raises(ValueError, match=message):
        GpuTarget(sm, accelerated)


@pytest.mark.parametrize("lanes", [4, 16])
def test_the_model_of_a_cpu_is_of_its_lanes(lanes: int) -> None:
    model = CpuTarget("x86_64-unknown-linux-gnu", "haswell", "+avx2", 256, lanes).model
    assert (model.lanes, model.lane_primitive, model.scratch) == (lanes, "shuffle", 0)
    assert model == vector_machine(lanes)


def test_a_target_loads_no_layouts() -> None:
    """The planner takes longer to load than a cached kernel to start."""
    program = "import sys, weft.target; weft.target.host(); assert not [m for m in sys.modules if m.startswith('weft.layout')]"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", GPUS)
def test_a_gpu_is_found_by_its_name(name: str) -> None:
    assert gpu(name) == GpuTarget(*GPUS[name])
    assert isinstance(machine_for(gpu(name)), GpuMachine)


@pytest.mark.parametrize(
    ("name", "near"), [("sm_91", "; did you mean 'sm_90'?"), ("sm_90b", "; did you mean 'sm_90'?"), ("cuda", "")]
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    message = f"unknown target '{name}'; weft compiles for sm_80, sm_86, sm_89, sm_90, sm_90a{near}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        gpu(name)


FEATURES: Final = frozenset(" ".join([X86_LEVELS["x86-64"], X86_LEVELS["x86-64-v2"]]).split())
LINUX: Final = "x86_64-unknown-linux-gnu"


@pytest.mark.parametrize(
    ("name", "bits", "count"),
    [("x86-64", 128, 7), ("x86-64-v2", 128, 14), ("x86-64-v3", 256, 23), ("x86-64-v4", 512, 28)],
)
def test_a_level_has_what_those_below_have(name: str, bits: int, count: int) -> None:
    everything = frozenset(f for features in X86_LEVELS.values() for f in features.split())
    target = level(name, LINUX, everything)
    assert (target.cpu, target.vector_bits, len(target.enabled)) == (name, bits, count)
    assert "sse2" in target.enabled and ("fma" in target.enabled) == (count >= 23)


PROGRAM: Final = (Path(__file__).parent / "x86_levels.ll").read_text(encoding="utf-8")


def test_llvm_has_the_same_levels() -> None:
    """The table's features give the code that LLVM gives for the CPU of the level's name."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    known = llvm.Target.from_triple(LINUX)
    everything = frozenset(f for features in X86_LEVELS.values() for f in features.split())
    texts: set[str] = set()
    for name in X86_LEVELS:
        code = [
            known.create_target_machine(cpu=cpu, features=features).emit_assembly(llvm.parse_assembly(PROGRAM))
            for cpu, features in (("x86-64", level(name, LINUX, everything).features), (name, ""))
        ]
        assert code[0] == code[1], name
        texts.add(code[0])
    assert len(texts) == len(X86_LEVELS)


@pytest.mark.parametrize(
    ("name", "triple", "message"),
    [
        ("x86-64-v5", LINUX, "WEFT_TARGET is 'x86-64-v5', expected native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4"),
        (
            "x86-64-v3",
            LINUX,
            "WEFT_TARGET is 'x86-64-v3', and this CPU lacks avx, avx2, bmi, bmi2, f16c, fma, lzcnt, movbe, xsave",
        ),
        (
            "x86-64",
            "arm64-apple-darwin24.0.0",
            "WEFT_TARGET is 'x86-64', expected native: levels are those of x86-64, this machine is arm64-apple-darwin24.0.0",
        ),
    ],
)
def test_a_level_that_does_not_run_here_is_refused(name: str, triple: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        level(name, triple, FEATURES)


@pytest.mark.parametrize(
    ("triple", "features", "bits"),
    [
        ("arm64-apple-darwin24.0.0", "", 128),
        ("aarch64-unknown-linux-gnu", "", 128),
        ("aarch64-unknown-linux-gnu", "-neon", 64),
        ("x86_64-pc-windows-msvc", "", 128),
        ("x86_64-unknown-linux-gnu", "+avx2,+avx", 256),
        ("riscv64-unknown-linux-gnu", "", 64),
    ],
)
def test_a_machine_has_at_least_the_registers_of_its_architecture(triple: str, features: str, bits: int) -> None:
    assert vector_bits(features, triple) == bits


HERE: Final = CpuTarget(LINUX, "here", "+avx512f,+avx512vnni,-avx512bf16,+amx-tile,+avx2,+sse2", 512)


@pytest.mark.parametrize(
    ("text", "features", "bits", "tuning"),
    [
        ("", HERE.features, 512, ()),
        ("native", HERE.features, 512, ()),
        ("native,-amx-tile", "+avx512f,+avx512vnni,-avx512bf16,+avx2,+sse2,-amx-tile", 512, ()),
        ("native, -amx-tile, +amx-tile", "+avx512f,+avx512vnni,-avx512bf16,+avx2,+sse2,+amx-tile", 512, ()),
        ("native,+fast-dpbf16ps", HERE.features, 512, ("fast-dpbf16ps",)),
        ("native,+fast-dpbf16ps,-fast-dpbf16ps", HERE.features, 512, ()),
    ],
)
def test_features_are_added_and_taken_away(text: str, features: str, bits: int, tuning: tuple[str, ...]) -> None:
    """LLVM reads features in order: what is taken away comes last. Tuning is not told LLVM."""
    target = made_of(HERE, text)
    assert (target.features, target.vector_bits, target.tuning) == (features, bits, tuning)
    assert target.enabled == {f[1:] for f in features.split(",") if f[0] == "+"} | {*tuning}


def test_features_are_added_to_a_level() -> None:
    everything = " ".join(X86_LEVELS.values()).split() + ["avxvnni"]
    native = CpuTarget(LINUX, "here", ",".join(f"+{f}" for f in everything), 512)
    target = made_of(native, "x86-64-v3,+avxvnni")
    assert (target.cpu, target.vector_bits) == ("x86-64-v3", 256)
    assert "avxvnni" in target.enabled and "avx512f" not in target.enabled


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("native,amx-tile", ", expected +FEATURE or -FEATURE after a comma, found 'amx-tile'"),
        ("native,", ", expected +FEATURE or -FEATURE after a comma, found ''"),
        ("native,+avx512bf16", ", and this CPU lacks avx512bf16"),
        ("native,-avx512bf16", ", which has no avx512bf16"),
        ("native,-fast-dpbf16ps", ", which has no fast-dpbf16ps"),
        ("native,-avx2", ", and avx2 is part of a level, which others build on: name a lower level"),
    ],
)
def test_changes_that_cannot_be(text: str, rest: str) -> None:
    message = f"WEFT_TARGET changes here by '{text.partition(',')[2]}'{rest}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        made_of(HERE, text)


def test_tuning_is_of_cpus_with_the_instruction() -> None:
    """LLVM knows the names, and that these CPUs have AVX512-BF16."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for cpu in TUNING["fast-dpbf16ps"]:
        machine = llvm.Target.from_triple(LINUX).create_target_machine(cpu=cpu, features="")
        assert "vdpbf16ps" in machine.emit_assembly(llvm.parse_assembly(PAIRS)), cpu


PAIRS: Final = """
declare <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float>, <32 x bfloat>, <32 x bfloat>)
define <16 x float> @f(<16 x float> %s, <32 x bfloat> %a) {
  %r = call <16 x float> @llvm.x86.avx512bf16.dpbf16ps.512(<16 x float> %s, <32 x bfloat> %a, <32 x bfloat> %a)
  ret <16 x float> %r
}
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({16: 1 << 20, 26: 1 << 13 | 1 << 14}, "dotprod i8mm bf16"),
        ({16: 0xFFFFFFFF & ~(1 << 20), 26: 0xFFFFFFFF & ~(1 << 13)}, "bf16"),
        ({16: 0, 26: 0}, ""),
    ],
)
def test_what_linux_says_of_an_aarch64(words: dict[int, int], expected: str) -> None:
    """HWCAP_ASIMDDP, HWCAP2_I8MM and HWCAP2_BF16 (Linux, arch/arm64/include/uapi/asm/hwcap.h)."""
    assert arm_features(words.__getitem__) == expected.split()


def test_the_variable_chooses_the_code() -> None:
    program = "import weft.target as t; print(t.host().cpu, t.host().vector_bits)"
    environment = {**os.environ, "WEFT_TARGET": "x86-64-v2"}
    if llvm.get_process_triple().startswith("x86_64"):
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
        )
        assert done.stdout == "x86-64-v2 128\n"


@pytest.mark.parametrize(
    ("triple", "expected", "addressing"),
    [
        ("x86_64-unknown-linux-gnu", "x86_64-unknown-linux-gnu", ("pic", "default")),
        ("arm64-apple-darwin24.0.0", "arm64-apple-darwin24.0.0", ("pic", "default")),
        ("x86_64-pc-windows-msvc", "x86_64-pc-windows-msvc-elf", ("static", "large")),
        ("aarch64-pc-windows-msvc", "aarch64-pc-windows-msvc-elf", ("static", "large")),
        ("x86_64-pc-windows-msvc-elf", "x86_64-pc-windows-msvc-elf", ("static", "large")),
        ("x86_64-w64-windows-gnu", "x86_64-w64-windows-gnu-elf", ("static", "large")),
    ],
)
def test_objects_for_windows_are_elf(triple: str, expected: str, addressing: tuple[str, str]) -> None:
    """Linked by RuntimeDyld, which takes no COFF of weft's and may put sections far apart."""
    assert object_triple(triple) == expected
    assert CpuTarget(expected, "generic", "", 128).addressing == addressing


@pytest.mark.parametrize(
    ("reported", "cpus", "share"),
    [
        (480 << 20, 2, 32 << 20),  # a virtual machine that is told its host's cache
        (32 << 20, 16, 32 << 20),  # a desktop
        (8 << 20, 1, 8 << 20),
        (None, 4, 64 << 20),
    ],
)
def test_a_launch_counts_on_a_share_of_the_cache(reported: int | None, cpus: int, share: int) -> None:
    assert cache_share(reported, cpus) == share


def test_the_last_caches_of_a_machine_are_added_up(tmp_path: Path) -> None:
    """16 CPUs, of which 8 share a cache of 32 MiB, as Linux describes the caches of the first of them."""
    rows = {"index0": ("1", "48K", "1"), "index2": ("2", "1024K", "1"), "index3": ("3", "32768K", "00000000,000000ff")}
    for name, (number, size, sharing) in rows.items():
        (tmp_path / name).mkdir()
        for file, text in (("level", number), ("size", size), ("shared_cpu_map", sharing)):
            (tmp_path / name / file).write_text(f"{text}\n", encoding="ascii")
    assert reported_cache(str(tmp_path), 16) == 64 << 20
    assert reported_cache(str(tmp_path / "nothing"), 16) is None


def test_levels_keep_the_cache_and_take_the_tuning() -> None:
    """A level streams where it is told to."""
    everything = ",".join(f"+{f}" for f in " ".join(X86_LEVELS.values()).split())
    native = CpuTarget(LINUX, "here", everything, 512, tuning=("streaming-stores",), cache=1 << 20)
    assert made_of(native, "native,-streaming-stores").tuning == ()
    assert made_of(native, "x86-64-v3").cache == 1 << 20
    assert made_of(native, "x86-64-v3,+streaming-stores").tuning == ("streaming-stores",)
