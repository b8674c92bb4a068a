"""A `Plan` is an expression's kernels and buffers, made from its structure without its data.

It is called with arrays, their addresses and the numbers. All three become one list of *values*: the inputs' addresses, the
numbers, the plan's own constants (sizes and strides), the buffer for faults, and the buffers that the plan makes, in the order in
which they are made. A launch picks its slots from that list.
"""

from __future__ import annotations

import hashlib
import linecache
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.array.execution import memory
from weft.array.execution.host import HostCall, call_of
from weft.array.expression.nodes import Call, Input, Matmul, Node, Scalar
from weft.array.programs.canonical import Canonical, strides_of
from weft.array.programs.product import program_of_product
from weft.array.programs.reductions import slot_dtype
from weft.array.programs.schedule import Kernel, schedule
from weft.array.programs.text import FAULTS, Program, program_of
from weft.frontend.signature import Argument, PointerArgument, ScalarArgument
from weft.runtime.addresses import address_of
from weft.runtime.binding import Grid
from weft.runtime.jit import JITFunction
from weft.runtime.place import CURRENT as EMULATED
from weft.runtime.prepared import Prepared
from weft.semantics import Number

_SHARED: Final = 1 << 16
"""Elements times nodes below which a launch is left to one thread: handing a part to another takes longer."""

_ERRORS: Final[dict[str, tuple[type[Exception], str]]] = {
    "zero": (ZeroDivisionError, "integer division or remainder by zero"),
    "overflow": (OverflowError, "the least integer divided by -1 has no result in its type"),
    "negative": (ValueError, "integers to negative integer powers are not allowed"),
}
"""What a program's fault raises."""


@dataclass(frozen=True)
class _Step:
    """One launch: ``order`` picks its slots from the values. ``makes`` are the buffers that it is the first to use, ``last``
    those that nothing reads after it. ``arguments`` is what the slots stand for, as places in the values."""

    kernel: Prepared | HostCall
    order: Callable[[Sequence[Any]], tuple[Any, ...]]
    arguments: tuple[int, ...]
    grid: Grid
    threads: int | None
    makes: tuple[int, ...]
    last: tuple[int, ...]
    faults: bool


