"""Local simplification: constants, identities, splats, known branches and loops.

xDSL's greedy driver revisits the whole module until nothing changes and builds a rewriter for each match. Here one walk
in program order suffices: operands come before their uses, so when an op is visited its operands are simple already,
and what replaces it is visited next. Only what becomes known about a value that a loop carries would need another
round.

| before | after |
|---|---|
| an elementwise op over constants | a constant (`weft.transforms.constants`) |
| an identity or an absorbed operand | `weft.transforms.identities` |
| an elementwise op over splats | a splat of the scalar op |
| splat, broadcast, reshape, trans, ... of a constant or a splat | a constant or a splat |
| ``scf.if`` on a constant | the branch |
| ``scf.for`` with known bounds, no iteration or one | its initial values, or its body |
| a value that a loop carries but never changes | the initial value |
| load or store under a constant mask | without mask, or ``other``, or nothing |
| an assumption that always holds | nothing |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.ir import tile
from weft.ir.direct import operands_of
from weft.ir.types import element_of, is_pointer, is_tile
from weft.transforms import identities
from weft.transforms.constants import constant_like, evaluate, number_of
from weft.transforms.identities import Replacement


@dataclass(frozen=True)
class Simplify(ModulePass):
    """Replaces ops by simpler ones of the same meaning; what became dead is left to `Dce`."""

    name = "simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in op.regions:
            for block in region.blocks:
                _simplify_block(block)


def _simplify_block(block: Block) -> None:
    op = block.first_op
    while op is not None:
        op = _visit(op)


def _visit(op: Operation) -> Operation | None:
    """Simplifies one op; returns the op to visit next."""
    control = _CONTROL.get(type(op))
    if control is not None:
        following = control(op)
        if following is not op:
            return following
    for region in op.regions:
        for block in region.blocks:
            _simplify_block(block)
    for rule in _RULES.get(type(op), ()):
        replacement = rule(op)
        if replacement is not None:
            return _replace(op, replacement)
    return op.next_op


def _replace(op: Operation, replacement: SSAValue | Sequence[Operation]) -> Operation | None:
    """Puts the replacement in the op's place; the new ops take its location, the result its name."""
    following = op.next_op
    block = op.parent_block()
    assert block is not None, f"{op.name} stands in no block"
    if isinstance(replacement, SSAValue):
        value = replacement
    else:
        for new in replacement:
            new.location = op.location
            block.insert_op_before(new, op)
        value = replacement[-1].results[0]
        following = replacement[0]
    op.results[0].replace_all_uses_with(value)
    block.erase_op(op)
    return following


# Values


def _fold(op: Operation) -> Replacement:
    constant = evaluate(op)
    return None if constant is None else [constant]


def _splat_source(value: SSAValue) -> SSAValue | None:
    owner = value.owner
    return operands_of(owner)[0] if type(owner) is tile.SplatOp else None


def _scalarise(op: Operation) -> Replacement:
    """An elementwise op over splats and constants computes one number."""
    (result,) = op.results
    if not is_tile(result):
        return None
    type_, given = result.type, operands_of(op)
    sources = [_splat_source(operand) for operand in given]
    if not any(sources):
        return None
    numbers = [number_of(operand) for operand in given]
    if any(s is n is None for s, n in zip(sources, numbers, strict=True)):
        return None
    new: list[Operation] = []
    operands: list[SSAValue] = []
    for operand, source, number in zip(given, sources, numbers, strict=True):
        if source is not None:
            operands.append(source)
        elif number is not None:
            new.append(constant_like(number, element_of(operand)))
            operands.append(new[-1].results[0])
    scalar = type(op).create(
        operands=operands,
        properties=op.properties,
        attributes=op.attributes,
        result_types=[element_of(type_)],
    )
    return [*new, scalar, tile.SplatOp.create(operands=[scalar.results[0]], result_types=[type_])]


def _reshape_uniform(op: Operation) -> Replacement:
    """An op that only moves elements, where all are equal or none moves."""
    source, type_ = operands_of(op)[0], op.results[0].type
    if source.type == type_ and not isinstance(op, tile.TransOp):
        return source
    if isinstance(op, tile.TransOp) and source.type == type_ and op.permutation == tuple(sorted(op.permutation)):
        return source
    number = number_of(source)
    if number is not None:
        return [constant_like(number, type_)]
    scalar = _splat_source(source)
    return None if scalar is None else [tile.SplatOp.create(operands=[scalar], result_types=[type_])]


def _hint(op: tile.HintOp) -> Replacement:
    """A constant needs no hint."""
    return None if number_of(op.source) is None else op.source


