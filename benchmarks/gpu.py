"""weft on a card, in one call: is it right, is the emulator right, how fast is it. Run as ``python benchmarks/gpu.py``.

    part          what it does
    correctness   runs tests with every launch of the emulator repeated on the card: the tests judge the card's results, and
                  each launch is compared with the emulator's, bit for bit
    emulator      `gpu_check.py`: the same for the emulator's own programs, which other compilers made
    times         kernels launched on the card's arrays, checked against NumPy, and timed beside Triton, PyTorch (cuBLAS,
                  FlashAttention) and what the copy rate and the matrix units allow; CUDA events, contenders in turns, medians

It needs a card and ``weft[cuda,test]``. PyTorch and Triton are timed where they are installed. Without a card it says so, and
``--small`` sizes are for machines without one, where a test runs it on an imitation of the driver.

``--out FILE`` writes the tables as Markdown, with date and device. The exit status is 1 where anything is wrong, 2 without a
card.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import gpu_check
import gpu_kernels
import numpy as np
import pytest
from gpu_card import Card, DeviceArray
from gpu_times import Case, cases, triton_kernels
from rich.console import Console

import weft
from weft.emulator import Module, TensorMap
from weft.emulator.machine.arguments import Arguments

ROOT: Final = Path(__file__).parents[1]
SUITE: Final = tuple(
    f"tests/{name}"
    for name in (
        "codegen/test_ops_differential.py",
        "codegen/test_kernels_differential.py",
        "codegen/test_flow_differential.py",
        "codegen/test_jumps_differential.py",
        "codegen/test_atomics.py",
        "codegen/test_nvidia_access.py",
        "codegen/test_nvidia_exchange.py",
        "codegen/test_nvidia_gather.py",
        "codegen/test_nvidia_reduce.py",
        "codegen/test_nvidia_scan.py",
        "concurrent",
        "examples/test_examples.py",
        "examples/test_tutorials.py",
        "language",
        "runtime/test_emulated.py",
        "runtime/test_tuples.py",
        "fuzz/test_fuzz.py",
    )
)
"""The op suite, whole kernels, the examples and generated kernels; their launches are emulated for the card's target."""

LEFT_OUT: Final = {
    "tests/examples/test_tutorials.py::test_on_the_cpu[grouped_matmul]": "addresses of the CPU in a table",
}
"""Tests of the suite that have no meaning inside `weft.emulate`, with the reason."""

PARTS: Final = ("correctness", "emulator", "times")
STRANGER: Final = 1e-2
"""Part of the greatest value by which the card may differ from the emulator: sums of matrix units are in the hardware's order."""


# ---- correctness ----------------------------------------------------------------------------------------------------------