class Plan:
    """How to compute some outputs from their inputs and numbers: kernels in order, and the arrays between them.

    ``programs`` are the generated kernels, for reading. Numbers of the expression that are not among ``numbers`` are constants
    of the plan.
    """

    def __init__(self, outputs: Sequence[Node], inputs: Sequence[Input], numbers: Sequence[Scalar] = ()) -> None:
        canonical = Canonical(outputs)
        kernels = [k for k in schedule(canonical.outputs) if 0 not in k.shape or _may_refuse(k.nodes[0])]
        programs = [_program(kernel) for kernel in kernels]
        self._inputs = [(node.shape, node.dtype.numpy, _strides(node)) for node in inputs]
        self._constants: list[Number] = []
        places = {id(node): place for place, node in enumerate((*inputs, *numbers))}
        constants: dict[int, int] = {}
        """Sizes and strides, and where they stand among the values."""
        first = len(places)
        for program in programs:
            for argument in program.arguments:
                if isinstance(argument, int) and argument not in constants:
                    constants[argument] = first + len(self._constants)
                    self._constants.append(argument)
                elif isinstance(argument, Scalar) and id(argument) not in places:
                    places[id(argument)] = first + len(self._constants)
                    self._constants.append(argument.value)
        faults = first + len(self._constants)
        self._constants.append(0)  # where the address of the buffer for faults is put
        self._made: list[tuple[tuple[int, ...], np.dtype[Any]]] = []
        self._first = faults + 1
        """The place of the first buffer that the plan makes."""

        def place_of(argument: Node | int | None) -> int:
            if argument is None:
                return faults
            if isinstance(argument, int):
                return constants[argument]
            if id(argument) not in places:
                places[id(argument)] = self._first + len(self._made)
                self._made.append((argument.shape, argument.dtype.numpy))
            return places[id(argument)]

        made: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        for program in programs:
            before = self._first + len(self._made)
            arguments = tuple(map(place_of, program.arguments))
            made.append((arguments, tuple(range(before, self._first + len(self._made)))))
        done = self._first + len(self._made)
        self._outputs = [(place_of(s), node.shape) for node, s in zip(outputs, canonical.outputs, strict=True)]
        self._rest = range(done, self._first + len(self._made))
        """The outputs that no kernel writes, having no elements."""
        for place, shape in self._outputs:
            self._made[place - self._first] = (shape, self._made[place - self._first][1])
        last = {place: step for step, (arguments, _) in enumerate(made) for place in arguments}
        kept = {place for place, _ in self._outputs}
        self.programs = tuple(replace(program, arguments=()) for program in programs)  # they would keep data alive
        self._steps = [
            _Step(
                _prepared(program),
                _picker(arguments),
                arguments,
                program.grid,
                1 if program.work < _SHARED else None,
                makes,
                tuple(p for p, at in last.items() if at == step and p >= self._first and p not in kept),
                None in program.arguments,
            )
            for step, (program, (arguments, makes)) in enumerate(zip(programs, made, strict=True))
        ]

        self._makers = [memory.maker(shape, dtype) for shape, dtype in self._made]
        self.is_brief = self._steps_are_brief([place - self._first for place, _ in self._outputs])
        """Whether the plan is one brief launch whose buffers are the outputs, in their order. On the CPU `brief` runs it."""

    def _steps_are_brief(self, outputs: list[int]) -> bool:
        if len(self._steps) != 1 or outputs != list(range(len(self._made))):
            return False
        (step,) = self._steps
        native = isinstance(step.kernel, Prepared) and not step.kernel.kernel.checked
        return native and not step.faults and step.threads == 1

    @cached_property
    def brief(self) -> Callable[[Sequence[int], Sequence[Any]], list[NDArray[Any]]]:
        """A brief plan on the CPU: from addresses and numbers to the outputs. The caller keeps the inputs alive. The kernel is
        compiled when this is first asked for."""
        (step,) = self._steps
        launch, order = cast(Prepared, step.kernel).brief(step.grid), step.order
        makers, constants = self._makers, self._constants
        if len(makers) == 1:
            (make,) = makers

            def one(addresses: Sequence[int], numbers: Sequence[Any]) -> list[NDArray[Any]]:
                made = make()
                launch(order((*addresses, *numbers, *constants, address_of(made))))
                return [made]

            return one

        def several(addresses: Sequence[int], numbers: Sequence[Any]) -> list[NDArray[Any]]:
            made = [make() for make in makers]
            launch(order((*addresses, *numbers, *constants, *map(address_of, made))))
            return made

        return several

    def __call__(
        self, arrays: Sequence[NDArray[Any]], addresses: Sequence[int], numbers: Sequence[Any]
    ) -> list[NDArray[Any]]:
        """The outputs, for arrays that `fitting` has passed and the numbers, each in the order that the plan was made with."""
        if self.is_brief and EMULATED.get() is None:
            return self.brief(addresses, numbers)
        values = [*addresses, *numbers, *self._constants]
        buffers: dict[int, NDArray[Any]] = {}
        first = self._first
        for step in self._steps:
            for place in step.makes:
                buffers[place] = new = self._makers[place - first]()
                values.append(address_of(new))
            if step.faults or isinstance(step.kernel, HostCall) or not step.kernel.is_direct:
                self._run(step, values, arrays, buffers)
            else:
                step.kernel.launch(step.order(values), step.grid, step.threads, (arrays, buffers))
            for place in step.last:
                del buffers[place]
        for place in self._rest:
            buffers[place] = self._makers[place - first]()
        return [_shaped(buffers[place], shape) for place, shape in self._outputs]

    def _run(
        self, step: _Step, values: list[Any], arrays: Sequence[NDArray[Any]], buffers: dict[int, NDArray[Any]]
    ) -> None:
        """A launch with any arguments, anywhere."""
        if isinstance(step.kernel, HostCall):
            step.kernel.run([arrays[p] if p < len(arrays) else buffers[p] for p in step.arguments])
            return
        flags = np.zeros(step.grid[0] * step.grid[1] * step.grid[2], np.int32)
        if step.kernel.is_direct:
            values[self._first - 1] = address_of(flags)
            step.kernel.launch(step.order(values), step.grid, step.threads, (arrays, buffers, flags))
        else:
            known = {**dict(enumerate(arrays)), self._first - 1: flags, **buffers}
            step.kernel.kernel[step.grid](
                *(_memory_of(known[place]) if place in known else values[place] for place in step.arguments)
            )
        if step.faults and (found := int(np.bitwise_or.reduce(flags))):
            error, message = next(raised for name, raised in _ERRORS.items() if found & FAULTS[name])
            raise error(message)

    def fits(self, arrays: Sequence[NDArray[Any]]) -> bool:
        """Whether the plan takes these arrays as they are."""
        return all(
            array.strides == strides and array.flags.aligned and array.shape == shape and array.dtype == dtype
            for array, (shape, dtype, strides) in zip(arrays, self._inputs, strict=True)
        )

    def fitting(self, arrays: Sequence[NDArray[Any]], addresses: Sequence[int]) -> tuple[list[NDArray[Any]], list[int]]:
        """The arrays, copied where their strides are not those of the inputs, and their addresses, of which 0 is not known;
        `ValueError` for other shapes or dtypes."""
        fitting: list[NDArray[Any]] = []
        known: list[int] = []
        for array, address, (shape, dtype, strides) in zip(arrays, addresses, self._inputs, strict=True):
            if array.strides == strides and array.flags.aligned and array.shape == shape and array.dtype == dtype:
                fitting.append(array)
                known.append(address or address_of(array))
            else:
                fitting.append(_copied(len(fitting), array, shape, dtype))
                known.append(address_of(fitting[-1]))
        return fitting, known


