"""``weft compare``: the porting check (`weft.semantics.compare`) on the command line.

Prints where a function's types, values and bytes part between systems, as text, as JSON, or as a page for long functions. The
exit code says whether the systems agree, so that a port can be checked in a script.
"""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, Final

from weft import semantics
from weft.cli.console import console, print_json
from weft.cli.inputs import read_inputs
from weft.cli.kernel_file import load

_MORE: Final = """\
inputs, in the order of the function's parameters, or each with its name (NAME:INPUT):
  uint8[4,64]=random       an array: random, edges (of the type), zeros, ones, arange, or a number that fills it
  float32=0.1              a number of NumPy's, of a chosen type
  2, 0.5, True             a number of Python's
  @x.npy, @x.npz           arrays from a file; those of an .npz by their names
  :NAME                    what the script calls NAME, or what that function returns

examples:
  weft compare augment.py:brighten --systems dali,jax --inputs uint8[64]=random 0.1
  weft compare step.py:adam --systems jax,torch --inputs :example --html adam.html
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.usage = "weft compare FILE.py:FUNCTION [--systems A,B] --inputs INPUT... [options]"
    parser.epilog = _MORE
    parser.add_argument(
        "file", metavar="FILE.py:FUNCTION", help="the function, which uses weft.array or NumPy's functions"
    )
    parser.add_argument("--systems", metavar="A,B", default="jax,dali", help="two systems or more (default: jax,dali)")
    parser.add_argument("--inputs", metavar="INPUT", nargs="+", default=[], help="what the function takes, see below")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of random inputs (default: 0)")
    parser.add_argument("--backend", choices=("native", "reference"), help="what computes the values")
    parser.add_argument(
        "--results", action="store_true", help="judge what the function returns, not each line on the way"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--html", metavar="FILE", help="write a page that shows the function line by line")
    form.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Compares; the exit code, 1 where the systems do not agree."""
    path, name = _split(options.file)
    script = load(path)
    function = _function(path, name, script)
    systems = [system.strip() for system in options.systems.split(",")]
    inputs = read_inputs(options.inputs, script, options.seed)
    try:
        found = semantics.compare(function, inputs, systems, backend=options.backend)
    except TypeError as error:
        raise ValueError(str(error)) from error
    if options.json:
        print_json(found.data())
    elif options.html:
        Path(options.html).write_text(found.to_html(), encoding="utf-8")
    else:
        console().print(found)
    return 0 if (found.exact if options.results else found.agree) else 1


def _split(file: str) -> tuple[Path, str | None]:
    stem, colon, name = file.rpartition(".py:")
    path = Path(f"{stem}.py" if colon else file)
    if path.suffix != ".py":
        raise ValueError(f"'{file}' is no file of Python, expected FILE.py:FUNCTION")
    return path, name if colon else None


def _function(path: Path, name: str | None, script: dict[str, Any]) -> Callable[..., object]:
    """The script's function of that name, or its only one."""
    own = [
        key
        for key, value in script.items()
        if isinstance(inner := getattr(value, "__wrapped__", value), FunctionType)
        and inner.__code__.co_filename == str(path.resolve())
    ]
    if name is None and len(own) != 1:
        raise ValueError(
            f"{path} has the functions {', '.join(own) or 'none'}; say which, such as {path}:{own[0] if own else 'f'}"
        )
    chosen = own[0] if name is None else name
    if not callable(script.get(chosen)):
        near = difflib.get_close_matches(chosen, own, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(own) or 'none'}"
        raise ValueError(f"{path} has no function '{chosen}'; {hint}")
    return script[chosen]
