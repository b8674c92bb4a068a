"""Loops over lanes and bytes, written in a small part of Python and translated to LLVM IR.

Rows are data and handlers straight-line code. Checks of accesses are neither: loops with early exits. As LLVM IR they could not
be read. So they are functions of this module's language, which reads as the Python it is a part of:

- every value is a 64-bit integer; addresses are such numbers, too
- assignments to names, ``if``, ``while``, ``for i in range(...)``, ``break``, ``continue``, ``return``
- ``+ - * & | ^ << >>`` (shifts are of signed numbers), comparisons, ``and or not``, ``a if c else b``
- `u8`, `u16`, `u32`, `i8`, `i16`, `i32` and `i64` read an element of an array, `put8` to `put64` write one
- calls of other functions of the same list, and of the `SUPPORT`: `ballot`, `ones`, `run`
- ``room(n)``: ``n`` words of the function's own

    def total(values, count):            define internal i64 @total(i64 %values, i64 %count)
        sum = 0
        for i in range(count):
            sum += i64(values, i)
        return sum

What is not in the list is an error where it is translated (`TypeError`).
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

_READS: Final = {
    "i8": ("i8", 1, "sext"),
    "i16": ("i16", 2, "sext"),
    "u8": ("i8", 1, "zext"),
    "u16": ("i16", 2, "zext"),
    "u32": ("i32", 4, "zext"),
    "i32": ("i32", 4, "sext"),
}
_WRITES: Final = {"put8": ("i8", 1), "put16": ("i16", 2), "put32": ("i32", 4), "put64": ("i64", 8)}
_BINARY: Final[dict[type[ast.AST], str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor",
    ast.LShift: "shl", ast.RShift: "ashr",
}  # fmt: skip
_COMPARE: Final[dict[type[ast.AST], str]] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip


_SUPPORTING: Final = {"ballot": 2, "ones": 1, "run": 4}
"""Functions of `SUPPORT`: how many arguments."""

SUPPORT: Final = """
define internal i64 @ballot(i64 %mask, i64 %warp) alwaysinline {
  %offset = mul i64 %warp, 32
  %address = add i64 %mask, %offset
  %place = inttoptr i64 %address to ptr
  %bytes = load <32 x i8>, ptr %place, align 1
  %lanes = icmp ne <32 x i8> %bytes, zeroinitializer
  %bits = bitcast <32 x i1> %lanes to i32
  %wide = zext i32 %bits to i64
  ret i64 %wide
}

define internal i64 @ones(i64 %word) alwaysinline {
  %count = call i64 @llvm.ctpop.i64(i64 %word)
  ret i64 %count
}

define internal i64 @run(i64 %handler, i64 %row, i64 %warps, i64 %n) alwaysinline {
  %function = inttoptr i64 %handler to ptr
  %words = inttoptr i64 %row to ptr
  %list = inttoptr i64 %warps to ptr
  call void %function(ptr %words, ptr %list, i64 %n)
  ret i64 0
}
"""
"""The text of functions that are no translations."""


def _outside(name: str) -> NoReturn:
    raise TypeError(f"{name} is for functions that are translated")


def u8(array: int, index: int) -> int:
    """An element of 8 bits, without sign; likewise the next ones."""
    _outside("u8")


def u16(array: int, index: int) -> int:
    _outside("u16")


def u32(array: int, index: int) -> int:
    _outside("u32")


def i8(array: int, index: int) -> int:
    """One with sign; likewise the next ones."""
    _outside("i8")


def i16(array: int, index: int) -> int:
    _outside("i16")


def i32(array: int, index: int) -> int:
    _outside("i32")


def i64(array: int, index: int) -> int:
    _outside("i64")


def put8(array: int, index: int, value: int) -> None:
    """Writes an element; likewise the next ones."""
    _outside("put8")


def put16(array: int, index: int, value: int) -> None:
    _outside("put16")


def put32(array: int, index: int, value: int) -> None:
    _outside("put32")


def put64(array: int, index: int, value: int) -> None:
    _outside("put64")


def ballot(mask: int, warp: int) -> int:
    """A bit for each lane of a warp whose byte of a mask is not 0."""
    _outside("ballot")


def ones(word: int) -> int:
    """How many bits are set."""
    _outside("ones")


def run(handler: int, row: int, warps: int, n: int) -> None:
    """Calls a handler with its row and a list of ``n`` warps."""
    _outside("run")


def room(words: int) -> int:
    """The address of so many words of 64 bits, a constant number, that are the function's own."""
    _outside("room")


