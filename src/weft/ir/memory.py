"""Memory: the order that accesses keep, and the ops that make them.

# The memory model

Programs of a grid run in any order and concurrently. They *start* in increasing order of their index (x fastest), so a
program may wait for a lower one; to wait for a higher one is undefined. Inside a program the accesses below come in
program order, and a pass or an executor may exchange two neighbours only where `may_exchange` says so:

1. *Acquire.* What follows an access that acquires stays behind it, whatever array it touches.
2. *Release.* What precedes an access that releases stays before it, whatever array it touches.
3. *One address.* Two accesses that may touch one address keep their order, unless both only read.

What one access does is a row of the table (`ordering_of`):

| access                                     | reads | writes | acquires | releases | observed |
|--------------------------------------------|-------|--------|----------|----------|----------|
| ``tile.load``                              | yes   |        |          |          |          |
| ``tile.load volatile``                     | yes   |        | yes      |          | yes      |
| ``tile.store``                             |       | yes    |          |          |          |
| ``tile.store release``                     |       | yes    |          | yes      | yes      |
| ``tile.atomic_rmw``, ``cas`` ``"relaxed"`` | yes   | yes    |          |          | yes      |
| ``tile.atomic_rmw``, ``cas`` ``"acquire"`` | yes   | yes    | yes      |          | yes      |
| ``tile.atomic_rmw``, ``cas`` ``"release"`` | yes   | yes    |          | yes      | yes      |
| ``tile.atomic_rmw``, ``cas`` ``"acq_rel"`` | yes   | yes    | yes      | yes      | yes      |
| ``tile.barrier``                           |       |        | yes      | yes      | yes      |

An *observed* access happens exactly as often as the program says: it is not removed, repeated or merged. If an access
that acquires reads what an access that releases wrote (in another program, each element of a tile by itself), then what
preceded the release is seen by what follows the acquire. Relaxed atomics are indivisible and order nothing.

A store through one pointer is how kernels raise a flag for a waiting program: `weft.transforms.flags` gives it release
order in every kernel that has an access that reads and acquires. In other kernels nothing in the grid could see the difference.

*Races.* Two accesses of different programs to one address, of which one writes, must both be atomic or observed, or be
ordered through such accesses; else what is read is undefined. Elements of one plain store that meet at an address leave
one of the values; elements of one atomic all take effect, in any order.

``scope`` names the programs between which an atomic's order must hold: ``cta`` (one block), ``gpu``, ``sys``. A machine may
give a wider one; a CPU always gives ``sys``. ``cache`` and ``evict`` are advice: a machine may ignore them, and no result
depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final, TypeAlias, TypeGuard

from xdsl.dialects.builtin import DenseArrayBase, StringAttr, UnitAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import (
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
)
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.ir.assembly import AssemblyOp
from weft.ir.base import ATOMIC, TileOp, check_kind, word
from weft.ir.classes import Addressing, Elementwise
from weft.ir.direct import operands_of
from weft.ir.printing import POINTER, Print
from weft.ir.types import PointerType, dtype_of, element_of, is_pointer, like, scalar, shape_of

SEMANTICS: Final = ("relaxed", "acquire", "release", "acq_rel")
"""The orders that an atomic may ask for; the last is the default."""

SCOPES: Final = ("cta", "gpu", "sys")
"""Between whose threads the order holds; ``gpu`` is the default."""

LOAD_CACHES: Final = (".ca", ".cg", ".cs", ".cv")
STORE_CACHES: Final = (".wb", ".cg", ".cs", ".wt")
EVICTIONS: Final = ("evict_first", "evict_last")
"""Advice about caches, in PTX's and Triton's words; the empty word is no advice."""


@dataclass(frozen=True)
class Ordering:
    """A row of the memory model's table: what an access does, and what it holds in place."""

    reads: bool = False
    writes: bool = False
    acquires: bool = False
    releases: bool = False
    observed: bool = False


LOAD: Final = Ordering(reads=True)
VOLATILE_LOAD: Final = Ordering(reads=True, acquires=True, observed=True)
STORE: Final = Ordering(writes=True)
FLAG_STORE: Final = Ordering(writes=True, releases=True, observed=True)
ATOMICS: Final = {
    sem: Ordering(True, True, sem in ("acquire", "acq_rel"), sem in ("release", "acq_rel"), True) for sem in SEMANTICS
}
BARRIER: Final = Ordering(acquires=True, releases=True, observed=True)


