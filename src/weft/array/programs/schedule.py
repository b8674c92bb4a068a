"""Decides which canonical nodes share a kernel.

A kernel has a *domain*: the shape it iterates over and, where it reduces, the axes it reduces. A node lives in it at one
of two positions: *full*, with the domain's shape, or *kept*, with the shape the reduction leaves. So ``x - max(x)`` over rows
is one kernel: ``x`` is full, ``max(x)`` is kept, and its `View` back to the domain costs nothing inside the kernel.

Nodes are taken operands first. Each joins the first kernel that comes no earlier than its operands and has a suitable domain,
or opens a new one, so kernels run in the order in which they were opened. A kernel that computes `FUSED` nodes takes no more.
A matrix product takes in what is computed from it element by element.

*Floating* nodes, elementwise ones over memory alone, belong to no kernel: each kernel that needs them computes them again, at
the cost of loads that it needs anyway. Where that costs more than reading a result, they are *pinned*: when a first schedule has
computed them in two kernels or more, a second one computes them in one kernel, and the others read what it stores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from weft.array.expression.nodes import SCANS, Apply, Call, Input, Matmul, Node, Reduce, Scalar, View, walk
from weft.array.programs.canonical import FUSED, Access, Partial, is_elementwise
from weft.array.programs.domain import ROW

Position = Literal["full", "kept"]


@dataclass(eq=False)
class Kernel:
    """Nodes computed together, operands first, over ``shape`` with ``axes`` reduced; ``stores`` are those others need.

    ``single`` kernels (calls, scans, partial reductions) hold one node, and what floats into it. A ``product`` holds what follows
    it, too.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...] = ()
    single: bool = False
    product: bool = False
    pinned: frozenset[int] = frozenset()
    """The nodes that do not float although they could, by identity."""
    nodes: list[Node] = field(default_factory=list[Node])
    position: dict[int, Position] = field(default_factory=dict[int, Position])
    stores: list[Node] = field(default_factory=list[Node])
    computes: set[int] = field(default_factory=set[int])
    """The nodes and all that floats into them, by identity."""

    @property
    def kept(self) -> tuple[int, ...]:
        """The shape that reducing ``axes`` leaves."""
        return tuple(n for axis, n in enumerate(self.shape) if axis not in self.axes)

    @property
    def spreads(self) -> bool:
        """Whether reduced values may be used at full position: the whole row is one tile."""
        return len(self.axes) == 1 and self.shape[self.axes[0]] <= ROW

    def __contains__(self, node: Node) -> bool:
        return id(node) in self.position

    def add(self, node: Node, position: Position) -> None:
        """Computes ``node`` here."""
        self.nodes.append(node)
        self.position[id(node)] = position


def schedule(outputs: Sequence[Node]) -> list[Kernel]:
    """The kernels that compute the outputs of a canonical graph, in the order to run them."""
    kernels = _Scheduler(outputs, frozenset()).kernels
    pinned = frozenset(id(node) for node in _repeated(outputs, kernels))
    return _Scheduler(outputs, pinned).kernels if pinned else kernels


def floats(node: Node, known: dict[int, bool], pinned: frozenset[int]) -> bool:
    """Whether only elementwise nodes that are not pinned lie between a node and memory; ``known`` keeps the answers."""
    if (answer := known.get(id(node))) is None:
        answer = known[id(node)] = isinstance(node, (Access, Scalar)) or (
            is_elementwise(node) and id(node) not in pinned and all(floats(o, known, pinned) for o in node.operands)
        )
    return answer


def _repeated(outputs: Sequence[Node], kernels: Sequence[Kernel]) -> Iterator[Node]:
    """The elementwise nodes that two kernels compute and that are stored anyway or cost more than a load. Those that only other
    such nodes need stay with them, in one kernel, which does not store them."""
    counts = Counter(number for kernel in kernels for number in kernel.computes)
    stored = {id(node) for node in outputs}
    for node in walk(outputs):
        if is_elementwise(node) and counts[id(node)] > 1 and (id(node) in stored or _is_costly(node)):
            yield node


def _is_costly(node: Node) -> bool:
    """Whether computing a node again takes longer than storing and reading it: it needs two arrays or a function."""
    found = list(walk([node]))
    arrays = [n for n in found if isinstance(n, Access) and all(n.strides)]
    return len(arrays) > 1 or any(isinstance(n, Apply) and n.meaning not in _CHEAP for n in found)


_CHEAP: Final = frozenset(
    ("add", "sub", "mul", "neg", "abs", "identity", "select", "and", "or", "xor", "invert", "maximum", "minimum")
    + ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "maximum_nan", "minimum_nan")
)
"""Meanings that take no longer than a load."""


