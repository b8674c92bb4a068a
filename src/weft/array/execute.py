"""Runs expressions: a `Plan` is an expression's kernels and buffers, made from its structure without its data.

Planning costs a millisecond or so and compiling more, so plans are kept by structure: shapes, dtypes, strides, meanings. The same
expression over other arrays runs the plan it ran before.
"""

from __future__ import annotations

import hashlib
import linecache
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.array import memory
from weft.array.canonical import Canonical, strides_of
from weft.array.nodes import Apply, Convert, Input, Matmul, Node, Reduce, Scalar, View, walk
from weft.array.parts import Parts, has_complex
from weft.array.product import program_of_product
from weft.array.schedule import Kernel, schedule
from weft.array.text import FAULTS, Program, program_of
from weft.runtime.jit import JITFunction

_PLANS: Final = 512
"""Plans kept."""

_ERRORS: Final[dict[str, tuple[type[Exception], str]]] = {
    "zero": (ZeroDivisionError, "integer division or remainder by zero"),
    "overflow": (OverflowError, "the least integer divided by -1 has no result in its type"),
    "negative": (ValueError, "integers to negative integer powers are not allowed"),
}
"""What a program's fault raises."""


@dataclass(frozen=True)
class _Slot:
    """An argument that is the array of this number: the inputs first, then what kernels store."""

    number: int


@dataclass(frozen=True)
class _Step:
    """One launch. ``last``: the arrays that nothing reads after it."""

    kernel: JITFunction
    arguments: tuple[_Slot | int | None, ...]
    grid: tuple[int, int, int]
    last: tuple[int, ...]


class Plan:
    """How to compute some outputs from their inputs: kernels in order, and the arrays between them.

    ``programs`` are the generated kernels, for reading.
    """

    def __init__(self, outputs: Sequence[Node], inputs: Sequence[Input]) -> None:
        canonical = Canonical(outputs)
        kernels = [k for k in schedule(canonical.outputs) if 0 not in k.shape]
        self.programs: tuple[Program, ...] = tuple(_program(kernel) for kernel in kernels)
        slots: dict[int, _Slot] = {id(node): _Slot(i) for i, node in enumerate(inputs)}
        made: list[tuple[tuple[int, ...], np.dtype[Any]]] = []

        def slot(node: Node) -> _Slot:
            if id(node) not in slots:
                slots[id(node)] = _Slot(len(inputs) + len(made))
                made.append((node.shape, node.dtype.numpy))
            return slots[id(node)]

        arguments = [tuple(slot(a) if isinstance(a, Node) else a for a in p.arguments) for p in self.programs]
        self._outputs = [
            (slot(stored).number, node.shape) for node, stored in zip(outputs, canonical.outputs, strict=True)
        ]
        last = {a.number: step for step, given in enumerate(arguments) for a in given if isinstance(a, _Slot)}
        kept = {*range(len(inputs)), *(number for number, _ in self._outputs)}
        self._steps = [
            _Step(
                _compiled(program.text, program.name),
                given,
                program.grid,
                tuple(number for number, at in last.items() if at == step and number not in kept),
            )
            for step, (program, given) in enumerate(zip(self.programs, arguments, strict=True))
        ]
        self._made = made
        self._inputs = [(node.shape, node.dtype.numpy, _strides(node)) for node in inputs]

    def __call__(self, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
        """The outputs for arrays of the inputs' shapes and dtypes, in the order of the inputs."""
        buffers = {i: self._fitting(i, array) for i, array in enumerate(arrays)}

        def buffer(number: int) -> NDArray[Any]:
            if number not in buffers:
                buffers[number] = memory.empty(*self._made[number - len(self._inputs)])
            return buffers[number]

        for step in self._steps:
            flags = np.zeros(step.grid[0] * step.grid[1] * step.grid[2], np.int32) if None in step.arguments else None
            values = [
                _memory_of(buffer(a.number)) if isinstance(a, _Slot) else flags if a is None else a
                for a in step.arguments
            ]
            step.kernel[step.grid](*values)
            del values
            if flags is not None and (found := int(np.bitwise_or.reduce(flags))):
                error, message = next(raised for name, raised in _ERRORS.items() if found & FAULTS[name])
                raise error(message)
            for number in step.last:
                del buffers[number]
        return [buffer(number).reshape(shape) for number, shape in self._outputs]

    def _fitting(self, number: int, array: NDArray[Any]) -> NDArray[Any]:
        shape, dtype, strides = self._inputs[number]
        if array.shape != shape or array.dtype != dtype:
            raise ValueError(
                f"input {number}: expected {dtype} of shape {shape}, found {array.dtype} of shape {array.shape}"
            )
        if array.strides == strides and array.flags.aligned:
            return array
        return array.copy(order="C")


def _strides(node: Input) -> tuple[int, ...]:
    """The strides in bytes that a plan is made for."""
    return tuple(stride * node.dtype.itemsize for stride in strides_of(node))


def _program(kernel: Kernel) -> Program:
    return program_of_product(kernel) if isinstance(kernel.nodes[0], Matmul) else program_of(kernel)


_generated: Final[weakref.WeakValueDictionary[tuple[str, str], JITFunction]] = weakref.WeakValueDictionary()
"""The kernels of plans, by their texts and names: plans share them, and they go with the last plan."""


def _compiled(text: str, name: str) -> JITFunction:
    """The kernel of a generated text. The text is where the compiler's errors find it."""
    if (known := _generated.get((text, name))) is not None:
        return known
    file = f"<weft.array {hashlib.sha256(text.encode()).hexdigest()[:12]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": "weft.array.generated"}
    exec(compile(text, file, "exec"), scope)
    kernel: JITFunction = scope[name]
    kernel.knows_strides = True  # they are part of the text
    weakref.finalize(kernel, _forget, text, name, file).atexit = False
    return _generated.setdefault((text, name), kernel)


