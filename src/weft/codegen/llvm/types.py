"""How element types and values are spelled in LLVM, and what llvmlite's builder lacks.

In a register every float narrower than 32 bits is an integer holding its *bits*, whatever the target;
`weft.codegen.llvm.convert` widens and rounds. On CPUs LLVM's `half` and `bfloat` are not used: a target without instructions for
them calls compiler-rt, which no process exports, and AVX512_BF16's conversion flushes subnormals. On NVIDIA GPUs arithmetic goes
through them (`packed`), so that LLVM forms instructions on pairs.

A value's shape is its LLVM type's: a scalar, or a vector of lanes. No function here or above takes the lane count of an
operand; it asks the operand.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from llvmlite import ir

from weft import dtypes
from weft.dtypes import DType
from weft.target import architecture

I1 = ir.IntType(1)
I8 = ir.IntType(8)
I16 = ir.IntType(16)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
F16 = ir.HalfType()


class BFloatType(ir.Type):
    """LLVM's ``bfloat``, which llvmlite lacks. It has no constants: their bits are integers."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloatType)

    def __hash__(self) -> int:
        return hash(BFloatType)


BF16 = BFloatType()
F32 = ir.FloatType()
F64 = ir.DoubleType()

_WIDE_FLOATS = {32: F32, 64: F64}
_HALVES: dict[DType, ir.Type] = {dtypes.float16: F16, dtypes.bfloat16: BF16}
POINTER = ir.PointerType()
_SUFFIXES: dict[ir.Type, str] = {F16: "f16", BF16: "bf16", F32: "f32", F64: "f64"}


_MASKED: Mapping[str, frozenset[int]] = {
    "avx": frozenset({4, 8}),
    "avx2": frozenset({4, 8}),
    "avx512f": frozenset({4, 8}),
    "avx512bw": frozenset({1, 2}),
}
"""LLVM feature -> the bytes of elements that it adds masked loads and stores of. SVE's are left out: LLVM uses them for vectors
of one register only."""

_GATHERED: Mapping[str, frozenset[int]] = {"avx512f": frozenset({4, 8})}
"""As `_MASKED`, for gathers and scatters. LLVM does not use AVX2's gathers, which are slow on many machines."""


def _sizes(table: Mapping[str, frozenset[int]], features: frozenset[str]) -> frozenset[int]:
    return frozenset(size for feature, sizes in table.items() if feature in features for size in sizes)


class Module(ir.Module):
    """An LLVM module for one target.

    ``half``: the target converts float16 in instructions; ``fma``: it has fused multiply-add; ``ptx``: it is an NVIDIA GPU;
    ``arm``: it is an AArch64; ``contract``: a product may be added without rounding it first, if the kernel's options allow it;
    ``f8``: a GPU that has instructions on float8. ``masked_sizes``, ``gathered_sizes``: the bytes of elements for which it has
    masked loads and stores, and gathers and scatters. ``rounds``: it rounds floats to integers in instructions.
    ``mask_registers``: it has AVX-512's registers for masks. ``slow_masked_stores``: it has AVX's masked stores alone, which take
    tens of cycles on AMD's CPUs.
    Without ``half``, ``fma`` and ``rounds`` (and in a plain `ir.Module`) conversions use integer arithmetic, and products are
    taken in two words (`weft.codegen.llvm.fused`).
    """

    def __init__(self, name: str, triple: str, features: frozenset[str]):
        super().__init__(name)
        self.triple = triple
        self.arm = architecture(triple) == "aarch64"
        self.ptx = triple.startswith("nvptx")
        self.half = self.ptx or self.arm or not features.isdisjoint({"f16c", "avx512f"})
        self.fma = self.ptx or self.arm or not features.isdisjoint({"fma", "avx512f"})
        self.rounds = self.ptx or self.arm or not features.isdisjoint({"sse4.1", "avx", "avx2", "avx512f"})
        self.scalef = self.mask_registers = "avx512f" in features
        self.slow_masked_stores = not features.isdisjoint({"avx", "avx2"}) and not self.mask_registers
        self.contract = "contract" in features
        self.f8 = self.ptx and "f8" in features
        self.masked_sizes = _sizes(_MASKED, features)
        self.gathered_sizes = _sizes(_GATHERED, features)

    @functools.cached_property
    def unrolled(self) -> ir.MDValue:
        """The mark of a loop that LLVM is not to unroll (LLVM Language Reference, "llvm.loop"). It begins with itself."""
        mark = ir.MDValue(self, (), str(len(self.metadata)))
        mark.operands = (mark, self.add_metadata(["llvm.loop.unroll.disable"]))
        return mark


