"""What tcgen05.mma multiplies: A and B in shared memory, A and its metadata in tensor memory, the scales of both.

A thread's instruction reads the shared memory of its block, and with ``.cta_group::2`` that of both blocks of the pair: each has
its rows of A and its columns of B where the one pair of descriptors says. Shared memory is read by the async proxy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import tcgen05, tcgen05_sparse
from weft.emulator.arith.descriptors import UNIT
from weft.emulator.arith.products import ELEMENTS
from weft.emulator.arith.tcgen05 import ROW, Product
from weft.emulator.arith.tensor_memory import Cells
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.memory.order import Agent
from weft.emulator.ops.tensor_memory import QUARTER, Part, split_address

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution


@dataclass(frozen=True)
class Operand:
    """A or B of one block in shared memory: the addresses of its units of 16 bytes, and how they become numbers."""

    units: NDArray[np.uint64]
    rows: int
    depth: int
    kind: str
    transposed: bool
    dense: bool

    def numbers(self, words: NDArray[np.uint64]) -> NDArray[Any]:
        """(rows, K), of the units' words (units, 2)."""
        raw = np.ascontiguousarray(words).view(np.uint8)
        if self.transposed:
            return tcgen05.numbers(raw.reshape(self.depth, -1), self.kind).T
        return tcgen05.numbers(raw.reshape(self.rows, -1), self.kind, dense=self.dense)


@lru_cache(maxsize=4096)
def operand(bits: int, rows: int, depth: int, width: int, kind: str, transposed: bool, dense: bool) -> Operand:
    """The operand with this matrix descriptor, of ``width`` bytes a row. Raises `Malformed`."""
    found = tcgen05.descriptor(bits)
    units = found.mn_major(rows, depth, ELEMENTS[kind].bits // 8) if transposed else found.k_major(rows, width // UNIT)
    return Operand(units.ravel().astype(np.uint64), rows, depth, kind, transposed, dense)


def chosen(whole: Operand, rows: NDArray[np.intp]) -> Operand:
    """Some of the rows of a K-major operand."""
    units = whole.units.reshape(whole.rows, -1)[rows]
    return Operand(units.ravel(), rows.size, whole.depth, whole.kind, False, whole.dense)


def left(p: Product, bits: int, rows: int) -> Operand:
    """A's rows of a block, those elements that are stored."""
    return operand(bits, rows, p.kind.k, ROW, p.a, p.a_transposed, p.kind.k == 64)


def right(p: Product, bits: int, columns: int) -> Operand:
    """B's columns of a block."""
    return operand(bits, columns, p.depth, ROW << p.sparse, p.b, p.b_transposed, p.kind.k == 64)


def read_shared(
    execution: Execution, site: int, thread: int, block: int, units: NDArray[np.uint64], agent: Agent | None
) -> NDArray[np.uint64]:
    """The words (units, 2) of a block's units of 16 bytes, which an operation of the thread reads."""
    threads = np.full(units.size, thread)
    clusters = execution.memory.clusters
    addresses = units if clusters is None else clusters.at(units, block % clusters.size)
    access = AccessBatch(site, Space.SHARED, Kind.READ, threads, addresses, UNIT, Proxy.ASYNC, agent=agent)
    execution.counters.access(access)
    return execution.memory.load(access, 8).reshape(-1, 2)


def read_operands(
    execution: Execution, site: int, thread: int, block: int, operands: Sequence[Operand], agent: Agent | None
) -> list[NDArray[Any]]:
    """The numbers of a block's operands, read as one access."""
    words = read_shared(execution, site, thread, block, np.concatenate([o.units for o in operands]), agent)
    ends = np.cumsum([o.units.size for o in operands])[:-1]
    return [o.numbers(part) for o, part in zip(operands, np.split(words, ends), strict=True)]


def stored_left(p: Product, part: Part, address: int, lanes: Cells) -> NDArray[Any]:
    """A in tensor memory, (parts, rows, stored elements); ``lanes`` (rows, parts) are D's, from 0 on."""
    lane, column = split_address(address)
    words = part.read(lane + lanes.T[:, :, None], column + np.arange(ROW // 4), "A: ")
    raw = np.ascontiguousarray(words).view(np.uint8)
    return tcgen05.contained(raw, p.a, dense=p.kind.k == 64)


def sparse_left(p: Product, part: Part, address: int, lanes: Cells, stored: NDArray[Any]) -> NDArray[Any]:
    """A (parts, rows, K) of its stored elements, (parts or 1, rows, K / 2). Raises `ValueError` for metadata without meaning."""
    lane, column = split_address(address)
    kind, found = p.kind.name, list[NDArray[Any]]()
    known = tcgen05_sparse.meaning(kind)
    for i, mine in enumerate(lanes.T):
        at, columns = tcgen05_sparse.metadata_cells(kind, mine, p.selector)
        words = part.read(lane + at, column + columns, "metadata: ")
        fields = tcgen05_sparse.fields(kind, mine, words)
        if not (good := known[fields]).all():
            row, group = (int(axis[0]) for axis in (~good).nonzero())
            raise ValueError(
                f"the sparsity metadata of row {row}, group {group} of a block are "
                f"0b{fields[row, group]:04b}, which mean nothing"
            )
        found.append(tcgen05_sparse.dense(kind, stored[i if len(stored) > 1 else 0], fields))
    return np.stack(found)


def scales_of_rows(p: Product, part: Part, address: int, lanes: Cells, count: int) -> NDArray[np.float64]:
    """The scales of A's rows, (rows, count): ``lanes`` (rows,) are those of D, from 0 on."""
    rows = np.arange(lanes.size)
    return _scales(p, part, address, lanes - lanes % QUARTER, rows, p.a_scale, count, "scales of A: ")


def scales_of_columns(p: Product, part: Part, address: int, quarter: int, count: int, n: int) -> NDArray[np.float64]:
    """The scales of n columns of B, (n, count), that the 32 lanes from ``quarter`` on have."""
    columns = np.arange(n)
    return _scales(p, part, address, np.full(n, quarter), columns, p.b_scale, count, "scales of B: ")


def _scales(
    p: Product, part: Part, address: int, quarters: Cells, index: Cells, first: int, count: int, what: str
) -> NDArray[np.float64]:
    lane, column = split_address(address)
    words = part.read(lane + quarters + index % QUARTER, column + index // QUARTER, what)
    raw = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 4)
    return tcgen05.scales(raw[:, first : first + count], p.scale)
