"""A matrix product as a program: a tile of the result per program, batches along the grid's last dimension.

What is computed from the product element by element (bias, activation, a conversion) is computed from the tile, before anything
is stored. The product itself is stored only where something else reads it.
"""

from __future__ import annotations

from typing import Final

from weft.array.expression.nodes import Matmul, Node
from weft.array.programs.canonical import Access
from weft.array.programs.domain import Domain, Group, Role
from weft.array.programs.reductions import converted
from weft.array.programs.schedule import Kernel
from weft.array.programs.text import NARROW, Program, Writer, reach

_BLOCK: Final = 64
"""Rows and columns of the result, and steps of the sum, in one tile at most."""


def program_of_product(kernel: Kernel) -> Program:
    """The program of a kernel whose first node is a `Matmul` of floats."""
    return _ProductWriter(kernel).program()


class _ProductWriter(Writer):
    aligned = True

    def __init__(self, kernel: Kernel) -> None:
        node = kernel.nodes[0]
        if not isinstance(node, Matmul) or not isinstance(node.lhs, Access) or not isinstance(node.rhs, Access):
            raise TypeError("a matrix product reads memory")
        self.product, self.lhs, self.rhs = node, node.lhs, node.rhs
        super().__init__(kernel)

    def _collect(self, node: Node) -> None:
        if node is not self.product:
            super()._collect(node)

    def _domain(self, strides: list[tuple[int, ...]], wide: bool) -> Domain:
        shape = self.kernel.shape
        last = len(shape) - 1
        tile: list[tuple[int, Role]] = [(last - 1, "rows"), (last, "columns")]
        batch = [Group((axis,), shape[axis], "program", False) for axis in range(last - 1)]
        groups = [Group((axis,), shape[axis], role, False, _tile(shape[axis])) for axis, role in tile]
        wide = wide or max(reach(a.strides, a.shape) for a in (self.lhs, self.rhs)) >= NARROW
        return Domain((*batch, *groups), wide)

    def _body(self) -> None:
        self._accumulate()
        for node in self.kernel.nodes:
            self._store(node, self._value(node))

    def _length(self) -> int:
        return self.lhs.shape[-1]

    def _accumulate(self) -> None:
        """The product of the rows and columns of the tile."""
        rows, columns = self.domain.groups[-2:]
        i, j = (f"i{self._number_of(group)}" for group in (rows, columns))
        inside_i, inside_j = (f"m{self._number_of(group)}" for group in (rows, columns))
        dtype, size = self.product.dtype, self.lhs.shape[-1]
        block = _tile(size)
        cast = ".to(tl.int64)" if self.domain.wide else ""
        step = f"tl.full((), {block}, tl.int64)" if cast else str(block)
        (ai, ak), (bk, bj) = (
            [self._stride(name, s) for name, s in zip(names, access.strides[-2:], strict=True)]
            for names, access in ((("ai", "ak"), self.lhs), (("bk", "bj"), self.rhs))
        )
        length = self.signature.number("K", size)
        for line in (
            f"k = tl.arange(0, {block}){cast}",
            f"left = {self._start(self.lhs, 'a')} + {i}[:, None] * {ai} + k[None, :] * {ak}",
            f"right = {self._start(self.rhs, 'b')} + k[:, None] * {bk} + {j}[None, :] * {bj}",
            f"total = tl.zeros(({rows.block}, {columns.block}), {'tl.float64' if dtype.bits == 64 else 'tl.float32'})",
            f"for start in range(0, {length}, {block}):",
            f"    here = k < {length} - start",
            f"    x = tl.load(left, mask={inside_i}[:, None] & here[None, :], other=0.0)",
            f"    y = tl.load(right, mask=here[:, None] & {inside_j}[None, :], other=0.0)",
            "    total = tl.dot(x, y, total)",
            f"    left += {step} * {ak}",
            f"    right += {step} * {bk}",
        ):
            self._line(line)
        self.values[id(self.product)] = self._define(converted("total", dtype))

    def _start(self, access: Access, name: str) -> str:
        """Where an operand's matrix begins, of this program's number in the batch."""
        terms = [self.signature.pointer(access.buffer)]
        if access.offset:
            terms.append(self.signature.number(f"{name}0", access.offset))
        for group in self.domain.with_role("program"):
            at = group.axes[0] + len(access.shape) - len(self.kernel.shape)
            if at >= 0 and access.shape[at] != 1 and access.strides[at]:
                number = self._number_of(group)
                terms.append(f"i{number} * {self._stride(f'{name}{number}s', access.strides[at])}")
        return " + ".join(terms)

    def _stride(self, role: str, value: int) -> str:
        return str(value) if value in (0, 1) else self.signature.number(role, value)


def _tile(size: int) -> int:
    """A power of two that holds ``size``, 16 at least, `_BLOCK` at most."""
    return min(_BLOCK, max(16, 1 << max(size - 1, 0).bit_length()))
