"""``weft run``: runs an unmodified Triton program. ``import triton`` gives weft, and ``cuda`` the CPU."""

from __future__ import annotations

import argparse
import builtins
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from weft.devices.choice import device_of

_MORE: Final = """\
The script runs as with python: as __main__, with its arguments in sys.argv and its folder first in sys.path.

devices:
  cpu      tensors that the program puts on cuda are in the CPU's memory, kernels are native code (default)
  sm_90    the same, but kernels are compiled for the GPU and run in the emulator, with their profiles at the end
  none     torch stays as it is; kernels run where their arguments are

examples:
  weft run softmax.py
  weft run --device sm_90 matmul.py --size 256
  weft run -m package.module
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.usage = "weft run [--device DEVICE] [--quiet] SCRIPT.py [ARGUMENT]..."
    parser.epilog = _MORE
    parser.add_argument("--device", default="cpu", help="what stands in for cuda: cpu, none, or a GPU such as sm_90")
    parser.add_argument("--quiet", action="store_true", help="do not name what stands in for cuda")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    parser.add_argument("script", metavar="SCRIPT.py")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="ARGUMENT").required = False


VERBATIM: Final = True
"""Arguments reach the script as they are, those that look like numbers too."""


def run(options: argparse.Namespace) -> int:
    """Runs the script; the exit code: 1 where it ends by an exception, which is shown as Python shows it."""
    device = device_of(options.device)
    script: str = options.script
    if not options.module and not Path(script).is_file():
        raise ValueError(f"there is no script '{script}'")
    sys.argv = [script, *options.rest]
    sys.path[0] = "" if options.module else str(Path(script).resolve().parent)
    with device.in_force(options.quiet):
        try:
            if options.module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                _execute(Path(script))
        except Exception as error:
            trace = error.__traceback__
            shown = trace and trace.tb_next and trace.tb_next.tb_next
            sys.excepthook(type(error), error.with_traceback(shown), shown)
            return 1
    return 0


def _execute(script: Path) -> None:
    """Runs a file as ``__main__``. The module stays until the process ends, as Python's does."""
    main = ModuleType("__main__")
    main.__dict__.update(__file__=str(script), __builtins__=builtins)
    sys.modules["__main__"] = main
    code = compile(script.read_bytes(), str(script), "exec", dont_inherit=True)  # not this module's __future__ imports
    exec(code, main.__dict__)
