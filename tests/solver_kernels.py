"""Kernels as tile IR, and what their layouts cost, for the tests of the layout solver."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from weft import JITFunction
from weft.codegen import machine_for
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.arguments import bind, signature_of
from weft.target import gpu
from weft.transforms.axis import analyse
from weft.transforms.cse import Cse
from weft.transforms.dce import Dce
from weft.transforms.layouts import AssignLayouts, LayoutFacts
from weft.transforms.layouts.infer import Inference
from weft.transforms.layouts.solve import Solution, price_of, solve
from weft.transforms.layouts.threads import ThreadRules

ROOT = Path(__file__).parents[1]


def imported(folder: str, name: str) -> ModuleType:
    """A module of ``benchmarks`` or ``examples``, which are no packages."""
    path = str(ROOT / folder)
    if path not in sys.path:
        sys.path.insert(0, path)
    return importlib.import_module(name)


def tile_ir(kernel: JITFunction, arguments: Sequence[Any], constants: dict[str, Any]) -> ModuleOp:
    """What the frontend makes of a kernel for arguments."""
    parameters = kernel._list  # pyright: ignore[reportPrivateUsage]
    values = parameters.values(tuple(arguments), constants)
    bound = bind(kernel.name, parameters.parameters, values)
    return compiler.tile_ir(kernel, signature_of(parameters.parameters, bound.key, values), Options())


class Prices(NamedTuple):
    """Of one kernel: the price of the IR under the preference order, the solution, and the price of the IR that it gave."""

    preferred: float
    solution: Solution
    solved: float


def simplified(module: ModuleOp, target: str, warps: int = 4, stages: int = 3) -> FuncOp:
    """The function of a copy of a module, as the layout pass gets it."""
    copy = module.clone()
    passes = machine_for(gpu(target)).passes(Options(launch=(("num_warps", warps), ("num_stages", stages))))
    for one in itertools.takewhile(lambda each: not isinstance(each, AssignLayouts), passes):
        one.apply(Context(), copy)
    return next(op for op in copy.walk() if isinstance(op, FuncOp))


def laid_out(function: FuncOp, rules: ThreadRules, *, solved: bool) -> float:
    """Lays a function out, and gives its price."""
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    for one in (AssignLayouts(rules, solve=solved), Cse(), Dce()):
        one.apply(Context(), module)
    module.verify()
    return price_of(function, rules)


def solution_of(function: FuncOp, rules: ThreadRules) -> Solution:
    """The solution for a function, which is not changed."""
    facts = LayoutFacts(dict(analyse(function)))
    inference = Inference(rules, facts)
    inference.infer(function.body.block)
    return solve(function, rules, facts, inference.chosen)


def prices(module: ModuleOp, target: str = "sm_90", warps: int = 4, kind: type[ThreadRules] = ThreadRules) -> Prices:
    """The prices of a kernel's layouts by rules of a kind."""
    rules = kind(gpu(target), warps)
    preferred = laid_out(simplified(module, target, warps), rules, solved=False)
    solution = solution_of(simplified(module, target, warps), rules)
    return Prices(preferred, solution, laid_out(simplified(module, target, warps), rules, solved=True))
