"""`LinearLayout`: a linear map between labelled vector spaces over F2 (paper 4.1 to 4.5).

Definition. An input dimension of size 2^n (``register``, ``lane``, ``warp``; ``offset`` of a memory) is the space F2^n of its
index bits; an output dimension (``dim0``, ``dim1``, ... of a tensor) likewise. The layout sends bit i of an input
dimension to its i-th *basis*, one coordinate per output dimension, and a whole index to the XOR of its bits' bases.

    {register: [(0,1),(1,0)], lane: [(0,2),(0,0)]} -> [dim0: 2, dim1: 4]

                 lane 0  lane 1  lane 2  lane 3
    register 0   (0,0)   (0,2)   (0,0)   (0,2)      lane bit 1 is a zero column:
    register 1   (0,1)   (0,3)   (0,1)   (0,3)      lanes 2 and 3 hold duplicates
    register 2   (1,0)   (1,2)   (1,0)   (1,2)
    register 3   (1,1)   (1,3)   (1,1)   (1,3)

Law: ``L(x ^ y) == L(x) ^ L(y)``, so the bases determine the layout, and no operation here enumerates elements.

A basis is kept as one integer, its coordinates laid side by side, the last output dimension in the lowest bits: its position
in the row-major flattened tensor. Reshape and expand_dims then leave the integers alone, and composition or a rank is a
few XORs. Sizes are powers of two; a map that is not linear (a rotation, padding) has no layout.

Two layouts are ``==`` when they also list their dimensions in the same order, since flattened positions depend on it;
`LinearLayout.equal` ignores the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import index as as_int

from weft.extensions import extension
from weft.layout.algebra import division, f2, fields, solving, text_form
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.lazy import lazy
from weft.layout.algebra.matrix_view import MatrixView, matrix_view


def _invariant_violation(bases: Mapping[str, Sequence[Sequence[int]]], out_dims: Mapping[str, int]) -> str | None:
    """Why the arguments describe no layout: the first violated invariant, or None."""
    for name in (*bases, *out_dims):
        if not text_form.is_name(name):
            return f"dimension name {name!r} is not an identifier"
    for name, size in out_dims.items():
        if log2_exact(size) is None:
            return f"output dimension {name} has size {size}, expected a power of two"
    for name, vectors in bases.items():
        for bit, basis in enumerate(vectors):
            if not hasattr(basis, "__len__") or len(basis) != len(out_dims):
                shown = tuple(basis) if hasattr(basis, "__len__") else basis
                return (
                    f"basis {bit} of {name} is {shown}, expected {len(out_dims)} coordinates, "
                    f"one for each of [{', '.join(out_dims)}]"
                )
            for coordinate, (out, size) in zip(basis, out_dims.items(), strict=True):
                if not hasattr(coordinate, "__index__"):
                    return f"basis {bit} of {name} has {out} coordinate {coordinate!r}, expected an integer"
                if not 0 <= coordinate < size:
                    return f"basis {bit} of {name} has {out} coordinate {coordinate}, expected 0 <= {out} < {size}"
    return None


def _merge_order(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """The names of both, keeping both orders: each name new in ``second`` goes before the next name they share.

    Where the two list shared names in opposite orders, ``first`` decides.
    """
    if first == second:
        return tuple(first)
    merged: list[str] = list(first)
    at = len(merged)
    for name in reversed(second):
        if name in merged:
            at = min(at, merged.index(name))
        else:
            merged.insert(at, name)
    return tuple(merged)


def _flattened(
    bases: Mapping[str, Sequence[Sequence[int]]], out_dims: Mapping[str, int]
) -> tuple[dict[str, f2.Matrix], fields.Fields] | None:
    """The flattened columns and the output fields; None where anything is not plain: an invariant is violated, or an integer
    is not Python's own."""
    outputs: list[tuple[str, int]] = []
    for name, size in out_dims.items():
        bits = log2_exact(size) if size.__class__ is int else None
        if bits is None or not text_form.is_name(name):
            return None
        outputs.append((name, bits))
    columns: dict[str, f2.Matrix] = {}
    for name, vectors in bases.items():
        if not text_form.is_name(name):
            return None
        flat: list[int] = []
        for basis in vectors:
            if basis.__class__ not in (tuple, list) or len(basis) != len(outputs):
                return None
            column = 0
            for coordinate, (_, bits) in zip(basis, outputs, strict=True):
                # What is too large or negative leaves something above its bits.
                if coordinate.__class__ is not int or coordinate >> bits:
                    return None
                column = column << bits | coordinate
            flat.append(column)
        columns[name] = tuple(flat)
    return columns, tuple(outputs)


