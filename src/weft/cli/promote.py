"""``weft promote``: what an expression means in each system.

Five questions, one answer each, printed as tables or (``--json``) as JSON: an expression in all systems, the same with the
rules that led there, a system's whole table, two systems' disagreements, a picture of a system's order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from weft import dtypes, semantics
from weft.cli.console import console, print_json
from weft.report.disagreement import diff_tables
from weft.report.matrix import matrix, matrix_tables
from weft.report.promotion import Answer, answer, answers_table, explanation_text
from weft.report.types_graph import type_graph
from weft.semantics import ops
from weft.semantics.core import Operand, PromotionError, operand
from weft.semantics.difference import diff
from weft.semantics.explanation import PROMOTE, explain, expression

_EXAMPLES: Final = """\
operands:
  int8  a dtype            i* f* c*  a weakly typed one (JAX)    9:uint8  a typed constant (DALI, NumPy)
  int8[]  no dimensions    2.5 -1 True  literals

examples:
  weft promote uint8 int8                 the type of uint8 + int8 in every system
  weft promote int32 -1 --op '//'         another operation, a literal
  weft promote uint8 300 --explain        which rules decide, and what each value becomes
  weft promote --table jax --op '/'       every type with every other
  weft promote --diff jax dali            everything in which two systems disagree
  weft promote --hasse jax > jax.svg      a picture of the order of types
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    parser.epilog = _EXAMPLES
    parser.add_argument("operands", metavar="OPERAND", nargs="*", help="what the expression is made of")
    parser.add_argument(
        "--op",
        metavar="OP",
        help="the operation: + - // == where sqrt sum ... (default: + of two, else the common type)",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--explain", action="store_true", help="say which rules gave the answer")
    mode.add_argument("--table", metavar="SYSTEM", help="print the whole table of an operation")
    mode.add_argument("--diff", metavar=("SYSTEM", "SYSTEM"), nargs=2, help="list all disagreements of two systems")
    mode.add_argument("--hasse", metavar="SYSTEM", help="draw the order of the types as an SVG")
    parser.add_argument("--system", metavar="SYSTEM", action="append", help="ask only this system (may be repeated)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-o", "--output", metavar="FILE", help="where --hasse writes (default: stdout)")


def run(options: argparse.Namespace) -> int:
    """Answers; the exit code."""
    whole: tuple[tuple[str, Callable[[argparse.Namespace], int]], ...] = (
        ("table", _table),
        ("diff", _diff),
        ("hasse", _hasse),
    )
    if options.output and not options.hasse:
        raise ValueError("--output is for --hasse")
    for name, answering in whole:
        if getattr(options, name):
            if options.operands:
                raise ValueError(f"--{name} takes no operands, found {' '.join(options.operands)}")
            if options.system:
                raise ValueError(f"--{name} names its systems itself; leave --system out")
            return answering(options)
    return _expression(options)


def _expression(options: argparse.Namespace) -> int:
    """The expression in every system, or in the chosen ones."""
    names = [semantics.get(name).name for name in options.system or semantics.SYSTEMS]
    families = {name.partition("@")[0].partition("-")[0] for name in names}
    named = semantics.get(names[0]).named if len(families) == 1 else dtypes.named
    operands = [operand(o, named) for o in options.operands]
    if not operands or (len(operands) == 1 and options.op is None):
        raise ValueError("an expression has two operands, or --op and what it takes: weft promote uint8 int8")
    op = _operation(options.op, operands)
    answers = [answer(name, op, operands) for name in names]
    if options.explain:
        _explain(options, op, operands, answers)
    elif options.json:
        print_json(
            {"expression": expression(op, tuple(operands)), "op": op, "systems": [found.data() for found in answers]}
        )
    else:
        console().print(answers_table(op, operands, answers))
    return 1 if all(found.outcome is None or isinstance(found.outcome, PromotionError) for found in answers) else 0


def _operation(op: str | None, operands: list[Operand]) -> str:
    """The canonical operation, `PROMOTE` for the common type of more than two operands. `ValueError` for a wrong number."""
    if op is None:
        return "+" if len(operands) == 2 else PROMOTE
    op = ops.canonical(op.strip())
    if op in ("+", "-") and len(operands) == 1:
        return "pos" if op == "+" else "neg"
    if op == "where" and len(operands) == 3:
        del operands[0]
    if ops.arity(op) != len(operands):
        raise ValueError(f"'{op}' takes {ops.counted(ops.arity(op))}, found {len(operands)}")
    return op


def _explain(options: argparse.Namespace, op: str, operands: list[Operand], answers: list[Answer]) -> None:
    if options.json:
        print_json([a.data() if a.outcome is None else explain(a.system, op, *operands).data() for a in answers])
        return
    out = console()
    for i, found in enumerate(answers):
        if i:
            out.print()
        if found.outcome is None:
            out.print(f"{found.system.name} {found.lacks}", soft_wrap=True)
        else:
            out.print(explanation_text(explain(found.system, op, *operands)), soft_wrap=True)


def _table(options: argparse.Namespace) -> int:
    found = matrix(options.table, (options.op or "+").strip())
    if options.json:
        print_json(found.data())
    else:
        out = console()
        out.print(matrix_tables(found, out.width))
    return 0


def _diff(options: argparse.Namespace) -> int:
    found = diff(*options.diff, ops=None if options.op is None else [options.op.strip()])
    if options.json:
        print_json(found.data())
    else:
        console().print(diff_tables(found))
    return 1 if found.differences else 0


def _hasse(options: argparse.Namespace) -> int:
    if options.op:
        raise ValueError("--hasse draws the order of the types, which no operation decides; leave --op out")
    graph = type_graph(options.hasse)
    if options.json:
        print_json(graph.data())
    elif options.output:
        Path(options.output).write_text(graph.svg(), encoding="utf-8")
    else:
        sys.stdout.write(graph.svg())
    return 0
