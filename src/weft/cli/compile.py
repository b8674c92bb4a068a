"""``weft compile``: a kernel of a Python file as PTX for a GPU, or as this CPU's assembly, or as what comes before."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft import target as targets
from weft.cli.kernel_file import find_kernel, read_signature, split_name
from weft.options import Options
from weft.target import GpuTarget

if TYPE_CHECKING:
    from weft.target import Target

EMIT: Final = ("tile-ir", "laid-out", "llvm", "asm", "ptx")

_MORE: Final = """\
--signature has an entry for each parameter of the kernel, in order:
  *fp32                an array of float32
  *fp32:16             an array whose address is a multiple of 16
  i32, fp32            a number known when the kernel is launched
  i32:16               an integer that is a multiple of 16
  1024, 0.5, True      a constant; a constexpr parameter may also be a type

--emit takes
  tile-ir              the tile IR that the kernel is translated to
  laid-out             the same after the passes: layouts, conversions, scratch, barriers
  llvm                 LLVM IR before LLVM's passes
  asm                  this CPU's assembly (the default without --target)
  ptx                  PTX (the default with --target); its first line says how to launch it

examples:
  weft compile softmax.py --target sm_90 --signature '*fp32:16,*fp32:16,i32,1024'
  weft compile kernels.py:add --target sm_80 --num-warps 8 --emit laid-out --signature '*fp32,*fp32,*fp32,i32,64'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.usage = "weft compile FILE.py[:KERNEL] --signature TYPES [--target sm_90] [--emit WHAT] [options]"
    parser.epilog = _MORE
    parser.add_argument("file", metavar="FILE", help="kernels in Python")
    parser.add_argument("--signature", metavar="TYPES", help="of the kernel, see below")
    parser.add_argument("--target", metavar="GPU", help="sm_80, sm_86, sm_89, sm_90 or sm_90a (default: this CPU)")
    parser.add_argument("--emit", metavar="WHAT", help="see below")
    parser.add_argument("--num-warps", metavar="N", type=int, default=4, help="warps of a block (default: 4)")
    parser.add_argument("--disjoint", action="store_true", help="promise that the arrays do not overlap")
    parser.add_argument("-o", metavar="FILE", dest="output", help="write to a file")


def run(options: argparse.Namespace) -> int:
    """Print what is asked for; the exit code."""
    from weft.runtime.binding import LAUNCH_OPTIONS

    target: Target = targets.gpu(options.target) if options.target else targets.host()
    emit = options.emit or ("ptx" if options.target else "asm")
    if emit not in EMIT:
        raise ValueError(f"--emit is '{emit}', expected {', '.join(EMIT)}")
    if (emit == "ptx") != isinstance(target, GpuTarget) and emit in ("ptx", "asm"):
        raise ValueError(
            f"--emit {emit} is for {'a GPU: add --target' if emit == 'ptx' else 'this CPU: a GPU has ptx'}"
        )
    warps = LAUNCH_OPTIONS["num_warps"]
    if not warps.allowed(options.num_warps):
        raise ValueError(f"--num-warps is {options.num_warps}, expected {warps.words}")
    launch = () if options.num_warps == warps.default else (("num_warps", options.num_warps),)
    text = _text(options.file, options.signature, target, emit, Options(False, options.disjoint, launch))
    if options.output:
        Path(options.output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


def _text(file: str, signature: str | None, target: Target, emit: str, options: Options) -> str:
    """What is asked for, as text that ends in a newline."""
    from weft.codegen import compile_module, emit_assembly, emit_llvm, lay_out
    from weft.frontend import CompilationError, build_module

    path, name = split_name(file)
    if path.suffix != ".py":
        raise ValueError(f"'{file}' is no file of kernels in Python, expected FILE.py or FILE.py:KERNEL")
    kernel = find_kernel(path, name)
    try:
        module = build_module(kernel, read_signature(kernel, signature))
        if emit == "llvm":
            return f"{emit_llvm(module, target, options)}\n"
        if emit == "asm":
            return emit_assembly(module, target, options)
        if emit == "ptx" and isinstance(target, GpuTarget):
            compiled = compile_module(module, target, options)
            return f"// {compiled.launch}\n{compiled.ptx}"
        if emit == "laid-out":
            lay_out(module, target, options)
        return f"{module!s}\n"
    except CompilationError as error:
        raise ValueError(error.on_one_line()) from None
