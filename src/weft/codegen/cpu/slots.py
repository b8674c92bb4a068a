"""Which of a claim's slots a panel is in, and which one a new panel gets.

A thread has memory for so many panels of an operand. If new panels took all slots in turn, kernels that use a panel once would
write megabytes that no cache holds; if they took few, kernels that come back to sixteen panels would fill each again. What is
used again is known only while the kernel runs, so the slots in use follow from what was found. Rules, where a panel is found at
distance d if it is the d-th latest that was filled:

1. At first as many slots are in use as take `START_BYTES`.
2. After a turn through them they are as many as the greatest distance at which a panel was found in it.
3. Where a panel is wanted that was the d-th latest, but whose slot has another one, they are d.

Each is rounded up to a power of two.

    panels of 64 KiB               slots in use
    0 1 2 .. 63, all once          16 at first, then 1
    0 .. 19, again and again       16 at first; then 1; 32 when 0 comes again. From the third time on each is found

The table before the slots has five numbers, which are 0 when a thread begins a launch, and of as many panels as there are slots
a hash of 32 bits of the keys, and the keys. Those of panel i are at ``i % slots``. It is in slot ``(i - since) % used`` until
``used`` further ones are filled. A choice of other slots loses all panels before it. Vector comparisons of hashes find the latest
panel that may be the one; if its keys are others, the panel is filled again.

Programs often want the panel that the program before had. So the table also has the keys of the panel that was claimed last, and
its slot: they are compared first. To find it again changes no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from llvmlite import ir

from weft.codegen.llvm.types import I1, I8, I32, I64, broadcast, intrinsic, outlined

START_BYTES: Final = 9 << 17
"""Four panels of `weft.transforms.factors.PANEL_BYTES` and padding: about the second-level cache of a core. With four times
as many, products of 33x777x1001 took 1.02 times as long, and more after other kernels. Those of 1024^3 in tiles of 64 and more,
which come back to up to 16 such panels, took 0.98."""

NUMBERS: Final = 5
"""Numbers of 8 bytes at the beginning of a table: how many panels were filled; how many when the slots in use were chosen; the
slots in use less one, xor what they are at first; the greatest distance of a panel that was found in this turn; twice the slot
that was claimed last, and one."""

_LAST: Final = 4
"""The last of them."""

_HASHES: Final = 64
"""Where the hashes begin, in bytes; the keys of the panels follow all of them, and the keys that were claimed last."""

_FACTOR: Final = 0x9E3779B97F4A7C15
"""The odd number by which hashes multiply: 2^64 over the golden ratio."""


@dataclass(frozen=True)
class Slots:
    """So many slots, a power of two up to 64, of ``bytes`` each, for panels of so many ``keys``."""

    number: int
    bytes: int
    keys: int

    @property
    def table_bytes(self) -> int:
        """The bytes of a table."""
        return self._last_at + 8 * self.keys

    @property
    def _last_at(self) -> int:
        return self._keys_at + 8 * self.number * self.keys

    @property
    def _keys_at(self) -> int:
        return _HASHES + max(4 * self.number, 8)

    @property
    def first(self) -> int:
        """How many slots are in use at first."""
        used = self.number
        while used > 1 and used * self.bytes > START_BYTES:
            used //= 2
        return used

    def find(self, builder: ir.IRBuilder, table: ir.Value, wanted: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value]:
        """The slot of the panel of the ``wanted`` keys, int64 each, and whether it must be filled. The table then has it.

        If that is not the panel that was claimed last, a function of its own looks for it, once for all operands of as many keys
        and slots: a kernel has two, and LLVM would take a tenth of its time for the second copy.
        """

        def body(inner: ir.IRBuilder, arguments: Sequence[ir.Value]) -> ir.Value:
            place, stale = self._find(inner, arguments[0], arguments[1:])
            twice = inner.shl(place, _number(1))
            inner.store(inner.or_(twice, _number(1)), _word(inner, arguments[0], _LAST), align=8)
            for key, value in zip(self._last_keys(inner, arguments[0]), arguments[1:], strict=True):
                inner.store(value, key, align=8)
            return inner.or_(twice, inner.zext(stale, I64))

        last = builder.load(_word(builder, table, _LAST), typ=I64, align=8)
        equal = _are_equal(builder, self._last_keys(builder, table), wanted)
        same = builder.and_(builder.trunc(last, I1), equal)
        before, fresh = builder.block, builder.xor(last, _number(1))
        with builder.if_then(builder.not_(same)):
            other = outlined(builder, f"slot.{self.number}.{self.first}", [table, *wanted], I64, body)
            end = builder.block
        found = builder.phi(I64)
        found.add_incoming(fresh, before)
        found.add_incoming(other, end)
        return builder.lshr(found, _number(1)), builder.trunc(found, I1)

    def _find(self, builder: ir.IRBuilder, table: ir.Value, wanted: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value]:
        numbers = [_word(builder, table, i) for i in range(_LAST)]
        filled, since, changed, reach = (builder.load(number, typ=I64, align=8) for number in numbers)
        mask = builder.xor(changed, _number(self.first - 1))
        hashed = _hash(builder, wanted)
        distance = self._distance(builder, table, wanted, hashed, filled)
        kept = builder.sub(filled, since)
        used = intrinsic(builder, "umin", [builder.add(mask, _number(1)), kept])
        stale = builder.icmp_unsigned(">", distance, used)
        # rule 2
        begins = builder.icmp_unsigned("==", builder.and_(kept, mask), _number(0))
        turned = builder.and_(begins, builder.icmp_unsigned("!=", kept, _number(0)))
        fewer = intrinsic(builder, "umin", [mask, _enough(builder, reach)])
        chosen = builder.select(turned, fewer, mask)
        # rule 3
        known = intrinsic(builder, "umin", [filled, _number(self.number)])
        wider = intrinsic(builder, "umax", [chosen, _enough(builder, distance)])
        chosen = builder.select(builder.icmp_unsigned("<=", distance, known), wider, chosen)
        begun = builder.select(builder.icmp_unsigned("!=", chosen, mask), filled, since)
        with builder.if_then(stale):
            hash_, keys = self._places(builder, table, filled)
            for place, value in zip((hash_, *keys), (hashed, *wanted), strict=True):
                builder.store(value, place, align=4 if place is hash_ else 8)
            after = builder.add(filled, _number(1)), begun, builder.xor(chosen, _number(self.first - 1))
            for number, value in zip(numbers, after, strict=False):
                builder.store(value, number, align=8)
        further = intrinsic(builder, "umax", [reach, distance])
        builder.store(builder.select(stale, builder.select(turned, _number(0), reach), further), numbers[3], align=8)
        found_at, filled_at = builder.sub(kept, distance), builder.sub(filled, begun)
        return builder.and_(builder.select(stale, filled_at, found_at), builder.select(stale, chosen, mask)), stale

    def _places(self, builder: ir.IRBuilder, table: ir.Value, panel: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
        """Where the hash and the keys of a panel are, by its number."""
        position = builder.and_(panel, _number(self.number - 1))
        hashes = builder.gep(table, [_number(_HASHES)], source_etype=I8)
        keys = builder.gep(table, [_number(self._keys_at)], source_etype=I8)
        first = builder.gep(keys, [builder.mul(position, _number(self.keys))], source_etype=I64)
        return (
            builder.gep(hashes, [position], source_etype=I32),
            [builder.gep(first, [_number(i)], source_etype=I64) for i in range(self.keys)],
        )

    def _distance(
        self, builder: ir.IRBuilder, table: ir.Value, wanted: Sequence[ir.Value], hashed: ir.Value, filled: ir.Value
    ) -> ir.Value:
        """At which distance the latest panel of this hash is, if it has the wanted keys; else more than there are slots. What was
        never written is further than all panels."""
        slots = self.number
        if slots > 1:
            hashes = builder.gep(table, [_number(_HASHES)], source_etype=I8)
            held = builder.load(hashes, typ=ir.VectorType(I32, slots), align=min(64, 4 * slots))
            same = builder.icmp_unsigned("==", held, broadcast(builder, hashed, slots))
            bits = builder.bitcast(same, ir.IntType(slots))
            count = builder.trunc(filled, bits.type) if slots < 64 else filled
            ordered = intrinsic(builder, "fshr", [bits, bits, count])  # the latest panel's bit becomes the highest
            if slots < 64:
                ordered = builder.shl(builder.zext(ordered, I64), _number(64 - slots))
            distance = builder.add(builder.ctlz(ordered, ir.Constant(I1, 0)), _number(1))
        else:
            distance = _number(1)
        _, keys = self._places(builder, table, builder.sub(filled, distance))
        return builder.select(_are_equal(builder, keys, wanted), distance, _number(slots + 1))

    def _last_keys(self, builder: ir.IRBuilder, table: ir.Value) -> list[ir.Value]:
        """Where the keys are that were claimed last."""
        return [builder.gep(table, [_number(self._last_at + 8 * i)], source_etype=I8) for i in range(self.keys)]


def _are_equal(builder: ir.IRBuilder, places: Sequence[ir.Value], wanted: Sequence[ir.Value]) -> ir.Value:
    """Whether the keys at some places are the wanted ones."""
    equal = [
        builder.icmp_unsigned("==", builder.load(place, typ=I64, align=8), key)
        for place, key in zip(places, wanted, strict=True)
    ]
    return reduce(builder.and_, equal)


def _hash(builder: ir.IRBuilder, keys: Sequence[ir.Value]) -> ir.Value:
    """32 bits that depend on all bits of the keys, and on their order."""
    total: ir.Value = _number(0)
    for key in keys:
        mixed = builder.mul(builder.xor(total, key), _number(_FACTOR))
        total = builder.xor(mixed, builder.lshr(mixed, _number(32)))
    return builder.trunc(total, I32)


def _enough(builder: ir.IRBuilder, distance: ir.Value) -> ir.Value:
    """The slots in which panels are found at up to this distance, less one."""
    less = intrinsic(builder, "usub.sat", [distance, _number(1)])
    odd = builder.or_(builder.shl(less, _number(1)), _number(1))
    return builder.lshr(builder.lshr(_number(-1), builder.ctlz(odd, ir.Constant(I1, 0))), _number(1))


def _number(number: int) -> ir.Constant:
    return ir.Constant(I64, number)


def _word(builder: ir.IRBuilder, table: ir.Value, i: int) -> ir.Value:
    return builder.gep(table, [_number(8 * i)], source_etype=I8)
