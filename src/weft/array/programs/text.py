"""A scheduled kernel as a program in the kernel language.

The array package writes source text in the kernel language, not tile IR. The text can be read, is compiled, cached on disk
and checked like any other kernel, and is its own cache key. Numbers, sizes and strides are arguments, so one text serves all
numbers and shapes; strides of 0 and 1 and the extents of the tile are written out, since the compiler decides by them. No two
arguments are made one because their values happen to be equal: another shape would have another text.

Every value has the shape it needs and no more: what varies along the columns alone is one row, and meets the rest by
broadcasting.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft import dtypes
from weft.array.expression.nodes import SCANS, Apply, Convert, Matmul, Node, Reduce, Scalar, View
from weft.array.expression.views import row_major
from weft.array.programs.canonical import PARTS, Access, Partial, is_elementwise
from weft.array.programs.domain import Domain, Group, domain_of
from weft.array.programs.reductions import HELPERS, Reduction, converted, literal, received, slot_dtype
from weft.array.programs.schedule import Kernel, floats
from weft.array.programs.spelling import IMPORT, spell

NARROW: Final = (1 << 31) - (1 << 16)
"""Offsets below which, with a tile's length to spare, 32 bits hold every index."""

OPERATORS: Final[dict[str, str]] = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "divide": "{} / {}",
    "and": "{} & {}",
    "or": "{} | {}",
    "xor": "{} ^ {}",
    "equal": "{} == {}",
    "not_equal": "{} != {}",
    "less": "{} < {}",
    "less_equal": "{} <= {}",
    "greater": "{} > {}",
    "greater_equal": "{} >= {}",
    "neg": "-{}",
    "identity": "{}",
    "select": "tl.where({}, {}, {})",
}
"""Meanings that are the kernel language's own on operands of one dtype; all others are written ``tl.meaning(...)``."""

CHECKS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "truncate_divide_checked": ("truncate_divide", ("zero", "overflow")),
    "truncate_remainder_checked": ("truncate_remainder", ("zero", "overflow")),
    "truncate_remainder_zero_checked": ("truncate_remainder_zero", ("zero",)),
    "floor_divide_checked": ("floor_divide", ("zero",)),
    "floor_remainder_checked": ("floor_remainder", ("zero",)),
    "power_checked": ("power", ("negative",)),
}
"""Meanings under which some operands are errors: what is computed, and what is looked for."""

FAULTS: Final[dict[str, int]] = {"zero": 1, "overflow": 2, "negative": 4}
"""The bits by which a program reports what it found."""


@dataclass(frozen=True)
class Program:
    """A kernel's text, its name there, its arguments in order, and its grid."""

    text: str
    name: str
    parameters: tuple[str, ...]
    arguments: tuple[Node | int | None, ...]
    """Memory (an `Input`, or a stored node), numbers of the expression (`Scalar`), sizes and strides, and None for the array of
    int32, one for each program, that faults go to."""
    grid: tuple[int, int, int]
    work: int
    """How long it takes, in elements times nodes."""
    aligned: bool = False
    """Whether the compiler shall know which sizes and strides are multiples of 16."""


def reach(strides: Sequence[int], shape: Sequence[int]) -> int:
    """The greatest distance between two elements, in elements."""
    return sum(abs(stride) * (size - 1) for stride, size in zip(strides, shape, strict=True))


def program_of(kernel: Kernel) -> Program:
    """The program for a scheduled kernel that is not a matrix product."""
    return Writer(kernel).program()


@dataclass(frozen=True)
class _Memory:
    """Memory as the kernel reads or writes it, with strides along all axes of the domain."""

    node: Node
    offset: int
    strides: tuple[int, ...]