def has(builder: ir.IRBuilder, feature: str) -> bool:
    """Whether the target of the builder's module has one of the features that `Module` knows by name."""
    return isinstance(builder.module, Module) and bool(getattr(builder.module, feature))


def element_type(dtype: DType) -> ir.Type:
    """A value of ``dtype`` in a register: i1, iN, float, double, and for narrow floats the iN of their bits."""
    if dtype.is_float and dtype.bits >= 32:
        return _WIDE_FLOATS[dtype.bits]
    return ir.IntType(dtype.bits)


def packed(builder: ir.IRBuilder, dtype: DType) -> ir.Type | None:
    """LLVM's type of a narrow float that the target has arithmetic on; None where arithmetic is done in float32."""
    return _HALVES.get(dtype) if has(builder, "ptx") else None


def llvm_type(dtype: DType, lanes: int | None) -> ir.Type:
    """``lanes`` values of ``dtype`` in registers, or one scalar where ``lanes`` is None."""
    return _shaped(element_type(dtype), lanes)


def storage_type(dtype: DType, lanes: int | None) -> ir.Type:
    """The same values in memory, where a bool is a byte."""
    return _shaped(I8 if dtype.is_bool else element_type(dtype), lanes)


def _shaped(element: ir.Type, lanes: int | None) -> ir.Type:
    return element if lanes is None else ir.VectorType(element, lanes)


def lanes_of(value: ir.Value) -> int | None:
    """How many lanes a value has; None for a scalar."""
    return value.type.count if isinstance(value.type, ir.VectorType) else None


def like(value: ir.Value, element: ir.Type) -> ir.Type:
    """``element`` in the shape of ``value``."""
    return _shaped(element, lanes_of(value))


def scalar_type(value: ir.Value) -> ir.Type:
    """The type of one lane."""
    return value.type.element if isinstance(value.type, ir.VectorType) else value.type


def integer_width(value: ir.Value) -> int:
    """The bits of one lane of an integer value; `TypeError` for another."""
    element = scalar_type(value)
    if not isinstance(element, ir.IntType):
        raise TypeError(f"expected an integer value, found {value.type}")
    return element.width


class Splat(ir.Constant):
    """One scalar constant in every lane, in LLVM's short spelling (16 lanes spelled out cost the parser 16 times)."""

    def __init__(self, scalar: ir.Constant, lanes: int):
        super().__init__(ir.VectorType(scalar.type, lanes), None)
        self.scalar = scalar

    def _get_reference(self) -> str:
        return f"splat ({self.scalar.type} {self.scalar.get_reference()})"


class Undefined(ir.Constant):
    """Any bits, in LLVM's short spelling; llvmlite spells out each lane."""

    def __init__(self, type_: ir.Type):
        super().__init__(type_, ir.Undefined)

    def _get_reference(self) -> str:
        return "undef"


def _scalar(element: ir.Type, number: int | float) -> ir.Constant:
    return _signed_scalar(element, number, math.copysign(1.0, number))