def _copied(number: int, array: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(
            f"input {number}: expected {dtype} of shape {shape}, found {array.dtype} of shape {array.shape}"
        )
    return array.copy(order="C")


def _shaped(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    return array if array.shape == shape else array.reshape(shape)


def _strides(node: Input) -> tuple[int, ...]:
    """The strides in bytes that a plan is made for."""
    return tuple(stride * node.dtype.itemsize for stride in strides_of(node))


def _may_refuse(node: Node) -> bool:
    """Whether a function of whole arrays raises where an index is out of bounds, which it does for an empty result, too."""
    return isinstance(node, Call) and dict(node.parameters).get("mode") in ("raise", "positive")


def _program(kernel: Kernel) -> Program | HostCall:
    match kernel.nodes[0]:
        case Matmul():
            return program_of_product(kernel)
        case Call() as node:
            return call_of(node)
        case _:
            return program_of(kernel)


def _picker(places: tuple[int, ...]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    if len(places) == 1:
        (place,) = places
        return lambda values: (values[place],)
    return cast("Callable[[Sequence[Any]], tuple[Any, ...]]", itemgetter(*places))


def _prepared(program: Program | HostCall) -> Prepared | HostCall:
    if isinstance(program, HostCall):
        return replace(program, arguments=())
    arguments = zip(program.parameters, program.arguments, strict=True)
    signature = {name: _argument(argument, program.aligned) for name, argument in arguments}
    return Prepared(_compiled(program.text, program.name), signature)


def _argument(argument: Node | int | None, aligned: bool) -> Argument:
    """What a kernel is compiled for. Numbers change, so that their values are not looked at, sizes and strides only where the
    program asks for it (``aligned``)."""
    if argument is None:
        return PointerArgument(dtypes.int32)
    if isinstance(argument, Scalar):
        return ScalarArgument(slot_dtype(argument.dtype))
    if isinstance(argument, Node):
        return PointerArgument(argument.dtype)
    narrow = dtypes.int32.min <= argument <= dtypes.int32.max
    return ScalarArgument(dtypes.int32 if narrow else dtypes.int64, aligned and argument % 16 == 0)


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
