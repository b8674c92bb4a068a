"""Blackwell's results in registers: what tcgen05.ld and tcgen05.st move between tensor memory and threads.

tcgen05.mma leaves its result in tensor memory, 128 rows of 32-bit columns. An instruction's *atom* says which bits of (row,
column) its registers and lanes have, independently of what is stored there; the memory's own layout (`tensor_memory`) says
which elements those are. So no register layout is named for each shape of result.

    atom       lane                              registers             fragment
    32x32b     row 1 2 4 8 16                    columns               a thread has a row
    16x64b     row 8, column 1, row 1 2 4        columns from 2
    16x128b    column 1 2, row 1 2 4             row 8, columns from 4  a row of 4 threads
    16x256b    column 2 4, row 1 2 4             column 1, row 8, ..   that of mma.m16n8's result

    tcgen05_registers(tensor_memory((128, 8), (128, 8)), "16x256b")

    {register: [(0,1),(8,0),(16,0)], lane: [(0,2),(0,4),(1,0),(2,0),(4,0)], warp: [(32,0),(64,0)]} -> [dim0: 128, dim1: 8]

A warp reaches 32 of the rows only, so the first two warp bits are always rows 32 and 64. Further ones take row 16 (where the atom
leaves it), then the last columns; what is left goes on in registers. 16-bit and 8-bit elements share a column: those bits come
first in registers. Where 64 rows fill half of the memory, row 16 selects nothing, and 32x32b becomes 16x32bx2: its last
lane bit takes the last column bit.
"""

from __future__ import annotations

from weft.layout.algebra import f2
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.dealing import LANE, REGISTER, WARP, size_bits

ROW, COL = "row", "col"

ATOMS: dict[str, tuple[int, tuple[tuple[str, int], ...], tuple[int, ...]]] = {
    "32x32b": (0, ((ROW, 0), (ROW, 1), (ROW, 2), (ROW, 3), (ROW, 4)), ()),
    "16x64b": (0, ((ROW, 3), (COL, 0), (ROW, 0), (ROW, 1), (ROW, 2)), ()),
    "16x128b": (0, ((COL, 0), (COL, 1), (ROW, 0), (ROW, 1), (ROW, 2)), (3,)),
    "16x256b": (1, ((COL, 0), (COL, 1), (ROW, 0), (ROW, 1), (ROW, 2)), (3,)),
}
"""For each atom: adjacent column bits in registers; the lanes' bits, columns counted after those; row bits in registers."""


def _packed_bits(function: str, stride_bits: int, element_bitwidth: int) -> int:
    """How many column bits a 32-bit register holds."""
    if element_bitwidth not in (8, 16, 32):
        raise ValueError(f"{function}: element_bitwidth is {element_bitwidth}, expected 8, 16 or 32")
    packed = 5 - size_bits(function, "element_bitwidth", element_bitwidth)
    if not stride_bits:
        return packed
    if stride_bits != packed:
        raise ValueError(
            f"{function}: memory has a col_stride of {1 << stride_bits}, expected 1 or {1 << packed} for "
            f"{element_bitwidth}-bit elements"
        )
    # One element per column. The instruction packs two of 16 bits (.pack::16b), and nothing else.
    return 1 if element_bitwidth == 16 else 0


def tcgen05_registers(
    memory: LinearLayout, instr_variant: str = "32x32b", num_warps: int = 4, element_bitwidth: int = 32
) -> LinearLayout:
    """The layout of registers that ``instr_variant`` loads from, or stores to, a tensor in tensor memory.

    ``memory`` maps ``row`` (128) and ``col`` to the tensor. ``num_warps`` is at least 4. `ValueError` where the tensor has
    fewer columns than the atom, or for a variant, width or warps that do not exist.
    """
    function = "tcgen05_registers"
    if instr_variant not in ATOMS:
        raise ValueError(f"{function}: instr_variant is {instr_variant!r}, expected one of {', '.join(ATOMS)}")
    warp_bits = size_bits(function, "num_warps", num_warps)
    if warp_bits < 2:
        raise ValueError(
            f"{function}: num_warps is {num_warps}, expected at least 4: each reaches a quarter of the rows"
        )
    if memory.in_dims != (ROW, COL) or memory.in_bits(ROW) != 7:
        raise ValueError(f"{function}: memory is {memory}, expected row (128) and col to a tensor")
    rows, columns = memory.columns(ROW), memory.columns(COL)
    stride_bits = next((bit for bit, column in enumerate(columns) if column), 0)
    columns = tuple(column for column in columns if column)
    adjacent, lanes, row_registers = ATOMS[instr_variant]
    own = adjacent + _packed_bits(function, stride_bits, element_bitwidth)
    across = sum(dim == COL for dim, _ in lanes)
    if across and len(columns) < own + across:
        raise ValueError(
            f"{function}: the tensor has {1 << len(columns)} columns in memory, "
            f"expected at least {1 << (own + across)} for {instr_variant} of {element_bitwidth}-bit elements"
        )
    source = {ROW: rows, COL: columns[own:]}
    lane = [source[dim][bit] for dim, bit in lanes]
    registers = [*columns[:own], *(rows[bit] for bit in row_registers)]
    middle = [rows[4]] if rows[4] and (ROW, 4) not in lanes else []
    halved = lanes[-1] == (ROW, 4) and not rows[4]
    return _share(memory, registers, lane, list(columns[own + across :]), middle, warp_bits, halved)


def _share(
    memory: LinearLayout,
    registers: list[int],
    lane: list[int],
    left: list[int],
    middle: list[int],
    warp_bits: int,
    halved: bool,
) -> LinearLayout:
    """The layout when warps, the last lane bit if ``halved``, and registers have shared the columns ``left`` and row 16,
    ``middle``."""
    extra = warp_bits - 2
    warp = [*memory.columns(ROW)[5:], *middle[:extra]]
    at = max(0, len(left) - (warp_bits - len(warp)))
    warp += left[at:]
    warp += [0] * (warp_bits - len(warp))
    left = left[:at]
    if halved and left:
        lane = [*lane[:-1], left.pop()]
    registers = [*registers, *left, *(middle if not extra else [])]
    columns: dict[str, f2.Matrix] = {REGISTER: tuple(registers), LANE: tuple(lane), WARP: tuple(warp)}
    return LinearLayout.from_columns(columns, memory.outputs)
