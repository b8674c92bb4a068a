"""Dot nests: loops that carry accumulators through dots and do nothing else.

A loop is a nest if all of these hold:

1. Its step is a positive constant.
2. Each tile that it carries is the accumulator of one dot, which nothing else reads, and the loop carries the dot's result.
3. Each scalar that it carries grows by an amount that the loop does not change.
4. The body has no effects, and its loads are invariant (`weft.transforms.invariant_loads`).
5. What the operands are computed from has no dot: it would be computed again for each operand that needs it.

A loop around a nest is one nest with it if rules 1, 3 and 4 hold for it, and

6. the tiles that it carries are accumulators of the nest, and go through the nest alone;
7. how often the nest runs does not depend on the loop;
8. each operand depends on the loop: an operand that does not has the panels of the loop's last iteration in the next one, too.

    for r in range(R):                          the iterations of both are counted through:
        for c in range(C):                      iteration t has r = t // C and c = t % C
            acc = dot(a(r, c), b(r, c), acc)

Then an operand's tile is a function of the iteration's number and of values from outside the loops, and it may be computed at any
time, in any order, and once for several programs: its *keys* are the scalars from which it is computed and that programs may
disagree about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects import func, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.ir import tile
from weft.ir.types import dtype_of, shape_of
from weft.transforms.constants import constant_trips, number_of
from weft.transforms.effects import Effect, effect_of
from weft.transforms.invariant_loads import is_invariant


@dataclass(frozen=True)
class Level:
    """One loop of a nest, and by how much each scalar that it carries grows, by position (None: it stays)."""

    loop: scf.ForOp
    step: int
    growth: dict[int, SSAValue | None]

    @property
    def body(self) -> Block:
        """The loop's body."""
        return self.loop.body.block


@dataclass(frozen=True)
class Nest:
    """Its loops, the outermost first, and its dots by the position of what they accumulate in the outermost loop."""

    levels: tuple[Level, ...]
    dots: dict[int, tile.DotOp]

    @property
    def loop(self) -> scf.ForOp:
        """The outermost loop."""
        return self.levels[0].loop

    @property
    def constant_trips(self) -> int | None:
        """The iterations of all loops together, if they are known."""
        trips = [constant_trips(level.loop) for level in self.levels]
        return None if None in trips else prod(number for number in trips if number is not None)

    @property
    def same_trips(self) -> bool:
        """Whether all programs of a launch run all loops equally often."""
        return all(is_same_everywhere(bound) for level in self.levels for bound in (level.loop.lb, level.loop.ub))


@dataclass(frozen=True)
class Slice:
    """What an operand's tile is computed from: ops before the loops and in their bodies, in order, and the ``scalars`` that these
    read from outside. ``keys`` are those on which programs may disagree; None where programs cannot compare: a tile that is
    computed otherwise is part of it. ``loops`` are the bodies of those whose counters or carried scalars it depends on."""

    outside: tuple[Operation, ...]
    inside: tuple[Operation, ...]
    scalars: tuple[SSAValue, ...]
    keys: tuple[SSAValue, ...] | None
    loops: frozenset[Block]


def nest_of(loop: scf.ForOp) -> Nest | None:
    """The loop as a nest, with those in it; None where it is not one."""
    body, step = loop.body.block, number_of(loop.step)
    end = body.last_op
    if not isinstance(end, scf.YieldOp) or not isinstance(step, int) or step <= 0 or not _counts(loop.lb):
        return None
    carried = list(zip(body.args[1:], end.operands, strict=True))
    level = _level(loop, step, carried)
    tiles = {i: pair for i, pair in enumerate(carried) if shape_of(pair[0])}
    if level is None or not tiles or not all(is_pure(op) for op in body.ops if op is not end):
        return None
    if not all(argument.has_one_use() and value.has_one_use() for argument, value in tiles.values()):
        return None
    first = next(iter(tiles.values()))[1].owner
    if isinstance(first, scf.ForOp):
        return _around(level, first, tiles)
    dots: dict[int, tile.DotOp] = {}
    for i, (argument, value) in tiles.items():
        dot = value.owner
        if not isinstance(dot, tile.DotOp) or dot.acc is not argument or dot.parent_block() is not body:
            return None
        dots[i] = dot
    return Nest((level,), dots)


def _level(loop: scf.ForOp, step: int, carried: list[tuple[BlockArgument, SSAValue]]) -> Level | None:
    """The loop with the growth of its scalars; None where one does not grow."""
    growth: dict[int, SSAValue | None] = {}
    for i, (argument, value) in enumerate(carried):
        if shape_of(argument):
            continue
        grown = _growth(argument, value, loop.body.block)
        if grown is None:
            return None
        growth[i] = None if grown is argument else grown
    return Level(loop, step, growth)


def _around(level: Level, loop: scf.ForOp, tiles: dict[int, tuple[BlockArgument, SSAValue]]) -> Nest | None:
    """A loop around another one as one nest: rules 6 and 7."""
    inner = nest_of(loop) if loop.parent_block() is level.body else None
    if inner is None:
        return None
    if any(is_inside(bound, level.body) for each in inner.levels for bound in (each.loop.lb, each.loop.ub)):
        return None
    dots: dict[int, tile.DotOp] = {}
    for i, (argument, value) in tiles.items():
        at = next((j for j in inner.dots if loop.res[j] is value), None)
        if at is None or loop.iter_args[at] is not argument:
            return None
        dots[i] = inner.dots[at]
    return Nest((level, *inner.levels), dots)


