"""The tools behind the generated kernels can themselves fail: the comparison, the shrinker, the driver of processes."""

from __future__ import annotations

import ast
import contextlib
import math
import queue
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuzz import case, process
from fuzz.case import Case, compare, load, signs, ulps_apart, values_for
from fuzz.generator import Generator, generate
from fuzz.process import verdicts
from fuzz.shrink import shrink
from fuzz.worker import AGREES, judge
from sampling import every
from weft import dtypes, reference
from weft.options import Options
from weft.runtime import compiler

AGREEING = """
import weft
import weft.language as tl
GRID = (1,)
SEED = 1
ARGUMENTS = {"out1": ("output", "int32", 4)}

@weft.jit
def kernel(out1):
    tl.store(out1 + tl.arange(0, 4), 7)
"""


@pytest.fixture(autouse=True)
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference runs what the frontend made, which it makes for a compilation only."""
    monkeypatch.setenv("WEFT_CACHE", "0")


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def test_ulps_count_representable_numbers() -> None:
    one = f32(1, 1, -1, math.inf, 1, 0)
    other = f32(1 + 2**-23, 1 - 2**-24, -1 + 2**-24, dtypes.float32.largest, 1, -0.0)
    assert ulps_apart(dtypes.float32, one, other).tolist() == [1, 1, 1, 1, 0, 0]


def test_a_nan_is_far_from_every_number() -> None:
    assert ulps_apart(dtypes.float32, f32(math.nan), f32(1)).tolist() == [math.inf]


def test_ulps_between_large_numbers_of_64_bits() -> None:
    """Exact also where places of the numbers have more than 53 bits."""
    large: Any = np.array([1e300, -1e300, 1e300, 5e-324], np.float64)
    after = np.nextafter(large, np.inf)
    assert ulps_apart(dtypes.float64, large, after).tolist() == [1, 1, 1, 0]
    far = ulps_apart(dtypes.float64, np.array([-1e300]), np.array([1e300]))
    assert far.tolist() == [float(2 * int(np.array([1e300]).view(np.uint64)[0]))]


def test_exact_outputs_see_one_bit_and_the_sign_of_zero() -> None:
    entry = ("output", "float32", 2)
    assert compare("x", entry, f32(1, 0), f32(1, 0), {}) is None
    assert compare("x", entry, f32(math.nan, 0), f32(-math.nan, 0), {}) is None
    found = compare("x", entry, f32(1, -0.0), f32(1, 0), {})
    assert str(found) == (
        "x (exact): 1 of 2 elements differ, the first at 1: native np.float32(-0.0), reference np.float32(0.0)"
    )


@pytest.mark.parametrize(("apart", "agrees"), [(0.75, True), (1.25, False)])
def test_within_compares_with_a_multiple_of_the_magnitude(apart: float, agrees: bool) -> None:
    entry = ("output", "float32", 1, "within", "b", 0.25)
    assert (compare("x", entry, f32(8 + apart), f32(8), {"b": np.array([4.0])}) is None) == agrees


@pytest.mark.parametrize(
    ("machine", "apart", "agrees"), [("native", 4, False), ("sm_80", 4, True), ("sm_80", 6, False)]
)
def test_ulps_grow_by_what_a_machine_approximates(machine: str, apart: int, agrees: bool) -> None:
    entry = ("output", "float32", 1, "ulps", 3, "div", "log")
    found = (f32(1).view(np.int32) + np.int32(apart)).view(np.float32)
    assert (compare("x", entry, found, f32(1), {}, machine) is None) == agrees


def test_a_magnitude_next_to_overflow_excuses_everything() -> None:
    entry = ("output", "float32", 1, "within", "b", 0.0)
    assert compare("x", entry, f32(math.inf), f32(0), {"b": np.array([1e38])}) is None


def test_shrinking_keeps_what_the_failure_needs() -> None:
    text = generate(3)
    *_, last = (line.strip() for line in text.splitlines() if line.startswith("    tl.store("))
    needed = ast.unparse(ast.parse(last))
    small = shrink(text, lambda candidate: needed in candidate)
    [kernel] = [node for node in ast.parse(small).body if isinstance(node, ast.FunctionDef)]
    assert [ast.unparse(statement) for statement in kernel.body] == [needed]
    names: dict[str, Any] = {}
    exec(small.partition("@weft.jit")[0], names)
    bases = {entry[3] for entry in names["ARGUMENTS"].values() if entry[0] == "alias"}
    assert {argument.arg for argument in kernel.args.args} <= {*re.findall(r"\w+", needed), *bases}


def test_a_crash_costs_one_kernel_and_a_hang_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time passes when the kernel that hangs says that it does: the test waits for no limit, and a busy machine reaches none."""
    hanging = tmp_path / "hanging"

    class Lines(queue.SimpleQueue[bytes]):
        def get(self, block: bool = True, timeout: float | None = None) -> bytes:
            assert timeout == 10
            end = time.monotonic() + 100
            hangs = False
            while not hangs and time.monotonic() < end:
                hangs = hanging.exists()
                with contextlib.suppress(queue.Empty):
                    return super().get(timeout=2 if hangs else 0.05)  # lines that were written before it hung
            hanging.unlink(missing_ok=True)
            raise queue.Empty

    monkeypatch.setattr(process.queue, "SimpleQueue", Lines)
    bodies = {
        "agrees": AGREEING,
        "crash": "import os\nos.abort()\n",
        "after": AGREEING,
        "timeout": f"import pathlib, time\npathlib.Path({str(hanging)!r}).touch()\ntime.sleep(60)\n",
        "last": AGREEING,
    }
    paths = {name: tmp_path / f"{name}.py" for name in bodies}
    for name, body in bodies.items():
        paths[name].write_text(body)
    found = {Path(v.item).stem: v.kind for v in verdicts([str(p) for p in paths.values()], timeout=10)}
    assert found == {"agrees": "agrees", "crash": "crash", "after": "agrees", "timeout": "timeout", "last": "agrees"}


