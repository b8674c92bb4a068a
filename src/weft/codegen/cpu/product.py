"""The product of two panels: a blocked multiply-add kernel with sums in registers for the panels' whole depth.

    for blocks of the result:   load its vectors, or begin with a constant
        for each k:             load ``columns`` vectors of the right panel
            for each row:       broadcast left[row, k], multiply-add into each
                                store its vectors

Both panels are read in the order in which they lie, and the left rows of the next block are prefetched meanwhile
(`weft.codegen.cpu.next_rows`). Each element's products are added in the order of k, so the sum does not
depend on blocks, tiles, panels or threads.

Instructions on narrow operands (`weft.target.PRODUCTS`) add the products of 2 or 4 neighbours along k at once. Panels hold such
neighbours together, as a *word* of 4 bytes: the kernel is the same, on words. Where the instruction takes the left operand's
integers as unsigned ones, the panel has them 128 higher, and 128 times the right operand's column is subtracted from the sums:

    sum (a + 128) b - 128 sum b = sum a b        modulo 2^32, in which the instructions add; none of them saturates

That excess depends on the right panel alone. It is computed once, and lies behind the panel.

A right panel that nothing else reads is filled here, group by group, by the first block of rows
(`weft.codegen.cpu.filling_groups`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from functools import partial, reduce
from typing import Final

from llvmlite import ir

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.counted import over_blocks, over_steps, rounded_up
from weft.codegen.cpu.fill_panels import fill_group, prepare
from weft.codegen.cpu.filling_groups import TOGETHER, GroupFilling, Packed
from weft.codegen.cpu.microkernel import RegisterBlock
from weft.codegen.cpu.next_rows import NextRows
from weft.codegen.cpu.starts import Beginning, Start
from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import BF16, I8, I16, I32, I64, POINTER, intrinsic, lanes_of
from weft.dtypes import DType
from weft.ir.cpu import ClaimOp, MultiplyOp
from weft.ir.types import dtype_of, shape_of
from weft.target import PRODUCTS, CpuTarget
from weft.transforms.factors import UNROLL

_LATENCY: Final = 4
"""The least sums of a block: a multiply-add takes 4 cycles, and some machines begin one in each."""

_TALL: Final = 6
"""The rows of a block of two vectors across, twelve sums, where a machine has 16 vector registers. Eight sums, of four rows, are
all that two units have under way: one that waits for a load is late. Three blocks of four rows are two tall ones. What a tile
or a mask leaves of twelve rows is in blocks of four."""

_LONG: Final = 512
_UNROLL_LONG: Final = 2
"""The words that a multiplication by vectors of so many bits goes through at once, in the place of `UNROLL`. On Zen 4 products
took as long with 1, 2 and 4, and LLVM 2 of 60 ms less with 2. With 2, those by shorter vectors took up to 1.07 times as long;
in tall blocks they took as long."""


def product_block(target: CpuTarget, dtype: DType, m: int, width: int, bits: int = 0) -> RegisterBlock:
    """The block of sums, in vectors of ``bits`` (0: as long as the machine has them): as many columns as the right panel's groups
    have, and rows for half of the vector registers."""
    bits = bits or target.vector_bits
    lanes = min(width, max(1, bits // dtype.bits))
    many = bits == 512 or target.triple.startswith(("aarch64", "arm64"))
    columns = width // lanes
    return RegisterBlock(min(m, max(1, (16 if many else 8) // columns)), columns, lanes)


_OPERANDS: Final[Mapping[str, ir.Type]] = {"bfloat16": BF16, "int16": I16, "int8": I8}
"""What vectors of words are to the instructions, by the type of the operands."""


_WORD: Final = 4
"""The bytes of a word of neighbours, as many as those of a sum."""


class Product:
    """``neighbours`` elements along k are a word. Panels are counted in words. So many ``words`` are multiplied at once."""

    words = 1
    chains = 1
    """Each sum is of so many, which take the words of the depth in turns."""

    def __init__(self, registers: Registers, op: MultiplyOp, result: Buffer, start: Start | None):
        """``start`` is what the sums begin with; else they are in memory."""
        self._registers = registers
        self._op = op
        self.builder = registers.builder
        self.dtype = dtype_of(op.acc)
        self.m, self.n = shape_of(op.acc)
        self.product = product = PRODUCTS[op.instruction.data]
        self.neighbours = product.group * _WORD // product.bytes if product.bytes else 1
        self.left, self.right = (replace(panel, depth=panel.depth // self.neighbours, group=1) for panel in op.panels)
        self.block = product_block(registers.target, self.dtype, self.m, self.right.width, product.bits)
        self._short = self.block if self._takes_tall_blocks() else None
        self.c = result.pointer
        self.a, self.b = (self.builder.inttoptr(registers.scalar(v), POINTER) for v in (op.left, op.right))
        self.wanted = registers.scalar(op.rows), registers.scalar(op.columns)
        self.unroll = UNROLL if (product.bits or registers.target.vector_bits) < _LONG else _UNROLL_LONG
        self.element = result.element.register_type(None)
        self.vector = ir.VectorType(self.element, self.block.lanes)
        self._align = min(64, self.dtype.itemsize * self.block.lanes)
        self._start = Beginning(registers, start)
        if self._short is not None:
            self.block, self.unroll = replace(self.block, rows=_TALL), _UNROLL_LONG
        self.word: ir.Type = self.element if product.group == 1 else I32

    def _takes_tall_blocks(self) -> bool:
        """Whether blocks have `_TALL` rows. Not where they are no pairs of vectors, where each addition needs a register for its
        product, where a tile has fewer rows than two such blocks, and where the left panel has rows in groups, of which a tall
        block would be in two."""
        added = self.dtype.is_integer or self.product.group > 1
        pairs = (self.block.rows, self.block.columns) == (4, 2)
        return pairs and not added and not self.left.width and self.m >= 2 * _TALL

    def _at(self, pointer: ir.Value, offset: ir.Value | None, const: int = 0) -> ir.Value:
        """``offset + const`` sums or words further."""
        size = self.dtype.itemsize
        if offset is not None:
            pointer = self.builder.gep(pointer, [self.builder.mul(offset, ir.Constant(I64, size))], source_etype=I8)
        return self.builder.gep(pointer, [ir.Constant(I64, const * size)], source_etype=I8) if const else pointer

    def _times(self, number: ir.Value | None, by: int) -> ir.Value | None:
        return None if number is None else self.builder.mul(number, ir.Constant(I64, by))

    def emit(self) -> None:
        """All blocks of the result that are wanted: a group of the right panel stays in cache while the rows go by."""
        width, filling = self.right.width, self._registers.fillings.get(self._op)
        if filling is not None:
            prepare(self._registers, filling)
        elif self.product.unsigned:
            self._keep_excess()
        stale = None if filling is None else self._registers.scalar(filling.op.cond)
        fetch = self._registers.results.get(self._op)
        with over_blocks(self._registers, self.wanted[1], self.n, width) as j:
            b = self._at(self.b, self._times(j, width * self.right.depth))
            c = self._at(self.c, self._times(j, width))
            excess = self._excess_at(j) if self.product.unsigned else []
            for part, over in self._parts(stale):
                with over as row:
                    following, fill = None, None
                    if part is self:
                        following = self._following(row)
                        fill = None if filling is None else partial(self._filled, filling, j, excess)
                    if fetch is not None:
                        fetch(row, self._times(j, width), (part.block.rows, width))
                    part._block(row, b, self._at(c, self._times(row, self.n)), excess, following, stale, fill)

    def _filled(
        self, filling: GroupFilling, j: ir.Value | None, excess: list[ir.Value], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """Fills a group of the right panel, and adds the products of the first block's rows by it to their sums: of a quarter of
        them where no more are wanted. Also writes the excess of its columns."""
        builder, many = self.builder, len(sums)
        slots = [self._registers.entry.alloca(self.vector) for _ in (*sums, *excess)]
        for slot, value in zip(slots, (*sums, *[ir.Constant(self.vector, None)] * len(excess)), strict=True):
            builder.store(value, slot)
        at_once = self.words * self.block.columns
        deep = self.words * max(1, TOGETHER // self.block.columns)
        type_ = ir.VectorType(self.word, self.block.lanes)
        places = [self._registers.entry.alloca(type_) for _ in range(deep * self.block.columns)]

        def multiply(part: Product, number: ir.Value) -> None:
            own = part.block.rows * part.block.columns
            a_k = self._at(self.a, self._times(number, deep * max(1, self.left.width)))
            found: list[ir.Value] = [builder.load(slot, typ=self.vector) for slot in (*slots[:own], *slots[many:])]
            right: list[ir.Value] = [builder.load(place, typ=type_) for place in places]
            for k in range(0, deep, self.words):
                vectors = right[k * self.block.columns :][:at_once]
                columns = self._high(vectors, found[own:]) if excess else []
                found = part._step(a_k, vectors, k, found[:own]) + columns
            for slot, value in zip((*slots[:own], *slots[many:]), found, strict=True):
                builder.store(value, slot)

        def multiply_wanted(number: ir.Value) -> None:
            if few is None:
                multiply(self, number)
                return
            with builder.if_else(few[1]) as (then, otherwise):
                with then:
                    multiply(few[0], number)
                with otherwise:
                    multiply(self, number)

        few = self._few()
        packed = Packed(places, type_, self.dtype.itemsize * self.block.lanes)
        fill_group(self._registers, filling, j, deep * self.neighbours, packed, multiply_wanted)
        result: list[ir.Value] = [builder.load(slot, typ=self.vector) for slot in slots]
        for place, value in zip(excess, result[many:], strict=True):
            builder.store(value, place, align=self._align)
        return result[:many]

    def _parts(self, stale: ir.Value | None) -> Iterator[tuple[Product, AbstractContextManager[ir.Value | None]]]:
        """The rows that are wanted, in blocks and, where at most half a block is left, or less than two tall ones, in blocks of
        fewer rows: the kernel for such blocks, and a loop over the first rows of them. Where the panel is ``stale``, the first
        block fills it."""
        builder, rows, rest = self.builder, self.block.rows, self._rest()
        if rest is None:
            yield self, self._over_rows()
            return
        wanted = self.wanted[0]
        if self._short is not None:
            wanted = rounded_up(self._registers, wanted, self._short.rows)
            whole = builder.sub(wanted, builder.urem(wanted, ir.Constant(I64, 2 * _TALL)))
        else:
            up = builder.add(wanted, ir.Constant(I64, rows // 2 - 1))
            whole = builder.and_(up, ir.Constant(I64, -rows))
        if stale is not None:
            least = builder.select(stale, ir.Constant(I64, rows), ir.Constant(I64, 0))
            whole = intrinsic(builder, "umax", [whole, least])
        yield self, over_steps(self._registers, ir.Constant(I64, 0), whole, rows)
        yield rest, over_steps(self._registers, whole, wanted, rest.block.rows)

    def _rest(self) -> Product | None:
        """The kernel for rows that are left over, a quarter of a block at a time, or an eighth where more chains of sums give the
        same. It goes one step of the depth at a time: its few sums wait for additions, and not for the loop. None where all rows
        are wanted, or where its sums would be too few. The rows that tall blocks leave are in others."""
        if self._short is not None:
            part = copy(self)
            part.block, part.unroll = self._short, UNROLL
            return part
        rows = max(1, self.block.rows // 8)
        chains = -(-_LATENCY // (rows * self.block.columns))
        if not self.dtype.is_integer or self.product.square or self.unroll % chains:
            rows, chains = self.block.rows // 4, 1
        rest = self._of(rows, chains)
        if rest is not None:
            rest.unroll, rest.chains = self.words * chains, chains
        return rest

    def _of(self, rows: int, chains: int = 1) -> Product | None:
        """The kernel for blocks of fewer rows; None where all rows are wanted, or where its sums would be too few."""
        few = rows * chains * self.block.columns < _LATENCY or (self.product.square and rows % 2)
        if few or isinstance(self.wanted[0], ir.Constant):
            return None
        part = copy(self)
        part.block = replace(self.block, rows=rows)
        return part

    def _few(self) -> tuple[Product, ir.Value] | None:
        """The kernel for a quarter of a block's rows, and whether no more are wanted."""
        quarter = self._of(self.block.rows // 4)
        if quarter is None:
            return None
        return quarter, self.builder.icmp_unsigned("<=", self.wanted[0], ir.Constant(I64, quarter.block.rows))

    @contextmanager
    def _over_rows(self) -> Generator[ir.Value | None]:
        """A loop over the first rows of blocks; None where there is one."""
        with over_blocks(self._registers, self.wanted[0], self.m, self.block.rows) as i:
            yield self._times(i, self.block.rows)

    def _left(self, row: ir.Value | None) -> ir.Value:
        """The first element of a block's rows in the left panel."""
        width = self.left.width
        if row is None:
            return self.a
        if not width:
            return self._at(self.a, self._times(row, self.left.pitch(self.dtype.itemsize)))
        within = self.builder.and_(row, ir.Constant(I64, width - 1))
        group = self.builder.sub(row, within)
        return self._at(self._at(self.a, self._times(group, self.left.depth)), within)

    @property
    def _next_rows(self) -> NextRows:
        size = self.dtype.itemsize
        return NextRows(self.block.rows, self.left.pitch(size) * size, self.unroll * size)

    def _following(self, row: ir.Value | None) -> ir.Value | None:
        """The first element of the rows that are multiplied after the block at a row; None where there is one block, or where the
        panel is one stream."""
        if row is None or self.left.width:
            return None
        return self._left(self._next_rows.after(self.builder, row, self.wanted[0]))

    def _row(self, row: int, k: int) -> int:
        """The offset of a word of the left panel from the block's first."""
        left = self.left
        if not left.width:
            return row * left.pitch(self.dtype.itemsize) + k
        return row // left.width * left.width * left.depth + k * left.width + row % left.width

    def _keep_excess(self) -> None:
        """Writes the excess of each column behind a right panel that was just filled, of as many columns as were packed. The
        multiplications of other programs find it there."""
        claim = self._op.right.owner
        assert isinstance(claim, ClaimOp), "a panel was claimed"
        packed = self.wanted[1] if self._op.columns in claim.keys else ir.Constant(I64, self.n)
        with self.builder.if_then(self._registers.scalar(claim.stale)), self._registers.scope():
            width = self.right.width
            with over_blocks(self._registers, packed, self.n, width) as j:
                b = self._at(self.b, self._times(j, width * self.right.depth))
                for place, value in zip(self._excess_at(j), self._excess(b), strict=True):
                    self.builder.store(value, place, align=self._align)

    def _excess_at(self, j: ir.Value | None) -> list[ir.Value]:
        """Where the excess of a group's columns is."""
        first = self._at(self.b, self._times(j, self.right.width), self.n * self.right.depth)
        return [self._at(first, None, v * self.block.lanes) for v in range(self.block.columns)]

    def _excess(self, b: ir.Value) -> list[ir.Value]:
        """128 times the sums of a group's columns, by the instruction itself."""

        def step(_: ir.Value, __: ir.Value, b_k: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            return self._high([each for k in range(self.unroll) for each in self._right(b_k, k)], sums)

        zero = ir.Constant(self.vector, None)
        sums = self._over_depth([zero] * (self.unroll * self.block.columns), step, b, b)
        return [reduce(self.builder.add, sums[v :: self.block.columns]) for v in range(self.block.columns)]

    def _high(self, right: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        """Sums of columns after further vectors of the right panel, of which each is added to one."""
        high = self._registers.splat(ir.Constant(I32, -0x7F7F7F80), self.block.lanes)
        return [self._added(total, high, word) for total, word in zip(sums, right, strict=True)]

    def _block(
        self,
        row: ir.Value | None,
        b: ir.Value,
        c: ir.Value,
        excess: list[ir.Value],
        following: ir.Value | None,
        stale: ir.Value | None,
        fill: Callable[[list[ir.Value]], list[ir.Value]] | None,
    ) -> None:
        """The block at a row, None for the only one. Where the panel is ``stale``, ``fill`` multiplies the first, if given."""
        builder, block, align = self.builder, self.block, self._align
        places = [
            self._at(c, None, r * self.n + v * block.lanes) for r in range(block.rows) for v in range(block.columns)
        ]
        many = len(places)
        sums: list[ir.Value] = self._arranged(self._start.sums(builder, places, self.vector, self.dtype, align))

        def step(number: ir.Value, a_k: ir.Value, b_k: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
            if following is not None:
                self._next_rows.fetch(builder, following, number)
            for k in range(0, self.unroll, self.words):
                right = [vector for word in range(self.words) for vector in self._right(b_k, k + word)]
                sums = [*sums[many:], *self._step(a_k, right, k, sums[:many])]
            return sums

        def multiplied() -> list[ir.Value]:
            more = [ir.Constant(self.vector, None)] * (many * (self.chains - 1))
            found = self._over_depth([*sums, *more], step, self._left(row), b)
            return [reduce(builder.add, found[i::many]) for i in range(many)]

        if fill is None or stale is None:
            sums = multiplied()
        else:
            first = stale if row is None else builder.and_(stale, builder.icmp_signed("==", row, ir.Constant(I64, 0)))
            with builder.if_else(first) as (then, otherwise):
                with then, self._registers.scope():
                    ends = [(fill(sums), builder.block)]
                with otherwise:
                    ends.append((multiplied(), builder.block))
            sums = [self._joined([(each[i], block) for each, block in ends]) for i in range(len(sums))]
        sums = self._arranged(sums)
        if excess:
            less: list[ir.Value] = [builder.load(place, typ=self.vector, align=align) for place in excess]
            sums = [builder.sub(total, less[i % block.columns]) for i, total in enumerate(sums)]
        for place, value in zip(places, sums, strict=True):
            builder.store(value, place, align=align)

    def _joined(self, values: Sequence[tuple[ir.Value, ir.Block]]) -> ir.Value:
        """What a value is after branches, by the blocks that they end with."""
        phi = self.builder.phi(self.vector)
        for value, block in values:
            phi.add_incoming(value, block)
        return phi

    def _arranged(self, sums: list[ir.Value]) -> list[ir.Value]:
        """Vectors of the block's rows, as the instruction has them; the inverse, too."""
        return sums

    def _over_depth(
        self,
        sums: list[ir.Value],
        emit: Callable[[ir.Value, ir.Value, ir.Value, list[ir.Value]], list[ir.Value]],
        a: ir.Value,
        b: ir.Value,
    ) -> list[ir.Value]:
        """A loop over the panels' depth, ``unroll`` words at a time, which keeps the sums in registers. ``emit`` gets the first
        words of both panels, and the sums so far."""
        builder = self.builder
        steps = builder.udiv(self._registers.scalar(self._op.depth), ir.Constant(I64, self.unroll * self.neighbours))
        before = builder.block
        head, done = (self._registers.function.append_basic_block(name) for name in ("depth", "summed"))
        builder.branch(head)
        builder.position_at_end(head)
        step = builder.phi(I64)
        step.add_incoming(ir.Constant(I64, 0), before)
        phis = [builder.phi(self.vector) for _ in sums]
        for phi, value in zip(phis, sums, strict=True):
            phi.add_incoming(value, before)
        a_k = self._at(a, self._times(step, self.unroll * max(1, self.left.width)))
        b_k = self._at(b, self._times(step, self.unroll * self.right.width))
        sums = emit(step, a_k, b_k, list[ir.Value](phis))
        after = builder.add(step, ir.Constant(I64, 1))
        step.add_incoming(after, builder.block)
        for phi, value in zip(phis, sums, strict=True):
            phi.add_incoming(value, builder.block)
        self._registers.repeats(builder.cbranch(builder.icmp_unsigned("<", after, steps), head, done))
        builder.position_at_end(done)
        return sums

    def _right(self, b: ir.Value, k: int) -> list[ir.Value]:
        """The vectors of the right panel at one depth."""
        lanes, size = self.block.lanes, self.dtype.itemsize
        return [
            self.builder.load(
                self._at(b, None, k * self.right.width + v * lanes),
                typ=ir.VectorType(self.word, lanes),
                align=min(64, size * lanes),
            )
            for v in range(self.block.columns)
        ]

    def _step(self, a: ir.Value, right: list[ir.Value], k: int, sums: list[ir.Value]) -> list[ir.Value]:
        """The sums after ``words`` of the depth, from word ``k`` on. Those of the right panel are given."""
        builder, block = self.builder, self.block
        result: list[ir.Value] = []
        embeds = self.product.embeds if block.columns == 1 else ""
        for r in range(block.rows):
            if embeds:
                offset = self._row(r, k) * self.dtype.itemsize
                result.append(_embedded(builder, embeds, sums[r], right[0], a, offset))
                continue
            scalar = builder.load(self._at(a, None, self._row(r, k)), typ=self.word, align=self.dtype.itemsize)
            left = self._registers.splat(scalar, block.lanes)
            result += [self._added(sums[r * block.columns + v], left, right[v]) for v in range(block.columns)]
        return result

    def _added(self, total: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        """The sums after the products of words."""
        builder, product = self.builder, self.product
        if product.group > 1:
            operands = ir.VectorType(_OPERANDS[product.operands], self.neighbours * self.block.lanes)
            words = [builder.bitcast(word, operands) for word in (left, right)]
            if product.adds:
                return intrinsic(builder, product.intrinsic, [total, *words], overloads=())
            return builder.add(total, intrinsic(builder, product.intrinsic, words, self.vector, overloads=()))
        if self.dtype.is_integer:
            return builder.add(total, builder.mul(left, right))
        return intrinsic(builder, "fmuladd", [left, right, total])


def _embedded(
    builder: ir.IRBuilder, name: str, total: ir.Value, right: ir.Value, left: ir.Value, offset: int
) -> ir.Value:
    """The sums after the products with one word at ``left + offset``, which the instruction itself reads and repeats."""
    type_ = ir.FunctionType(total.type, [total.type, right.type, POINTER, I64])
    text = f"{name} ${{4:c}}($3){{1to{lanes_of(total)}}}, $2, $0"
    operands = [total, right, left, ir.Constant(I64, offset)]
    return builder.asm(type_, text, "=v,0,v,r,i,~{memory}", operands, True)