@dataclass
class Launches:
    """Takes the place of `Module.launch`: each launch runs in the emulator, and then on the card, whose results stay."""

    card: Card
    equal: int = 0
    near: int = 0
    different: list[str] = field(default_factory=list[str])
    left_out: dict[str, int] = field(default_factory=dict[str, int])

    def launch(
        self, module: Module, kernel: str, grid: Any, block: Any, args: Sequence[Any] = (), **options: Any
    ) -> Any:
        """As `Module.launch`."""
        if reason := self._reason(module, args, options):
            self.left_out[reason] = self.left_out.get(reason, 0) + 1
            return EMULATE(module, kernel, grid, block, args, **options)
        ranges = [r for r in Arguments(module.syntax.functions[kernel], args).ranges if r.writeable]
        before = [r.view().copy() for r in ranges]
        profile = EMULATE(module, kernel, grid, block, args, **options)
        ours = [None if (array := _array(argument)) is None else array.copy() for argument in args]
        for r, data in zip(ranges, before, strict=True):
            r.view()[...] = data
        self.card.launch(module, kernel, grid, block, args, options.get("shared", 0))
        self._compare(kernel, ours, args)
        return profile

    def _reason(self, module: Module, args: Sequence[Any], options: dict[str, Any]) -> str:
        """Why a launch is not for the card; "" where it is."""
        if options.get("memory"):
            return "addresses of the host in tables"
        target = module.syntax.target[0]
        if not self.card.runs(target):
            return f"{target} is not for this card"
        return "tensor maps" if any(isinstance(argument, TensorMap) for argument in args) else ""

    def _compare(self, kernel: str, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
        worst = 0.0
        same = True
        for mine, other in zip(ours, map(_array, theirs), strict=True):
            if mine is not None and other is not None and mine.tobytes() != other.tobytes():
                same = False
                worst = max(worst, _apart(mine, other))
        self.equal += same
        self.near += not same and worst <= STRANGER
        if worst > STRANGER:
            self.different.append(f"{kernel}: {worst:.3g} of the greatest value")


EMULATE: Final = Module.launch


def _array(argument: Any) -> Any:
    found = getattr(argument, "array", argument)
    return found if isinstance(found, np.ndarray) else None


def _apart(mine: Any, other: Any) -> float:
    """The greatest difference, in units of the greatest value; of bytes without a type, 0: the test judges them."""
    if mine.dtype == np.uint8:
        return 0.0
    with np.errstate(all="ignore"):
        a, b = mine.astype(np.float64), other.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        if not np.array_equal(np.isnan(a), np.isnan(b)) or not finite.any():
            return float("inf")
        return float(np.abs(a - b)[finite].max() / max(np.abs(a[finite]).max(), np.finfo(np.float64).tiny))


class Tally:
    """A pytest plugin that counts how tests end."""

    def __init__(self) -> None:
        self.ended: dict[str, int] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Counts calls, and what fails before or after them."""
        if report.when == "call" or report.outcome != "passed":
            self.ended[report.outcome] = self.ended.get(report.outcome, 0) + 1


def correctness(card: Card, tests: Sequence[str], only: str) -> tuple[str, bool]:
    """A table of how the tests ended on the card, and whether all is well."""
    launches, tally = Launches(card), Tally()
    target = card.device.target
    warning = "ignore::pytest.PytestAssertRewriteWarning"  # weft is imported already
    arguments = [
        "-q",
        "-W",
        warning,
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-m",
        "not pages",
        "--rootdir",
        str(ROOT),
    ]
    chosen = ["-k", only] if only else []
    chosen += [f"--deselect={test}" for test in LEFT_OUT]
    Module.launch = lambda self, *args, **options: launches.launch(self, *args, **options)  # pyright: ignore
    try:
        with weft.emulate(target):
            code = pytest.main([*arguments, *chosen, *(str(ROOT / test) for test in tests)], [tally])
    finally:
        Module.launch = EMULATE
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return f"The tests could not be run: {code!r}.", False
    rows = [
        ("tests", ", ".join(f"{count} {outcome}" for outcome, count in tally.ended.items())),
        ("launches on the card", str(launches.equal + launches.near + len(launches.different))),
        ("as the emulator, bit for bit", str(launches.equal)),
        ("near it", str(launches.near)),
        ("different", "; ".join(launches.different) or "0"),
        *((f"not launched: {reason}", str(count)) for reason, count in launches.left_out.items()),
    ]
    text = "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])
    return text, code == pytest.ExitCode.OK and not launches.different


def emulator_programs() -> tuple[str, bool]:
    """`gpu_check`'s table."""
    try:
        device = gpu_check.Device()
    except (OSError, AttributeError, gpu_check.DriverError) as error:
        return f"Left out: {error}.", True
    rows = gpu_check.run(device)
    return gpu_check.tables(device, rows, "see gpu_check.py"), all(row.verdict != "DIFFERENT" for row in rows)


# ---- times ----------------------------------------------------------------------------------------------------------------


class Arrays:
    """Arrays on the card: PyTorch's tensors where it is installed with CUDA, else weft's own."""

    def __init__(self, card: Card):
        self._card = card
        self.torch: Any = None
        if importlib.util.find_spec("torch") is not None:
            torch = importlib.import_module("torch")
            self.torch = torch if torch.cuda.is_available() else None

    def up(self, value: Any) -> Any:
        """An array on the card; other values as they are."""
        if not isinstance(value, np.ndarray):
            return value
        if self.torch is None:
            return DeviceArray(self._card, value)
        if value.dtype.name == "bfloat16":  # which PyTorch does not take from NumPy
            return self.torch.from_numpy(value.view(np.int16)).cuda().view(self.torch.bfloat16)
        return self.torch.from_numpy(value).cuda()

    def down(self, value: Any) -> Any:
        """A copy in the CPU's memory."""
        return value.numpy() if self.torch is None else value.cpu().numpy()


def _contenders(case: Case, arrays: Arrays, arguments: Sequence[Any]) -> dict[str, list[Callable[[], object]]]:
    """For each contender, its variants as calls."""
    found: dict[str, list[Callable[[], object]]] = {}
    makers = {"weft": gpu_kernels}
    if arrays.torch is not None and (triton := triton_kernels()) is not None:
        makers["Triton"] = triton
    for name, kernels in makers.items():
        kernel = getattr(kernels, case.kernel)
        found[name] = [
            lambda kernel=kernel, v=variant: kernel[case.grid(v)](*arguments, **v, **case.options)
            for variant in case.variants
        ]
    if arrays.torch is not None and case.torch is not None:
        inputs = [a for a in arguments if isinstance(a, arrays.torch.Tensor)][:-1]
        function = case.torch
        found["PyTorch"] = [lambda: function(arrays.torch, *inputs)]
    return found


@dataclass
class Row:
    """A case's line of the table: microseconds by contender, the least that is possible, what went wrong."""

    case: Case
    limit: float
    bound: str
    medians: dict[str, float]
    notes: list[str]
    wrong: bool


def time_case(case: Case, card: Card, arrays: Arrays, copy_rate: float, repeats: int) -> Row:
    """Checks weft's result, then times all contenders in turns."""
    host = case.make()
    arguments = [arrays.up(value) for value in host]
    last = max(i for i, value in enumerate(host) if isinstance(value, np.ndarray))
    expected = case.expected(*(value for value in host[:last] if isinstance(value, np.ndarray)))
    notes: list[str] = []
    wrong = False
    runnable: dict[str, list[Callable[[], object]]] = {}
    for name, variants in _contenders(case, arrays, arguments).items():
        for run in variants:
            try:
                run()
                card.call("cuCtxSynchronize")
            except Exception as error:
                notes.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}")
                continue
            if name == "weft":
                apart = _off(arrays.down(arguments[last]), expected)
                if apart > case.tolerance:
                    wrong = True
                    notes.append(f"weft is off by {apart:.2g} of the greatest value")
            runnable.setdefault(name, []).append(run)
    wrong |= "weft" not in runnable
    taken: dict[tuple[str, int], list[float]] = {}
    for _ in range(repeats):
        for name, variants in runnable.items():
            for i, run in enumerate(variants):
                taken.setdefault((name, i), []).append(1e6 * card.seconds(run))
    medians: dict[str, float] = {}
    for (name, _), times in taken.items():
        medians[name] = min(medians.get(name, float("inf")), statistics.median(times))
    peak = card.peak(case.kind)
    limits = {"copy": 1e6 * case.moved / copy_rate, "matrix unit": 1e6 * case.flops / peak if peak else 0.0}
    bound = max(limits, key=lambda which: limits[which])
    return Row(case, limits[bound], bound, medians, notes, wrong)