@irdl_op_definition
class AddPtrOp(TileOp):
    """``pointer + offset``; the integer offset counts elements and is sign- or zero-extended by its type."""

    name = "tile.addptr"
    pointer = operand_def()
    offset = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Elementwise(), Addressing())
    assembly_format = "$pointer `,` $offset attr-dict `:` type($pointer) `,` type($offset) `to` type($result)"

    def __init__(self, pointer: SSAValue, offset: SSAValue):
        super().__init__(operands=[pointer, offset], result_types=[pointer.type])

    def verify_(self) -> None:
        if self.pointer.type != self.result.type or not is_pointer(self.pointer):
            raise VerifyException(f"tile.addptr: expected pointers, found {self.pointer.type} to {self.result.type}")
        whole = not is_pointer(self.offset) and dtype_of(self.offset).is_integer
        if not whole or like(self.pointer, element_of(self.offset)) != self.offset.type:
            raise VerifyException(f"tile.addptr: the offset is {self.offset.type} for pointers {self.pointer.type}")


def _verify_access(op: TileOp, pointer: SSAValue, values: Sequence[SSAValue], mask: SSAValue | None) -> None:
    element = element_of(pointer)
    if not isinstance(element, PointerType):
        raise VerifyException(f"{op.name}: expected pointers, found {pointer.type}")
    for value in values:
        if value.type != like(pointer, element.pointee):
            raise VerifyException(
                f"{op.name}: {pointer.type} holds {like(pointer, element.pointee)}, found {value.type}"
            )
    if mask is not None and mask.type != like(pointer, dtypes.bool_):
        raise VerifyException(f"{op.name}: the mask is {mask.type}, expected {like(pointer, dtypes.bool_)}")


def _verify_word(op: TileOp, name: str, word: StringAttr, allowed: Sequence[str]) -> None:
    if word.data not in allowed:
        names = ", ".join(allowed)
        raise VerifyException(f"{op.name}: unknown {name} '{word.data}', expected one of {names}")


def _verify_advice(op: TileOp, cache: StringAttr, caches: Sequence[str], evict: StringAttr) -> None:
    if cache.data:
        _verify_word(op, "cache modifier", cache, caches)
    if evict.data:
        _verify_word(op, "eviction policy", evict, EVICTIONS)


def _verify_atomic(op: TileOp, sem: StringAttr, scope: StringAttr) -> None:
    _verify_word(op, "order", sem, SEMANTICS)
    _verify_word(op, "scope", scope, SCOPES)


@cache
def _segments(mask: bool, other: bool) -> Attribute:
    """How many operands a load has for its pointer, mask and other: in MLIR an attribute."""
    return DenseArrayBase.from_list(i32, (1, int(mask), int(other)))


