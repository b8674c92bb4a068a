"""Inference: a layout for every tile, with nothing changed.

Ops are visited in program order. A loop's carried tile that starts free takes the layout that its body yields; then the body is
inferred again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer, is_tile, shape_of
from weft.layout import LinearLayout
from weft.transforms.effects import is_terminator
from weft.transforms.layouts.cloning import cloned_from, is_cloned
from weft.transforms.layouts.rules import LayoutFacts, LayoutRules, OperandLayouts


class Inference:
    """Enters the tiles of a block into ``facts`` (`infer`); ``chosen`` then has the layouts of each op."""

    def __init__(self, rules: LayoutRules, facts: LayoutFacts):
        self._rules = rules
        self._facts = facts
        self.chosen: dict[Operation, OperandLayouts] = {}

    def infer(self, block: Block) -> None:
        """Layouts and weights of all tiles a block defines, its inner regions included."""
        for op in block.ops:
            if not op.regions:
                self._infer_op(op)
                continue
            match op:
                case scf.ForOp():
                    self._infer_loop(op.iter_args, op.body.block.args[1:], [op.body.block], op.res)
                case scf.WhileOp():
                    blocks = [op.before_region.block, op.after_region.block]
                    self._infer_loop(op.arguments, op.before_region.block.args, blocks, op.res)
                case scf.IfOp():
                    self._infer_if(op)
                case _:
                    self._infer_op(op)

    def _infer_op(self, op: Operation) -> None:
        if is_terminator(op) or not any(map(is_tile, (*op.operands, *op.results))):
            return
        chosen = self.chosen[op] = self._choose(op)
        for result, layout in zip(op.results, chosen.results, strict=True):
            if layout is not None:
                self._facts.set(result, layout, self._weight(op, result))

    def _choose(self, op: Operation) -> OperandLayouts:
        """The cheapest candidate, the first of several; where there is only one, nothing is planned to price it."""
        candidates = self._rules.candidates(op, self._facts)
        if len(candidates) == 1:
            return candidates[0]
        return min(candidates, key=lambda candidate: self._price(op, candidate))

    def _price(self, op: Operation, candidate: OperandLayouts) -> float:
        """The op's own price and that of the conversions by which its operands get their layouts. What is cloned costs what its
        sources cost: free values, and shape ops, which move nothing."""
        layouts = self._facts.layouts
        price = self._rules.op_cost(op, candidate, self._facts)
        wanted = zip(op.operands, candidate.operands, strict=True)
        pending = [(value, layout) for value, layout in wanted if layout is not None]
        seen: set[tuple[SSAValue, LinearLayout]] = set()
        while pending:
            value, layout = key = pending.pop()
            if layouts[value] == layout or key in seen:
                continue
            seen.add(key)
            if is_cloned(value, layout, self._facts):
                pending += cloned_from(value, layout, self._facts)
            else:
                price += self._rules.conversion_cost(layouts[value], layout, _bits(value))
        return price

    def _weight(self, op: Operation, result: SSAValue) -> int:
        """How many elements of the result came from memory, a dot or a reduction; a broadcast weighs what its source weighs."""
        if tile.is_a(op, tile.Generator):
            return 0
        if tile.is_a(op, tile.Elementwise) or tile.is_a(op, tile.Shape):
            return max(self._facts.weights[value] for value in op.operands if is_tile(value))
        return prod(shape_of(result))

    def _infer_loop(
        self,
        initial: Sequence[SSAValue],
        carried: Sequence[SSAValue],
        blocks: Sequence[Block],
        results: Sequence[SSAValue],
    ) -> None:
        for value, argument in zip(initial, carried, strict=True):
            if is_tile(argument):
                self._facts.set(argument, self._facts.layouts[value], self._facts.weights[value])
        passed = self._infer_body(carried, blocks)
        weights, layouts = self._facts.weights, self._facts.layouts
        taken = [
            (argument, layouts[value if weights[value] else argument])
            for value, argument in zip(passed, carried, strict=True)
            if is_tile(argument) and not weights[argument]
        ]
        for argument, layout in taken:
            self._facts.set(argument, layout, prod(shape_of(argument)))
        if taken:  # only then: repeating every body would take time exponential in the depth of the nest
            self._infer_body(carried, blocks)
        outgoing = carried if len(blocks) == 1 else _terminator_values(blocks[0])
        self._pass_on(outgoing, results)

    def _infer_body(self, carried: Sequence[SSAValue], blocks: Sequence[Block]) -> Sequence[SSAValue]:
        """Infers a loop's blocks, each given what the one before passes on; returns what the last passes on."""
        passed = carried
        for block in blocks:
            if block is not blocks[0]:
                self._pass_on(passed, block.args)
            self.infer(block)
            passed = _terminator_values(block)
        return passed

    def _pass_on(self, values: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        for value, target in zip(values, targets, strict=True):
            if is_tile(target):
                self._facts.set(target, self._facts.layouts[value], prod(shape_of(target)))

    def _infer_if(self, op: scf.IfOp) -> None:
        branches = [region.block for region in (op.true_region, op.false_region) if region.blocks]
        for block in branches:
            self.infer(block)
        for i, result in enumerate(op.output):
            if is_tile(result):
                heaviest = self._facts.heaviest([_terminator_values(block)[i] for block in branches])
                self._facts.set(result, self._facts.layouts[heaviest], prod(shape_of(result)))


def _terminator_values(block: Block) -> Sequence[SSAValue]:
    """What a block hands on: the operands of its terminator, a condition's flag excluded."""
    last = block.last_op
    if isinstance(last, scf.ConditionOp):
        return last.args
    return () if last is None else last.operands


def _bits(value: SSAValue) -> int:
    """The width of an element."""
    return 64 if is_pointer(value) else dtype_of(value).bits
