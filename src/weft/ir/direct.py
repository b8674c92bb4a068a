"""What passes do for every op or value, done directly, some of it on xDSL's (0.74) private fields.

xDSL's own ways are right, but cost much more. ``op.operands`` makes a view, whose items and iterator are further Python calls.
To change a value's type it makes a new value and replaces each use of the old one. ``op.walk`` runs three generators for each op.
`tests/ir/test_ir_direct.py` compares both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Attribute, Operation, SSAValue


def operands_of(op: Operation) -> Sequence[SSAValue]:
    """The operands as they are now; ``op.operands`` is for changing them."""
    return op._operands  # pyright: ignore[reportPrivateUsage]


def set_type(value: SSAValue, type_: Attribute) -> None:
    """Changes the type of a value in place: it stays the same value, with its uses and its name."""
    value._type = type_  # pyright: ignore[reportPrivateUsage]


def ops_in(root: Operation) -> Iterator[Operation]:
    """The op and all ops inside it, in order; the one that has just been given may be moved or erased meanwhile."""
    yield root
    for region in root.regions:
        for block in region.blocks:
            op = block.first_op
            while op is not None:
                following = op.next_op
                if op.regions:
                    yield from ops_in(op)
                else:
                    yield op
                op = following
