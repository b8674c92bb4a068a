"""Minimum and maximum of two zeros: either zero is right, and nothing else is let through for it."""

# pyright: reportArgumentType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from weft.frontend import KernelFunction

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit

ZEROS = np.array([0.0, -0.0, 0.0, -0.0, 1.0, -1.0, np.nan, -0.0], np.float32)
OTHERS = np.array([-0.0, 0.0, 0.0, -0.0, -0.0, 0.0, 0.0, np.nan], np.float32)


@KernelFunction
def both_ways(x: Any, y: Any, out: Any, N: tl.constexpr) -> None:
    """The second of each pair is merged with the first: operands may be exchanged."""
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.minimum(a, b))
    tl.store(out + N + i, tl.minimum(b, a))
    tl.store(out + 2 * N + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 3 * N + i, tl.maximum(b, a, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 4 * N + i, 1.0 / tl.maximum(tl.minimum(b, a), -1.0))


def test_operands_may_be_exchanged(differ: Differential) -> None:
    differ(both_ways, x=ZEROS, y=OTHERS, out=np.zeros(40, np.float32), N=8)


@KernelFunction
def negated(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, -tl.load(x + i))


def test_other_zeros_are_compared_with_their_signs(differ: Differential, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong sign elsewhere is not let through: the reference is made to lose it."""
    from weft.reference import elementwise

    monkeypatch.setitem(elementwise.FLOAT_UNARY, "neg", lambda x: 0.0 - x)
    with pytest.raises(AssertionError, match="differ"):
        differ(negated, x=ZEROS, out=np.zeros(8, np.float32), N=8)
