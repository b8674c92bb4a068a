"""Builds sums of products over named axes (``einsum``), of which ``tensordot`` is a case.

Operands are combined from the left. An axis that only one of them has and nothing else needs is summed first. Where axes of
both are summed and each has others, the product is one of matrices (`Matmul`), over the axes that both keep as a batch;
otherwise it is elementwise, and sums fuse with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import SupportsIndex

from weft import dtypes
from weft.array.building import operations
from weft.array.building.operations import Value
from weft.array.building.whole import noted
from weft.array.expression import views
from weft.array.expression.conversion import convert
from weft.array.expression.nodes import Apply, Dimension, Matmul, Node, Reduce
from weft.dtypes import DType
from weft.semantics import Promotion, PromotionError, Semantics, Step
from weft.semantics import arrangement as rules

Labels = tuple[str, ...]
"""The name of each axis."""


def einsum(system: Semantics, subscripts: str, values: Sequence[Value]) -> Value:
    """The sum of products that ``subscripts`` names (``ij,jk->ik``; ``...`` for any number of axes)."""
    terms, output = parse(subscripts, [len(v.node.shape) for v in values])

    def ask() -> Promotion:
        return _promotion(system, "einsum", values, terms, output)

    def build(promotion: Promotion) -> Node:
        nodes = [convert(v.node, promotion.operands) for v in values]
        return contract("einsum", nodes, terms, output)

    return noted(system, "einsum", [v.type for v in values], ask, build)


def tensordot(
    system: Semantics, lhs: Value, rhs: Value, axes: SupportsIndex | Sequence[SupportsIndex | Sequence[SupportsIndex]]
) -> Value:
    """Products summed over the last ``axes`` of ``lhs`` and the first of ``rhs``, or over pairs of axes."""
    ranks = len(lhs.node.shape), len(rhs.node.shape)
    if isinstance(axes, Sequence):
        left, right = ([*a] if isinstance(a, Sequence) else [a] for a in axes)
    else:
        left, right = [range(ranks[0])[i] for i in range(-int(axes), 0)], list(range(int(axes)))
    if len(left) != len(right):
        raise ValueError(f"'tensordot' sums over pairs of axes, found {len(left)} and {len(right)}")
    pairs = [
        (views.axis_of(a, ranks[0], "tensordot"), views.axis_of(b, ranks[1], "tensordot"))
        for a, b in zip(left, right, strict=True)
    ]
    first = [f"l{i}" for i in range(ranks[0])]
    second = [f"r{i}" for i in range(ranks[1])]
    for number, (a, b) in enumerate(pairs):
        if lhs.node.shape[a] != rhs.node.shape[b]:
            raise ValueError(
                f"'tensordot' sums over axes of one size, found {lhs.node.shape[a]} and {rhs.node.shape[b]}"
            )
        first[a] = second[b] = f"s{number}"
    output = tuple(label for label in (*first, *second) if label[0] != "s")
    terms = [tuple(first), tuple(second)]

    def ask() -> Promotion:
        return _promotion(system, "tensordot", (lhs, rhs), terms, output)

    def build(promotion: Promotion) -> Node:
        nodes = [convert(v.node, promotion.operands) for v in (lhs, rhs)]
        return contract("tensordot", nodes, terms, output)

    return noted(system, "tensordot", (lhs.type, rhs.type), ask, build)


def outer(system: Semantics, lhs: Value, rhs: Value) -> Value:
    """The product of each element of ``lhs`` with each of ``rhs``, both flattened."""
    rules.refuse_missing(system, "outer")
    ranks = [len(v.node.shape) for v in (lhs, rhs)]
    if rules.family(system) in ("torch", "max") and ranks != [1, 1]:
        raise ValueError(f"{system.name}'s outer takes arrays of one dimension, found {ranks[0]} and {ranks[1]}")
    column = Value(views.reshape(lhs.node, (lhs.node.size, 1)), lhs.weak)
    row = Value(views.reshape(rhs.node, (1, rhs.node.size)), rhs.weak)
    return operations.binary(system, "*", column, row)


def parse(subscripts: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the result."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    given = left.split(",")
    if len(given) != len(ranks):
        raise ValueError(f"'einsum' of '{subscripts}' takes {len(given)} operands, found {len(ranks)}")
    most = 0
    terms: list[Labels] = []
    for term, rank in zip(given, ranks, strict=True):
        head, dots, tail = term.partition("...")
        extra = rank - len(head) - len(tail)
        if extra < 0 or extra and not dots or not (head + tail).isalpha() and head + tail:
            raise ValueError(f"'einsum': '{term}' does not name the {rank} axes of its operand")
        most = max(most, extra)
        terms.append((*head, *(f".{i}" for i in range(extra, 0, -1)), *tail))
    ellipsis = tuple(f".{i}" for i in range(most, 0, -1))
    every = [label for term in terms for label in term]
    if not arrow:
        return terms, (*ellipsis, *sorted(a for a in set(every) if every.count(a) == 1 and a[0] != "."))
    head, dots, tail = right.partition("...")
    output = (*head, *(ellipsis if dots else ()), *tail)
    for label in output:
        if label not in every or output.count(label) > 1:
            raise ValueError(f"'einsum': '{label}' in the result of '{subscripts}' is not once in an operand")
    return terms, output


def _promotion(
    system: Semantics, op: str, values: Sequence[Value], terms: Sequence[Labels], output: Labels
) -> Promotion:
    """The type in which products are made and summed: the common type. PyTorch sums products of one type only, and integers of
    one operand in int64."""
    types = [v.type for v in values]
    base = rules.family(system)
    summed = {label for term in terms for label in term} - {*output}
    both = any(sum(label in term for term in terms) > 1 for label in summed)
    if base == "torch" and len(values) == 1 and summed:
        return system.reduction("sum", types[0])
    if base == "torch" and both and (len({t.dtype for t in types}) > 1 or rules.kinds(types[0].dtype) & rules.PRODUCTS):
        shown = " and ".join(str(t.dtype) for t in types)
        raise PromotionError(f"torch.{op} sums products of numbers of one type, found {shown}", "convert with .to()")
    found = system.common(*types)
    if base == "torch" and summed and not both and (found.result.is_integer or found.result.is_bool):
        wide = dtypes.int64
        return Promotion(wide, wide, op, steps=(*found.steps, Step("accumulator", f"sums are made in {wide}")))
    return Promotion(found.operands, found.result, op, found.weak, steps=found.steps)


def contract(op: str, nodes: Sequence[Node], terms: Sequence[Labels], output: Labels) -> Node:
    """Nodes of one type, their axes named, as the node whose axes are ``output``."""
    sizes: dict[str, int] = {}
    for node, term in zip(nodes, terms, strict=True):
        for label, size in zip(term, node.shape, strict=True):
            if size != sizes.setdefault(label, size) and 1 not in (size, sizes[label]):
                raise ValueError(f"'{op}': the axes '{label}' have {sizes[label]} and {size} elements")
            sizes[label] = max(sizes[label], size) if size else 0
    node, labels = _diagonal(nodes[0], terms[0])
    for i, (other, term) in enumerate(zip(nodes[1:], terms[1:], strict=True), 1):
        later = {*output}.union(*terms[i + 1 :])
        node, labels = _pair(node, labels, *_diagonal(other, term), later)
    node, labels = _summed(node, labels, {*output})
    dims = [Dimension(output.index(label)) for label in labels]
    shape = tuple(sizes[label] for label in output)
    placed = views.view(node, tuple(node.shape[labels.index(label)] for label in output), dims)
    return views.broadcast_to(placed, shape)


def _diagonal(node: Node, labels: Labels) -> tuple[Node, Labels]:
    """A label that is there twice names the diagonal."""
    if len({*labels}) == len(labels):
        return node, labels
    once = tuple(dict.fromkeys(labels))
    shape = tuple(node.shape[labels.index(label)] for label in once)
    for label, size in zip(labels, node.shape, strict=True):
        if size != shape[once.index(label)]:
            raise ValueError(f"'einsum': the axes '{label}' have {shape[once.index(label)]} and {size} elements")
    return views.view(node, shape, [Dimension(once.index(label)) for label in labels]), once


def _summed(node: Node, labels: Labels, needed: set[str]) -> tuple[Node, Labels]:
    """The sum over the axes that are not needed."""
    axes = tuple(axis for axis, label in enumerate(labels) if label not in needed)
    if not axes:
        return node, labels
    shape = tuple(n for axis, n in enumerate(node.shape) if axis not in axes)
    total = Reduce(shape, node.dtype, source=node, meaning="any" if node.dtype.is_bool else "sum", axes=axes)
    return total, tuple(label for label in labels if label in needed)


def _pair(a: Node, first: Labels, b: Node, second: Labels, later: set[str]) -> tuple[Node, Labels]:
    """The product of two nodes, summed over what nothing later needs."""
    a, first = _summed(a, first, later | {*second})
    b, second = _summed(b, second, later | {*first})
    shared = [label for label in first if label in second]
    sizes = {**dict(zip(second, b.shape, strict=True)), **dict(zip(first, a.shape, strict=True))}
    alike = all(sizes[label] == b.shape[second.index(label)] for label in shared)
    contracted = [label for label in shared if label not in later]
    left = [label for label in first if label not in second]
    right = [label for label in second if label not in first]
    if not (contracted and left and right and alike):
        return _elementwise(a, first, b, second, later)
    batch = [label for label in shared if label in later]

    def matrix(node: Node, labels: Labels, rows: list[str], columns: list[str]) -> Node:
        order = [labels.index(label) for label in (*batch, *rows, *columns)]
        counts = (math.prod(sizes[label] for label in group) for group in (rows, columns))
        return views.reshape(views.permute(node, order), (*(sizes[label] for label in batch), *counts))

    lhs, rhs = matrix(a, first, left, contracted), matrix(b, second, contracted, right)
    product = Matmul((*lhs.shape[:-1], rhs.shape[-1]), lhs.dtype, lhs=lhs, rhs=rhs)
    labels = (*batch, *left, *right)
    return views.reshape(product, [sizes[label] for label in labels]), labels


def _elementwise(a: Node, first: Labels, b: Node, second: Labels, later: set[str]) -> tuple[Node, Labels]:
    labels = (*first, *(label for label in second if label not in first))
    ends = a.dtype
    wide: DType = ends.compute if {*labels} - later else ends
    sides: list[Node] = []
    for node, own in ((a, first), (b, second)):
        shape = tuple(node.shape[own.index(label)] if label in own else 1 for label in labels)
        placed = views.view(node, shape, [Dimension(labels.index(label)) for label in own])
        sides.append(convert(placed, wide))
    shape = views.broadcast_shape("einsum", *(side.shape for side in sides))
    meaning = "and" if wide.is_bool else "mul"
    product: Node = Apply(shape, wide, meaning=meaning, arguments=tuple(sides))
    total, kept = _summed(product, labels, later)
    return convert(total, ends), kept