@functools.lru_cache(maxsize=4096)
def _signed_scalar(element: ir.Type, number: int | float, sign: float) -> ir.Constant:
    """One constant of each kind; by the sign too, since -0.0 equals 0.0."""
    if isinstance(element, ir.IntType):
        number = int(number) & ((1 << element.width) - 1)
        if element.width > 1 and number >> (element.width - 1):
            number -= 1 << element.width
    return ir.Constant(element, number)


@functools.lru_cache(maxsize=4096)
def _signed_splat(element: ir.Type, lanes: int, number: int | float, sign: float) -> Splat:
    """One vector of each kind, as `_signed_scalar`: it keeps its text."""
    return Splat(_signed_scalar(element, number, sign), lanes)


def splat(number: int | float, type_: ir.Type) -> ir.Constant:
    """``number`` in every lane of ``type_``; integers are taken modulo ``2**width``."""
    if isinstance(type_, ir.VectorType):
        return _signed_splat(type_.element, type_.count, number, math.copysign(1.0, number))
    return _scalar(type_, number)


def constant(dtype: DType, number: int | float, lanes: int | None) -> ir.Constant:
    """``number``, which ``dtype`` represents, in every lane."""
    type_ = llvm_type(dtype, lanes)
    if dtype.is_float and dtype.bits < 32:
        return splat(_code(dtype, float(number)), type_)
    return splat(float(number) if dtype.is_float else int(number), type_)


def _code(dtype: DType, number: float) -> int:
    """The bits of a number that a narrow float type has."""
    if dtype.saturates:
        return int(np.flatnonzero(dtype.values == abs(number))[0]) | (0x80 if math.copysign(1.0, number) < 0 else 0)
    return int(np.array(number, dtype.numpy).view(f"u{dtype.itemsize}"))


def _suffix(type_: ir.Type) -> str:
    """How an overloaded intrinsic's name spells a type."""
    if isinstance(type_, ir.VectorType):
        return f"v{type_.count}{_suffix(type_.element)}"
    if isinstance(type_, ir.PointerType):
        return "p0"
    return f"i{type_.width}" if isinstance(type_, ir.IntType) else _SUFFIXES[type_]


def declare(module: ir.Module, name: str, result: ir.Type, arguments: Sequence[ir.Type]) -> ir.Function:
    """The function ``name`` of a module, declared at its first use."""
    found = module.globals.get(name)
    if isinstance(found, ir.Function):
        return found
    return ir.Function(module, ir.FunctionType(result, arguments), name)


def intrinsic(
    builder: ir.IRBuilder,
    name: str,
    operands: Sequence[ir.Value],
    result: ir.Type | None = None,
    overloads: Sequence[ir.Type] | None = None,
) -> ir.Value:
    """Calls ``llvm.<name>`` (which llvmlite declares for scalars only); ``result`` is the first operand's type
    unless given, and the name is overloaded on it unless ``overloads`` says otherwise."""
    result = operands[0].type if result is None else result
    spelled = ".".join(["llvm", name, *(_suffix(t) for t in ([result] if overloads is None else overloads))])
    return builder.call(declare(builder.module, spelled, result, [o.type for o in operands]), operands)


Body = Callable[[ir.IRBuilder, Sequence[ir.Value]], ir.Value | None]
"""What a function of a module consists of; it gives None where the function gives nothing."""


def inlined(builder: ir.IRBuilder, name: str, operands: Sequence[ir.Value], result: ir.Type, body: Body) -> ir.Value:
    """Calls a private function of the module, made by ``body`` at its first use, which LLVM always inlines.

    For code with branches, which leave the caller's blocks alone this way, and for long code that a kernel may use
    often. The name gets the operands' types appended. The module's passes must include the always-inliner.
    """
    return _call_private(builder, name, operands, result, body, "alwaysinline")


def outlined(builder: ir.IRBuilder, name: str, operands: Sequence[ir.Value], result: ir.Type, body: Body) -> ir.Value:
    """As `inlined`, for code that is rarely reached, or that a kernel has several times: LLVM leaves it a function."""
    return _call_private(builder, name, operands, result, body, "noinline")


