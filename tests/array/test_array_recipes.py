"""Recipes make what `weft.array.building.operations` makes, and numbers of one class are one to every system."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pytest

from weft import dtypes, semantics
from weft.array.building import operations, recipes
from weft.array.building.operations import Value
from weft.array.building.recipes import class_of
from weft.array.expression.keys import gather
from weft.array.expression.nodes import Input
from weft.semantics import SYSTEMS, Type, ops

OPS: Final = sorted(set(ops.BINARY) - {"where", "matmul", "concat"} - recipes.BY_VALUE)
LARGEST: Final = sorted({float(d.largest) for d in dtypes.KNOWN if d.is_float})
EDGES: Final = sorted({b for d in dtypes.KNOWN if d.is_integer for b in (d.min, d.max)})


def number(rng: random.Random) -> int | float:
    """One that is likely to be at the edge of a type."""
    if rng.random() < 0.6:
        return rng.choice(EDGES) + rng.choice((-3, -2, -1, 0, 1, 2, 3, 5, rng.randrange(-1000, 1000)))
    edge = rng.choice(LARGEST) * rng.choice((1, -1, 1.0001, 0.9999))
    scaled = rng.uniform(-1, 1) * 10.0 ** rng.randrange(-45, 45)
    return rng.choice(
        (0.0, -0.0, 1.0, 0.5, -2.5, float("nan"), float("inf"), float("-inf"), 1e-40, 5e-324, edge, scaled)
    )


def answer(system: str, op: str, *operands: object) -> object:
    """The promotion, or how it is refused."""
    try:
        return semantics.get(system).resolve(op, *operands)
    except (semantics.PromotionError, OverflowError, TypeError, ValueError) as error:
        return type(error)


@pytest.mark.parametrize("system", SYSTEMS)
def test_numbers_of_one_class_have_one_answer(system: str) -> None:
    rng = random.Random(3)
    for _ in range(400):
        first = number(rng)
        second = next((n for n in (number(rng) for _ in range(30)) if class_of(n) == class_of(first)), first)
        kind = Type(rng.choice(semantics.get(system).dtypes), rng.random() < 0.3, scalar=rng.random() < 0.2)
        op = rng.choice(OPS)
        left, right = ((kind, n) if rng.random() < 0.5 else (n, kind) for n in (first, second))
        if [isinstance(o, Type) for o in left] == [isinstance(o, Type) for o in right]:
            assert answer(system, op, *left) == answer(system, op, *right), (op, left, right)


def test_numbers_of_other_classes() -> None:
    for one, other in (
        (127, 128),
        (-128, -129),
        (2**31 - 1, 2**31),
        (2**64 - 1, 2**64),
        (0.5, 1.0),
        (0.0, -0.0),
        (1, 1.0),
    ):
        assert class_of(one) != class_of(other)
    assert class_of(float(np.finfo(np.float32).max)) != class_of(3.41e38)
    assert class_of(9) == class_of(11) and class_of(0.1) == class_of(0.3)


def made(value: Value) -> tuple[Any, ...]:
    key, inputs, numbers = gather([value.node])
    return value.weak, value.type, key, [id(i) for i in inputs], [(n.dtype, repr(n.value)) for n in numbers]


def agree(known: Callable[[], Value], fresh: Callable[[], Value]) -> None:
    """The same value, or the same refusal."""
    try:
        expected = made(fresh())
    except (semantics.PromotionError, OverflowError, TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            known()
    else:
        assert made(known()) == expected


def plain(system: semantics.Semantics, op: str, lhs: Value, by: int | float, reflected: bool) -> Value:
    return operations.binary(system, op, by, lhs) if reflected else operations.binary(system, op, lhs, by)


@pytest.mark.parametrize("system", SYSTEMS)
def test_recipes_make_what_building_makes(system: str) -> None:
    chosen = semantics.get(system)
    held = [d for d in chosen.dtypes if d in dtypes.ALL]
    rng = random.Random(4)

    def operand() -> Value:
        weak = system.startswith("jax") and rng.random() < 0.3
        return Value(Input(rng.choice(((), (1,), (3,), (2, 3))), rng.choice(held)), weak)

    for _ in range(300):
        lhs, rhs, by = operand(), operand(), number(rng)
        op = rng.choice((*OPS, *recipes.BY_VALUE))
        for reflected in (False, True):
            agree(partial(recipes.binary, chosen, op, lhs, rhs), partial(operations.binary, chosen, op, lhs, rhs))
            agree(partial(recipes.unary, chosen, "neg", lhs), partial(operations.unary, chosen, "neg", lhs))
            agree(
                partial(recipes.with_number, chosen, op, lhs, by, reflected),
                partial(plain, chosen, op, lhs, by, reflected),
            )


def test_a_recipe_has_the_number_at_hand() -> None:
    system, x = semantics.get("numpy"), Value(Input((3,), dtypes.float32))
    for op in ("*", "**"):
        for by in (2, 3, 0.5, 0.7, 2, 3):
            agree(partial(recipes.with_number, system, op, x, by, False), partial(plain, system, op, x, by, False))


@pytest.mark.parametrize("system", SYSTEMS)
def test_recipes_of_functions_make_what_building_makes(system: str) -> None:
    """Each twice, so that the second is by the recipe of the first, on other arrays."""
    chosen = semantics.get(system)
    held = [d for d in chosen.dtypes if d in dtypes.ALL]
    rng = random.Random(5)
    build: dict[str, Callable[..., Value]] = {"where": operations.where, "clamp": operations.clamp}
    for _ in range(200):
        op = rng.choice(("where", "clamp", "maximum", "**", "atan2"))
        kinds = [
            rng.choice((None, None, (rng.choice(held), rng.choice(((), (3,), (2, 3))))))
            for _ in range(3 if op in build else 2)
        ]
        numbers = [rng.choice((0, 1, 2, -1, 300, 0.0, -0.0, 0.5, 2.0, float("nan"), 1e39)) for _ in kinds]
        for _ in range(2):
            sides = [
                n if kind is None else Value(Input(kind[1], kind[0])) for kind, n in zip(kinds, numbers, strict=True)
            ]
            fresh = (
                partial(build[op], chosen, *sides) if op in build else partial(operations.binary, chosen, op, *sides)
            )
            agree(partial(recipes.applied, chosen, op, sides, fresh), fresh)


def test_recipes_of_several_numbers_and_of_powers_are_for_their_values() -> None:
    system = semantics.get("numpy")
    x, mask = Value(Input((3,), dtypes.float32)), Value(Input((3,), dtypes.bool_))
    for first, second in ((0.5, 0.5), (0.5, 0.75), (0.75, 0.5), (0.25, 0.25)):
        sides = (mask, first, second)
        agree(
            partial(recipes.applied, system, "where", sides, partial(operations.where, system, *sides)),
            partial(operations.where, system, *sides),
        )
    for by in (2.0, 4.0, 3.0, 2.0):
        build = partial(operations.binary, system, "**", x, by)
        agree(partial(recipes.applied, system, "**", (x, by), build), build)
