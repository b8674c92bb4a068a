"""``weft profile``: a kernel of a PTX file, or of a CUDA source, run on the emulator, and what it did.

The command line has the grid and the arguments, generated (``f32[1024]=random``) or from files; no program that launches the
kernel is needed. A fault is printed with its place, and the exit code is 1. ``--diff`` compares two profiles that ``--json``
made.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.cli.console import console, print_json
from weft.cli.cuda_source import compiled
from weft.cli.types import named

if TYPE_CHECKING:
    from weft.emulator import Fault, Module

_MORE: Final = """\
arguments, one --arg for each parameter of the kernel:
  i32=1024, f32=0.5             a number
  f32[64,64]=random             an array: random, zeros, ones, arange, empty, or a number that fills it
  @x.npy                        an array from a file
  types: f32 f16 bf16 f64 i32 u32 i64 ..., or as weft spells them (float32, float8_e4m3fn)
  empty is memory that holds nothing yet: reading it before it is written is a fault

examples:
  weft profile add.ptx --grid 8 --block 128 --arg f32[1024]=random --arg f32[1024]=random --arg f32[1024]=empty --arg i32=1024
  weft profile transpose.ptx --kernel transpose --grid 4,4 --block 32,8 --arg f32[128,128]=empty --arg f32[128,128]=random \\
      --arg i32=128 --html report.html
  weft profile scale.cu --grid 8 --block 128 --arg f32[1024]=empty --arg f32[1024]=random --json > after.json
  weft profile --diff before.json after.json
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.usage = (
        "weft profile FILE --grid X,Y,Z --block X,Y,Z [--arg ARGUMENT]... [options]\n       weft profile --diff OLD NEW"
    )
    parser.epilog = _MORE
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="the module: PTX, or CUDA source (.cu), which nvcc compiles"
    )
    parser.add_argument(
        "--arch", metavar="TARGET", default="sm_90a", help="what nvcc compiles CUDA source for (default: sm_90a)"
    )
    parser.add_argument("--kernel", metavar="NAME", help="the kernel (default: the module's only one)")
    parser.add_argument("--grid", metavar="X,Y,Z", help="blocks: one to three numbers")
    parser.add_argument("--block", metavar="X,Y,Z", help="threads of a block: one to three numbers")
    parser.add_argument("--arg", metavar="ARGUMENT", action="append", default=[], help="an argument, see below")
    parser.add_argument("--shared", metavar="BYTES", type=int, default=0, help="dynamic shared memory of a block")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of random arguments (default: 0)")
    parser.add_argument("--source", metavar="DIR", help="where the source files are (default: where the PTX says)")
    parser.add_argument(
        "--inlined",
        choices=("written", "called"),
        default="written",
        help="where inlined code counts: at the line where it is written (default), or at the kernel's line that calls it",
    )
    parser.add_argument("--no-checks", action="store_true", help="count only: watch neither memory nor races")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", metavar="FILE", help="write the profile as a page")
    form.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--diff",
        metavar=("OLD", "NEW"),
        nargs=2,
        help="what changed between two profiles that --json made, by source line; the exit code is 1 if anything did",
    )


def run(options: argparse.Namespace) -> int:
    """Launches or compares; the exit code, 1 where the kernel faults or profiles differ."""
    if options.diff:
        return _compare(*map(Path, options.diff), called=options.inlined == "called")
    missing = [name for name in ("file", "grid", "block") if getattr(options, name) is None]
    if missing:
        named = ", ".join("FILE" if name == "file" else f"--{name}" for name in missing)
        raise ValueError(f"the following arguments are required: {named}")
    if options.json and options.open:
        raise ValueError("--open is of a page, and --json prints no page")
    grid, block = (_dims(name, getattr(options, name)) for name in ("grid", "block"))
    if options.shared < 0:
        raise ValueError(f"--shared is {options.shared}, expected 0 or more")
    rng = np.random.default_rng(options.seed)
    values = [read_argument(spelled, rng) for spelled in options.arg]
    path = Path(options.file)
    cuda = path.suffix == ".cu"
    text = compiled(path, options.arch) if cuda else path.read_text(encoding="utf-8", errors="replace")
    from weft.emulator import Checks, Fault, Module

    module = Module(text)
    kernel = _named(module, options.kernel) if options.kernel else _only_kernel(module)
    try:
        checks = Checks.none() if options.no_checks else Checks()
        profile = module.launch(kernel, grid, block, values, shared=options.shared, checks=checks)
    except Fault as fault:
        if options.json:
            print_json({"fault": _fault_data(fault)})
        else:
            console().print(str(fault), soft_wrap=True)
        return 1
    if options.inlined == "called":
        profile = profile.at_calls
    if options.json:
        print_json(profile.data())
    elif options.html or options.open:
        _page(profile.html(options.source), options.html, options.open)
    else:
        console().print(profile.render(options.source))
    return 0


def _page(html: str, file: str | None, opened: bool) -> None:
    """Writes the page, to a file that stays, says where, and opens it if asked to."""
    if file is None:
        handle, file = tempfile.mkstemp(suffix=".html", prefix="weft-profile-")
        os.close(handle)
    path = Path(file).absolute()
    path.write_text(html, encoding="utf-8")
    console().print(f"the page is written to {path}", soft_wrap=True)
    if opened and not webbrowser.open(path.as_uri()):
        console().print("there is no browser that could open it", soft_wrap=True)


