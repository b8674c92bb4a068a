"""Emits tile IR at the current point, and knows the source of everything it emits.

The builder speaks in `Tensor`s: its methods take operands that already fit (one dtype, one shape) and emit one op, or
make them fit (`cast`, `broadcast`, `splat`). What Python's operators mean, promotion included, is
`weft.frontend.arithmetic`.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.errors import CompilationError, Span
from weft.frontend.literals import element
from weft.frontend.scope import Scope
from weft.frontend.source import KernelFunction
from weft.frontend.values import Number, Tensor, Value, describe, ir_type, is_number
from weft.ir import tile
from weft.ir.location import inside
from weft.language.core import pointer_type
from weft.options import Options
from weft.semantics.core import Semantics
from weft.semantics.systems.triton import triton_3_9

Op = TypeVar("Op", bound=Operation)


Inline = Callable[[KernelFunction, dict[str, Value], ast.AST], Value]


class Frame:
    """One function being compiled: the kernel, or a helper inlined at ``caller`` (its frame and the call)."""

    def __init__(self, kernel: KernelFunction, caller: tuple[Frame, ast.AST] | None) -> None:
        self.kernel = kernel
        self.caller = caller
        self.scope = Scope()
        self.constants: set[str] = set()
        """Variables declared as constexpr whose next assignment is still to come."""
        self._locations: dict[tuple[int, int], LocationAttr] = {}

    def spans(self, node: ast.AST) -> list[Span]:
        """Where ``node`` stands and the calls that led there, innermost first."""
        here = [self.kernel.span(node)] if self.kernel.is_shown else []
        return here if self.caller is None else here + self.caller[0].spans(self.caller[1])

    def location(self, node: ast.AST) -> LocationAttr:
        """The same as the location of an op."""
        key: tuple[int, int] = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        if (found := self._locations.get(key)) is None:
            caller = None if self.caller is None else self.caller[0].location(self.caller[1])
            if caller is None or self.kernel.is_shown:
                caller = inside(self.kernel.span(node), caller)
            found = self._locations[key] = caller
        return found

    def kernels(self) -> list[KernelFunction]:
        """The functions being inlined, innermost first."""
        return [self.kernel] if self.caller is None else [self.kernel, *self.caller[0].kernels()]


class Builder:
    """The insertion point (``block``), the source point (``frame``, ``node``), and the ``semantics`` of the function there."""

    def __init__(self, block: Block, frame: Frame, semantics: Semantics, options: Options) -> None:
        self.block = block
        self.frame = frame
        self.node: ast.AST = frame.kernel.tree
        self.semantics = semantics
        self.asserts = frame.kernel.asserts if options.asserts is None else options.asserts
        """Whether assertions are compiled."""
        self.overflow = self.asserts and options.overflow
        """Whether arithmetic on integers asserts that it does not overflow."""
        self.warps = options.warps
        """The launch's ``num_warps``."""
        self.lanes: tuple[int, ...] | None = None
        """In a function mapped over the elements of tiles (`weft.frontend.library.mapping`): their shape."""
        self.path: Tensor | None = None
        """In a mapped function: the elements for which what is emitted now takes effect; None: all."""
        self.const: set[SSAValue] = set()
        """The kernel's parameters that are annotated with ``tl.const``."""
        self.inline: Inline | None = None
        """Compiles a helper at the insertion point; set by the generator, for ops that take functions."""

    @property
    def follows_triton(self) -> bool:
        """Whether Triton 3.9's own rules hold here, those included that refuse or change what weft's other semantics allow."""
        return self.semantics is triton_3_9

    @contextmanager
    def at(self, block: Block) -> Generator[None, None, None]:
        """Emit at the end of ``block`` meanwhile."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    @contextmanager
    def under(self, test: Value, holds: bool) -> Generator[None, None, None]:
        """Emit meanwhile what takes effect for the elements of a mapped function whose ``test`` is ``holds``. A test of anything
        but such elements has no effect: it chooses between blocks."""
        outer = self.path
        if isinstance(test, Tensor) and test.shape and test.shape == self.lanes and test.dtype.is_bool:
            side = test if holds else self.unary("not", test)
            self.path = side if outer is None else self.binary("and", outer, side)
        try:
            yield
        finally:
            self.path = outer

    def reached(self, shape: tuple[int, ...], mask: Tensor | None) -> Tensor | None:
        """The mask of an access to a tile of ``shape``, less the elements of a mapped function that do not reach it."""
        if self.path is None:
            return mask
        if shape != self.path.shape:
            raise CompilationError(
                f"a mapped function accesses memory element by element under a condition on elements, found the shape {shape}",
                hint="compute the tile before tl.map_elementwise, and pass it",
            )
        return self.path if mask is None else self.binary("and", mask, self.path)

    def emit(self, op: Op) -> Op:
        """Append ``op`` with the current location."""
        op.location = self.frame.location(self.node)
        self.block.add_op(op)
        return op

    def constant(self, value: Number, dtype: DType, shape: tuple[int, ...] = ()) -> Tensor:
        """``value``, which ``dtype`` can represent or rounds, in every element. A finite number that rounds to no finite
        one is refused in Triton's semantics; in others it becomes infinite, as it does in those systems."""
        rounded = element(value, dtype)
        if dtype.is_float and not math.isfinite(rounded) and _is_finite(value) and self.semantics.name[:6] == "triton":
            raise CompilationError(
                f"{value} is beyond the range of {dtype}, whose largest number is {dtype.largest:g}",
                hint="use float('inf') where infinity is meant, or a wider dtype, for example tl.full(..., tl.float64)",
            )
        op = self.emit(tile.ConstantOp(rounded, ir_type(dtype, shape)))
        return Tensor(op.result, dtype, shape)

    def tensor(self, value: Value, argument: str | None = None) -> Tensor:
        """``value`` as a value of the run time: numbers take the type the semantics gives a literal."""
        if isinstance(value, Tensor):
            return value
        if not is_number(value):
            raise CompilationError(f"expected a tile or a number, found {describe(value)}", argument=argument)
        type_ = self.semantics.literal(value)
        number: Any = self.semantics.number(value, type_.dtype)  # not complex, as the value is not
        return self.constant(number, type_.dtype).typed(type_.weak)

    def cast(self, x: Tensor, dtype: DType) -> Tensor:
        """``x`` converted to ``dtype``; a pointer is refused."""
        if x.is_pointer:
            raise CompilationError(
                f"a pointer cannot become {dtype} by conversion",
                hint="convert with bitcast: .to(tl.int64, bitcast=True), or load what it points to first",
            )
        if x.dtype == dtype:
            return x
        return Tensor(self.emit(tile.CastOp(x.ssa, dtype)).result, dtype, x.shape)

    def bitcast(self, x: Tensor, to: DType | pointer_type) -> Tensor:
        """The bits of ``x`` under another type of the same width."""
        is_pointer = isinstance(to, pointer_type)
        dtype = to.element_ty if isinstance(to, pointer_type) else to
        if not isinstance(dtype, DType):
            raise CompilationError(f"{to} is the type of block pointers only", argument="dtype")
        if (x.dtype, x.is_pointer) == (dtype, is_pointer):
            return x
        widths = [64 if x.is_pointer else x.dtype.bits, 64 if is_pointer else dtype.bits]
        if widths[0] != widths[1]:
            raise CompilationError(
                f"bitcast keeps the number of bits, but {x.element} has {widths[0]} and {to} has {widths[1]}",
                hint="convert the value instead, without bitcast=True",
                argument="dtype",
            )
        element_type = ir_type(dtype, (), is_pointer)
        return Tensor(self.emit(tile.BitcastOp(x.ssa, element_type)).result, dtype, x.shape, is_pointer)

    def broadcast_to(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """``x`` in ``shape``, which `common_shape` has found to fit: sizes of 1 and missing leading dimensions grow."""
        if x.shape == shape:
            return x
        ir_type(x.dtype, shape, x.is_pointer)  # refuses what is too large
        if not x.shape:
            return Tensor(self.emit(tile.SplatOp(x.ssa, shape)).result, x.dtype, shape, x.is_pointer, x.weak)
        while len(x.shape) < len(shape):
            x = self.expand_dims(x, 0)
        if x.shape == shape:
            return x
        return Tensor(self.emit(tile.BroadcastOp(x.ssa, shape)).result, x.dtype, shape, x.is_pointer, x.weak)

    def widened(self, value: Value, block: Block) -> Value:
        """In a mapped function, a scalar as a tile: its elements may come to differ. The op goes to the end of ``block``."""
        if self.lanes is None or not isinstance(value, Tensor) or value.shape:
            return value
        with self.at(block):
            return self.broadcast_to(value, self.lanes)

    def broadcast(self, *tensors: Tensor) -> list[Tensor]:
        """All in their common shape."""
        shape = common_shape(*(t.shape for t in tensors))
        return [self.broadcast_to(t, shape) for t in tensors]

    def expand_dims(self, x: Tensor, axis: int) -> Tensor:
        """A new dimension of size 1 at ``axis`` of the result."""
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        if not x.shape:
            return self.broadcast_to(x, shape)
        return Tensor(self.emit(tile.ExpandDimsOp(x.ssa, axis)).result, x.dtype, shape, x.is_pointer, x.weak)

    def reshape(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The elements in row-major order under a shape of as many."""
        if x.shape == shape:
            return x
        ir_type(x.dtype, shape, x.is_pointer)
        if not x.shape:
            return self.broadcast_to(x, shape)
        if not shape:
            return self._element(x)
        return Tensor(self.emit(tile.ReshapeOp(x.ssa, shape)).result, x.dtype, shape, x.is_pointer, x.weak)

    def _element(self, x: Tensor) -> Tensor:
        """The element of a tile that has one, as a scalar: a reduction in which nothing is combined."""
        x = self.reshape(x, (1,))
        element = ir_type(x.dtype, (), x.is_pointer)
        block = Block(arg_types=[element, element])
        block.add_op(tile.YieldOp(block.args[0]))
        op = self.emit(tile.ReduceOp([x.ssa], 0, Region(block)))
        return Tensor(op.results[0], x.dtype, (), x.is_pointer, x.weak)

    def unary(self, kind: str, x: Tensor) -> Tensor:
        """A `tile.unary` of ``kind``."""
        return Tensor(self.emit(tile.UnaryOp(kind, x.ssa)).result, x.dtype, x.shape)

    def binary(self, kind: str, lhs: Tensor, rhs: Tensor) -> Tensor:
        """A `tile.binary` of ``kind``; one dtype, one shape."""
        return Tensor(self.emit(tile.BinaryOp(kind, lhs.ssa, rhs.ssa)).result, lhs.dtype, lhs.shape)

    def compare(self, kind: str, lhs: Tensor, rhs: Tensor) -> Tensor:
        """A `tile.compare` of ``kind``; one dtype, one shape."""
        return Tensor(self.emit(tile.CompareOp(kind, lhs.ssa, rhs.ssa)).result, dtypes.bool_, lhs.shape)

    def select(self, condition: Tensor, lhs: Tensor, rhs: Tensor) -> Tensor:
        """``lhs`` where ``condition``, else ``rhs``; one shape, and one dtype of the two."""
        op = self.emit(tile.SelectOp(condition.ssa, lhs.ssa, rhs.ssa))
        return Tensor(op.result, lhs.dtype, lhs.shape, lhs.is_pointer)


def _is_finite(value: Number) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape all broadcast to: aligned at the last dimension, sizes of 1 grow. `CompilationError` where none
    exists."""
    result = shapes[0]
    for shape in shapes[1:]:
        if shape == result or not shape:
            continue
        rank = max(len(result), len(shape))
        a, b = (1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape
        for i, (m, n) in enumerate(zip(a, b, strict=True)):
            if m != n and 1 not in (m, n):
                raise CompilationError(
                    f"shapes {result} and {shape} do not broadcast: dimension {i} has {m} and {n} elements",
                    hint=_broadcast_hint(result, shape),
                )
        result = tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))
    return result


def _broadcast_hint(a: Sequence[int], b: Sequence[int]) -> str:
    if len(a) != len(b):
        return "shapes are aligned at the last dimension: add one with [:, None] or [None, :] where it belongs"
    return "make the sizes equal, or 1 where the tile should be repeated"
