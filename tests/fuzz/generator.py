"""Random kernels: source text from a seed, valid by construction.

The generator writes text, not IR: text goes through all of weft, the frontend and the specialisation of arguments included, and
a failure is a kernel that a person can read. Each statement is made from an
environment of typed variables (`typed`), so every kernel compiles, and terminates: loops count to small bounds.

Values are *exact* unless they come from a sum in float arithmetic or a transcendental function. Exact values are
compared bit by bit and may decide branches and addresses; inexact ones are stored at once, with the bound they are
held to.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from collections.abc import Generator as Yields
from contextlib import contextmanager
from typing import Any, Final

from fuzz import atomics, batches, blocks, expressions, maps, microscaled, neighbours, nests, together, tuples, windows
from fuzz.memory import Access, affine, known, masked
from fuzz.scope import text_of
from fuzz.typed import Check, Shape, Typed, binary, cast, fits, lines_up, spelling
from weft import dtypes
from weft.dtypes import DType

COMBINES: dict[str, tuple[str, Callable[[DType], bool]]] = {
    "combine_xor": ("a ^ b", lambda d: not d.is_float),
    "combine_or": ("a | b", lambda d: not d.is_float),
    "combine_add": ("a + b", lambda d: not d.is_float),
    "combine_mul": ("a * b", lambda d: d.is_integer),
    "combine_max": ("tl.where(a > b, a, b)", lambda d: not d.is_float),
}
"""Helpers for ``tl.reduce``: what they return and the dtypes on which the order of a reduction cannot matter."""

MAPS: Final = "@weft.jit\ndef compose_maps(a, b, c, d):\n    return a * c, b * c + d\n"
"""x -> a x + b, then x -> c x + d: a helper for ``tl.associative_scan`` of two tiles of one integer dtype."""

TOGETHER: Final = 0.08
"""Which part of the kernels has programs that work together; they are many programs of few statements."""

NEIGHBOURS: Final = 0.08
"""Which part of the others has programs that a CPU runs several of as one."""


def generate(seed: int) -> str:
    """The kernel file (see `case`) of a seed."""
    return Generator(seed).file()


class Generator:
    """One kernel in the making; implements `expressions.Scope`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = r = random.Random(seed)
        self.together = r.random() < TOGETHER
        self.neighbours = not self.together and r.random() < NEIGHBOURS
        alone = neighbours.GRIDS if self.neighbours else ((1,), (1,), (2,), (3,), (5,), (2, 2))
        self.grid = r.choice(((8,), (16,), (4, 4)) if self.together else alone)
        self.programs = math.prod(self.grid)
        largest = 11 if r.random() < 0.1 else 8
        exponent = r.choice((4, 6, 8, 9)) if self.together else r.randint(0, largest)
        split = r.randint(0, exponent)
        self.rows, self.columns = 1 << split, 1 << (exponent - split)
        self.arguments: dict[str, tuple[Any, ...]] = {}
        self.constants: dict[str, int] = {"ROWS": self.rows, "COLS": self.columns}
        self.arrays: list[tuple[str, DType, int, int | None]] = []
        self.helpers: list[str] = []
        self.lines: list[str] = []
        self.scopes: list[list[Typed]] = [[]]
        self.nesting = 0
        self.in_helper = False
        self.names = 0

    # ---- the scope ---------------------------------------------------------------------------------------------------

    def pick(self, accept: Callable[[Typed], bool] = lambda _: True) -> Typed | None:
        """An exact value: usually a variable, the recent ones first, sometimes a new expression."""
        if self.nesting < 2 and self.random.random() < 0.15:
            self.nesting += 1
            made = expressions.exact(self)
            self.nesting -= 1
            if made and accept(made):
                return made
        found = [v for scope in self.scopes for v in scope if v.check is None and accept(v)]
        if not found:
            return None
        return self.random.choice(found[-6:] if self.random.random() < 0.6 else found)

    def constant(self, value: int) -> str:
        names = [name for name, n in self.constants.items() if n == value and not self.in_helper]
        return self.random.choice(names) if names and self.random.random() < 0.4 else str(value)

    def combine(self, dtype: DType) -> str | None:
        names = [name for name, (_, accepts) in COMBINES.items() if accepts(dtype)]
        if not names:
            return None
        name = self.random.choice(names)
        text = f"@weft.jit\ndef {name}(a, b):\n    return {COMBINES[name][0]}\n"
        if text not in self.helpers:
            self.helpers.append(text)
        return name

    def maps(self) -> str:
        if MAPS not in self.helpers:
            self.helpers.append(MAPS)
        return "compose_maps"

    def write_function(self, prefix: str, text: str) -> str:
        name = self.new(prefix)
        self.helpers.append(f"@weft.jit\ndef {name}{text}")
        return name

    def new(self, prefix: str = "v") -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def emit(self, line: str) -> None:
        self.lines.append("    " * len(self.scopes) + line)

    def define(self, value: Typed) -> Typed:
        """Assigns an expression to a new variable of the current block."""
        name = self.new()
        self.emit(f"{name} = {value.text}")
        variable = value.called(name)
        self.scopes[-1].append(variable)
        return variable

    @contextmanager
    def block(self, header: str, *variables: Typed) -> Yields[None]:
        """An indented block; what it defines is gone after it."""
        self.emit(header)
        self.scopes.append(list(variables))
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.emit("pass")
        self.scopes.pop()

    def argument(self, prefix: str, *entry: Any) -> str:
        name = self.new(prefix)
        self.arguments[name] = entry
        return name

    def array(self, kind: str, dtype: DType, size: int, span: int | None) -> str:
        """An argument of ``size`` elements, of which each program uses ``span`` of its own (None: any of them): a new array,
        or other elements of an earlier one, as long as programs do not meet in it."""
        prefix, r = kind.removesuffix("put"), self.random
        if r.random() < 0.2:
            fitting = [
                (name, length)
                for name, other, length, apart in self.arrays
                if other == dtype and length >= size and (self.programs == 1 or (span is not None and apart == span))
            ]
            if fitting:
                name, length = r.choice(fitting)
                first = r.randint(0, length - size) if self.programs == 1 else 0
                return self.argument(prefix, "alias", dtype.name, size, name, first)
        data = ("signs",) if kind == "input" and dtype.is_float and r.random() < 0.15 else ()
        name = self.argument(prefix, kind, dtype.name, size, *data)
        self.arrays.append((name, dtype, size, span))
        return name

    # ---- statements --------------------------------------------------------------------------------------------------

    def statement(self) -> None:
        """One random statement."""
        choices: list[tuple[Callable[[], None], float]] = [
            (self.assignment, 12),
            (self.reassignment, 1.5),
            (self.tuple, 0.4),
            (self.conditional, 0.8 if len(self.scopes) < 4 else 0),
            (self.loop, 0.8 if len(self.scopes) < 3 else 0),
            (self.while_loop, 0.3 if len(self.scopes) < 3 else 0),
        ]
        if not self.in_helper:
            choices += [
                (self.load, 2.5),
                (self.block_pointer, 0.3),
                (self.descriptor, 0.4),
                (self.scaled, 0.15),
                (self.batched, 0.3),
                (self.elementwise, 0.4),
                (self.mapped_access, 0.2),
                (self.inexact, 1.5),
                (self.store_something, 0.5),
                (self.atomic, 0.6),
                (self.call, 0.8),
                (self.promise, 0.2),
                (self.printing, 0.2 if len(self.scopes) == 1 else 0),
                (self.nest, 0.5 if len(self.scopes) == 1 and not self.together else 0),
            ]
        functions, weights = zip(*choices, strict=True)
        self.random.choices(functions, weights)[0]()

    def statements(self, count: int) -> None:
        for _ in range(count):
            self.statement()

    def assignment(self) -> None:
        value = expressions.exact(self)
        if value is not None:
            self.define(value)

    def reassignment(self) -> None:
        """A new value of the same type for a variable of any enclosing block."""
        variables = [v for scope in self.scopes for v in scope if v.check is None and v.text[0] == "v"]
        if not variables:
            return
        v = self.random.choice(variables)
        op = self.random.choice(("+", "-", "*", "&", "|", "^", "minimum", "maximum"))
        w = self.pick(lambda other: fits(other.shape, v.shape)) or v
        value = binary(op, v, w)
        if value is None:
            return
        if value.dtype == v.dtype and op not in ("minimum", "maximum"):
            self.emit(f"{v.text} {op}= {w.text}")
        else:
            self.emit(f"{v.text} = {self.coerced(value, v.dtype, v.shape).text}")

    def coerced(self, value: Typed, dtype: DType, shape: Shape) -> Typed:
        """``value`` in a type, if its shape permits; otherwise something else of that type."""
        if fits(value.shape, shape):
            value = cast(value, dtype)
            if value.shape == shape:
                return value
            return Typed(f"tl.broadcast_to({value.text}, {text_of(self, shape)})", dtype, shape)
        if not shape:
            return Typed(f"tl.max({cast(value, dtypes.int32).text}).to(tl.{spelling(dtype)})", dtype, shape)
        text = text_of(self, shape)
        return Typed(f"tl.full({text}, 1, tl.{spelling(dtype)})", dtype, shape)

    def condition(self) -> str:
        """A scalar bool, known at run time or (rarely) at compile time."""
        if self.random.random() < 0.1:
            return f"{self.constant(self.columns)} > {self.random.choice((1, 8, 64))}"
        ready = self.pick(lambda v: v.dtype.is_bool and not v.shape)
        if ready and self.random.random() < 0.5:
            return f"not {ready.text}" if self.random.random() < 0.2 else ready.text
        scalar = self.pick(lambda v: not v.shape and not v.dtype.is_bool)
        if scalar is None:
            return ready.text if ready else "True"
        test = binary(self.random.choice(expressions.COMPARISONS), scalar, expressions.number(self, scalar.dtype))
        return test.text if test else f"{scalar.text} > 0"

    def conditional(self) -> None:
        """``if`` with or without the other branches; a variable may be born in all of them."""
        value = expressions.exact(self) if self.random.random() < 0.6 else None
        name = self.new()
        headers = [f"if {self.condition()}:"]
        if self.random.random() < 0.15:
            headers.append(f"elif {self.condition()}:")
        if value or self.random.random() < 0.5:
            headers.append("else:")
        for position, header in enumerate(headers):
            with self.block(header):
                self.statements(self.random.randint(0 if value else 1, 2))
                if value:
                    other = value if position == 0 else self.pick(lambda v: fits(v.shape, value.shape)) or value
                    self.emit(f"{name} = {self.coerced(other, value.dtype, value.shape).text}")
        if value:
            self.scopes[-1].append(value.called(name))

    def loop(self) -> None:
        """``for`` over a constant or a run-time range, upwards or downwards, unrolled or not."""
        scalar = self.pick(lambda v: not v.shape and v.dtype == dtypes.int32)
        i = self.new("i")
        kind = self.random.choice(("constant", "constant", "run time", "static", "step"))
        variables = [Typed(i, dtypes.int32)]
        if kind == "run time" and scalar:
            header = f"range({scalar.text} & 3)"
        elif kind == "static":
            header, variables = f"tl.static_range({self.random.randint(0, 3)})", []
        elif kind == "step":
            header = self.random.choice(("range(7, 0, -3)", "range(-2, 5, 3)", "tl.range(0, 4, 2)", "range(3, 3)"))
        else:
            header = f"{self.random.choice(('range', 'tl.range'))}({self.random.randint(0, 4)})"
        with self.block(f"for {i} in {header}:", *variables):
            self.statements(self.random.randint(0, 3))
            self.reassignment()
            self.jump(["break", "continue"])
            self.reassignment()

    def while_loop(self) -> None:
        """``while`` a counter is small and, perhaps, something else holds."""
        counter = Typed(self.new("w"), dtypes.int32)
        self.emit(f"{counter.text} = {self.random.choice((0, 0, 1))}")
        limit = self.pick(lambda v: not v.shape and v.dtype == dtypes.int32)
        test = f"{counter.text} < ({limit.text} & 3)" if limit and self.random.random() < 0.5 else f"{counter.text} < 3"
        more = self.pick(lambda v: not v.shape and v.dtype.is_bool)
        if more and self.random.random() < 0.4:
            test = f"({test}) and {more.text}"
        with self.block(f"while {test}:", counter):
            self.statements(self.random.randint(0, 2))
            self.reassignment()
            self.jump(["break"])
            self.emit(f"{counter.text} += 1")
            self.jump(["break", "continue"])
            if self.random.random() < 0.3:
                self.reassignment()

    def jump(self, kinds: list[str]) -> None:
        """Perhaps a jump out of the loop, under a condition or two."""
        if self.random.random() < 0.75:
            return
        if not self.in_helper and not self.together and self.random.random() < 0.1:
            kinds = ["return"]
        with self.block(f"if {self.condition()}:"):
            if self.random.random() < 0.5:
                self.reassignment()
            if self.random.random() < 0.3:
                with self.block(f"if {self.condition()}:"):
                    self.emit(self.random.choice(kinds))
                self.reassignment()
            else:
                self.emit(self.random.choice(kinds))

    def nest(self) -> None:
        """A loop over a contraction, or one that sums."""
        self.random.choice((nests.nest, windows.window))(self)

    def promise(self) -> None:
        """Something true that the compiler may use."""
        self.emit(self.random.choice(("tl.assume(pid >= 0)", f"tl.assume(pid < {self.programs})", "tl.assume(True)")))

    def tuple(self) -> None:
        """A tuple of values."""
        tuples.tuple_of_values(self)

    def printing(self) -> None:
        """A value printed."""
        tuples.printing(self)

    def call(self) -> None:
        """A helper of its own, called once or twice."""
        arguments = [v for v in (self.pick() for _ in range(self.random.randint(1, 3))) if v]
        if not arguments:
            return
        name, results = self.helper([Typed(f"p{i}", v.dtype, v.shape) for i, v in enumerate(arguments)])
        passed = ", ".join(v.text for v in arguments)
        if self.random.random() < 0.5:
            passed += f", K={self.random.randint(1, 5)}"
        targets = [result.called(self.new()) for result in results]
        self.emit(f"{', '.join(t.text for t in targets)} = {name}({passed})")
        self.scopes[-1] += targets

    def helper(self, parameters: list[Typed]) -> tuple[str, list[Typed]]:
        """Writes a function of the given parameters; returns its name and the types of what it returns."""
        outer = self.lines, self.scopes, self.in_helper
        self.lines, self.scopes, self.in_helper = [], [list(parameters)], True
        self.statements(self.random.randint(1, 4))
        first = self.pick() or parameters[0]
        results = [first]
        if self.random.random() < 0.25:
            results.append(self.pick() or parameters[-1])
        if len(results) == 1 and self.random.random() < 0.3:
            with self.block(f"if {self.condition()}:"):
                other = self.pick(lambda v: fits(v.shape, first.shape)) or first
                self.emit(f"return {self.coerced(other, first.dtype, first.shape).text}")
        last = binary("*", first, 1)
        scaled = last is not None and (last.dtype, last.shape) == (first.dtype, first.shape) and not first.dtype.is_bool
        shown = [f"({first.text} * K)" if scaled and i == 0 else r.text for i, r in enumerate(results)]
        self.emit(f"return {', '.join(shown)}")
        body, (self.lines, self.scopes, self.in_helper) = self.lines, outer
        name = self.new("helper_")
        signature = ", ".join([*(p.text for p in parameters), "K: tl.constexpr = 2"])
        self.helpers.append("\n".join(["@weft.jit", f"def {name}({signature}):", *body, ""]))
        return name, results

    # ---- memory ------------------------------------------------------------------------------------------------------

    def shape(self) -> Shape:
        """The shape of a new tile: related to the others, so that they meet."""
        r, c = self.rows, self.columns
        related = ((r, c), (r, c), (r, c), (r, 1), (1, c), (c,), (r,), (c, r), (r * c,), (), (1,), (1, 1))
        if r > 1 and self.random.random() < 0.1:
            return (2, r // 2, c)
        return self.random.choice(related)

    def place(self, shape: Shape, injective: bool) -> Access:
        """Offsets for a tile, each program having its own part; usually in a variable."""
        access = affine(self.random, self.constant, shape, injective)
        if self.random.random() < 0.7:
            name = self.new("offset")
            self.emit(f"{name} = {access.offsets.text}")
            self.scopes[-1].append(access.offsets.called(name))
            return Access(access.offsets.called(name), access.span)
        return access

    def mask(self, access: Access, fitting: Callable[[Shape, Shape], bool]) -> tuple[str | None, int]:
        """A mask (or None) for an access, of a ``fitting`` shape, and how many elements the array then needs. Parts of some are
        known at compile time."""
        shape = access.offsets.shape
        if not shape or self.random.random() > 0.25:
            return self.unknown_mask(access, fitting)
        part = known(self.random, self.constant, shape)
        if self.random.random() < 0.4:
            # All of it or none, which is not known before: only the other part is.
            switch = self.argument("n", "number", self.random.choice((0, 2, 3)))
            return f"({part} & ({switch} > 0))", access.span * self.programs
        text, size = self.unknown_mask(access, fitting)
        return (part if text is None else f"(({text}) & {part})"), size

    def unknown_mask(self, access: Access, fitting: Callable[[Shape, Shape], bool]) -> tuple[str | None, int]:
        """As `mask`, of what is known at run time only."""
        total = access.span * self.programs
        kind = self.random.random()
        if kind < 0.4:
            return None, total
        if kind < 0.75:
            n = self.random.choice((0, 1, total - 1, total, total + 3, self.random.randint(0, total)))
            name = self.argument("n", "number", max(n, 0))
            # An int 1 is a compile-time constant, which tests against tiles do not mind.
            return f"{access.offsets.text} < {name}", min(max(n, 1), total)
        test = self.pick(lambda v: v.dtype.is_bool and fitting(v.shape, access.offsets.shape))
        return (test.text if test else None), total

    def load(self) -> None:
        """A tile from a new input: regular or gathered, masked or not."""
        dtype, shape = self.random.choice(dtypes.ALL), self.shape()
        index = self.pick(lambda v: v.dtype.is_integer) if self.random.random() < 0.15 else None
        if index is not None:
            size = self.random.choice((1, 16, 64, 256))
            access = Access(Typed(f"({cast(index, dtypes.int32).text} & {size - 1})", dtypes.int32, index.shape), size)
            test = self.pick(lambda v: v.dtype.is_bool and fits(v.shape, index.shape))
            mask = test.text if test and self.random.random() < 0.4 else None
            span = None
        else:
            access = self.place(shape, injective=False)
            mask, size = self.mask(access, fits)
            span = access.span
        name = self.array("input", dtype, size, span)
        self.define(masked(self.random, name, dtype, access, mask))

    def block_pointer(self) -> None:
        """A load through a block pointer."""
        blocks.block_pointer(self)

    def descriptor(self) -> None:
        """Accesses through a tensor descriptor."""
        blocks.descriptor(self)

    def scaled(self) -> None:
        """A product of microscaled matrices."""
        microscaled.scaled(self)

    def batched(self) -> None:
        """Products of a batch of matrices."""
        batches.batched(self)

    def elementwise(self) -> None:
        """A function of elements, mapped over tiles."""
        maps.elementwise(self)

    def mapped_access(self) -> None:
        """A function of elements that accesses memory."""
        maps.access(self)

    def alike(self, value: Typed, other: str, where: str = "") -> None:
        """A trap if two values differ: what the reference does not notice, since it runs the same tile IR. NaNs are alike."""
        name = self.argument("trap", "trap", "int8", 1)
        x = value.text
        differ = f"({x} != {other}) & (({x} == {x}) | ({other} == {other}))" + (f" & {where}" if where else "")
        mask = f"tl.sum(({differ}).to(tl.int32)) > 0" if value.shape else differ
        self.emit(f"tl.store({name}, 1, mask={mask})")

    def output(self, value: Typed, dtype: DType, *rule: str | float, kind: str = "output") -> tuple[str, Access]:
        """Stores a value in a new output array."""
        access = self.place(value.shape, injective=True)
        # Inexact values and their bounds are stored whole, so that each element finds its own.
        mask, size = (
            self.mask(access, lines_up) if not rule and kind == "output" else (None, access.span * self.programs)
        )
        if rule or kind != "output":
            name = self.argument("out", kind, dtype.name, size, *rule)
        else:
            name = self.array("output", dtype, size, access.span)
        self.emit(f"tl.store({name} + {access.offsets.text}, {value.text}{f', mask={mask}' if mask else ''})")
        return name if mask is None else "", access

    def store(self, value: Typed) -> None:
        """Stores an exact value, as it is or converted; sometimes reads it back."""
        dtype = value.dtype if self.random.random() < 0.75 else self.random.choice(dtypes.ALL)
        name, access = self.output(value, dtype)
        if name and self.random.random() < 0.1:
            self.define(Typed(f"tl.load({name} + {access.offsets.text})", dtype, value.shape))

    def store_something(self) -> None:
        value = self.pick()
        if value is not None:
            self.store(value)

    def inexact(self) -> None:
        """An inexact value, perhaps moved, stored with the rule it is held to."""
        found = expressions.inexact(self)
        if found is None:
            return
        value, magnitude = found
        check = value.check
        if check is None:
            raise ValueError(f"an inexact expression needs a rule: {value.text}")
        form = expressions.movements(self, value.shape) if self.random.random() < 0.3 else None
        if form is not None:
            value, magnitude = (x and Typed(form[0].format(x.text), x.dtype, form[1]) for x in (value, magnitude))
        if value and magnitude:
            self.paired(value, magnitude, check)
        elif value:
            self.output(value, value.dtype, check.rule, *check.parameters)

    def paired(self, value: Typed, magnitude: Typed, check: Check) -> None:
        """Stores a value and the magnitude that its bound is a multiple of, at the same offsets."""
        access = self.place(value.shape, injective=True)
        size = access.span * self.programs
        bound = self.argument("bound", "bound", "float64", size)
        name = self.argument("out", "output", value.dtype.name, size, check.rule, bound, *check.parameters)
        self.emit(f"tl.store({bound} + {access.offsets.text}, {magnitude.text})")
        self.emit(f"tl.store({name} + {access.offsets.text}, {value.text})")

    def atomic(self) -> None:
        """An atomic access."""
        atomics.atomic(self)

    def synchronise(self) -> None:
        """The programs of the grid work together on something."""
        value = self.pick(lambda v: v.size > 16) or self.pick()
        if value is not None:
            self.random.choice(together.PATTERNS)(self, value)

    # ---- the file ----------------------------------------------------------------------------------------------------

    def scalars(self) -> None:
        """The program's index and the scalar arguments."""
        second = " + tl.num_programs(0) * tl.program_id(1)" if len(self.grid) > 1 else ""
        self.emit(f"pid = tl.program_id(0){second}")
        self.scopes[-1].append(Typed("pid", dtypes.int32))
        for value, dtype in (
            (self.random.choice((0, 5, -3, 16, 2**31 - 1, -(2**31))), dtypes.int32),
            (self.random.choice((2**31, -(2**40), 2**63 - 1)), dtypes.int64),
            (self.random.choice((2**63, 2**64 - 1)), dtypes.uint64),
            (self.random.choice((0.5, -2.75, 0.0, math.pi, 1e30)), dtypes.float32),
            (self.random.choice((True, False)), dtypes.bool_),
        ):
            if self.random.random() < 0.35:
                name = self.argument("scalar", "number", value)
                self.scopes[-1].append(Typed(name, dtype))

    def work(self) -> None:
        """The statements between the first loads and the last stores."""
        for _ in range(self.random.randint(1, 3) if self.together else self.random.randint(3, 13)):
            self.statement()
            if self.together:
                self.synchronise()
            if self.random.random() < 0.01:
                with self.block(f"if {self.condition()}:"):
                    self.emit("return")

    def body(self, work: Callable[[], None]) -> None:
        """The statements of the kernel."""
        self.scalars()
        for _ in range(self.random.randint(1, 4)):
            self.load()
        work()
        values = [v for v in self.scopes[0] if v.check is None and v.text[0] == "v"]
        # An error in a value shows only if something stores it: what nothing reads comes first.
        read = Counter(re.findall(r"\w+", "\n".join(self.lines)))
        unread = [v for v in values if read[v.text] == 1]
        for value in dict.fromkeys([*unread[-8:], *values[-2:], self.random.choice(values)]):
            self.store(value)

    def file(self, work: Callable[[], None] | None = None, surely: str = "") -> str:
        """The kernel file; ``work`` writes other statements than `work` does. Of neighbours one statement is ``surely`` there."""
        if self.neighbours and work is None:
            neighbours.body(self, surely)
        else:
            self.body(work or self.work)
        constants = {name: value for name, value in self.constants.items() if self.random.random() < 0.8}
        module_level = [f"{n} = tl.constexpr({v})" for n, v in self.constants.items() if n not in constants]
        self.arguments |= {name: ("constant", value) for name, value in constants.items()}
        parameters = ", ".join(n + (": tl.constexpr" if n in constants else "") for n in self.arguments)
        arguments = [f"    {name!r}: {entry!r}," for name, entry in self.arguments.items()]
        return "\n".join(
            [
                f'"""Generated from seed {self.seed}."""',
                "",
                "import weft",
                "import weft.language as tl",
                "from weft.language.extra import libdevice",
                "",
                f"SEED = {self.seed}",
                f"GRID = {self.grid}",
                "ARGUMENTS = {",
                *arguments,
                "}",
                *module_level,
                "",
                "",
                *(f"{helper}\n" for helper in self.helpers),
                "@weft.jit(checked=True)" if self.random.random() < 0.2 else "@weft.jit",
                f"def kernel({parameters}):",
                *self.lines,
                "",
            ]
        )
