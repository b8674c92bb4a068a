"""``weft layout``: layouts drawn, converted, laid into memory and compared.

Five questions about layouts that the command line spells (`weft.cli.layout_spec`), each answered in the terminal, as an SVG, as
a page (``--html``, which shows the holders of the element under the pointer) or as JSON.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console, RenderableType

from weft.cli.console import console, print_json
from weft.cli.layout_spec import FAMILIES, read_layouts, usage
from weft.layout import LinearLayout, optimal_swizzle, plan_conversion, vector_machine
from weft.layout.planning.machine import AMPERE, CDNA, HOPPER, MachineModel
from weft.report import layouts as pictures

_EXAMPLES: Final = """\
questions:
  show LAYOUT             the tensor as a grid: which lane, register and warp holds each element
  matrix LAYOUT           the matrix of the layout
  convert FROM TO         how data gets from one layout to the other, step by step, and what it costs
  banks ACCESS... MEMORY  the banks that accesses of a warp touch in shared memory; without MEMORY, in the best one
  compare A B             whether two layouts are the same, and their grids

layouts:
  '{register: [(0,1)], lane: [(1,0)]} -> [dim0: 2, dim1: 2]'   bases, as layouts are printed
  '#ttg.slice<{dim = 1, parent = #ttg.blocked<...>}>' 64       Triton's or Gluon's spelling, and the shape
  FAMILY SHAPE NAME=VALUE ...                                  names may be shortened, lists are 1,4, bases 1,0/0,1
"""

_MORE: Final = """
examples:
  weft layout show blocked 16x16 size=2,2 threads=4,8 warps=2,1 order=1,0
  weft layout show mma 32x32 version=2 warps=2,2 instr=16,8 --html mma.html
  weft layout matrix swizzled 64x64 vec=8 per_phase=1 max_phase=8
  weft layout convert vector 8x16 lanes=8 vector 8x16 lanes=8 order=0,1
  weft layout banks blocked 64x64 size=8,1 threads=8,4 warps=1,4 order=0,1 unswizzled 64x64 --bits 16
