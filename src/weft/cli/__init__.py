"""The ``weft`` command: subcommands, each a module that is loaded when it is asked for.

A subcommand is a line in `COMMANDS`; its module has ``arguments(parser)`` and ``run(options) -> int``, and is imported only
for that subcommand, so that ``weft --version`` does not import the compiler. `main` turns `ValueError`, which is what weft
raises for what users misspell, into one line on stderr.

Exit codes: 0 answered; 1 the answer is a refusal (or, of ``--diff``, a difference); 2 the question is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import weft

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "promote": (
        "weft.cli.promote",
        "the type and meaning of an expression in Triton, JAX, MAX, DALI, NumPy and PyTorch",
    ),
    "compare": (
        "weft.cli.compare",
        "a Python function under several systems: the lines at which types, values and bytes part",
    ),
    "layout": ("weft.cli.layout", "layouts of tensors drawn, converted, laid into memory and compared"),
    "profile": ("weft.cli.profile", "a kernel of a PTX file run on the emulator: bank conflicts, sectors, faults"),
    "compile": ("weft.cli.compile", "a kernel as PTX for a GPU or as this CPU's assembly, or as the IR before it"),
    "run": ("weft.cli.run", "an unmodified Triton program on this machine's CPU, or in the emulator"),
    "opt": ("weft.cli.opt", "the tile IR of a kernel, before and after any pass of the compiler"),
}
"""Each subcommand: its module and its summary."""

_DESCRIPTION: Final = (
    "Kernels in the Triton language on the CPU you have; what promotion means in six systems; layouts as pictures; "
    "PTX without a GPU."
)

WRONG: Final = 2
"""The exit code for a question that is wrong."""

_NEGATIVE: Final = re.compile(r"-[\d.]|-(inf|nan)\b")
"""What looks like an option to argparse but is a number."""


class Parser(argparse.ArgumentParser):
    """An `argparse.ArgumentParser` whose errors are one line, with the nearest spelling of an unknown option."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG, f"weft: {message}\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            near = difflib.get_close_matches(unknown[0].partition("=")[0], self._option_string_actions, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"'{self.prog} --help' lists the options"
            self.error(f"unknown argument '{unknown[0]}'; {hint}")
        return found, unknown


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        return _run(given)
    except ValueError as error:
        sys.stderr.write(f"weft: {' '.join(str(error).split())}\n")
        return WRONG
    except OSError as error:
        if is_closed_pipe(error, os.name):  # the reader has seen enough
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        sys.stderr.write(f"weft: {error.filename}: {error.strerror}\n")
        return WRONG


def is_closed_pipe(error: OSError, system: str) -> bool:
    """Whether a write failed because nobody reads; ``system`` is `os.name`. Windows calls it an invalid argument, of no file."""
    invalid = system == "nt" and error.errno == errno.EINVAL and error.filename is None
    return isinstance(error, BrokenPipeError) or invalid


def _run(given: list[str]) -> int:
    parser = Parser(prog="weft", usage="weft COMMAND ...", description=_DESCRIPTION, epilog=_epilog())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--version", action="version", version=f"weft {weft.__version__}")
    if not given or given[0].startswith("-"):
        parser.parse_args(given)
        parser.print_help()
        return WRONG
    command, *rest = given
    if command not in COMMANDS:
        near = difflib.get_close_matches(command, COMMANDS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"weft has {', '.join(COMMANDS)}"
        raise ValueError(f"unknown command '{command}'; {hint}")
    module, summary = COMMANDS[command]
    implementation = importlib.import_module(module)
    parser = Parser(prog=f"weft {command}", description=summary[0].upper() + summary[1:] + ".")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    implementation.arguments(parser)
    if not getattr(implementation, "VERBATIM", False):
        rest = [f" {a}" if _NEGATIVE.match(a) else a for a in rest]
    code = implementation.run(parser.parse_args(rest))
    sys.stdout.flush()
    return code


def _epilog() -> str:
    width = max(map(len, COMMANDS))
    return "commands:\n" + "\n".join(f"  {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items())
