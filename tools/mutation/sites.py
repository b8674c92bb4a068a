"""Lists the mutants of a module: small changes of its source, each of which some test should notice.

A mutant replaces one range of the source text, so line numbers and comments elsewhere stay as they are:

| kind | change |
|---|---|
| condition | a condition becomes True or False; a while loop never runs |
| rule | an operand of ``and``/``or``, a case, an alternative of a pattern or of isinstance, an entry of a table is dropped |
| and/or | ``and`` becomes ``or``, and the reverse |
| comparison | off by one (``<`` and ``<=``), or negated (``==`` and ``!=``, ``in`` and ``not in``, ``is`` and ``is not``) |
| constant | an integer plus or minus 1; a bool negated |
| operator | ``+`` and ``-``, ``*`` and ``//``, ``<<`` and ``>>``, ``&`` and ``|``; ``^`` becomes ``|``; a sign is dropped |
| call | ``any`` and ``all``, ``min`` and ``max``; ``sorted`` and ``reversed`` keep the order |
| deleted | a call, an assignment to an attribute or an item, ``continue`` or ``break`` is left out |
| empty loop | a for loop or a comprehension runs over nothing |
| return | a function without a result returns before a statement; one with a bool returns True or False |

Not changed: annotations, docstrings, imports, decorators, ``raise`` and ``assert``, and what only type checkers read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

KINDS = (
    "condition",
    "rule",
    "and/or",
    "comparison",
    "constant",
    "operator",
    "call",
    "deleted",
    "empty loop",
    "return",
)


@dataclass(frozen=True)
class Mutant:
    """One change: the bytes from ``start`` to ``end`` become ``text``. ``function`` is the outermost function or method
    (``Class.name``) that contains it, None at the level of the module or a class; ``lines`` are those of the statement."""

    kind: str
    lines: range
    start: int
    end: int
    text: str
    change: str
    function: str | None

    @property
    def line(self) -> int:
        """Where to look for it."""
        return self.lines[0]

    def apply(self, source: bytes) -> bytes:
        """The mutated source."""
        return source[: self.start] + self.text.encode() + source[self.end :]


_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_CALLS = {"any": "all", "all": "any", "min": "max", "max": "min", "sorted": "list", "reversed": "list"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DISPLAYS = (ast.Tuple, ast.List, ast.Set)


def mutants_of(source: bytes) -> list[Mutant]:
    """All mutants, by line and kind."""
    tree = ast.parse(source)
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    found = {m: None for m in _Sites(source, lines).block(tree.body, None)}
    return sorted(found, key=lambda m: (m.line, m.kind, m.start, m.change))


class _Sites:
    """Walks the statements and expressions that may be changed."""

    def __init__(self, source: bytes, lines: Sequence[int]):
        self._source = source
        self._lines = lines
        self._at = range(1, 2)

    # -- positions -------------------------------------------------------------------------------------------------------

    def _range(self, node: ast.AST) -> tuple[int, int]:
        line, column = node.lineno, node.col_offset  # type: ignore[attr-defined]
        end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self._lines[line - 1] + column, self._lines[end_line - 1] + end_column

    def _replace(self, kind: str, node: ast.AST, text: str, where: str | None, change: str = "") -> Mutant:
        start, end = self._range(node)
        old = " ".join(self._source[start:end].decode().split())
        return Mutant(kind, self._at, start, end, text, change or f"{old}  ->  {text}", where)

    # -- statements ------------------------------------------------------------------------------------------------------

    def block(self, body: Sequence[ast.stmt], where: str | None) -> Iterator[Mutant]:
        """The mutants of consecutive statements."""
        for statement in body:
            if not _is_docstring(statement):
                yield from self._statement(statement, where)

    def _statement(self, node: ast.stmt, where: str | None) -> Iterator[Mutant]:
        self._at = _header(node)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from self._function(node, where)
            case ast.ClassDef():
                yield from self._class(node, where)
            case (
                ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Import() | ast.ImportFrom() | ast.Raise() | ast.Assert()
            ):
                return
            case ast.If():
                yield from self._condition(node.test, where)
                yield from self.block([*node.body, *node.orelse], where)
            case ast.While():
                yield self._replace("condition", node.test, "False", where)
                yield from self._expression(node.test, where)
                yield from self.block([*node.body, *node.orelse], where)
            case ast.For():
                yield self._replace("empty loop", node.iter, "()", where)
                yield from self._expression(node.iter, where)
                yield from self.block([*node.body, *node.orelse], where)
            case ast.Match():
                yield from self._expression(node.subject, where)
                yield from self._cases(node.cases, where)
            case ast.With() | ast.Try():
                for item in getattr(node, "items", ()):
                    yield from self._expression(item.context_expr, where)
                handlers = [s for h in getattr(node, "handlers", ()) for s in h.body]
                last = [*getattr(node, "orelse", ()), *getattr(node, "finalbody", ())]
                yield from self.block([*node.body, *handlers, *last], where)
            case ast.Continue() | ast.Break():
                yield self._deleted(node, where)
            case ast.Expr(value=ast.Yield() | ast.YieldFrom() as yielded):
                yield from self._expression(yielded, where)
            case ast.Expr(value=value):
                yield self._deleted(node, where)
                yield from self._expression(value, where)
            case ast.AugAssign():
                yield self._deleted(node, where)
                yield from self._expression(node.value, where)
            case ast.Assign() | ast.AnnAssign():
                yield from self._assignment(node, where)
            case ast.Return(value=value) if value is not None:
                yield from self._expression(value, where)
            case _:
                return

    def _deleted(self, node: ast.stmt, where: str | None) -> Mutant:
        start, end = self._range(node)
        old = " ".join(self._source[start:end].decode().split())
        return self._replace("deleted", node, "pass", where, old)

    def _assignment(self, node: ast.Assign | ast.AnnAssign, where: str | None) -> Iterator[Mutant]:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        alias = isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias"
        if node.value is None or alias or ast.unparse(targets[0]) == "__all__":
            return
        if where is not None and all(isinstance(t, ast.Attribute | ast.Subscript) for t in targets):
            yield self._deleted(node, where)
        yield from self._expression(node.value, where, table=where is None)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, where: str | None) -> Iterator[Mutant]:
        inside = where is not None and not where.endswith(".")
        name = where if inside else f"{where or ''}{node.name}"
        outside = where if inside else None
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            yield from self._expression(default, outside)
        returns = node.returns
        if isinstance(returns, ast.Constant) and returns.value is None:
            for statement in node.body[1:]:
                if not isinstance(statement, ast.Return | ast.Pass):
                    yield self._early(statement, name)
        if isinstance(returns, ast.Name) and returns.id == "bool":
            for result in _returns(node):
                self._at = _header(result)
                for text in ("True", "False"):
                    if result.value is not None and ast.unparse(result.value) != text:
                        yield self._replace("return", result.value, text, name)
        yield from self.block(node.body, name)

    def _early(self, statement: ast.stmt, where: str | None) -> Mutant:
        start, _ = self._range(statement)
        first = " ".join(self._source[start : self._lines[statement.lineno]].decode().split())
        indent = " " * statement.col_offset
        at = range(statement.lineno, statement.lineno + 1)
        return Mutant("return", at, start, start, f"return\n{indent}", f"before: {first}", where)

    def _class(self, node: ast.ClassDef, where: str | None) -> Iterator[Mutant]:
        if where is not None and not where.endswith("."):  # a class inside a function
            yield from self.block(node.body, where)
            return
        for statement in node.body:
            if _is_docstring(statement):
                continue
            if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
                yield from self._statement(statement, f"{where or ''}{node.name}.")
            else:
                yield from self._statement(statement, None)

    def _cases(self, cases: Iterable[ast.match_case], where: str | None) -> Iterator[Mutant]:
        for case in cases:
            pattern = case.pattern
            self._at = range(pattern.lineno, max(pattern.lineno + 1, case.body[0].lineno))
            wildcard = isinstance(pattern, ast.MatchAs) and pattern.pattern is None
            if isinstance(pattern, ast.MatchOr):
                for one in pattern.patterns:
                    rest = [p for p in pattern.patterns if p is not one]
                    text = " | ".join(ast.unparse(p) for p in rest)
                    yield self._replace("rule", pattern, text, where, f"dropped: case {ast.unparse(one)}")
            if case.guard is not None:
                yield from self._condition(case.guard, where)
            elif not wildcard:
                text = f"{self._text(pattern)} if False"
                yield self._replace("rule", pattern, text, where, f"dropped: case {ast.unparse(pattern)}")
            yield from self.block(case.body, where)

    def _text(self, node: ast.AST) -> str:
        start, end = self._range(node)
        return self._source[start:end].decode()

    # -- expressions -----------------------------------------------------------------------------------------------------

    def _condition(self, node: ast.expr, where: str | None) -> Iterator[Mutant]:
        for text in ("True", "False"):
            if ast.unparse(node) != text:
                yield self._replace("condition", node, text, where)
        yield from self._expression(node, where)

    def _expression(self, node: ast.expr, where: str | None, table: bool = False) -> Iterator[Mutant]:
        match node:
            case ast.JoinedStr() | ast.Lambda(body=ast.JoinedStr()):
                return
            case ast.Constant(value=bool() as value):
                yield self._replace("constant", node, str(not value), where)
            case ast.Constant(value=int() as value):
                for other in (value + 1, value - 1):
                    yield self._replace("constant", node, f"({other})" if other < 0 else str(other), where)
            case ast.IfExp():
                yield from self._condition(node.test, where)
                yield from self._all((node.body, node.orelse), where, table)
            case ast.BoolOp():
                yield from self._junction(node, where)
                yield from self._all(node.values, where)
            case ast.Compare():
                yield from self._comparison(node, where)
            case ast.BinOp():
                other = _OPERATORS.get(type(node.op))
                if other is not None and not _is_text(node):
                    changed = ast.unparse(ast.BinOp(node.left, other(), node.right))
                    yield self._replace("operator", node, f"({changed})", where)
                yield from self._all((node.left, node.right), where, table)
            case ast.UnaryOp(operand=ast.Constant()):
                yield from self._expression(node.operand, where)
            case ast.UnaryOp():
                yield self._replace("operator", node, f"({ast.unparse(node.operand)})", where)
                yield from self._expression(node.operand, where)
            case ast.Call():
                yield from self._call(node, where)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for loop in node.generators:
                    yield self._replace("empty loop", loop.iter, "()", where)
                    yield from self._expression(loop.iter, where)
                    for test in loop.ifs:
                        yield from self._condition(test, where)
                parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
                yield from self._all(parts, where)
            case ast.Tuple() | ast.List() | ast.Set():
                if table:
                    yield from self._entries(node, where)
                yield from self._all(node.elts, where, table)
            case ast.Dict():
                if table:
                    yield from self._rows(node, where)
                yield from self._all([*(k for k in node.keys if k is not None), *node.values], where, table)
            case _:
                children = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr | ast.keyword)]
                yield from self._all([c.value if isinstance(c, ast.keyword) else c for c in children], where, table)

    def _all(self, nodes: Iterable[ast.expr], where: str | None, table: bool = False) -> Iterator[Mutant]:
        for node in nodes:
            yield from self._expression(node, where, table)

    def _junction(self, node: ast.BoolOp, where: str | None) -> Iterator[Mutant]:
        for one in node.values:
            rest = [v for v in node.values if v is not one]
            kept = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield self._replace("rule", node, f"({ast.unparse(kept)})", where, f"dropped: {ast.unparse(one)}")
        swapped = ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        yield self._replace("and/or", node, f"({ast.unparse(swapped)})", where)

    def _comparison(self, node: ast.Compare, where: str | None) -> Iterator[Mutant]:
        for i, op in enumerate(node.ops):
            ops = [*node.ops[:i], _COMPARISONS[type(op)](), *node.ops[i + 1 :]]
            changed = ast.unparse(ast.Compare(node.left, ops, node.comparators))
            yield self._replace("comparison", node, f"({changed})", where)
        yield from self._expression(node.left, where)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            yield from self._expression(comparator, where, table=isinstance(op, ast.In | ast.NotIn))

    def _call(self, node: ast.Call, where: str | None) -> Iterator[Mutant]:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "cast":  # what follows is a type
            yield from self._all(node.args[1:], where)
            return
        if name == "isinstance" and len(node.args) == 2:
            yield from self._alternatives(node.args[1], where)
            yield from self._expression(node.args[0], where)
            return
        if name in _CALLS:
            yield self._replace("call", node.func, _CALLS[name], where, f"{name}(..)  ->  {_CALLS[name]}(..)")
        elif not name:
            yield from self._expression(node.func, where)
        table = where is None and name in ("frozenset", "tuple", "dict", "set")
        yield from self._all([*node.args, *(k.value for k in node.keywords)], where, table)

    def _alternatives(self, node: ast.expr, where: str | None) -> Iterator[Mutant]:
        """Drops each of several types of an isinstance."""
        types = list(_union(node))
        if len(types) > 1:
            for one in types:
                text = f"({', '.join(ast.unparse(t) for t in types if t is not one)},)"
                yield self._replace("rule", node, text, where, f"dropped: isinstance .. {ast.unparse(one)}")

    def _entries(self, node: ast.Tuple | ast.List | ast.Set, where: str | None) -> Iterator[Mutant]:
        if len(node.elts) < 2 or any(isinstance(e, ast.Starred) for e in node.elts):
            return
        for one in node.elts:
            rest = [e for e in node.elts if e is not one]
            text = ast.unparse(type(node)(elts=rest) if isinstance(node, ast.Set) else type(node)(rest, ast.Load()))
            yield self._replace("rule", node, text, where, f"dropped: entry {ast.unparse(one)}")

    def _rows(self, node: ast.Dict, where: str | None) -> Iterator[Mutant]:
        for key, value in zip(node.keys, node.values, strict=True):
            kept = [(k, v) for k, v in zip(node.keys, node.values, strict=True) if v is not value]
            if kept:
                text = ast.unparse(ast.Dict([k for k, _ in kept], [v for _, v in kept]))
                shown = ast.unparse(key) if key is not None else f"**{ast.unparse(value)}"
                yield self._replace("rule", node, text, where, f"dropped: entry {shown}")


def _header(node: ast.stmt) -> range:
    """The lines of a statement, without those of the statements in it."""
    inner = [s.lineno for name in ("body", "cases") for s in getattr(node, name, ()) if isinstance(s, ast.stmt)]
    return range(node.lineno, max(node.lineno + 1, min(inner, default=(node.end_lineno or node.lineno) + 1)))


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def _union(node: ast.expr) -> Iterator[ast.expr]:
    match node:
        case ast.BinOp(op=ast.BitOr()):
            yield from _union(node.left)
            yield from _union(node.right)
        case ast.Tuple():
            yield from node.elts
        case _:
            yield node


def _returns(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Return]:
    """The return statements of a function, without those of functions in it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, (*_FUNCTIONS, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
