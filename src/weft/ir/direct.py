"""What passes do for every op or value, done directly, some of it on xDSL's (0.74) private fields.

xDSL's own ways are right, but cost much more. ``op.operands`` makes a view, whose items and iterator are further Python calls.
To change a value's type it makes a new value and replaces each use of the old one. ``op.walk`` runs three generators for each op.
The hash of an attribute goes through all that it is made of, in Python and each time. `tests/ir/test_ir_direct.py` compares both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Final, TypeVar, TypeVarTuple

from xdsl.ir import Attribute, Operation, OpResult, SSAValue

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_MOST: Final = 4096
"""The results that `by_identity` keeps of a function."""


def operands_of(op: Operation) -> Sequence[SSAValue]:
    """The operands as they are now; ``op.operands`` is for changing them."""
    return op._operands  # pyright: ignore[reportPrivateUsage]


def defining_op(value: SSAValue) -> Operation | None:
    """The op of which the value is a result; None for an argument of a block. Operations are abstract classes, of which
    ``isinstance`` asks Python code."""
    return value.op if type(value) is OpResult else None


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


def by_identity(function: Callable[[*Ts], T]) -> Callable[[*Ts], T]:
    """Remembers what a function of immutable objects gives for these very objects; equal ones are others. An entry holds its
    objects, so that nothing else has their identities while it is there."""
    known: dict[tuple[int, ...], tuple[tuple[*Ts], T]] = {}

    @wraps(function)
    def remembered(*objects: *Ts) -> T:
        key = tuple(map(id, objects))
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            found = known[key] = (objects, function(*objects))
        return found[1]

    return remembered