@dataclass
class _Signature:
    """The parameters of the kernel as they turn up, and their arguments."""

    names: list[str] = field(default_factory=list[str])
    arguments: list[Node | int | None] = field(default_factory=list[Node | int | None])
    _pointers: dict[int, str] = field(default_factory=dict[int, str])
    _numbers: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    _scalars: dict[int, str] = field(default_factory=dict[int, str])
    received: list[str] = field(default_factory=list[str])
    """The lines that bring numbers into their types."""

    def add(self, name: str, argument: Node | int | None) -> str:
        if name not in self.names:
            self.names.append(name)
            self.arguments.append(argument)
        return name

    def number(self, role: Hashable, value: int) -> str:
        """The parameter of a size, stride or offset; ``role`` says which."""
        if (known := self._numbers.get(role)) is None:
            known = self._numbers[role] = self.add(f"n{len(self._numbers)}", value)
        return known

    def scalar(self, node: Scalar) -> str:
        """The variable of one of the expression's numbers, in its dtype."""
        if (known := self._scalars.get(id(node))) is None:
            number = len(self._scalars)
            wide = slot_dtype(node.dtype) == dtypes.float64
            self.add(f"s{number}", node)
            self.names[-1] += ": tl.float64" * wide
            known = self._scalars[id(node)] = f"c{number}"
            self.received.append(f"    {known} = {received(f's{number}', node.dtype)}")
        return known

    def pointer(self, node: Node) -> str:
        """The parameter through which a node's memory is reached."""
        if id(node) not in self._pointers:
            self._pointers[id(node)] = self.add(f"p{len(self._pointers)}", node)
        return self._pointers[id(node)]