def translated(functions: Sequence[Callable[..., Any]], constants: dict[str, int]) -> str:
    """The LLVM IR of some functions; ``constants`` are numbers that they name."""
    names = {function.__name__ for function in functions}
    return "\n".join(_Translation(function, names, constants).text() for function in functions)


class _Translation:
    """One function on its way to LLVM IR. Each name is a stack slot, which LLVM makes a register of."""

    def __init__(self, function: Callable[..., Any], functions: set[str], constants: dict[str, int]) -> None:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise TypeError(f"{function} is no function")
        self.tree = tree
        self.functions = functions
        self.constants = constants
        self.lines: list[str] = []
        self.slots: dict[str, None] = {}
        self.rooms: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, str]] = []
        """Of each loop around: where to go on, and where behind it."""
        self.ended = False

    def text(self) -> str:
        """The definition."""
        arguments = [a.arg for a in self.tree.args.args]
        for name in arguments:
            self.slots[name] = None
        self._block(self.tree.body)
        if not self.ended:
            self._emit("ret i64 0")
        head = [*self.rooms, *(f"  %{name}.slot = alloca i64" for name in self.slots)]
        head += [f"  store i64 %{name}, ptr %{name}.slot" for name in arguments]
        signature = ", ".join(f"i64 %{name}" for name in arguments)
        body = "\n".join([*head, *self.lines])
        return f"define internal i64 @{self.tree.name}({signature}) nounwind {{\n{body}\n}}\n"

    def _wrong(self, node: ast.AST) -> NoReturn:
        raise TypeError(f"{self.tree.name}: {ast.unparse(node)} has no translation")

    # ---- instructions -----------------------------------------------------------------------------------------------

    def _emit(self, line: str) -> None:
        self.lines.append("  " + line)

    def _value(self, text: str) -> str:
        self.count += 1
        self._emit(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def _label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def _begin(self, label: str) -> None:
        if not self.ended:
            self._emit(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.ended = False

    def _end(self, line: str) -> None:
        self._emit(line)
        self.ended = True

    # ---- statements -------------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if self.ended:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(name, self._expression(value))
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value) if type(operator) in _BINARY:
                old = self._expression(ast.Name(name))
                self._assign(name, self._value(f"{_BINARY[type(operator)]} i64 {old}, {self._expression(value)}"))
            case ast.If(test=test, body=body, orelse=orelse):
                then, other, behind = self._label(), self._label(), self._label()
                self._branch(test, then, other)
                for label, part in ((then, body), (other, orelse)):
                    self._begin(label)
                    self._block(part)
                    if not self.ended:
                        self._end(f"br label %{behind}")
                self._begin(behind)
            case ast.While(test=test, body=body):
                again, inside, behind = self._label(), self._label(), self._label()
                self._begin(again)
                self._branch(test, inside, behind)
                self._begin(inside)
                self._loop(body, again, behind)
                if not self.ended:
                    self._end(f"br label %{again}")
                self._begin(behind)
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds), body=body):
                self._for(name, bounds, body)
            case ast.Return(value=value):
                self._end(f"ret i64 {'0' if value is None else self._expression(value)}")
            case ast.Break():
                self._end(f"br label %{self.loops[-1][1]}")
            case ast.Continue():
                self._end(f"br label %{self.loops[-1][0]}")
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=arguments)):
                self._call(node, name, arguments)
            case _:
                self._wrong(node)

    def _assign(self, name: str, value: str) -> None:
        self.slots[name] = None
        self._emit(f"store i64 {value}, ptr %{name}.slot")

    def _loop(self, body: Sequence[ast.stmt], again: str, behind: str) -> None:
        self.loops.append((again, behind))
        self._block(body)
        self.loops.pop()

    def _for(self, name: str, bounds: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        first = "0" if len(bounds) == 1 else self._expression(bounds[0])
        last = self._expression(bounds[-1])
        self._assign(name, first)
        test, inside, step, behind = (self._label() for _ in range(4))
        self._begin(test)
        now = self._expression(ast.Name(name))
        more = self._value(f"icmp slt i64 {now}, {last}")
        self._end(f"br i1 {more}, label %{inside}, label %{behind}")
        self._begin(inside)
        self._loop(body, step, behind)
        self._begin(step)
        self._assign(name, self._value(f"add i64 {self._expression(ast.Name(name))}, 1"))
        self._end(f"br label %{test}")
        self._begin(behind)

    def _branch(self, test: ast.expr, then: str, other: str) -> None:
        """Goes to one of two labels; what stands behind ``and`` and ``or`` is evaluated only where it decides."""
        match test:
            case ast.BoolOp(op=operator, values=[*values]):
                for value in values[:-1]:
                    following = self._label()
                    if isinstance(operator, ast.And):
                        self._branch(value, following, other)
                    else:
                        self._branch(value, then, following)
                    self._begin(following)
                self._branch(values[-1], then, other)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._branch(operand, other, then)
            case ast.Compare(left=left, ops=[_, _, *_] as operators, comparators=values):
                pairs = zip([left, *values], operators, values, strict=False)
                self._branch(ast.BoolOp(ast.And(), [ast.Compare(a, [op], [b]) for a, op, b in pairs]), then, other)
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARE:
                one, two = self._expression(left), self._expression(right)
                decided = self._value(f"icmp {_COMPARE[type(operator)]} i64 {one}, {two}")
                self._end(f"br i1 {decided}, label %{then}, label %{other}")
            case _:
                decided = self._value(f"icmp ne i64 {self._expression(test)}, 0")
                self._end(f"br i1 {decided}, label %{then}, label %{other}")

    # ---- expressions ------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=int(value)):
                return str(int(value))
            case ast.Name(id=name) if name in self.slots:
                return self._value(f"load i64, ptr %{name}.slot")
            case ast.Name(id=name) if name in self.constants:
                return str(self.constants[name])
            case ast.Attribute(value=ast.Name(id=table), attr=name) if f"{table}.{name}" in self.constants:
                return str(self.constants[f"{table}.{name}"])
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
                one = self._expression(left)
                return self._value(f"{_BINARY[type(operator)]} i64 {one}, {self._expression(right)}")
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._value(f"sub i64 0, {self._expression(operand)}")
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self._value(f"xor i64 -1, {self._expression(operand)}")
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._call(node, name, arguments)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._chosen(test, body, orelse)
            case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return self._chosen(node, ast.Constant(1), ast.Constant(0))
            case _:
                return self._wrong(node)

    def _chosen(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> str:
        self.count += 1
        name = f"chosen{self.count}"
        then, other, behind = self._label(), self._label(), self._label()
        self._branch(test, then, other)
        for label, part in ((then, body), (other, orelse)):
            self._begin(label)
            self._assign(name, self._expression(part))
            self._end(f"br label %{behind}")
        self._begin(behind)
        return self._value(f"load i64, ptr %{name}.slot")

    def _element(self, array: ast.expr, index: ast.expr, size: int) -> str:
        base, offset = self._expression(array), self._expression(index)
        place = self._value(f"add i64 {base}, {offset if size == 1 else self._value(f'mul i64 {offset}, {size}')}")
        return self._value(f"inttoptr i64 {place} to ptr")

    def _call(self, node: ast.AST, name: str, arguments: Sequence[ast.expr]) -> str:
        if name == "i64" and len(arguments) == 2:
            return self._value(f"load i64, ptr {self._element(arguments[0], arguments[1], 8)}, align 1")
        if name in _READS and len(arguments) == 2:
            kind, size, extend = _READS[name]
            read = self._value(f"load {kind}, ptr {self._element(arguments[0], arguments[1], size)}, align 1")
            return self._value(f"{extend} {kind} {read} to i64")
        if name in _WRITES and len(arguments) == 3:
            kind, size = _WRITES[name]
            place, value = self._element(arguments[0], arguments[1], size), self._expression(arguments[2])
            narrow = value if kind == "i64" else self._value(f"trunc i64 {value} to {kind}")
            self._emit(f"store {kind} {narrow}, ptr {place}, align 1")
            return "0"
        if name == "room" and len(arguments) == 1:
            self.count += 1
            self.rooms.append(f"  %room{self.count} = alloca i64, i64 {self._expression(arguments[0])}")
            return self._value(f"ptrtoint ptr %room{self.count} to i64")
        if name in self.functions or _SUPPORTING.get(name) == len(arguments):
            given = ", ".join(f"i64 {self._expression(a)}" for a in arguments)
            return self._value(f"call i64 @{name}({given})")
        return self._wrong(node)
