"""What the lowerings of every machine share while one kernel is emitted.

An `Emit` holds the LLVM function with its two builders, the launch's values, the facts that analyses know, and the LLVM values
of scalars. What a tile is in LLVM differs between machines, so a machine's class derives from `Emit`: it adds the state of its
tiles, and says how a block is emitted and where values live that control flow merges.

An op is emitted by the entry of its class in ``lowerings``. A machine's table takes the shared entries (`scalars`, `control`) and
adds memory, conversion, reduction and dot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.codegen.emit.elementwise import emit_elementwise
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import I64, broadcast
from weft.ir import tile
from weft.ir.types import dtype_of
from weft.ir.unsupported import UnsupportedOpError, name_op
from weft.options import Options
from weft.transforms.axis import AxisInfo

Lowering = Callable[[Any, Any], None]
"""Emits one op: a function of the machine's `Emit` and the op."""


@dataclass(frozen=True)
class Grid:
    """This program's ids and the grid's sizes, one i32 an axis."""

    ids: Sequence[ir.Value]
    sizes: Sequence[ir.Value]


@dataclass(frozen=True)
class Facts:
    """What analyses know of a kernel's values: ``axis`` about tiles of integers and pointers, and ``base_of`` the argument
    that an access's pointer comes from (None: not known)."""

    axis: Mapping[SSAValue, AxisInfo]
    base_of: Mapping[SSAValue, BlockArgument | None]


class Slot(Protocol):
    """Where a value lives that control flow merges."""

    def put(self, value: SSAValue) -> None:
        """Writes a value to it."""
        ...

    def get(self, value: SSAValue) -> None:
        """Makes it the home of a value."""
        ...


class Emit(ABC):
    """The emission of one kernel; see the module. ``entry`` builds at the function's start, before all else: stack slots and
    arguments. ``builder`` builds where emission stands."""

    machine: str
    """The machine's name in messages."""

    def __init__(
        self,
        function: ir.Function,
        lowerings: Mapping[type[Operation], Lowering],
        options: Options,
        facts: Facts,
        grid: Grid,
    ):
        self.function = function
        self.lowerings = lowerings
        self.options = options
        self.facts = facts
        self.grid = grid
        self.entry = ir.IRBuilder(function.append_basic_block("entry"))
        self.start = function.append_basic_block("start")
        self.builder = ir.IRBuilder(self.start)
        self.scalars: dict[SSAValue, ir.Value] = {}

    # -- what a machine says ---------------------------------------------------------------------------------------------

    @abstractmethod
    def block(self, block: Block) -> None:
        """Emits the ops of a block, its terminator excluded."""

    @abstractmethod
    def slot(self, value: SSAValue) -> Slot:
        """A place for values of the type of ``value``."""

    @abstractmethod
    def carry(self, values: Sequence[SSAValue], slots: Sequence[Slot]) -> None:
        """Hands what the body of a counted loop yields to the next iteration, after its block has been emitted."""

    @contextmanager
    def scope(self) -> Generator[None]:
        """Code emitted inside does not dominate what follows: what a machine remembers of it is forgotten at the end."""
        yield

    # -- ops -------------------------------------------------------------------------------------------------------------

    def lower(self, op: Operation) -> None:
        """Emits one op by its entry in the machine's table. Errors name the op."""
        lowering = self.lowerings.get(type(op))
        if lowering is None:
            raise UnsupportedOpError(op, f"has no code on {self.machine}")
        try:
            lowering(self, op)
        except Exception as error:
            name_op(error, op)
            raise

    def compute(self, op: Operation, operands: Sequence[ir.Value]) -> ir.Value:
        """One elementwise op on scalars or vectors."""
        return emit_elementwise(self.builder, op, operands)

    # -- values ----------------------------------------------------------------------------------------------------------

    def scalar(self, value: SSAValue) -> ir.Value:
        """The LLVM value of a rank-0 value."""
        if value not in self.scalars and isinstance(value.owner, tile.ConstantOp):
            return arith.constant(dtype_of(value), value.owner.number, None)
        return self.scalars[value]

    def splat(self, scalar: ir.Value, lanes: int) -> ir.Value:
        """A scalar in every lane."""
        return broadcast(self.builder, scalar, lanes)

    # -- control ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, trips: int) -> Generator[ir.Value]:
        """A loop of a constant number of iterations; gives its i64 counter."""
        before = self.builder.block
        head = self.function.append_basic_block("loop")
        self.builder.branch(head)
        self.builder.position_at_end(head)
        counter = self.builder.phi(I64)
        counter.add_incoming(ir.Constant(I64, 0), before)
        with self.scope():
            yield counter
        after = self.builder.add(counter, ir.Constant(I64, 1))
        counter.add_incoming(after, self.builder.block)
        done = self.function.append_basic_block("after")
        again = self.builder.icmp_unsigned("<", after, ir.Constant(I64, trips))
        self.repeats(self.builder.cbranch(again, head, done))
        self.builder.position_at_end(done)

    def repeats(self, branch: ir.Instruction) -> None:  # noqa: B027 - most machines note nothing
        """What the machine notes at the branch to the next iteration of `loop`."""

    @abstractmethod
    def back_edge(self, loop: scf.ForOp | scf.WhileOp) -> None:
        """What the machine does at the end of each iteration of a kernel's loop."""