class Writer:
    """Writes the program of a kernel; `product` has another one for matrix products."""

    aligned: bool = False
    """`Program.aligned`."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        first = kernel.nodes[0]
        self.partial = isinstance(first, Partial)
        self.serial = isinstance(first, Reduce) and first.meaning in SCANS
        self.whole = any(isinstance(o, View) and o.source in kernel for n in kernel.nodes for o in n.operands)
        self.memory: dict[int, _Memory] = {}
        self.floating: dict[int, bool] = {}
        self.collected: set[int] = set()
        for node in kernel.nodes:
            self._collect(node)
        self.stores = {id(node): self._store_of(node) for node in kernel.stores}
        every = (*self.memory.values(), *self.stores.values())
        reaches = [reach(m.strides, kernel.shape) for m in every]
        wide = max(*reaches, math.prod(kernel.shape), 0) >= NARROW
        self.domain = self._domain([m.strides for m in every], wide)
        self.signature = _Signature()
        self.lines: list[str] = []
        self.indent = "    "
        self.values: dict[int, str] = {}
        self.loaded: dict[tuple[_Memory, bool], str] = {}
        self.checks = False
        self.reductions: dict[int, Reduction] = {}
        self.single: set[int] = set()
        """Nodes whose value is one number, though their shape has rows: nothing they are computed from varies."""

    def _domain(self, strides: list[tuple[int, ...]], wide: bool) -> Domain:
        """How the kernel walks its domain, for accesses of these strides."""
        shape, axes = self.kernel.shape, self.kernel.axes
        return domain_of(shape, axes, strides, whole_rows=self.whole, serial=self.serial, wide=wide)

    # ---- what the kernel reads and writes

    def _collect(self, node: Node) -> None:
        for operand in node.operands:
            if isinstance(operand, Scalar) or operand in self.kernel or id(operand) in self.memory:
                continue
            if isinstance(operand, Access):
                self._remember(operand, operand.buffer, operand.offset, operand.strides)
            elif isinstance(operand, View):
                if operand.source not in self.kernel:
                    strides = [0] * len(operand.shape)
                    for d, stride in zip(operand.dimensions, row_major(operand.source.shape), strict=True):
                        strides[d.axis or 0] = stride
                    self._remember(operand, operand.source, 0, tuple(strides))
            elif self._floats(operand):
                if id(operand) not in self.collected:
                    self.collected.add(id(operand))
                    self._collect(operand)
            else:
                self._remember(operand, operand, 0, row_major(operand.shape))

    def _floats(self, node: Node) -> bool:
        return floats(node, self.floating, self.kernel.pinned)

    def _remember(self, operand: Node, buffer: Node, offset: int, strides: tuple[int, ...]) -> None:
        self.memory[id(operand)] = _Memory(buffer, offset, self._along_domain(strides, self._is_kept(operand)))

    def _is_kept(self, node: Node) -> bool:
        return node.shape != self.kernel.shape

    def _along_domain(self, strides: tuple[int, ...], kept: bool) -> tuple[int, ...]:
        if not kept:
            return strides
        left = iter(strides)
        return tuple(0 if axis in self.kernel.axes else next(left) for axis in range(len(self.kernel.shape)))

    def _store_of(self, node: Node) -> _Memory:
        strides = row_major(node.shape)
        if self.partial:
            return _Memory(node, 0, self._along_domain(strides[1:], True))
        return _Memory(node, 0, self._along_domain(strides, self._is_kept(node)))

    # ---- addresses

    def _line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def _define(self, text: str) -> str:
        name = f"v{len(self.lines)}"
        self._line(f"{name} = {text}")
        return name

    def _number_of(self, group: Group) -> int:
        return self.domain.groups.index(group)

    def _size_of(self, group: Group) -> str:
        """The parameter of a group's number of elements."""
        return self.signature.number(("size", self._number_of(group)), group.size)

    def _in_tile(self, name: str, group: Group, kept: bool) -> str:
        """A vector along a group, in its place among the tile's dimensions."""
        if self.domain.rows is None or kept or group.block == 1:
            return name
        return f"{name}[:, None]" if group.role == "rows" else f"{name}[None, :]"

    def _mask(self, strides: tuple[int, ...], kept: bool) -> str | None:
        """Where the tile is inside, along the groups that the strides move through."""
        names = [
            self._in_tile(f"m{self._number_of(g)}", g, kept)
            for g in self.domain.groups
            if self._masked(g) and g.stride(strides) and not (kept and g.reduced)
        ]
        return " & ".join(names) if names else None

    def _masked(self, group: Group) -> bool:
        if group.role not in ("rows", "columns"):
            return False
        if group.reduced:  # outside, neutral elements have to be put in
            return group.size % group.block != 0 or self.partial
        return group.block > 1

    def _address(self, memory: _Memory, kept: bool) -> str:
        pointer = self.signature.pointer(memory.node)
        terms = [pointer]
        if memory.offset:
            terms.append(self.signature.number(("offset", memory), memory.offset))
        for group in self.domain.groups:
            stride = group.stride(memory.strides)
            if stride:
                number = self._number_of(group)
                index = self._in_tile(f"i{number}", group, kept)
                terms.append(
                    index if stride == 1 else f"{index} * {self.signature.number(('stride', number, stride), stride)}"
                )
        return " + ".join(terms)

    # ---- values

    def _value(self, node: Node) -> str:
        """The variable (or literal) of a node at its position."""
        if isinstance(node, Scalar):
            return self.signature.scalar(node)
        if (known := self.values.get(id(node))) is not None:
            return known
        kept = self._is_kept(node)
        if (memory := self.memory.get(id(node))) is not None:
            if (memory, kept) in self.loaded:
                return self.loaded[memory, kept]
            mask = self._mask(memory.strides, kept)
            text = f"tl.load({self._address(memory, kept)}{f', mask={mask}' if mask else ''})"
        elif isinstance(node, View):
            source = self._value(node.source)
            rows = self.domain.rows is not None and id(node.source) not in self.single
            text = f"{source}[:, None]" if rows else source
        elif isinstance(node, Convert):
            source = self._value(node.source)
            text = converted(source, node.dtype, node.meaning)
        elif isinstance(node, Apply):
            text = self._apply(node, kept)
        else:
            raise TypeError(f"{type(node).__name__} has no value here")
        self.values[id(node)] = name = self._define(text)
        if self._is_single(node, memory):
            self.single.add(id(node))
        if memory is not None:
            self.loaded[memory, kept] = name
        return name

    def _is_single(self, node: Node, memory: _Memory | None) -> bool:
        if memory is not None:
            return not any(g.stride(memory.strides) for g in self.domain.groups if g.role in ("rows", "columns"))
        return is_elementwise(node) and all(isinstance(o, Scalar) or id(o) in self.single for o in node.operands)

    def _apply(self, node: Apply, kept: bool) -> str:
        values = [self._value(a) for a in node.arguments]
        meaning, checks = CHECKS.get(node.meaning, (node.meaning, ()))
        if checks and not node.dtype.is_float:
            self._check(checks, node, values, kept)
        of_one = len({a.dtype for a in node.arguments[meaning == "select" :]}) == 1
        if meaning in OPERATORS and of_one:
            return OPERATORS[meaning].format(*values)
        text = spell(meaning, node.arguments[-1].dtype, values)
        return f'tl.meaning("{meaning}", {", ".join(values)})' if text is None else text

    def _check(self, checks: tuple[str, ...], node: Apply, values: list[str], kept: bool) -> None:
        self.checks = True
        dtype = node.dtype
        x, y = values
        ones = tuple(0 if kept and axis in self.kernel.axes else 1 for axis in range(len(self.kernel.shape)))
        mask = self._mask(ones, kept)
        found = {"zero": f"({y} == {literal(0, dtype)})", "negative": f"({y} < {literal(0, dtype)})"}
        if dtype.signed and dtype.bits >= 32:
            found["overflow"] = f"({y} == {literal(-1, dtype)}) & ({x} == {literal(dtype.min, dtype)})"
        for check in checks:
            if check in found and (check != "negative" or dtype.signed):
                bad = f"({found[check]}{f' & {mask}' if mask else ''}).to(tl.int32)"
                self._line(f"flags |= tl.max(tl.zeros((1,), tl.int32) + {bad}) * {FAULTS[check]}")

    def _store(self, node: Node, value: str) -> None:
        if (memory := self.stores.get(id(node))) is not None:
            kept = self._is_kept(node)
            mask = self._mask(memory.strides, kept)
            address = self._address(memory, kept)
            if self.partial:
                address += f" + part * {self.signature.number('part', row_major(node.shape)[0])}"
            self._line(f"tl.store({address}, {value}{f', mask={mask}' if mask else ''})")

    # ---- the kernel

    def program(self) -> Program:
        """The whole program."""
        grid = self._prologue()
        self._body()
        if self.checks:
            self.lines.insert(0, "    flags = tl.full((), 0, tl.int32)")
            ids = [f"tl.program_id({axis})" for axis in range(3)]
            number = f"{ids[0]} + tl.num_programs(0) * ({ids[1]} + tl.num_programs(1) * {ids[2]})"
            self._line(f"tl.store({self.signature.add('faults', None)} + {number}, flags)")
        meanings = [n.meaning for n in self.kernel.nodes if isinstance(n, (Apply, Reduce))]
        first = "matmul" if isinstance(self.kernel.nodes[0], Matmul) else "fused"
        name = "_".join((first, *dict.fromkeys(meanings[-4:])))
        helpers = sorted({HELPERS[r.meaning] for r in self.reductions.values() if r.meaning in HELPERS})
        libdevice = IMPORT if any("libdevice." in line for line in self.lines) else ""
        head = "\n\n".join([f"import weft\nimport weft.language as tl\n{libdevice}", *helpers, ""])
        lines = "\n".join((*self.signature.received, *self.lines))
        text = f"{head}@weft.jit\ndef {name}({', '.join(self.signature.names)}):\n{lines}\n"
        parameters = tuple(name.partition(":")[0] for name in self.signature.names)
        work = math.prod(self.kernel.shape) * (len(self.kernel.computes) + len(self.memory)) * self._length()
        return Program(text, name, parameters, tuple(self.signature.arguments), grid, work, self.aligned)

    def _length(self) -> int:
        """How many times what it computes an element takes, for `Program.work`."""
        return 1

    def _body(self) -> None:
        if not self.kernel.axes or self.whole:
            for node in self.kernel.nodes:
                if isinstance(node, Reduce):
                    self._reduce_tile(node)
                self._store(node, self._value(node))
        else:
            self._loops()

    def _prologue(self) -> tuple[int, int, int]:
        """Defines the index, and the mask where one is needed, of every group that is no loop."""
        grid = [1, 1, 1]
        cast = ".to(tl.int64)" if self.domain.wide else ""
        for axis, group in enumerate((self.domain.columns, self.domain.rows)):
            if group is not None and not self._looped(group):
                number = self._number_of(group)
                start = f"tl.program_id({axis}){cast} * {group.block}"
                span = f"tl.arange(0, {group.block})"
                tile = span + cast if group.reduced else start if group.block == 1 else f"{start} + {span}"
                self._line(f"i{number} = {tile}")
                if self._masked(group):
                    self._line(f"m{number} = i{number} < {self._size_of(group)}")
                if not group.reduced:
                    grid[axis] = -(-group.size // group.block)
        programs = self.domain.with_role("program")
        grid[2] = math.prod(g.size for g in programs)
        rest = f"tl.program_id(2){cast}"
        for group in reversed(programs):
            number = self._number_of(group)
            if group is programs[0]:
                self._line(f"i{number} = {rest}")
            else:
                size = self._size_of(group)
                self._line(f"i{number} = {rest} % {size}")
                rest = self._define(f"{rest} // {size}")
        if self.partial:
            columns = self.domain.columns
            axis = 0 if columns is None or columns.reduced else 1
            self._line(f"part = tl.program_id({axis}){cast}")
            grid[axis] = PARTS
        return grid[0], grid[1], grid[2]

    def _looped(self, group: Group) -> bool:
        """Whether a group is walked in a loop: all reduced ones, but for columns that are one tile."""
        if group.role == "loop":
            return True
        return group.reduced and not self.whole and (group.size > group.block or self.partial)

    def _accumulator(self) -> str:
        """The shape of what a reduction accumulates in."""
        sizes = [g.block for g in (self.domain.rows, self.domain.columns) if g is not None]
        return f"({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"

    def _across(self) -> int | None:
        """The dimension of the accumulator that is reduced in the end; None where every element is one of the result."""
        columns = self.domain.columns
        if columns is None or not columns.reduced:
            return None
        return 0 if self.domain.rows is None else 1

    def _reduction(self, node: Reduce) -> Reduction:
        return self.reductions.setdefault(id(node), Reduction(node, f"r{len(self.reductions)}"))

    def _take(self, reduction: Reduction) -> None:
        value = self._value(reduction.node.source)
        index = ""
        if reduction.index is not None:
            group = next(g for g in self.domain.groups if g.reduced)
            index = f"{self._in_tile(f'i{self._number_of(group)}', group, kept=False)}.to(tl.int64)"
        columns = self.domain.columns
        inside = None
        if columns is not None and columns.reduced and self._masked(columns):
            inside = self._in_tile(f"m{self._number_of(columns)}", columns, kept=False)
        for line in reduction.take(value, inside, index):
            self._line(line)

    def _reduce_tile(self, node: Reduce) -> None:
        """Reduces the row at hand."""
        reduction = self._reduction(node)
        for line in reduction.start(self._accumulator()):
            self._line(line)
        self._take(reduction)
        self._finish(reduction)

    def _finish(self, reduction: Reduction) -> None:
        across = self._across()
        value = reduction.across(across) if across is not None else reduction.index or reduction.name
        self.values[id(reduction.node)] = self._define(reduction.result(value))

    def _loops(self) -> None:
        """Accumulates in loops over what is reduced, then finishes what is kept."""
        reductions = [self._reduction(n) for n in self.kernel.nodes if isinstance(n, Reduce)]
        for reduction in reductions:
            for line in reduction.start(self._accumulator()):
                self._line(line)
        outside = self.indent
        first = True
        for group in self.domain.groups:
            if group.reduced and self._looped(group):
                self._loop(group, first)
            first = first and not group.reduced
        for node in self.kernel.nodes:
            if isinstance(node, Reduce):
                reduction = self._reduction(node)
                self._take(reduction)
                if self.serial:
                    self._store(node, reduction.result(reduction.name))
            elif not self._is_kept(node):
                self._store(node, self._value(node))
        self.indent = outside
        if self.serial:
            return
        for node in self.kernel.nodes:
            if isinstance(node, Reduce):
                self._finish(self._reduction(node))
            if self._is_kept(node):
                self._store(node, self._value(node))

    def _loop(self, group: Group, first: bool) -> None:
        """Opens the loop over a reduced group; of the first one, a partial reduction walks its part only."""
        number = self._number_of(group)
        size = self._size_of(group)
        begin, end = "0", size
        if self.partial and first:
            chunk = -(-group.size // (PARTS * group.block)) * group.block
            step = self.signature.number("chunk", chunk)
            begin = self._define(f"part * {step}")
            end = self._define(f"tl.minimum({begin} + {step}, {size})")
        cast = ".to(tl.int64)" if self.domain.wide else ""
        if group.role == "loop":
            self._line(f"for {'s' if cast else 'i'}{number} in range({begin}, {end}):")
            self.indent += "    "
            if cast:
                self._line(f"i{number} = s{number}{cast}")
            return
        self._line(f"for s{number} in range({begin}, {end}, {group.block}):")
        self.indent += "    "
        self._line(f"i{number} = s{number}{cast} + tl.arange(0, {group.block})")
        if self._masked(group):
            self._line(f"m{number} = i{number} < {end}")
