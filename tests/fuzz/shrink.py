"""Makes a failing kernel small: statements go while the failure stays.

Works on the syntax tree of a kernel file and knows nothing of types: a candidate that the compiler refuses does not fail
the same way and is dropped. Only whole statements go, since parts of expressions keep the generator's promises (no NaN's
bits, no sign of a zero that ``min`` may choose).
"""

from __future__ import annotations

import ast
import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fuzz.case import NATIVE
from fuzz.process import verdicts

Failing = Callable[[str], bool]


def fails_like(kind: str, timeout: float = 20.0, machines: Sequence[str] = (NATIVE,)) -> Failing:
    """Whether a kernel file's text still fails with a verdict of this kind."""

    def check(text: str) -> bool:
        with tempfile.TemporaryDirectory(prefix="weft-shrink-") as directory:
            path = Path(directory) / "kernel.py"
            path.write_text(text)
            return next(verdicts([str(path)], timeout, machines)).kind == kind

    return check


def shrink(text: str, failing: Failing) -> str:
    """The text without the statements, branches and arguments that the failure does not need."""
    tree = ast.parse(text)
    progress = True
    while progress:
        progress = False
        for candidate in _candidates(tree):
            if failing(ast.unparse(candidate)):
                tree, progress = candidate, True
                break
    pruned = _without_unused(_without_unused(tree))  # an array's other name first, then the array
    return ast.unparse(pruned if failing(ast.unparse(pruned)) else tree)


def _functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements inside a node, outer ones first."""
    for name in ("body", "orelse"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block:
            yield block
    for child in ast.iter_child_nodes(node):
        yield from _blocks(child)


def _candidates(tree: ast.Module) -> Iterator[ast.Module]:
    """The tree with less in it, boldest first: half a block, a quarter, ..., one statement; a compound statement replaced by its
    body."""
    blocks = [block for function in _functions(tree) for block in _blocks(function)]
    for index, block in enumerate(blocks):
        size = len(block)
        while size:
            for start in range(len(block) - size, -1, -size):
                if any(isinstance(s, ast.Pass | ast.Return) for s in block[start : start + size]):
                    continue
                yield _edited(tree, index, start, start + size, [])
            size //= 2
        for position, statement in enumerate(block):
            for inner in ("body", "orelse"):
                if isinstance(statement, ast.If | ast.For | ast.While) and (lines := getattr(statement, inner)):
                    yield _edited(tree, index, position, position + 1, lines)


def _edited(tree: ast.Module, block: int, start: int, stop: int, lines: list[ast.stmt]) -> ast.Module:
    """A copy of the tree in which one block's statements ``start:stop`` are ``lines``."""
    result = copy.deepcopy(tree)
    target = [b for function in _functions(result) for b in _blocks(function)][block]
    target[start:stop] = copy.deepcopy(lines)
    if not target:
        target.append(ast.Pass())
    return result


def _without_unused(tree: ast.Module) -> ast.Module:
    """A copy without functions, parameters of the kernel and their entries in ARGUMENTS that nothing refers to."""
    result = copy.deepcopy(tree)
    kernel = next(f for f in _functions(result) if f.name == "kernel")
    used = {node.id for f in _functions(result) for node in ast.walk(f) if isinstance(node, ast.Name)}
    used |= {
        str(element.value)
        for node in ast.walk(result)
        if isinstance(node, ast.Tuple)
        for element in node.elts
        if isinstance(element, ast.Constant)
    }
    kernel.args.args = [argument for argument in kernel.args.args if argument.arg in used]
    result.body = [n for n in result.body if not isinstance(n, ast.FunctionDef) or n.name in used | {"kernel"}]
    for node in result.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            kept = [
                (k, v)
                for k, v in zip(node.value.keys, node.value.values, strict=True)
                if ast.literal_eval(k or v) in used
            ]
            node.value.keys, node.value.values = [k for k, _ in kept], [v for _, v in kept]
    return result
