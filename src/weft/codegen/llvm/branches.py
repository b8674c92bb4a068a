"""Values that are computed where a scalar condition holds, on any machine."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir


def where(builder: ir.IRBuilder, mask: ir.Value | None, then: Callable[[], ir.Value], otherwise: ir.Value) -> ir.Value:
    """What ``then`` gives where a scalar mask is true or there is none, else another value."""
    if mask is None:
        return then()
    before = builder.block
    with builder.if_then(mask):
        value = then()
        inside = builder.block
    result = builder.phi(value.type)
    result.add_incoming(otherwise, before)
    result.add_incoming(value, inside)
    return result