"""

MACHINES: Final[dict[str, MachineModel | None]] = {"cpu": None, "sm_80": AMPERE, "sm_90": HOPPER, "gfx942": CDNA}
"""What ``convert`` plans for; a CPU has the lanes of the layouts."""


@dataclass(frozen=True)
class Answer:
    """An answer in each form it may be asked for, none of which is made before it is; ``code`` is the exit code."""

    text: Callable[[pictures.Page], RenderableType]
    svg: Callable[[], str]
    html: Callable[[], str]
    data: Callable[[], Any]
    code: int = 0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    families = "\n".join(f"  {usage(name)}" for name in FAMILIES)
    parser.epilog = f"{_EXAMPLES}\nfamilies, and operations on the layout that follows:\n{families}\n{_MORE}"
    parser.usage = "weft layout QUESTION LAYOUT... [options]"
    parser.add_argument("words", metavar="QUESTION LAYOUT...", nargs="*", help="see below")
    parser.add_argument("--by", metavar="DIM", help="colour by lane, warp, register, ... (default: lane, or bank)")
    parser.add_argument("--bits", metavar="N", type=int, default=32, help="bits of an element (default: 32)")
    parser.add_argument(
        "--vector", metavar="N", type=int, help="banks: elements per access (default: the most there can be)"
    )
    parser.add_argument(
        "--machine", metavar="NAME", help=f"convert: {', '.join(MACHINES)} (default: what the layouts fit)"
    )
    parser.add_argument("--lanes", metavar="N", type=int, help="convert: lanes of a warp (default: the machine's)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--svg", metavar="FILE", help="write the picture as an SVG (-: to stdout)")
    form.add_argument("--html", metavar="FILE", help="write the picture as a page")
    form.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    """Answers; the exit code."""
    question, *words = options.words or [""]
    if question not in QUESTIONS:
        near = difflib.get_close_matches(question, QUESTIONS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(QUESTIONS)}"
        raise ValueError(f"unknown question '{question}'; {hint}" if question else f"no question; {hint}")
    for option, asked in (
        ("by", ("show", "compare")),
        ("vector", ("banks",)),
        ("machine", ("convert",)),
        ("lanes", ("convert",)),
    ):
        if getattr(options, option) is not None and question not in asked:
            raise ValueError(f"--{option} is for {' and '.join(asked)}")
    if options.bits < 1:
        raise ValueError(f"--bits is {options.bits}, expected 1 or more")
    answer = QUESTIONS[question](read_layouts(words), options)
    if options.json:
        print_json(answer.data())
    elif options.svg:
        _write(options.svg, answer.svg())
    elif options.html:
        _write(options.html, answer.html())
    else:
        out = console()
        out.print(answer.text(page_of(out)), soft_wrap=True)
    return answer.code


def page_of(out: Console) -> pictures.Page:
    """What a console shows."""
    return pictures.Page(out.width, out.is_terminal and not out.no_color, not out.options.ascii_only)


def _write(file: str, text: str) -> None:
    if file == "-":
        sys.stdout.write(text)
    else:
        Path(file).write_text(text, encoding="utf-8")


def _expect(question: str, found: Sequence[LinearLayout], count: int) -> None:
    if len(found) != count:
        raise ValueError(f"{question} takes {count} layout{'s' if count > 1 else ''}, found {len(found)}")


def _describe(layout: LinearLayout) -> dict[str, Any]:
    """A layout as JSON."""
    return {
        "layout": str(layout),
        "bases": {dim: [list(basis) for basis in layout.bases(dim)] for dim in layout.in_dims},
        "outputs": dict(zip(layout.out_dims, layout.shape, strict=True)),
        "rank": layout.rank,
        "surjective": layout.is_surjective,
        "injective": layout.is_injective,
    }


def _show(found: Sequence[LinearLayout], options: argparse.Namespace) -> Answer:
    _expect("show", found, 1)
    layout, by, bits = found[0], options.by, options.bits
    held = pictures.Held(layout, bits)
    held.by(by)

    def data() -> dict[str, Any]:
        elements = [[{d: held.index(p, d) for d in layout.in_dims} for p in places] for places in held.places]
        return {**_describe(layout), "elements": elements}

    return Answer(
        lambda page: pictures.grid_text(layout, by, bits=bits, page=page),
        lambda: pictures.grid_svg(layout, by, bits=bits),
        lambda: pictures.grid_page(layout, by, bits=bits),
        data,
    )


def _matrix(found: Sequence[LinearLayout], _: argparse.Namespace) -> Answer:
    _expect("matrix", found, 1)
    layout = found[0]
    view = layout.matrix()

    def labels(dims: Sequence[tuple[str, int]]) -> list[list[Any]]:
        return [[name, bit] for name, bits in dims for bit in range(bits)]

    return Answer(
        lambda page: pictures.matrix_text(layout, page=page),
        lambda: pictures.matrix_svg(layout),
        lambda: pictures.svg_page("matrix", pictures.matrix_svg(layout)),
        lambda: {
            **_describe(layout),
            "rows": labels(view.row_dims),
            "columns": labels(view.column_dims),
            "entries": [list(row) for row in view.entries],
        },
    )


def _compare(found: Sequence[LinearLayout], options: argparse.Namespace) -> Answer:
    _expect("compare", found, 2)
    comparison, by, bits = pictures.Comparison(*found), options.by, options.bits
    return Answer(
        lambda page: pictures.compare_text(comparison, by, bits=bits, page=page),
        lambda: pictures.compare_svg(comparison, by, bits=bits),
        lambda: pictures.compare_page(comparison, by, bits=bits),
        comparison.data,
        0 if comparison.sameness == "equal" else 1,
    )


def _convert(found: Sequence[LinearLayout], options: argparse.Namespace) -> Answer:
    _expect("convert", found, 2)
    source, destination = found
    name = options.machine or _machine(source, destination)
    if name not in MACHINES:
        near = difflib.get_close_matches(name, MACHINES, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(MACHINES)}"
        raise ValueError(f"unknown machine '{name}'; {hint}")
    machine = MACHINES[name]
    if options.lanes is not None:
        if machine is None:
            raise ValueError("--lanes is for GPUs; a CPU has the lanes of the layouts")
        machine = replace(machine, lanes=options.lanes)
    if machine is None:
        machine = vector_machine(source.in_size("lane") if "lane" in source.in_dims else 1)
    plan = plan_conversion(source, destination, options.bits, machine)

    def data() -> dict[str, Any]:
        same = {"from": str(source), "to": str(destination), "machine": name, "kind": plan.kind, "reason": plan.reason}
        steps = [str(step) for step in plan.steps]
        return {
            **same,
            "bits": options.bits,
            "steps": steps,
            "cost": asdict(plan.cost),
            "least": asdict(plan.lower_bound),
        }

    def svg() -> str:
        return pictures.conversion_svg(source, destination, plan)

    return Answer(
        lambda page: pictures.conversion_text(source, destination, plan, page=page),
        svg,
        lambda: pictures.svg_page("conversion", svg()),
        data,
    )


def _machine(source: LinearLayout, destination: LinearLayout) -> str:
    """The machine that layouts are of: a CPU's have no warps."""
    if not any("warp" in layout.in_dims for layout in (source, destination)):
        return "cpu"
    lanes = source.in_size("lane") if "lane" in source.in_dims else 1
    return "gfx942" if lanes == CDNA.lanes else "sm_90"


def _banks(found: Sequence[LinearLayout], options: argparse.Namespace) -> Answer:
    memories = [layout for layout in found if "offset" in layout.in_dims]
    takes = "banks takes layouts with lanes, then at most one with offsets"
    if len(memories) == len(found):
        raise ValueError(f"{takes}; found none with lanes")
    if len(memories) > 1:
        raise ValueError(f"{takes}; found {len(memories)} with offsets")
    if memories and memories[0] is not found[-1]:
        raise ValueError(f"{takes}; found the one with offsets before the last")
    distributed = [layout for layout in found if "offset" not in layout.in_dims]
    memory = memories[0] if memories else optimal_swizzle(*distributed, bits=options.bits).memory
    accesses = [pictures.Access(layout, memory, options.bits, options.vector) for layout in distributed]
    for access in accesses:
        _ = access.cost

    def data() -> dict[str, Any]:
        costs = [
            {
                "layout": str(access.distributed),
                **asdict(access.cost),
                "wavefronts": access.cost.wavefronts,
                "bound": access.cost.bound,
                "excess": access.cost.excess,
                "words": [asdict(word) for word in access.words],
            }
            for access in accesses
        ]
        return {"memory": str(memory), "bits": options.bits, "accesses": costs}

    return Answer(
        lambda page: pictures.banks_text(*accesses, page=page),
        lambda: pictures.banks_svg(*accesses),
        lambda: pictures.svg_page("shared memory", pictures.banks_svg(*accesses)),
        data,
    )


QUESTIONS: Final[dict[str, Callable[[Sequence[LinearLayout], argparse.Namespace], Answer]]] = {
    "show": _show,
    "matrix": _matrix,
    "convert": _convert,
    "banks": _banks,
    "compare": _compare,
}
"""Each question by its name."""