class _Scheduler:
    def __init__(self, outputs: Sequence[Node], pinned: frozenset[int]) -> None:
        self._pinned = pinned
        self.kernels: list[Kernel] = []
        self._home: dict[int, int] = {}
        self._floating: dict[int, bool] = {}
        self._parts: dict[int, frozenset[int]] = {}
        self._needed: dict[int, int] = {}
        order = list(walk(outputs))
        stored = {id(o): o for o in outputs}
        stored |= {id(n.buffer): n.buffer for n in order if isinstance(n, Access) and not isinstance(n.buffer, Input)}
        for node in order:
            if isinstance(node, (Input, Scalar, Access, View)):
                continue
            if not self._floats(node) or id(node) in stored:
                self._assign(node)
        self._reads = [(kernel, set(self._taken(kernel))) for kernel in self.kernels]
        for kernel in self.kernels:
            kernel.stores += [n for n in kernel.nodes if id(n) in stored or self._used_elsewhere(n, kernel)]

    def _floats(self, node: Node) -> bool:
        return floats(node, self._floating, self._pinned)

    def _ready(self, node: Node) -> int:
        """The first kernel by whose start everything is stored that a floating node reads."""
        if (known := self._needed.get(id(node))) is None:
            if isinstance(node, Access):
                known = self._home.get(id(node.buffer), -1) + 1
            else:
                known = max((self._ready(o) for o in node.operands), default=0)
            self._needed[id(node)] = known
        return known

    def _assign(self, node: Node) -> None:
        earliest, inside = 0, list[Node]()
        for operand in node.operands:
            if self._floats(operand):
                earliest = max(earliest, self._ready(operand))
            else:
                inside.append(operand)
                earliest = max(earliest, self._home[id(_computed(operand))])
        if not isinstance(node, (Matmul, Call)) and not _alone(node):
            for number, kernel in enumerate(self.kernels[earliest:], earliest):
                if (position := self._fits(node, kernel, inside)) is not None:
                    if isinstance(node, Reduce):
                        kernel.axes = node.axes
                    kernel.add(node, position)
                    kernel.computes |= self._computes(node)
                    self._home[id(node)] = number
                    return
        self._open(node)

    def _open(self, node: Node) -> None:
        if isinstance(node, Reduce):
            kernel = Kernel(node.source.shape, node.axes, _alone(node), pinned=self._pinned)
            kernel.add(node, "kept")
        else:
            kernel = Kernel(node.shape, (), isinstance(node, Call), isinstance(node, Matmul), self._pinned)
            kernel.add(node, "full")
        kernel.computes |= self._computes(node)
        self._home[id(node)] = len(self.kernels)
        self.kernels.append(kernel)

    def _computes(self, node: Node) -> frozenset[int]:
        """A node and the elementwise nodes that float into it."""
        if (known := self._parts.get(id(node))) is None:
            floating = [o for o in node.operands if is_elementwise(o) and self._floats(o)]
            known = self._parts[id(node)] = frozenset({id(node)}).union(*map(self._computes, floating))
        return known

    def _fits(self, node: Node, kernel: Kernel, inside: Sequence[Node]) -> Position | None:
        """The position at which a node can join a kernel."""
        if kernel.single or len(kernel.computes) >= FUSED:
            return None
        at = [kernel.position[id(o)] for o in inside if o in kernel]
        views = [o for o in inside if isinstance(o, View) and o.source in kernel]
        if kernel.product and not (is_elementwise(node) and any(o in kernel for o in inside)):
            return None
        if isinstance(node, Reduce):
            same = node.source.shape == kernel.shape and kernel.axes in ((), node.axes)
            fits = same and all(p == "full" for p in at) and all(_spread(v, kernel) for v in views)
            return "kept" if fits else None
        if node.shape == kernel.shape and all(p == "full" for p in at) and all(_spread(v, kernel) for v in views):
            return "full"
        if kernel.axes and node.shape == kernel.kept and all(p == "kept" for p in at) and not views:
            return "kept"
        return None

    def _taken(self, kernel: Kernel) -> Iterator[int]:
        """The computed nodes that nodes of a kernel ask for."""
        for node in kernel.nodes:
            yield from (id(_computed(o)) for o in node.operands if not self._floats(o))

    def _used_elsewhere(self, node: Node, home: Kernel) -> bool:
        return any(id(node) in reads for kernel, reads in self._reads if kernel is not home)


def _alone(node: Node) -> bool:
    """Whether a reduction shares its kernel with nothing: partial ones, and scans."""
    return isinstance(node, Partial) or (isinstance(node, Reduce) and node.meaning in SCANS)


def _computed(operand: Node) -> Node:
    return operand.source if isinstance(operand, View) else operand


def _spread(view: View, kernel: Kernel) -> bool:
    """Whether a view takes a kept value of the kernel back to its whole domain."""
    if not kernel.spreads or kernel.position.get(id(view.source)) != "kept" or view.shape != kernel.shape:
        return False
    return [d.axis for d in view.dimensions] == [a for a in range(len(kernel.shape)) if a not in kernel.axes]