def _off(found: Any, expected: Any) -> float:
    """The greatest difference, in units of the greatest value expected."""
    a, b = found.astype(np.float64), expected.astype(np.float64)
    return float(np.abs(a - b).max() / np.abs(b).max()) if np.isfinite(a).all() else float("inf")


def times(card: Card, small: bool, repeats: int) -> tuple[str, bool]:
    """A table of times, and whether all results were right."""
    arrays = Arrays(card)
    rate = card.copy_rate(1 << 16 if small else 1 << 29)
    rows = [time_case(case, card, arrays, rate, repeats) for case in cases(small)]
    names = ("weft", "Triton", "PyTorch")
    out = [f"A copy reads and writes {rate / 1e9:.0f} GB/s. Times in microseconds, medians of {repeats}.", ""]
    out += ["| kernel | " + " | ".join(names) + " | limit | bound by | weft of the limit | |", "|---|" + "---|" * 7]
    for row in rows:
        cells = [f"{row.medians[name]:.1f}" if name in row.medians else "" for name in names]
        share = f"{row.limit / row.medians['weft']:.0%}" if "weft" in row.medians else ""
        notes = "; ".join(row.notes)
        out.append(f"| {row.case.name} | {' | '.join(cells)} | {row.limit:.1f} | {row.bound} | {share} | {notes} |")
    return "\n".join(out), not any(row.wrong for row in rows)


# ---- all of it --------------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts; the exit status."""
    parser = argparse.ArgumentParser(description="weft on a card: right, and how fast.")
    parser.add_argument("--out", type=Path, help="write the tables here, as Markdown")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part (default: all)")
    parser.add_argument("--tests", nargs="*", default=SUITE, help="of the correctness part (default: the suite)")
    parser.add_argument("-k", dest="only", default="", help="which of these tests, as pytest's -k")
    parser.add_argument("--repeats", type=int, default=25, help="of each timing (default: 25)")
    parser.add_argument("--small", action="store_true", help="small sizes")
    parser.add_argument("--card", type=int, default=0, help="the card's number (default: 0)")
    options = parser.parse_args(arguments)
    console = Console(soft_wrap=True)
    try:
        card = Card(options.card)
        target = card.device.target.name
    except weft.CudaError as error:
        console.print(f"There is no card to run on: {error}")
        return 2
    parts: dict[str, Callable[[], tuple[str, bool]]] = {
        "correctness": lambda: correctness(card, options.tests, options.only),
        "emulator": emulator_programs,
        "times": lambda: times(card, options.small, options.repeats),
    }
    text = [f"# {card}, {target}, {datetime.date.today().isoformat()}"]
    well = True
    for name in options.part or PARTS:
        table, right = parts[name]()
        well = well and right
        text += ["", f"## {name}", "", table]
    console.print("\n".join(text), markup=False, highlight=False)
    if options.out:
        options.out.write_text("\n".join([*text, ""]), encoding="utf-8")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
