"""How a thread claims programs of a launch (`weft.codegen.kernel`).

One thread alone claims by an atomic add in place. Where a grid is shared out, a function of its own looks for programs, in the
thread's share first. It keeps nothing between two claims: what it would keep took registers from the loop over programs, and all
launches 20 ns.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.emit.faults import word
from weft.codegen.kernel import NEXT, SHARE, SHARES
from weft.codegen.llvm.types import I64, POINTER, Module, intrinsic

_RANGE = ir.LiteralStructType([I64, I64])
_SAVING = "preserve_mostcc"
"""The convention of a function that saves registers itself, which the loop over programs then keeps."""
_LINE = 3
"""The binary logarithm of the words of a cache line, and of how many counters have lines of their own."""


def claim(
    builder: ir.IRBuilder,
    module: Module,
    launch: ir.Value,
    thread: ir.Value,
    total: ir.Value,
    chunk: ir.Value,
    *,
    in_order: bool,
) -> tuple[ir.Value, ir.Value]:
    """Claim up to ``chunk`` of the ``total`` programs or groups. Give the first and the one past the last; the first is not less
    where there are none. ``in_order``: the launch has one share."""
    counter = word(builder, launch, NEXT)
    if in_order:
        return _claimed(builder, counter, chunk, total)
    alone, shared, both = map(builder.function.append_basic_block, ("alone", "shared", "claimed"))
    builder.cbranch(has_one_share(builder, launch), alone, shared).set_weights([99, 1])
    builder.position_at_end(alone)
    in_place = _claimed(builder, counter, chunk, total)
    builder.branch(both)
    builder.position_at_end(shared)
    called = builder.call(
        _in_shares(module, f"{builder.function.name}.claim"), [launch, thread, total, chunk], cconv=_SAVING
    )
    found = [builder.extract_value(called, at) for at in range(2)]
    builder.branch(both)
    builder.position_at_end(both)
    first, end = builder.phi(I64), builder.phi(I64)
    for phi, one, other in zip((first, end), in_place, found, strict=True):
        phi.add_incoming(one, alone)
        phi.add_incoming(other, shared)
    return first, end


def has_one_share(builder: ir.IRBuilder, launch: ir.Value) -> ir.Value:
    """Whether a launch is not shared out."""
    return builder.icmp_unsigned("<=", _int64(builder, launch, SHARES), ir.Constant(I64, 1))


def _claimed(builder: ir.IRBuilder, counter: ir.Value, chunk: ir.Value, total: ir.Value) -> tuple[ir.Value, ir.Value]:
    first = builder.atomic_rmw("add", counter, chunk, "monotonic")
    return first, intrinsic(builder, "smin", [builder.add(first, chunk), total])


def _in_shares(module: Module, name: str) -> ir.Function:
    """The function that claims in the thread's own share, else in one of those that follow it, the first after the last. It gives
    two zeros where nothing is left. The first shares have one program more where they cannot be equal."""
    function = ir.Function(module, ir.FunctionType(_RANGE, [POINTER, POINTER, I64, I64]), name)
    function.linkage, function.calling_convention = "internal", _SAVING
    for attribute in ("noinline", "nounwind"):
        function.attributes.add(attribute)
    launch, thread, total, chunk = function.args
    entry, look, take, found, other, none = map(
        function.append_basic_block, ("entry", "look", "take", "found", "other", "none")
    )
    zero, one = ir.Constant(I64, 0), ir.Constant(I64, 1)
    builder = ir.IRBuilder(entry)
    shares, wanted = _int64(builder, launch, SHARES), _int64(builder, thread, SHARE)
    own = builder.select(builder.icmp_unsigned("<", wanted, shares), wanted, zero)
    size, rest = builder.udiv(total, shares), builder.urem(total, shares)
    builder.branch(look)

    builder.position_at_end(look)
    share, left = builder.phi(I64), builder.phi(I64)
    low = builder.add(builder.mul(share, size), intrinsic(builder, "umin", [share, rest]))
    here = builder.add(size, builder.zext(builder.icmp_unsigned("<", share, rest), I64))
    line = builder.and_(share, ir.Constant(I64, (1 << _LINE) - 1))
    at = builder.add(builder.shl(line, ir.Constant(I64, _LINE)), builder.lshr(share, ir.Constant(I64, _LINE)))
    counter = builder.gep(word(builder, launch, NEXT), [at], source_etype=I64)
    seen = builder.load_atomic(counter, "monotonic", 8, typ=I64)
    builder.cbranch(builder.icmp_signed("<", seen, here), take, other)

    builder.position_at_end(take)
    first, end = _claimed(builder, counter, chunk, here)
    builder.cbranch(builder.icmp_signed("<", first, here), found, other)

    builder.position_at_end(found)
    result: ir.Value = ir.Constant(_RANGE, ir.Undefined)
    for place, value in enumerate((first, end)):
        result = builder.insert_value(result, builder.add(low, value), place)
    builder.ret(result)

    builder.position_at_end(other)
    fewer, following = builder.sub(left, one), builder.add(share, one)
    wrapped = builder.select(builder.icmp_unsigned("==", following, shares), zero, following)
    for phi, at_first, in_turn in ((share, own, wrapped), (left, shares, fewer)):
        phi.add_incoming(at_first, entry)
        phi.add_incoming(in_turn, other)
    builder.cbranch(builder.icmp_unsigned("!=", fewer, zero), look, none)

    builder.position_at_end(none)
    builder.ret(ir.Constant(_RANGE, [zero, zero]))
    return function


def _int64(builder: ir.IRBuilder, base: ir.Value, index: int) -> ir.Value:
    return builder.load(word(builder, base, index), typ=I64, align=8)
