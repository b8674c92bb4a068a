"""``weft compile``: a kernel of a Python file as PTX for a GPU, or as this CPU's assembly, or as what comes before."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft import target as targets
from weft.cli.kernel_file import find_kernel, read_signature, split_name
from weft.options import Options
from weft.target import GpuTarget

if TYPE_CHECKING:
    from weft.frontend import Argument, KernelFunction
    from weft.target import Target

EMIT: Final = ("tile-ir", "laid-out", "llvm", "asm", "ptx", "sass", "resources")
_LAUNCH: Final = {
    "num_warps": "warps of a block (default: 4)",
    "num_stages": "stages of pipelined loads (default: 3)",
    "maxnreg": "the most registers of a thread",
}
"""Launch options that the command line takes, with their words."""

_OF_A_GPU: Final = frozenset({"ptx", "sass", "resources"})

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
  ptx                  PTX (the default with --target); its first lines say how to launch it
  sass                 the GPU's machine code, where ptxas and nvdisasm are found
  resources            registers, spills and shared memory as JSON, where ptxas is found

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
    for name, words in _LAUNCH.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="N", type=int, help=words)
    parser.add_argument("--disjoint", action="store_true", help="promise that the arrays do not overlap")
    parser.add_argument("-o", metavar="FILE", dest="output", help="write to a file")


def run(options: argparse.Namespace) -> int:
    """Print what is asked for; the exit code."""
    from weft.runtime.binding import LAUNCH_OPTIONS

    target: Target = targets.gpu(options.target) if options.target else targets.host()
    emit = options.emit or ("ptx" if options.target else "asm")
    if emit not in EMIT:
        raise ValueError(f"--emit is '{emit}', expected {', '.join(EMIT)}")
    if (emit in _OF_A_GPU) != isinstance(target, GpuTarget) and emit in (*_OF_A_GPU, "asm"):
        raise ValueError(
            f"--emit {emit} is for {'a GPU: add --target' if emit in _OF_A_GPU else 'this CPU: a GPU has ptx'}"
        )
    launch: list[tuple[str, int]] = []
    for name in sorted(_LAUNCH):
        option, value = LAUNCH_OPTIONS[name], getattr(options, name)
        if value is not None and not option.allowed(value):
            raise ValueError(f"--{name.replace('_', '-')} is {value}, expected {option.words}")
        if value is not None and value != option.default:
            launch.append((name, value))
    text = _text(options.file, options.signature, target, emit, Options(False, options.disjoint, tuple(launch)))
    if options.output:
        Path(options.output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


def _text(file: str, signature: str | None, target: Target, emit: str, options: Options) -> str:
    """What is asked for, as text that ends in a newline."""
    from weft.codegen import emit_assembly, emit_llvm, lay_out
    from weft.frontend import CompilationError, build_module

    path, name = split_name(file)
    if path.suffix != ".py":
        raise ValueError(f"'{file}' is no file of kernels in Python, expected FILE.py or FILE.py:KERNEL")
    kernel = find_kernel(path, name)
    try:
        arguments = read_signature(kernel, signature)
        module = build_module(kernel, arguments)
        if emit == "llvm":
            return f"{emit_llvm(module, target, options)}\n"
        if emit == "asm":
            return emit_assembly(module, target, options)
        if emit in _OF_A_GPU and isinstance(target, GpuTarget):
            return _of_a_gpu(kernel, arguments, target, emit, options)
        if emit == "laid-out":
            lay_out(module, target, options)
        return f"{module!s}\n"
    except CompilationError as error:
        raise ValueError(error.on_one_line()) from None


def _of_a_gpu(
    kernel: KernelFunction, arguments: dict[str, Argument], target: GpuTarget, emit: str, options: Options
) -> str:
    from weft.emulator import ToolError
    from weft.runtime.compiler import gpu_artifact_for
    from weft.runtime.errors import OutOfResources
    from weft.runtime.handles import GpuHandle

    try:
        handle = GpuHandle(kernel, arguments, options, target, gpu_artifact_for(kernel, arguments, options, target))
        if emit == "sass":
            return handle.sass
        if emit == "resources":
            needs = asdict(handle.resources) | {"threads": handle.threads, "dynamic_shared": handle.shared}
            return f"{json.dumps(needs, indent=2)}\n"
    except (ToolError, OutOfResources) as error:
        raise ValueError(str(error).splitlines()[0]) from None
    parameters = "".join(f"// {parameter}\n" for parameter in handle.parameters)
    return f"// {handle.launch}\n{parameters}{handle.ptx}"
