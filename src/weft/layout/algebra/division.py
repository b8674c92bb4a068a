"""Division of layouts (paper 4.4): whether a layout is a product with a given factor, what the other is, and why not.

Definition. ``P * Q`` is block-diagonal, label by label: in a dimension both have, P's bits are the low ones. So M divides by P on
the *left*, with quotient Q, where

- each input dimension of P begins in M with P's own bases, and
- the other bases of M are multiples of P's sizes: zero in the low bits of P's output dimensions.

On the *right* it is the high bits: each input dimension of Q ends in M with Q's bases, moved up, and the other bases of M stay
below.

    M = {register: [(0,1),(0,2)], lane: [(1,0)]} -> [dim0: 2, dim1: 4]
    P = {register: [1]} -> [dim1: 2]                     M = P * {register: [(0,1)], lane: [(1,0)]} -> [dim0: 2, dim1: 2]
    Q = {lane: [1]} -> [dim0: 2]                         M = {register: [(0,1),(0,2)], lane: []} -> [dim0: 1, dim1: 4] * Q
    M has no quotient by {lane: [1]} -> [dim1: 2]: lane begins with (1,0), not (0,1)

Law: ``P * quotient == M`` (left), ``quotient * Q == M`` (right), with M's dimensions in M's order; the quotient keeps all of M's
dimensions, at size 1 where nothing is left, and is the only one that does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from weft.layout.algebra import fields

if TYPE_CHECKING:
    from weft.layout.algebra.linear_layout import LinearLayout

Side: TypeAlias = Literal["left", "right"]


def divide(whole: LinearLayout, part: LinearLayout, side: Side) -> LinearLayout | str:
    """The quotient of ``whole`` by ``part``, which stands on this ``side`` of the product; the reason where there is none."""
    if reason := _misfit(whole, part):
        return reason
    left = side == "left"
    sizes = dict(part.outputs)
    quotient_outputs = tuple([(name, bits - sizes.get(name, 0)) for name, bits in whole.outputs])
    old, new = fields.positions(whole.outputs), fields.positions(quotient_outputs)
    # Where the part's bits lie in each output dimension of the whole, and the quotient's.
    part_up = {name: 0 if left else new[name][1] for name in sizes}
    rest_up = sizes if left else {}
    expected = part.repack(whole.outputs, part_up)
    compress = fields.moves([(bits, old[name][0] + rest_up.get(name, 0), shift) for name, (shift, bits) in new.items()])
    theirs = sum([((1 << bits) - 1) << (old[name][0] + part_up[name]) for name, bits in part.outputs])
    rest: dict[str, tuple[int, ...]] = {}
    for dim, columns in whole.inputs:
        given = expected.get(dim, ())
        cut = len(given) if left else len(columns) - len(given)
        ours, others = (columns[cut:], columns[:cut]) if left else (columns[:cut], columns[cut:])
        if others != given:
            bit = next(bit for bit, (a, b) in enumerate(zip(others, given, strict=True)) if a != b)
            return (
                f"basis {bit if left else cut + bit} of {dim} is {whole.unflatten(others[bit])}, "
                f"the divisor asks for {whole.unflatten(given[bit])}"
            )
        for bit, column in enumerate(ours):
            if column & theirs:
                return _overlap(whole, part, dim, bit + cut if left else bit, side)
        rest[dim] = fields.move(ours, compress)
    return whole.from_columns(rest, quotient_outputs)


def _misfit(whole: LinearLayout, part: LinearLayout) -> str | None:
    """The first dimension of the part that the whole lacks or that is too small there."""
    for kind, mine, its in (
        ("input", {dim: len(columns) for dim, columns in whole.inputs}, [(d, len(c)) for d, c in part.inputs]),
        ("output", dict(whole.outputs), part.outputs),
    ):
        for name, bits in its:
            if name not in mine:
                return f"the divisor has {kind} dimension {name}, the dividend has [{', '.join(mine)}]"
            if mine[name] < bits:
                return f"{name} has size {1 << bits} in the divisor and {1 << mine[name]} in the dividend"
    return None


def _overlap(whole: LinearLayout, part: LinearLayout, dim: str, bit: int, side: Side) -> str:
    """In words, that a basis of the quotient reaches into the part's bits, and in which output dimension."""
    sizes = dict(part.outputs)
    for name, coordinate in zip(whole.out_dims, whole.bases(dim)[bit], strict=True):
        size = 1 << sizes.get(name, 0)
        room = whole.out_size(name) // size
        if side == "left" and coordinate % size:
            required = f"a multiple of {size}"
        elif side == "right" and coordinate >= room:
            required = f"less than {room}"
        else:
            continue
        return f"basis {bit} of {dim} has {name} coordinate {coordinate}, expected {required} in the quotient"
    raise AssertionError(f"basis {bit} of {dim} does not reach into the divisor")