def _counts(value: SSAValue) -> bool:
    dtype = dtype_of(value)
    return dtype.is_integer and dtype.signed and dtype.bits in (32, 64)


def _growth(argument: SSAValue, value: SSAValue, body: Block) -> SSAValue | None:
    """What is added in each iteration; the argument itself where it stays as it is, None for any other change."""
    if value is argument:
        return argument
    op = value.owner
    if not isinstance(op, tile.BinaryOp) or op.kind.data != "add" or not dtype_of(value).is_integer:
        return None
    if argument not in (op.lhs, op.rhs) or op.lhs is op.rhs:
        return None
    amount = op.rhs if op.lhs is argument else op.lhs
    return None if is_inside(amount, body) else amount


def is_inside(value: SSAValue, body: Block) -> bool:
    """Whether a value is made in a block or in one that is nested in it."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent_block()
    while block is not None:
        if block is body:
            return True
        block = block.parent_block()
    return False


def is_pure(op: Operation) -> bool:
    """Whether an op and all in its regions may be computed at any time: without effects, and reading what does not change."""
    if any(not is_pure(inner) for region in op.regions for block in region.blocks for inner in block.ops):
        return False
    if isinstance(op, scf.YieldOp | tile.YieldOp):
        return True
    if isinstance(op, tile.LoadOp):
        return is_invariant(op)
    return bool(op.regions) or effect_of(op) is Effect.NONE


def slice_of(value: SSAValue, home: Block | None, nest: Nest | None = None) -> Slice:
    """The slice of an operand of a nest that stands in the block ``home``, or of a dot there: then all that it is computed from
    is outside. What another block computes is part of the keys, but no op to repeat: it is computed less often there."""
    bodies = [] if nest is None else [level.body for level in nest.levels]
    inside: dict[Operation, None] = {}
    outside: dict[Operation, None] = {}
    scalars: dict[SSAValue, None] = {}
    loops: set[Block] = set()
    comparable = True
    seen: set[SSAValue] = set()
    pending = [value]
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if nest is not None and is_inside(current, bodies[0]):
            op = current.owner
            if not isinstance(op, Operation):
                loops.add(op)
                pending.extend(_carried_from(current, nest))
            elif op.parent_block() in bodies:  # what stands in its regions comes with it
                inside[op] = None
                pending.extend(_read_by(op))
        elif not shape_of(current):
            scalars[current] = None
        elif isinstance(op := current.owner, Operation) and _may_repeat(op):
            if op.parent_block() is home:
                outside[op] = None
            pending.extend(_read_by(op))
        else:
            comparable = False
    if not comparable:
        outside.clear()
    keys = tuple(value for value in scalars if not is_same_everywhere(value)) if comparable else None
    return Slice(_in_order(outside), _in_order(inside), tuple(scalars), keys, frozenset(loops))


def _carried_from(argument: SSAValue, nest: Nest) -> Iterable[SSAValue]:
    """What an argument of a body of the nest depends on."""
    assert isinstance(argument, BlockArgument), "a value without an op is an argument"
    level, i = next((level for level in nest.levels if level.body is argument.block), None), argument.index - 1
    if level is None:
        return ()
    if i < 0:
        return (level.loop.lb,)
    grown = level.growth.get(i)
    return (level.loop.iter_args[i],) if grown is None else (level.loop.iter_args[i], grown)


def _read_by(op: Operation) -> list[SSAValue]:
    """What an op reads, in its regions too."""
    return [operand for inner in op.walk() for operand in inner.operands]


def _may_repeat(op: Operation) -> bool:
    """Whether the op may be computed again in the loop's place."""
    return isinstance(op, tile.TileOp) and not isinstance(op, tile.DotOp) and not op.regions and is_pure(op)


def is_same_everywhere(value: SSAValue) -> bool:
    """Whether a scalar is the same for all programs of a launch: computed from arguments alone."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        op = current.owner
        if isinstance(op, Block):
            if not isinstance(op.parent_op(), func.FuncOp):
                return False
            continue
        if isinstance(op, tile.ProgramIdOp) or not isinstance(op, tile.TileOp) or op.regions or not is_pure(op):
            return False
        pending.extend(op.operands)
    return True


def _in_order(ops: Mapping[Operation, None]) -> tuple[Operation, ...]:
    """Ops in an order in which each comes after those that it reads, by the blocks they stand in."""
    order: list[Operation] = []
    placed: set[Operation] = set()
    for start in ops:
        pending = [start]
        while pending:
            op = pending[-1]
            sources = [
                source for value in _read_by(op) if isinstance(source := value.owner, Operation) and source is not op
            ]
            missing = [source for source in sources if source in ops and source not in placed]
            if op in placed or not missing:
                pending.pop()
                if op not in placed:
                    placed.add(op)
                    order.append(op)
            else:
                pending.extend(missing)
    return tuple(order)