def _call_private(
    builder: ir.IRBuilder, name: str, operands: Sequence[ir.Value], result: ir.Type, body: Body, attribute: str
) -> ir.Value:
    types = [o.type for o in operands]
    full = ".".join(["weft", name, *map(_suffix, types)])
    return builder.call(private(builder.module, full, types, result, body, attribute), operands)


def private(
    module: ir.Module, name: str, types: Sequence[ir.Type], result: ir.Type, body: Body, attribute: str
) -> ir.Function:
    """The module's own function ``name``, made by ``body`` at its first use."""
    known = name in module.globals
    function = declare(module, name, result, types)
    if not known:
        function.linkage = "internal"
        function.attributes.add(attribute)
        function.attributes.add("nounwind")
        inner = ir.IRBuilder(function.append_basic_block("entry"))
        result_ = body(inner, function.args)
        if result_ is None:
            inner.ret_void()
        else:
            inner.ret(result_)
    return function


def unknown(builder: ir.IRBuilder, value: ir.Value, register: str) -> ir.Value:
    """The value, as LLVM knows nothing of it: it goes through an empty piece of assembly, in a ``register`` of this kind (LLVM
    Language Reference, "Inline Asm Constraint String")."""
    return builder.asm(ir.FunctionType(value.type, [value.type]), "", f"={register},0", [value], False)


def any_lane(builder: ir.IRBuilder, condition: ir.Value) -> ir.Value:
    """Whether a bool value holds in any lane, as i1."""
    if lanes_of(condition) is None:
        return condition
    return intrinsic(builder, "vector.reduce.or", [condition], I1, [condition.type])


def all_lanes(builder: ir.IRBuilder, condition: ir.Value) -> ir.Value:
    """Whether a bool value holds in all lanes, as i1."""
    if lanes_of(condition) is None:
        return condition
    return intrinsic(builder, "vector.reduce.and", [condition], I1, [condition.type])


def shuffle(builder: ir.IRBuilder, value: ir.Value, lanes: Sequence[int], other: ir.Value | None = None) -> ir.Value:
    """The vector of the lanes named, in their order; lanes of ``other`` count from the end of ``value``."""
    if other is None and list(lanes) == list(range(lanes_of(value) or 0)):
        return value
    second = Undefined(value.type) if other is None else other
    return builder.shuffle_vector(value, second, _lane_numbers(tuple(lanes)))


@functools.lru_cache(maxsize=1024)
def _lane_numbers(lanes: tuple[int, ...]) -> ir.Constant:
    """The constant vector that names lanes, made once: it keeps its text, which is long but for the first lane alone."""
    if not any(lanes):
        return ir.Constant(ir.VectorType(I32, len(lanes)), None)
    return ir.Constant(ir.VectorType(I32, len(lanes)), [_scalar(I32, lane) for lane in lanes])


def broadcast(builder: ir.IRBuilder, scalar: ir.Value, lanes: int) -> ir.Value:
    """A scalar in every lane."""
    if isinstance(scalar, ir.Constant):
        return Splat(scalar, lanes)
    undefined = Undefined(ir.VectorType(scalar.type, lanes))
    return shuffle(builder, builder.insert_element(undefined, scalar, _scalar(I32, 0)), [0] * lanes)


def per_lane(builder: ir.IRBuilder, function: ir.Function, operands: Sequence[ir.Value]) -> ir.Value:
    """A scalar function applied to each lane in turn."""
    lanes = lanes_of(operands[0])
    if lanes is None:
        return builder.call(function, operands)
    result: ir.Value = Undefined(ir.VectorType(function.ftype.return_type, lanes))
    for lane in range(lanes):
        index = _scalar(I32, lane)
        value = builder.call(function, [builder.extract_element(o, index) for o in operands])
        result = builder.insert_element(result, value, index)
    return result