class _LoadEffect(MemoryEffect):
    """A load reads; a volatile one counts as a write too, since it is observed."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        effects = {EffectInstance(MemoryEffectKind.READ)}
        if isinstance(op, LoadOp) and op.volatile is not None:
            effects.add(EffectInstance(MemoryEffectKind.WRITE))
        return effects


@irdl_op_definition
class LoadOp(TileOp):
    """Reads each element; where the mask is false no memory is touched and ``other`` is the value. A ``volatile`` one
    reads memory each time it is executed, element by element, and acquires."""

    name = "tile.load"
    address = operand_def()
    condition = opt_operand_def()
    default = opt_operand_def()
    volatile = opt_prop_def(UnitAttr)
    cache = prop_def(StringAttr, default_value=StringAttr(""))
    evict = prop_def(StringAttr, default_value=StringAttr(""))
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(_LoadEffect())
    assembly_format = (
        "$address (`mask` $condition^ `:` type($condition))? (`other` $default^ `:` type($default))? "
        "(`volatile` $volatile^)? "
        "(`cache` $cache^)? (`evict` $evict^)? attr-dict `:` type($address) `to` type($result)"
    )

    def __init__(
        self,
        pointer: SSAValue,
        mask: SSAValue | None = None,
        other: SSAValue | None = None,
        *,
        volatile: bool = False,
        cache: str = "",
        evict: str = "",
    ):
        element = element_of(pointer)
        pointee = element.pointee if isinstance(element, PointerType) else element
        super().__init__(
            operands=[pointer, mask, other],
            properties={
                "volatile": UnitAttr() if volatile else None,
                "cache": word(cache),
                "evict": word(evict),
                AttrSizedOperandSegments.attribute_name: _segments(mask is not None, other is not None),
            },
            result_types=[like(pointer, pointee)],
        )

    # For the declared names xDSL decodes the attribute of all operands' segments at every use.

    @property
    def pointer(self) -> SSAValue:
        """The first operand, ``address``."""
        return operands_of(self)[0]

    @property
    def mask(self) -> SSAValue | None:
        """The second operand, ``condition``, if there is one."""
        found = operands_of(self)
        return found[1] if len(found) > 1 else None

    @property
    def other(self) -> SSAValue | None:
        """The third operand, ``default``, if there is one: only a load with a mask has it."""
        found = operands_of(self)
        return found[2] if len(found) > 2 else None

    def verify_(self) -> None:
        values = [self.result] if self.default is None else [self.result, self.default]
        _verify_access(self, self.pointer, values, self.condition)
        if self.default is not None and self.condition is None:
            raise VerifyException("tile.load: 'other' needs a mask")
        _verify_advice(self, self.cache, LOAD_CACHES, self.evict)


@irdl_op_definition
class StoreOp(TileOp):
    """Writes each element whose mask is true (all, without one). With ``release`` it raises a flag: what the program
    did before is seen by whoever reads the value with an access that acquires."""

    name = "tile.store"
    pointer = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    release = opt_prop_def(UnitAttr)
    cache = prop_def(StringAttr, default_value=StringAttr(""))
    evict = prop_def(StringAttr, default_value=StringAttr(""))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$pointer `,` $value (`mask` $mask^ `:` type($mask))? (`release` $release^)? "
        "(`cache` $cache^)? (`evict` $evict^)? attr-dict `:` type($pointer) `,` type($value)"
    )

    def __init__(
        self,
        pointer: SSAValue,
        value: SSAValue,
        mask: SSAValue | None = None,
        *,
        release: bool = False,
        cache: str = "",
        evict: str = "",
    ):
        super().__init__(
            operands=[pointer, value, mask],
            properties={
                "release": UnitAttr() if release else None,
                "cache": word(cache),
                "evict": word(evict),
            },
        )

    def verify_(self) -> None:
        _verify_access(self, self.pointer, [self.value], self.mask)
        _verify_advice(self, self.cache, STORE_CACHES, self.evict)


@irdl_op_definition
class AtomicRmwOp(TileOp):
    """``*p = kind(*p, value)``, indivisibly, for each element whose mask is true; the result is what was there before
    (unspecified where masked off). Kinds: `ATOMIC`. Elements of one tile that meet at an address all take effect."""

    name = "tile.atomic_rmw"
    kind = prop_def(StringAttr)
    pointer = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    sem = prop_def(StringAttr, default_value=StringAttr("acq_rel"))
    scope = prop_def(StringAttr, default_value=StringAttr("gpu"))
    result = result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$kind $pointer `,` $value (`mask` $mask^ `:` type($mask))? (`sem` $sem^)? (`scope` $scope^)? attr-dict "
        "`:` type($pointer) `,` type($value) `to` type($result)"
    )

    def __init__(
        self,
        kind: str,
        pointer: SSAValue,
        value: SSAValue,
        mask: SSAValue | None = None,
        *,
        sem: str = "acq_rel",
        scope: str = "gpu",
    ):
        super().__init__(
            operands=[pointer, value, mask],
            properties={"kind": word(kind), "sem": word(sem), "scope": word(scope)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        check_kind("tile.atomic_rmw", self.kind.data, ATOMIC, self.value)
        _verify_access(self, self.pointer, [self.value, self.result], self.mask)
        _verify_atomic(self, self.sem, self.scope)


@irdl_op_definition
class AtomicCasOp(TileOp):
    """``if *p == expected: *p = value``, indivisibly, for each element; the result is what was there before. Elements
    are compared by their bits. The order holds whether or not the value was written."""

    name = "tile.atomic_cas"
    T: ClassVar = VarConstraint("T", AnyAttr())
    pointer = operand_def()
    expected = operand_def(T)
    value = operand_def(T)
    sem = prop_def(StringAttr, default_value=StringAttr("acq_rel"))
    scope = prop_def(StringAttr, default_value=StringAttr("gpu"))
    result = result_def(T)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$pointer `,` $expected `,` $value (`sem` $sem^)? (`scope` $scope^)? attr-dict "
        "`:` type($pointer) `,` type($value)"
    )

    def __init__(
        self, pointer: SSAValue, expected: SSAValue, value: SSAValue, *, sem: str = "acq_rel", scope: str = "gpu"
    ):
        super().__init__(
            operands=[pointer, expected, value],
            properties={"sem": word(sem), "scope": word(scope)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        _verify_access(self, self.pointer, [self.expected, self.value, self.result], None)
        if dtype_of(self.value).is_bool:
            raise VerifyException("tile.atomic_cas does not take bool")
        _verify_atomic(self, self.sem, self.scope)

    @property
    def mask(self) -> SSAValue | None:
        """None: every element takes part. (The other accesses have one.)"""
        return None


@irdl_op_definition
class BarrierOp(TileOp):
    """All accesses of the program before it come before all those after it; on a GPU its threads wait for each other."""

    name = "tile.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class AssumeOp(TileOp):
    """The scalar bool holds; the compiler may use it. Where it does not hold, behaviour is undefined."""

    name = "tile.assume"
    condition = operand_def(scalar(dtypes.bool_))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$condition attr-dict"

    def __init__(self, condition: SSAValue):
        super().__init__(operands=[condition])


@irdl_op_definition
class AssertOp(TileOp):
    """The scalar bool holds, or the launch fails with the message."""

    name = "tile.assert"
    condition = operand_def(scalar(dtypes.bool_))
    message = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$condition `,` $message attr-dict"

    def __init__(self, condition: SSAValue, message: str):
        super().__init__(operands=[condition], properties={"message": StringAttr(message)})


@irdl_op_definition
class PrintOp(TileOp):
    """Prints a line for each element of the value, with its index behind ``prefix``, or a line without a value. Prints of one
    program keep their order; each happens as often as it is reached."""

    name = "tile.print"
    prefix = prop_def(StringAttr)
    hexadecimal = opt_prop_def(UnitAttr)
    value = opt_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$prefix (`hex` $hexadecimal^)? ($value^ `:` type($value))? attr-dict"

    def __init__(self, prefix: str, value: SSAValue | None = None, *, hexadecimal: bool = False):
        super().__init__(
            operands=[value],
            properties={"prefix": StringAttr(prefix), "hexadecimal": UnitAttr() if hexadecimal else None},
        )

    def verify_(self) -> None:
        if self.value is None or is_pointer(self.value):
            return
        dtype = dtype_of(self.value)
        if not (dtype.is_bool or dtype.is_integer or dtype in (dtypes.float32, dtypes.float64)):
            raise VerifyException(f"tile.print: {dtype} is printed as another type")

    def described(self, columns: Sequence[int] = ()) -> Print:
        """The op as data; ``columns`` say where its elements lie."""
        found = operands_of(self)
        prefix, hexadecimal = self.prefix.data, self.hexadecimal is not None
        if not found:
            return Print(prefix, hexadecimal, "", ())
        type_ = POINTER if is_pointer(found[0]) else dtype_of(found[0]).numpy.name
        return Print(prefix, hexadecimal, type_, shape_of(found[0]), tuple(columns))


Access: TypeAlias = LoadOp | StoreOp | AtomicRmwOp | AtomicCasOp
"""Ops that touch memory, each through its ``pointer`` under its ``mask``."""


_ACCESSES: Final = frozenset({LoadOp, StoreOp, AtomicRmwOp, AtomicCasOp})


def is_access(op: object) -> TypeGuard[Access]:
    """Whether an op is an `Access`: by its exact class, since passes ask of every op."""
    return type(op) in _ACCESSES


def ordering_of(op: Operation) -> Ordering | None:
    """The op's row of the table; None for one that has none: it touches no memory, or only in its regions. Assembly with effects
    may do anything, so that it is a barrier."""
    if not is_access(op):
        kind = type(op)
        return BARRIER if kind is BarrierOp or (kind is AssemblyOp and "pure" not in op.properties) else None
    match op:
        case LoadOp():
            return LOAD if op.volatile is None else VOLATILE_LOAD
        case StoreOp():
            return STORE if op.release is None else FLAG_STORE
        case _:
            return ATOMICS[op.sem.data]


def may_exchange(first: Ordering, second: Ordering, *, apart: bool) -> bool:
    """Whether two accesses of one program may exchange places: the rules of the module, in their order. ``apart``: they
    are known to touch no address in common."""
    if first.acquires or second.releases:
        return False
    return apart or not (first.writes or second.writes)