def _unmasked(op: tile.LoadOp | tile.StoreOp, operands: Sequence[SSAValue]) -> Operation:
    """The same access, orders and advice included, to all elements."""
    new = tile.LoadOp(*operands) if isinstance(op, tile.LoadOp) else tile.StoreOp(*operands)
    kept = {name: value for name, value in op.properties.items() if name != "operandSegmentSizes"}
    new.properties.update(kept)
    new.attributes.update(op.attributes)
    return new


def _load(op: tile.LoadOp) -> Replacement:
    number = None if op.mask is None else number_of(op.mask)
    if number is None:
        return None
    if number:
        return [_unmasked(op, [op.pointer])]
    if op.other is not None:
        return op.other
    # Unspecified; the reference's value.
    return None if is_pointer(op.result) else [constant_like(0, op.result.type)]


_Rule = Callable[[Any], Replacement]
_ELEMENTWISE: tuple[_Rule, ...] = (_fold, _scalarise)

_RULES: dict[type[Operation], tuple[_Rule, ...]] = {
    tile.UnaryOp: (identities.unary, *_ELEMENTWISE),
    tile.BinaryOp: (_fold, identities.binary, _scalarise),
    tile.CompareOp: (_fold, identities.compare, _scalarise),
    tile.SelectOp: (identities.select, *_ELEMENTWISE),
    tile.FmaOp: _ELEMENTWISE,
    tile.CastOp: (identities.cast, *_ELEMENTWISE),
    tile.BitcastOp: (identities.bitcast, *_ELEMENTWISE),
    tile.AddPtrOp: (identities.addptr, _scalarise),
    tile.HintOp: (_hint,),
    tile.LoadOp: (_load,),
    **dict.fromkeys(
        (tile.SplatOp, tile.BroadcastOp, tile.ExpandDimsOp, tile.ReshapeOp, tile.TransOp, tile.ConvertLayoutOp),
        (_reshape_uniform,),
    ),
}


# Control flow: each returns the op to visit next, the op itself where nothing changed.


def _inline(op: Operation, block: Block | None, arguments: Sequence[SSAValue]) -> Operation | None:
    """Puts a block's ops in the place of the op it belongs to, and what it yields in the place of its results."""
    parent = op.parent_block()
    assert parent is not None, f"{op.name} stands in no block"
    following = op.next_op
    if block is not None:
        for argument, value in zip(tuple(block.args), arguments, strict=True):
            argument.replace_all_uses_with(value)
        *body, end = block.ops
        for inner in body:
            inner.detach()
            parent.insert_op_before(inner, op)
        arguments = tuple(end.operands)
        following = body[0] if body else following
    for result, value in zip(op.results, arguments, strict=True):
        result.replace_all_uses_with(value)
    parent.erase_op(op)
    return following


def _if(op: scf.IfOp) -> Operation | None:
    condition = number_of(op.cond)
    if condition is None:
        return op
    region = op.true_region if condition else op.false_region
    return _inline(op, region.block if region.blocks else None, ())


def _for(op: scf.ForOp) -> Operation | None:
    start, stop, step = (number_of(v) for v in (op.lb, op.ub, op.step))
    if start is not None and stop is not None and start >= stop:
        return _inline(op, None, op.iter_args)
    if start is not None and stop is not None and step is not None and stop - start <= step:
        return _inline(op, op.body.block, (op.lb, *op.iter_args))
    end = op.body.block.last_op
    assert isinstance(end, scf.YieldOp), "the verifier asks scf.for for it"
    for initial, argument, yielded, result in zip(
        op.iter_args, op.body.block.args[1:], end.operands, op.results, strict=True
    ):
        if yielded is argument or yielded is initial:
            argument.replace_all_uses_with(initial)
            result.replace_all_uses_with(initial)
    return op


def _store(op: tile.StoreOp) -> Operation | None:
    number = None if op.mask is None else number_of(op.mask)
    block = op.parent_block()
    if number is None or block is None:
        return op
    following = op.next_op
    if number:
        new = _unmasked(op, [op.pointer, op.value])
        new.location = op.location
        block.insert_op_before(new, op)
    block.erase_op(op)
    return following


def _assume(op: tile.AssumeOp | tile.AssertOp) -> Operation | None:
    block = op.parent_block()
    if number_of(op.condition) != 1 or block is None:
        return op
    following = op.next_op
    block.erase_op(op)
    return following


_CONTROL: dict[type[Operation], Callable[[Any], Operation | None]] = {
    scf.IfOp: _if,
    scf.ForOp: _for,
    tile.StoreOp: _store,
    tile.AssumeOp: _assume,
    tile.AssertOp: _assume,
}