def test_a_kernel_that_does_not_compile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "refused.py"
    path.write_text(AGREEING.replace(", 7)", ", missing)"))
    verdict = judge("refused", path)
    assert verdict.kind == "refused"
    assert "missing" in verdict.message


OVERLAPPING = """
import weft
import weft.language as tl
GRID = (1,)
SEED = 1
ARGUMENTS = {
    "in1": ("input", "int32", 32),
    "in2": ("alias", "int32", 16, "in1", 8),
    "in3": ("alias", "int32", 16, "in1", 0),
}

@weft.jit(checked=CHECKED)
def kernel(in1, in2, in3):
    i = tl.arange(0, 16)
    tl.store(in2 + i, tl.load(in3 + i) * 3 + 1)
"""


def test_an_alias_is_the_other_arguments_memory(tmp_path: Path) -> None:
    path = tmp_path / "overlapping.py"
    path.write_text(OVERLAPPING.replace("CHECKED", "False"))
    whole, shifted, first = values_for(load(path))
    assert whole.size == 32
    assert (shifted.ctypes.data - whole.ctypes.data, first.ctypes.data) == (8 * 4, whole.ctypes.data)
    assert shifted.size == first.size == 16


@pytest.mark.parametrize("checked", ["False", "True"])
def test_overlapping_arguments_agree(checked: str, tmp_path: Path) -> None:
    path = tmp_path / f"overlapping_{checked}.py"
    path.write_text(OVERLAPPING.replace("CHECKED", checked))
    assert judge("overlapping", path).kind == AGREES