def _forget(text: str, name: str, file: str) -> None:
    """Drops the text of a kernel that is gone, unless it was generated again."""
    if (text, name) not in _generated:
        linecache.cache.pop(file, None)


def _memory_of(array: NDArray[Any]) -> NDArray[Any]:
    """An array as a kernel takes memory; one without dimensions would be a number to it."""
    return array if array.ndim else array.reshape(1)


def _structure(outputs: Sequence[Node]) -> Hashable:
    """All that a plan depends on: equal for expressions that differ in their data alone."""
    numbers: dict[int, int] = {}
    rows: list[Hashable] = []
    for node in walk(outputs):
        numbers[id(node)] = len(rows)
        operands = tuple(numbers[id(o)] for o in node.operands)
        rows.append((type(node).__name__, node.shape, node.dtype, _particulars(node), operands))
    return tuple(rows), tuple(numbers[id(o)] for o in outputs)


def _particulars(node: Node) -> Hashable:
    match node:
        case Input():
            return _strides(node)
        case Scalar():
            return type(node.value).__name__, repr(node.value)  # NaN equals itself here
        case Apply() | Convert():
            return node.meaning
        case View():
            return node.dimensions
        case Reduce():
            return node.meaning, node.axes
        case _:
            return None


_plans: Final[OrderedDict[Hashable, Plan]] = OrderedDict()
_lock: Final = threading.Lock()


def plan(outputs: Sequence[Node], inputs: Sequence[Input]) -> Callable[..., list[NDArray[Any]]]:
    """The plan for outputs as a function of inputs, which must include every `Input` the outputs need."""
    missing = [node for node in walk(outputs) if isinstance(node, Input) and all(node is not i for i in inputs)]
    if missing:
        names = ", ".join(node.name or "an array" for node in missing)
        raise ValueError(f"the outputs need {names}, which is not among the inputs")
    if has_complex(outputs):
        parts = Parts(outputs, inputs)
        real = Plan(parts.outputs, parts.inputs)
        return lambda *arrays: parts.joined(real(*parts.taken(arrays)))
    return Plan(outputs, inputs)


def kernels(outputs: Sequence[Node]) -> tuple[str, ...]:
    """The text of each kernel that computes the nodes, in the order they run."""
    if has_complex(outputs):
        return kernels(Parts(outputs, ()).outputs)
    return tuple(p.text for p in Plan(outputs, [n for n in walk(outputs) if isinstance(n, Input)]).programs)


def run(outputs: Sequence[Node]) -> list[NDArray[Any]]:
    """The values of nodes whose inputs all have data."""
    if has_complex(outputs):
        parts = Parts(outputs, ())
        return parts.joined(run(parts.outputs))
    inputs = [node for node in walk(outputs) if isinstance(node, Input)]
    key = _structure(outputs)
    with _lock:
        found = _plans.get(key)
        if found is not None:
            _plans.move_to_end(key)
    if found is None:
        found = Plan(outputs, inputs)
        with _lock:
            _plans[key] = found
            while len(_plans) > _PLANS:
                _plans.popitem(last=False)
    return found(*(node.array for node in inputs if node.array is not None))