@dataclass(frozen=True, init=False, repr=False)
class LinearLayout:
    """An immutable layout; see the module. Hashable, compared by value, printed as `parse` reads it."""

    inputs: tuple[tuple[str, f2.Matrix], ...]
    """The input dimensions, each with the flattened images of its bits, lowest first."""
    outputs: tuple[tuple[str, int], ...]
    """The output dimensions, each with its number of bits, the slowest first."""

    def __init__(self, bases: Mapping[str, Sequence[Sequence[int]]], out_dims: Mapping[str, int]):
        """``bases[d][i]`` is the image of bit i of input dimension d, coordinates in the order of ``out_dims``, which gives the
        output sizes. `ValueError` says which of them breaks which rule."""
        parts = _flattened(bases, out_dims)
        if parts is None:
            if reason := _invariant_violation(bases, out_dims):
                raise ValueError(f"not a linear layout: {reason}")
            outputs = tuple([(name, as_int(size).bit_length() - 1) for name, size in out_dims.items()])
            plain = {name: [tuple(map(as_int, basis)) for basis in vectors] for name, vectors in bases.items()}
            parts = {name: tuple([fields.flatten(b, outputs) for b in plain[name]]) for name in plain}, outputs
        columns, outputs = parts
        self._set(columns.items(), outputs)

    def _set(self, inputs: Iterable[tuple[str, f2.Matrix]], outputs: tuple[tuple[str, int], ...]) -> None:
        object.__setattr__(self, "inputs", tuple(inputs))
        object.__setattr__(self, "outputs", outputs)

    @classmethod
    def from_columns(cls, columns: Mapping[str, f2.Matrix], out_dims: Iterable[tuple[str, int]]) -> LinearLayout:
        """The layout with these flattened columns and ``(name, bits)`` outputs, trusted to be consistent."""
        layout = object.__new__(cls)
        layout._set(columns.items(), tuple(out_dims))
        return layout

    @classmethod
    def from_bases(
        cls,
        bases: Mapping[str, Sequence[Sequence[int]]],
        out_dims: Sequence[str],
        out_sizes: Sequence[int] | None = None,
        *,
        require_surjective: bool = True,
    ) -> LinearLayout:
        """The layout with these bases, surjective unless not required. Sizes left out are the smallest powers of two that hold
        the coordinates; a guess which only a surjective layout confirms, so they have to be given where it need not be."""
        if out_sizes is None and not require_surjective:
            raise ValueError(
                f"from_bases: out_sizes is None, expected the sizes of [{', '.join(out_dims)}] for a layout that need not be "
                "surjective"
            )
        if out_sizes is None:
            coordinates = zip(*(basis for vectors in bases.values() for basis in vectors), strict=False)
            out_sizes = [1 << max(values).bit_length() for values in coordinates] or [1] * len(out_dims)
        if len(out_sizes) != len(out_dims):
            raise ValueError(
                f"from_bases: got {len(out_sizes)} sizes for the output dimensions [{', '.join(out_dims)}]"
            )
        layout = cls(bases, dict(zip(out_dims, out_sizes, strict=True)))
        if require_surjective and not layout.is_surjective:
            raise ValueError(f"from_bases: {layout} is not surjective: {solving.rank_in_words(layout)}")
        return layout

    @classmethod
    def identity(cls, size: int, in_dim: str, out_dim: str) -> LinearLayout:
        """``id_k`` from ``in_dim`` to ``out_dim``, both of ``size`` = 2^k."""
        bits = _bits_or_raise("identity", size)
        return cls.from_columns({in_dim: f2.identity(bits)}, ((out_dim, bits),))

    @classmethod
    def strided(cls, size: int, stride: int, in_dim: str, out_dim: str) -> LinearLayout:
        """Index i of ``in_dim`` (of ``size``) at ``i * stride`` of ``out_dim``, which has ``size * stride``."""
        bits, up = _bits_or_raise("strided", size), _bits_or_raise("strided", stride, "stride")
        return cls.from_columns({in_dim: tuple([1 << bit << up for bit in range(bits)])}, ((out_dim, bits + up),))

    @classmethod
    def zeros(cls, size: int, in_dim: str, out_dim: str, out_size: int = 1) -> LinearLayout:
        """All of ``in_dim`` (of ``size``) at index 0 of ``out_dim``: a broadcast."""
        bits, out_bits = _bits_or_raise("zeros", size), _bits_or_raise("zeros", out_size)
        return cls.from_columns({in_dim: (0,) * bits}, ((out_dim, out_bits),))

    # The dimensions

    @lazy
    def in_dims(self) -> tuple[str, ...]:
        """Names of the input dimensions."""
        return tuple(name for name, _ in self.inputs)

    @lazy
    def out_dims(self) -> tuple[str, ...]:
        """Names of the output dimensions, slowest first."""
        return tuple(name for name, _ in self.outputs)

    @lazy
    def shape(self) -> tuple[int, ...]:
        """Sizes of the output dimensions."""
        return tuple(1 << bits for _, bits in self.outputs)

    @lazy
    def out_bits(self) -> int:
        """Bits of a flattened output index."""
        return sum(bits for _, bits in self.outputs)

    def in_bits(self, dim: str) -> int:
        """Bits of an input dimension's index."""
        return len(self.columns(dim))

    def in_size(self, dim: str) -> int:
        """Size of an input dimension."""
        return 1 << len(self.columns(dim))

    def out_size(self, dim: str) -> int:
        """Size of an output dimension."""
        return 1 << self._output_fields[self._known_output(dim)][1]

    # The matrix

    @lazy
    def _columns(self) -> dict[str, f2.Matrix]:
        return dict(self.inputs)

    @lazy
    def _output_fields(self) -> dict[str, tuple[int, int]]:
        """Each output dimension's (shift, bits) within a flattened index."""
        return fields.positions(self.outputs)

    @lazy
    def all_columns(self) -> f2.Matrix:
        """The columns of all input dimensions, in their order."""
        return tuple([column for _, columns in self.inputs for column in columns])

    def matrix(self) -> MatrixView:
        """The matrix with its labels, which prints as the paper draws it."""
        return matrix_view(self)

    @lazy
    def _hash(self) -> int:
        return hash((self.inputs, self.outputs))

    def __hash__(self) -> int:
        return self._hash

    def _known_output(self, dim: str) -> str:
        if dim not in self._output_fields:
            raise ValueError(f"no output dimension {dim!r}, the layout has [{', '.join(self.out_dims)}]")
        return dim

    def columns(self, dim: str) -> f2.Matrix:
        """The flattened bases of an input dimension; `ValueError` where there is none of that name."""
        try:
            return self._columns[dim]
        except KeyError:
            raise ValueError(f"no input dimension {dim!r}, the layout has [{', '.join(self.in_dims)}]") from None

    def bases(self, dim: str) -> tuple[tuple[int, ...], ...]:
        """The bases of an input dimension, one coordinate per output dimension."""
        return tuple(self.unflatten(column) for column in self.columns(dim))

    def unflatten(self, index: int) -> tuple[int, ...]:
        """The coordinates of a flattened output index."""
        return fields.unflatten(index, self.outputs)

    def zero_columns(self, dim: str) -> tuple[int, ...]:
        """The bits of ``dim`` that change nothing: indices that differ in them hold duplicates."""
        return tuple(bit for bit, column in enumerate(self.columns(dim)) if not column)

    def duplicate_mask(self, dim: str) -> int:
        """`zero_columns` as a mask: an index with none of these bits set is the first copy."""
        return sum(1 << bit for bit in self.zero_columns(dim))

    # Evaluation

    def flat(self, **indices: int) -> int:
        """The flattened output index at these input indices; dimensions left out are at 0."""
        result = 0
        for dim, index in indices.items():
            columns = self.columns(dim)
            if not 0 <= index < 1 << len(columns):
                raise ValueError(f"{dim} index {index} is out of range, expected 0 <= {dim} < {1 << len(columns)}")
            result ^= f2.apply(columns, index)
        return result

    def apply(self, indices: Mapping[str, int]) -> dict[str, int]:
        """The output index, by dimension, at these input indices; dimensions left out are at 0."""
        return dict(zip(self.out_dims, self.unflatten(self.flat(**indices)), strict=True))

    # Properties

    @lazy
    def rank(self) -> int:
        """The rank of the matrix: the layout reaches 2^rank output indices."""
        return f2.rank(self.all_columns)

    @property
    def is_surjective(self) -> bool:
        """Every output index is reached."""
        return self.rank == self.out_bits

    @property
    def is_injective(self) -> bool:
        """No output index is reached twice."""
        return self.rank == len(self.all_columns)

    @property
    def is_invertible(self) -> bool:
        """Surjective and injective."""
        return self.is_surjective and self.is_injective

    def equal(self, other: LinearLayout) -> bool:
        """The same labelled map, in whatever order either lists its dimensions."""
        return (
            set(self.in_dims) == set(other.in_dims)
            and dict(self.outputs) == dict(other.outputs)
            and self._columns == other.transpose_outs(self.out_dims)._columns
        )

    # Algebra

    def compose(self, outer: LinearLayout) -> LinearLayout:
        """``outer . self``: this layout first (paper 4.2). ``outer``'s input dimensions are this layout's output dimensions, at
        least as large; `ValueError` otherwise."""
        if set(outer.in_dims) != set(self.out_dims):
            raise ValueError(
                f"cannot compose: the inner layout ends in [{', '.join(self.out_dims)}], "
                f"the outer begins in [{', '.join(outer.in_dims)}]"
            )
        matrix: list[int] = []
        for name, bits in reversed(self.outputs):
            if outer.in_bits(name) < bits:
                raise ValueError(
                    f"cannot compose: {name} has size {1 << bits} in the inner layout and "
                    f"{outer.in_size(name)} in the outer, expected at least {1 << bits}"
                )
            matrix += outer.columns(name)[:bits]
        return LinearLayout.from_columns(
            {dim: f2.compose(matrix, columns) for dim, columns in self.inputs}, outer.outputs
        )

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """The label-wise block-diagonal product (paper 4.3): in dimensions both have, this layout's bits are the low ones."""
        sizes = {name: bits for name, bits in self.outputs}
        totals = {**sizes, **{name: sizes.get(name, 0) + bits for name, bits in other.outputs}}
        outputs = tuple([(name, totals[name]) for name in _merge_order(self.out_dims, other.out_dims)])
        low = self.repack(outputs)
        high = other.repack(outputs, sizes)
        return LinearLayout.from_columns(
            {dim: low.get(dim, ()) + high.get(dim, ()) for dim in _merge_order(self.in_dims, other.in_dims)}, outputs
        )

    def divide_left(self, other: LinearLayout) -> LinearLayout | None:
        """The Q with ``self == other * Q`` (paper 4.4), with all of this layout's dimensions; None where there is none."""
        quotient = division.divide(self, other, "left")
        return None if isinstance(quotient, str) else quotient

    def divide_right(self, other: LinearLayout) -> LinearLayout | None:
        """The Q with ``self == Q * other``, with all of this layout's dimensions; None where there is none."""
        quotient = division.divide(self, other, "right")
        return None if isinstance(quotient, str) else quotient

    def why_not_divisible(self, other: LinearLayout, side: division.Side = "left") -> str | None:
        """Why there is no quotient by ``other`` on this side of the product; None where there is one."""
        quotient = division.divide(self, other, side)
        return quotient if isinstance(quotient, str) else None

    def invert_and_compose(self, outer: LinearLayout) -> LinearLayout:
        """C with ``self(x) == outer(C(x))``: where ``outer`` has what this layout has at x. Identity on the dimensions where both
        agree, copies read from the first copy (`weft.layout.algebra.solving`). `ValueError` unless ``outer`` reaches all."""
        return solving.convert(self, outer)

    def inverse(self) -> LinearLayout:
        """The inverse map, from the output dimensions to the input dimensions; `ValueError` unless invertible."""
        if not self.is_invertible:
            raise ValueError(f"{self} has no inverse: {solving.rank_in_words(self)}")
        return solving.right_inverse(self)

    def right_inverse(self) -> LinearLayout:
        """X with ``self . X = identity`` (paper 4.5); duplicates are read from the first copy. `ValueError` unless surjective."""
        return solving.right_inverse(self)

    def left_inverse(self) -> LinearLayout:
        """X with ``X . self = identity``; indices that are not reached go to 0. `ValueError` unless injective."""
        return solving.left_inverse(self)

    def pseudo_inverse(self) -> LinearLayout:
        """X with ``self . X . self = self`` and ``X . self . X = X``: the right or left inverse where there is one."""
        return solving.pseudo_inverse(self)

    # Relabelling

    def rename(self, inputs: Mapping[str, str] | None = None, outputs: Mapping[str, str] | None = None) -> LinearLayout:
        """The same matrix with other dimension names; names not mentioned stay."""
        ins, outs = inputs or {}, outputs or {}
        new_ins = [ins.get(name, name) for name in self.in_dims]
        new_outs = [outs.get(name, name) for name in self.out_dims]
        for names in (new_ins, new_outs):
            if len(set(names)) < len(names):
                raise ValueError(f"renaming gives two dimensions one name: [{', '.join(names)}]")
        return LinearLayout.from_columns(
            dict(zip(new_ins, (columns for _, columns in self.inputs), strict=True)),
            zip(new_outs, (bits for _, bits in self.outputs), strict=True),
        )

    def transpose_outs(self, order: Sequence[str]) -> LinearLayout:
        """The same labelled map with its output dimensions listed in ``order``; only flattened positions change."""
        if sorted(order) != sorted(self.out_dims):
            raise ValueError(
                f"[{', '.join(order)}] is not an order of the output dimensions [{', '.join(self.out_dims)}]"
            )
        outputs = tuple((name, self._output_fields[name][1]) for name in order)
        return LinearLayout.from_columns(self.repack(outputs), outputs)

    def sublayout(self, in_dims: Sequence[str], out_dims: Sequence[str]) -> LinearLayout:
        """The rows of ``out_dims`` and the columns of ``in_dims``, listed in this order."""
        outputs = tuple((name, self._output_fields[self._known_output(name)][1]) for name in out_dims)
        for name in in_dims:
            self.columns(name)
        packed = self.repack(outputs)
        return LinearLayout.from_columns({name: packed[name] for name in in_dims}, outputs)

    def with_columns(self, columns: Mapping[str, f2.Matrix]) -> LinearLayout:
        """Other (flattened) columns for some input dimensions, trusted to fit."""
        return LinearLayout.from_columns({**self._columns, **columns}, self.outputs)

    def repack(
        self, outputs: Sequence[tuple[str, int]], offsets: Mapping[str, int] | None = None
    ) -> dict[str, f2.Matrix]:
        """All columns, flattened for other ``outputs``: dimensions absent there are dropped, absent here zero; each coordinate
        moves up by its dimension's ``offsets`` bits."""
        target = fields.positions(outputs)
        if offsets:
            target = {name: (shift + offsets.get(name, 0), bits) for name, (shift, bits) in target.items()}
        elif target == self._output_fields:
            return dict(self.inputs)
        steps = fields.repacking(self._output_fields, target)
        return {dim: fields.move(columns, steps) for dim, columns in self.inputs}

    # Text

    @lazy
    def _text(self) -> str:
        bases = {dim: self.bases(dim) for dim in self.in_dims}
        return text_form.spell(bases, {name: 1 << bits for name, bits in self.outputs})

    def __str__(self) -> str:
        """``{register: [(0,1),(1,0)], lane: []} -> [dim0: 2, dim1: 2]``; with one output dimension, bases are plain numbers."""
        return self._text

    def __repr__(self) -> str:
        return f"LinearLayout.parse({self._text!r})"

    def _repr_html_(self) -> str | None:
        """The picture that a notebook shows. None, for which a notebook shows the text, where the tensor is too large to draw or
        `weft.report` is not installed."""
        try:
            return extension("layout.notebook")(self)
        except ImportError:
            return None

    @staticmethod
    def parse(text: str) -> LinearLayout:
        """The layout that prints as ``text``, spaces aside; `ValueError` says where it cannot be read."""
        return _parse(text)


def _bits_or_raise(function: str, size: int, name: str = "size") -> int:
    bits = log2_exact(size)
    if bits is None:
        raise ValueError(f"{function}: {name} {size} is not a power of two")
    return bits


@lru_cache(maxsize=4096)
def _parse(text: str) -> LinearLayout:
    try:
        return LinearLayout(*text_form.read(text))
    except ValueError as error:
        raise ValueError(f"cannot read layout {text!r}: {error}") from None
