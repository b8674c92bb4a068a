"""``weft opt``: tile IR before and after passes, of a kernel in a Python file or of a file of tile IR.

Without ``--pass`` it runs the passes that a launch on this CPU runs. Files that ``filecheck`` reads go through it: their first
line is ``// RUN: weft opt %s --pass NAME``.
"""

from __future__ import annotations

import argparse
import difflib
import inspect
import sys
from typing import TYPE_CHECKING, Final

from weft.cli.kernel_file import find_kernel, read_signature, split_name
from weft.options import Options

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

_MORE: Final = """\
--signature has an entry for each parameter of the kernel, in order:
  *fp32                an array of float32
  *fp32:16             an array whose address is a multiple of 16
  i32, fp32            a number known when the kernel is launched
  i32:16               an integer that is a multiple of 16
  1024, 0.5, True      a constant; a constexpr parameter may also be a type
  types: fp32 fp16 bf16 fp64 i32 u32 i64 ..., or as weft spells them (float32, float8_e4m3fn)

--print takes
  before               the IR before the first pass
  after                the IR after the last pass (the default)
  NAME                 the IR before and after each run of the pass NAME
Where there is more than one text, each has a line "// before NAME" or "// after NAME" above it.

examples:
  weft opt softmax.py --signature '*fp32:16,*fp32:16,i32,1024' --print before --print assign-layouts
  weft opt kernels.py:add --signature '*fp32,*fp32,i32,64' --pass simplify --pass cse
  weft opt kernel.mlir --pass 'assign-layouts{lanes=8}'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.usage = "weft opt FILE.py[:KERNEL] | FILE.mlir [--signature TYPES] [--pass NAME]... [--print WHAT]..."
    parser.epilog = _MORE
    parser.add_argument("file", metavar="FILE", nargs="?", help="kernels in Python, or a module of tile IR")
    parser.add_argument("--signature", metavar="TYPES", help="of a kernel in Python, see below")
    parser.add_argument(
        "--pass",
        metavar="NAME",
        dest="passes",
        action="append",
        help="a pass to run, in this order; NAME{option=value}",
    )
    parser.add_argument("--print", metavar="WHAT", dest="shown", action="append", help="see below")
    parser.add_argument("--list", action="store_true", help="list the passes and the default order")


def run(options: argparse.Namespace) -> int:
    """Print what is asked for; the exit code."""
    if options.list:
        sys.stdout.write(f"{_listed()}\n")
        return 0
    if options.file is None:
        raise ValueError("opt needs a file: FILE.py, FILE.py:KERNEL or FILE.mlir")
    passes = _default() if options.passes is None else tuple(_pass(spelled) for spelled in options.passes)
    shown: list[str] = options.shown or ["after"]
    for what in shown:
        _check_shown(what, [one.name for one in passes])
    texts = _run(_module(options.file, options.signature), passes, shown)
    titled = [f"// {title}\n{text}\n" if len(texts) > 1 else f"{text}\n" for title, text in texts]
    sys.stdout.write("\n".join(titled))
    return 0


def _run(module: ModuleOp, passes: tuple[ModulePass, ...], shown: list[str]) -> list[tuple[str, str]]:
    """Run the passes in place; the texts to print, each with its title."""
    from xdsl.context import Context
    from xdsl.utils.exceptions import VerifyException

    from weft.ir.unsupported import UnsupportedOpError

    context = Context()
    texts = [("before", str(module))] if "before" in shown else []
    for one in passes:
        if one.name in shown:
            texts.append((f"before {one.name}", str(module)))
        try:
            one.apply(context, module)
        except UnsupportedOpError as error:
            raise ValueError(f"{one.name}: {error.on_one_line()}") from error
        try:
            module.verify()
        except VerifyException as error:
            raise ValueError(f"the module is not valid after {one.name}: {error}") from error
        if one.name in shown:
            texts.append((f"after {one.name}", str(module)))
    return [*texts, ("after", str(module))] if "after" in shown else texts


def _module(file: str, signature: str | None) -> ModuleOp:
    """The module of a file, verified."""
    path, kernel_name = split_name(file)
    if path.suffix == ".mlir":
        if signature is not None:
            raise ValueError(f"{path} is tile IR, which has types; --signature is for kernels in Python")
        from weft.ir.text import parse

        return parse(path.read_text(encoding="utf-8"), str(path))
    from weft.frontend import CompilationError, build_module

    kernel = find_kernel(path, kernel_name)
    entries = read_signature(kernel, signature)
    try:
        return build_module(kernel, entries)
    except CompilationError as error:
        raise ValueError(error.on_one_line()) from None


# ---- passes ---------------------------------------------------------------------------------------------------------


def _default() -> tuple[ModulePass, ...]:
    """The passes that a launch on this CPU runs."""
    from weft import target
    from weft.codegen import machine_for

    return machine_for(target.host()).passes(Options())


def _pass(spelled: str) -> ModulePass:
    """The pass of ``NAME`` or ``NAME{option=value}``."""
    from xdsl.utils.arg_spec import parse_spec
    from xdsl.utils.exceptions import ArgSpecParseError

    from weft.transforms.passes import PASSES

    try:
        spec = parse_spec(spelled)
    except ArgSpecParseError:
        raise ValueError(f"--pass '{spelled}' is no pass, expected NAME or NAME{{option=value}}") from None
    if spec.name not in PASSES:
        raise ValueError(f"unknown pass '{spec.name}'; {_near(spec.name, list(PASSES))}")
    try:
        return PASSES[spec.name].from_pass_spec(spec)
    except Exception as error:  # xDSL raises plain exceptions for options that are unknown or of another type
        raise ValueError(f"--pass '{spelled}': {error}") from None


def _check_shown(what: str, names: list[str]) -> None:
    if what not in ("before", "after", *names):
        raise ValueError(f"--print '{what}' is neither before, after nor a pass that runs; {_near(what, names)}")


def _near(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean '{near[0]}'?" if near else f"expected {', '.join(dict.fromkeys(names)) or 'a pass'}"


def _listed() -> str:
    """The passes with their summaries, and the default order."""
    from weft.transforms.passes import PASSES

    width = max(map(len, PASSES))
    lines = [f"  {name:<{width}}  {_summary(one)}" for name, one in sorted(PASSES.items())]
    order = ", ".join(one.name for one in _default())
    return "\n".join(["passes:", *lines, f"a launch on this CPU runs: {order}"])


def _summary(one: type[ModulePass]) -> str:
    """The first sentence of a pass's docstring."""
    text = " ".join((inspect.getdoc(one) or "").split())
    return text.partition(". ")[0].removesuffix(".").replace("`", "")