def _compare(old: Path, new: Path, called: bool) -> int:
    from weft.emulator.profile import Profile
    from weft.testing.snapshots import differences, snapshot

    def read(path: Path) -> Profile:
        try:
            profile = Profile.from_json(path.read_text(encoding="utf-8"))
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{path} is no profile that weft profile --json made") from None
        return profile.at_calls if called else profile

    lines = differences(snapshot(read(old)), snapshot(read(new)))
    if not lines:
        console().print(f"no difference between {old} and {new}", soft_wrap=True)
        return 0
    console().print("\n".join([f"from {old} to {new}:", *lines]), soft_wrap=True)
    return 1


def _named(module: Module, name: str) -> str:
    """A kernel by its name, or by its name in the source where PTX has it mangled."""
    from weft.emulator.ptx.names import unmangled

    if name in module.kernels:
        return name
    found = [kernel for kernel in module.kernels if unmangled(kernel) == name]
    if len(found) > 1:
        raise ValueError(f"'{name}' is the name of several kernels: {', '.join(found)}; say which")
    return found[0] if found else name


def _dims(name: str, spelled: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(,\d+){0,2}", spelled):
        raise ValueError(f"--{name} is '{spelled}', expected one to three numbers such as 4,1,1")
    return tuple(int(number) for number in spelled.split(","))


def _only_kernel(module: Module) -> str:
    kernels = module.kernels
    if len(kernels) == 1:
        return kernels[0]
    if not kernels:
        raise ValueError("the module has no kernel")
    raise ValueError(f"the module has the kernels {', '.join(kernels)}; say which with --kernel")


def _fault_data(fault: Fault) -> dict[str, Any]:
    """A fault as JSON."""
    where = fault.where
    data: dict[str, Any] = {"kind": fault.kind, "message": fault.message, "kernel": where.kernel}
    if where.instruction is not None:
        source = where.instruction.source
        data |= {
            "line": where.instruction.line,
            "text": where.instruction.text,
            "source": source.chain[0].place if source else None,
            "inlined": [{"function": s.function, "source": s.place} for s in source.chain[1:]] if source else [],
        }
    return data | {"block": where.block, "thread": where.thread, "address": where.address}


# ---- arguments ----------------------------------------------------------------------------------------------------------

_SHAPED: Final = re.compile(r"(?P<type>[A-Za-z]\w*)(\[(?P<shape>[^\]]*)\])?=(?P<value>.+)")

_FORM: Final = "expected TYPE=NUMBER, TYPE[SHAPE]=VALUE or @FILE.npy"


def read_argument(spelled: str, rng: np.random.Generator) -> Any:
    """A kernel's argument from its spelling. Raises: ValueError, OSError."""
    from weft.emulator import Scratch

    if spelled.startswith("@"):
        return _load(spelled[1:])
    if (match := _SHAPED.fullmatch(spelled)) is None:
        raise ValueError(f"--arg '{spelled}' is no argument; {_FORM}")
    dtype = _dtype(spelled, match["type"])
    if match["shape"] is None:
        return dtype.type(_number(spelled, match["value"], dtype, "a number"))
    shape = _shape(spelled, match["shape"])
    value = match["value"]
    if value == "empty":
        return Scratch(np.zeros(shape, dtype))
    if (make := _FILLS.get(value)) is not None:
        return np.ascontiguousarray(make(rng, shape, dtype))
    near = difflib.get_close_matches(value, [*_FILLS, "empty"], n=1)
    hint = f"{', '.join(_FILLS)}, empty or a number" + (f"; did you mean '{near[0]}'?" if near else "")
    return np.full(shape, _number(spelled, value, dtype, hint), dtype)


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Normal numbers, whole ones from 0 to 99, or bools."""
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


_FILLS: Final[dict[str, Callable[[np.random.Generator, tuple[int, ...], np.dtype[Any]], Any]]] = {
    "random": _random,
    "zeros": lambda _, shape, dtype: np.zeros(shape, dtype),
    "ones": lambda _, shape, dtype: np.ones(shape, dtype),
    "arange": lambda _, shape, dtype: np.arange(np.prod(shape)).reshape(shape).astype(dtype),
}
"""What may fill an array."""


def _load(file: str) -> Any:
    try:
        loaded = np.load(file, allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"--arg '@{file}' is no array: {error}") from None
    if not isinstance(loaded, np.ndarray):
        raise ValueError(f"--arg '@{file}' is an archive of several arrays; expected one array (.npy)")
    return loaded  # pyright: ignore[reportUnknownVariableType]


def _dtype(spelled: str, name: str) -> np.dtype[Any]:
    try:
        return named(name).numpy
    except (ValueError, TypeError) as error:
        raise ValueError(f"--arg '{spelled}': {error}") from None


def _shape(spelled: str, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise ValueError(f"--arg '{spelled}': the shape is [{text}], expected numbers such as [64,64]")
    return tuple(int(size) for size in text.split(","))


def _number(spelled: str, text: str, dtype: np.dtype[Any], expected: str) -> Any:
    try:
        number = int(text, 0) if dtype.kind in "iub" else float(text)
    except ValueError:
        raise ValueError(f"--arg '{spelled}': the value is '{text}', expected {expected}") from None
    if dtype.kind in "iu" and not np.iinfo(dtype).min <= number <= np.iinfo(dtype).max:
        raise ValueError(f"--arg '{spelled}': {number} does not fit {dtype}")
    return number
