"""Random programs of loops and jumps, and their meaning in plain Python.

A program is a helper and a kernel in which every place leaves a trace: it stores a number of its own at the next position of an
array. Python runs the same text with ints for scalars and lists for memory, so that the traces must agree.
"""

from __future__ import annotations

import importlib.util
import random
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

LENGTH = 400
"""Elements of the trace; later ones are left out."""


@dataclass
class Program:
    """One program under construction; ``seed`` decides everything."""

    seed: int
    random: random.Random = field(init=False)
    lines: list[str] = field(default_factory=list[str])
    places: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def text(self) -> str:
        """The module: a helper that returns a number (or two), and the kernel."""
        pair = self.random.random() < 0.4
        self.function("def helper(out, p, a, b, n):", "p, a * 3 + b" if pair else "p", pair, None)
        self.function("def kernel(out, n):", None, pair, pair)
        return "\n".join(self.lines) + "\n"

    def function(self, header: str, result: str | None, pair: bool, calls: bool | None) -> None:
        """A function that traces and, if it is the kernel (no ``result``), may call the helper."""
        self.lines += ["@jit", header]
        if result is None:
            self.lines += ["    p = 0", "    a = n + 1", "    b = n * 3"]
        self.size = 0
        self.block(1, None, result, calls)
        self.trace(1)
        if result is not None:
            self.lines.append(f"    return {result}")
        self.lines.append("")

    def trace(self, depth: int) -> None:
        self.places += 1
        self.lines += [
            f"{'    ' * depth}store(out, p, {self.places} * 1000 + (a & 15) * 30 + (b & 15))",
            f"{'    ' * depth}p += 1",
        ]

    def condition(self, loops: list[str]) -> str:
        r = self.random
        operands = ["a", "b", "n", *loops]
        if r.random() < 0.12:
            return r.choice(["True", "False"])
        left, right = (f"{r.choice(operands)} + {r.choice(operands)}", r.randint(0, 4))
        text = f"({left}) & {r.choice([1, 3, 7])} {r.choice(['==', '<', '!=', '>='])} {right}"
        return f"not ({text})" if r.random() < 0.2 else text

    def block(self, depth: int, loops: list[str] | None, result: str | None, calls: bool | None) -> None:
        for _ in range(self.random.randint(2, 4)):
            self.statement(depth, loops, result, calls)
            if self.lines[-1].strip().split()[0] in ("break", "continue", "return"):
                return

    def statement(self, depth: int, loops: list[str] | None, result: str | None, calls: bool | None) -> None:
        r, pad = self.random, "    " * depth
        self.size += 1
        kind = r.choice(["assign", "trace", "if", "if", "if", "for", "while", "jump", "jump", "call", "static"])
        if depth > 5 or self.size > 40:
            kind = r.choice(["assign", "trace", "jump"])
        if loops is None and kind in ("if", "jump"):
            kind = r.choice(["for", "while"])
        under_if = self.lines[-1].strip().startswith(("if", "else"))
        if kind == "jump" and (loops is None or (not under_if and r.random() < 0.9)):
            kind = "trace"
        if kind == "call" and calls is None:
            kind = "assign"
        inner = loops or []
        match kind:
            case "assign":
                name = r.choice("ab")
                self.lines.append(
                    f"{pad}{name} = {r.choice('ab')} * {r.randint(1, 3)} + {r.choice(['n', '1', *inner])}"
                )
            case "trace":
                self.trace(depth)
            case "if":
                self.lines.append(f"{pad}if {self.condition(inner)}:")
                self.block(depth + 1, loops, result, calls)
                if r.random() < 0.5:
                    self.lines.append(f"{pad}else:")
                    self.block(depth + 1, loops, result, calls)
            case "for":
                name = f"i{depth}"
                bounds = r.choice(["n", "1, 4", "0, n, 2", "n, -1, -1", "0, 9, 3", "b & 3"])
                self.lines.append(f"{pad}for {name} in range({bounds}):")
                self.block(depth + 1, [*inner, name], result, calls)
            case "static":
                name = f"s{depth}"
                self.lines.append(f"{pad}for {name} in static_range({r.randint(0, 3)}):")
                self.block(depth + 1, [*inner, name], result, calls)
            case "while":
                self.places += 1
                name = f"w{self.places}"
                self.lines += [f"{pad}{name} = 0"]
                head = f"while {name} < {r.randint(0, 4)}:"
                if r.random() < 0.3:
                    head = f"while ({name} := {name} + 1) < {r.randint(0, 4)}:"
                elif r.random() < 0.4:
                    head = f"while {name} < n and load(out, p - 1) >= 0:"
                self.lines += [f"{pad}{head}", f"{pad}    {name} += 1"]
                self.block(depth + 1, [*inner, name], result, calls)
            case "call":
                given = "p, b" if calls else "p"
                self.lines.append(f"{pad}{given} = helper(out, p, {r.choice('ab')}, {r.choice(['b', 'n', *inner])}, n)")
            case _:
                ends = ["break", "continue", f"return {result}" if result else "return"]
                self.lines.append(f"{pad}{r.choice(ends)}")


HEADER = """\
import weft.language as tl
from weft.frontend import KernelFunction as jit
from weft.language import static_range


@jit
def store(out, p, value):
    tl.store(out + p, value, mask=p < {length})


@jit
def load(out, p):
    return tl.load(out + p, mask=(p >= 0) & (p < {length}), other=0)


"""


def compiled(program: str, folder: Path, name: str) -> ModuleType:
    """The module of a program, with weft's meaning."""
    file = folder / f"{name}.py"
    file.write_text(HEADER.format(length=LENGTH) + program)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None, f"{file} is a file of Python"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def traced(program: str, n: int) -> list[int]:
    """The trace that Python leaves."""
    trace = [0] * LENGTH

    def store(out: list[int], p: int, value: int) -> None:
        if p < LENGTH:
            out[p] = value

    def load(out: list[int], p: int) -> int:
        return out[p] if 0 <= p < LENGTH else 0

    names: dict[str, Any] = {"jit": staticmethod, "store": store, "load": load, "static_range": range}
    exec(program, names)
    names["kernel"](trace, n)
    return trace