def test_an_overlap_that_the_launch_does_not_see_is_a_mismatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison would notice a compiler that believes such arrays disjoint: the loads of a later register see the stores of
    an earlier one."""

    def believed(extents: object) -> bool:
        return True

    monkeypatch.setattr(sys.modules["weft.runtime.jit"], "disjoint", believed)
    path = tmp_path / "believed.py"
    path.write_text(OVERLAPPING.replace("CHECKED", "False").replace("16", "256").replace("32)", "512)"))
    assert judge("believed", path).kind == "mismatch"


NEIGHBOURS = """
import weft, weft.language as tl
GRID, SEED = (64,), 1
ARGUMENTS = {"x": ("input", "float32", 512), "out": ("output", "float32", 512, "ulps", 3), "N": ("constant", 8)}
@weft.jit
def kernel(x, out, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + 1)
"""


@pytest.mark.parametrize("checked", [False, True])
def test_joined_programs_have_the_bits_of_programs_alone(
    checked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A last bit that differs shows, although outputs may be 3 units off the reference. With bounds checks nothing is joined."""
    path = tmp_path / "neighbours.py"
    path.write_text(NEIGHBOURS.replace("@weft.jit", "@weft.jit(checked=True)") if checked else NEIGHBOURS)
    assert judge("neighbours", path).kind == AGREES
    right = values_for
    launches: list[int] = []

    def off_the_third_time(loaded: Case) -> list[Any]:
        launches.append(1)
        values = right(loaded)
        if len(launches) == 3:  # native, the reference, alone
            with np.errstate(all="ignore"):
                values[0] = np.nextafter(values[0], np.float32(np.inf))
        return values

    monkeypatch.setattr(case, "values_for", off_the_third_time)
    verdict = judge("neighbours", path)
    assert verdict.kind == (AGREES if checked else "mismatch")
    assert ("programs alone (exact)" in verdict.message) == (not checked)
    assert len(launches) == (2 if checked else 3)


def test_generated_kernels_have_every_feature() -> None:
    """Arrays that overlap or are passed twice, zeros of both signs, operands of loops of dots; bounds checks, and a word of
    each family."""
    texts = [generate(seed) for seed in range(150)]
    for feature in ('("alias", ', '"signs")', '"small")'):
        assert sum(feature.replace('"', "'") in text for text in texts) > 5, feature
    for feature in (
        "@weft.jit(checked=True)",
        "tl.make_block_ptr(",
        "tl.make_tensor_descriptor(",
        "tl.dot_scaled(",
        "tl.map_elementwise(",
        "tl.device_print(",
        "libdevice.",
        "tuple",
        "tl.atomic_load(",
        ", scope=",
    ):
        assert sum(feature in text for text in texts) > 3, feature


def test_programs_do_not_meet_in_an_array_with_two_names() -> None:
    """Several programs run in any order: an alias then begins where the array does, and has its elements per program."""
    seen = 0
    for seed in range(100):
        names: dict[str, Any] = {}
        exec(generate(seed).partition("@weft.jit")[0].replace("tl.constexpr(", "("), names)
        for kind, *rest in names["ARGUMENTS"].values():
            if kind == "alias" and math.prod(names["GRID"]) > 1:
                seen += 1
                assert rest[3] == 0
    assert seen > 3


def test_signs_are_zeros_of_both_signs_and_nan() -> None:
    found = signs(np.random.default_rng(0), dtypes.float16, 256)
    assert found.dtype == np.float16
    assert (found == 0).sum() > 100
    assert np.signbit(found[found == 0]).any() and not np.signbit(found[found == 0]).all()
    assert np.isnan(found).any()


TOGETHER = [seed for seed in range(1500) if Generator(seed).together]


def test_generated_programs_synchronise_in_every_way() -> None:
    texts = "\n".join(generate(seed) for seed in TOGETHER)
    for way in (
        "== 1:\n        pass",
        "if t\\d+ == 15:",
        "while t\\d+ != t\\d+:",
        "atomic_xchg\\(own",
        "atomic_cas\\(own",
    ):
        assert re.search(way, texts), way
    for kind in ("add", "xor", "and", "or", "min", "max"):
        assert f"tl.atomic_{kind}(shared" in texts


@pytest.mark.parametrize("seed", every(2, TOGETHER[:6]))
def test_no_schedule_changes_what_synchronising_programs_compute(seed: int, tmp_path: Path) -> None:
    path = tmp_path / f"seed_{seed}.py"
    path.write_text(generate(seed))
    case = load(path)
    outcomes: list[list[bytes]] = []
    for schedule in (None, 0, 1):
        arguments = values_for(case)
        handle = case.kernel.compile(*arguments)
        named = zip(case.arguments, arguments, strict=True)
        runtime = [x for name, x in named if hasattr(handle.signature.get(name), "dtype")]
        reference.run(compiler.tile_ir(case.kernel, handle.signature, Options()), runtime, case.grid, schedule)
        outcomes.append([x.tobytes() for x in runtime if isinstance(x, np.ndarray)])
    assert outcomes[0] == outcomes[1] == outcomes[2]
