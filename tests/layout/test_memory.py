"""Memory layouts: Triton's entry by entry, the definitions by arithmetic on coordinates, refusals word for word, edge cases."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout import (
    LinearLayout,
    linear_memory,
    mma_swizzled,
    nvmma_shared,
    padded,
    tensor_memory,
    tensor_memory_scales,
    unswizzled,
    why_not_memory,
)

GOLDEN: list[Any] = json.loads((Path(__file__).parents[1] / "golden" / "layout_memory" / "memory.json").read_text())[
    "entries"
]
CONFLICTS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "layout_memory" / "bank_conflicts.json").read_text()
)


def from_params(params: Mapping[str, Any], shape: Sequence[int]) -> LinearLayout:
    """The layout that Gluon's constructor arguments describe."""
    cga = params.get("cga", ())
    match params["kind"]:
        case "SwizzledShared":
            return mma_swizzled(
                shape, params["vec"], params["perPhase"], params["maxPhase"], params["order"], cga_layout=cga
            )
        case "NVMMAShared":
            return nvmma_shared(
                shape,
                params["swizzlingByteWidth"],
                params["elementBitWidth"],
                params["transposed"],
                params["fp4Padded"],
                cga_layout=cga,
            )
        case "SharedLinear":
            # Gluon prints an empty block dimension.
            columns = linear_memory(shape, params["offset"])
            return LinearLayout.from_columns({**dict(columns.inputs), "block": ()}, columns.outputs)
        case "PaddedShared":
            return padded(shape, params["offset"], params["intervalPadding"])
        case "TensorMemory":
            return tensor_memory(shape, tuple(params["block"]), params["colStride"], params["twoCTAs"], cga)
        case "TensorMemoryScales":
            return tensor_memory_scales(shape, cga)
        case kind:
            raise ValueError(f"no memory layout of kind {kind}")


def test_triton_gives_the_same_layouts() -> None:
    """The 155 entries of the table, then 76 more of larger, smaller and split tensors."""
    compared: Counter[str] = Counter()
    for entry in GOLDEN:
        if "layout" in entry:
            assert from_params(entry["params"], entry["shape"]) == LinearLayout.parse(entry["layout"]), entry
            compared[entry["params"]["kind"]] += 1
    assert compared == {
        "SwizzledShared": 65,
        "NVMMAShared": 91,
        "SharedLinear": 8,
        "TensorMemory": 50,
        "TensorMemoryScales": 17,
    }


def test_what_triton_refuses_is_refused() -> None:
    refused = [entry for entry in GOLDEN if "refused" in entry]
    for entry in refused:
        if entry["refused"] == "SharedLinearLayout offset_bases must not be empty":
            # One element in memory is the empty matrix here, not an error.
            assert str(from_params(entry["params"], entry["shape"])) == "{offset: [], block: []} -> [dim0: 1]"
            continue
        with pytest.raises(ValueError):
            from_params(entry["params"], entry["shape"])
    assert len(refused) == 29


def test_triton_aborts_on_these_in_its_table_of_bank_conflicts() -> None:
    """TMA cannot write a box narrower than the swizzle."""
    for entry in CONFLICTS["refused"]:
        with pytest.raises(ValueError, match=r"a row of \d+ bytes"):
            from_params(entry["params"], entry["shape"])
    assert len(CONFLICTS["refused"]) == 40


def coordinates(layout: LinearLayout) -> list[tuple[int, ...]]:
    """The element at each offset."""
    return [layout.unflatten(layout.flat(offset=offset)) for offset in range(layout.in_size("offset"))]


@given(st.integers(0, 4), st.integers(0, 5), st.integers(0, 3), st.integers(0, 3), st.integers(0, 4), st.booleans())
@examples(100)
def test_mma_swizzling_is_definition_4_11(m: int, n: int, v: int, p: int, q: int, by_columns: bool) -> None:
    """The element (row, column) lies in its row at the offset the formula says, wrapped at the row's length."""
    rows, columns, vec, per_phase, max_phase = 1 << m, 1 << n, 1 << v, 1 << p, 1 << q
    shape, order = ((columns, rows), (0, 1)) if by_columns else ((rows, columns), (1, 0))
    layout = mma_swizzled(shape, vec, per_phase, max_phase, order)
    elements = coordinates(layout)
    for i in range(rows):
        for j in range(columns):
            place = (((i // per_phase) % max_phase) ^ (j // vec)) * vec + j % vec
            assert elements[i * columns + place % columns] == ((j, i) if by_columns else (i, j))
    assert why_not_memory(layout) is None


def test_the_modules_example_of_swizzling() -> None:
    layout = mma_swizzled((4, 8), vec=2, per_phase=1, max_phase=4, order=(1, 0))
    assert str(layout) == "{offset: [(0,1),(0,2),(0,4),(1,2),(2,4)]} -> [dim0: 4, dim1: 8]"
    columns = [column for _, column in coordinates(layout)]
    assert columns[0:8] == [0, 1, 2, 3, 4, 5, 6, 7]
    assert columns[8:16] == [2, 3, 0, 1, 6, 7, 4, 5]
    assert columns[16:24] == [4, 5, 6, 7, 0, 1, 2, 3]
    assert columns[24:32] == [6, 7, 4, 5, 2, 3, 0, 1]


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("transposed", [False, True])
def test_nvmma_swizzles_are_xors_of_address_bits(swizzle: int, bits: int, transposed: bool) -> None:
    """CUTLASS writes the three as Swizzle<1,4,3>, <2,4,3>, <3,4,3>: address bits from 4 on, as many as say which 16 bytes of
    ``swizzle``, are XORed with the bits 3 above them."""
    width = swizzle * 8 // bits
    rows, columns = 32, 2 * width
    layout = nvmma_shared((columns, rows) if transposed else (rows, columns), swizzle, bits, transposed)
    elements = coordinates(layout)
    mask = swizzle - 16
    for i in range(rows):
        for j in range(columns):
            box, inside = divmod(j, width)
            address = (box * rows + i) * swizzle + inside * bits // 8
            place = address ^ ((address >> 3) & mask)
            assert elements[place * 8 // bits] == ((j, i) if transposed else (i, j))
    assert why_not_memory(layout) is None


def test_fp4_padding_holds_nothing_new() -> None:
    layout = nvmma_shared((8, 64), 128, 8, fp4_padded=True)
    assert (
        str(layout)
        == "{offset: [(0,1),(0,2),(0,4),(0,0),(0,8),(0,16),(0,32),(1,8),(2,16),(4,32)]} -> [dim0: 8, dim1: 64]"
    )
    assert why_not_memory(layout) == "basis 3 of offset is (0, 0), expected one or two bits set"


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        (unswizzled((4, 4)), None),
        (unswizzled(()), None),
        (unswizzled((1, 1)), None),
        (mma_swizzled((4, 4), 1, 1, 4), None),
        (
            LinearLayout.parse("{offset: [1,2,7]} -> [dim0: 8]"),
            "basis 2 of offset is (7,), expected one or two bits set",
        ),
        (
            LinearLayout.parse("{offset: [1,2,3]} -> [dim0: 8]"),
            "it is not injective: basis 2 of offset, (3,), is a sum of earlier ones",
        ),
        (LinearLayout.parse("{offset: [1,2]} -> [dim0: 8]"), "it is not surjective: 2 of 3 output bits are reached"),
    ],
)
def test_definition_4_14(layout: LinearLayout, reason: str | None) -> None:
    assert why_not_memory(layout) == reason


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (unswizzled(()), "{offset: []} -> []"),
        (unswizzled((1,)), "{offset: []} -> [dim0: 1]"),
        (unswizzled((2, 4)), "{offset: [(0,1),(0,2),(1,0)]} -> [dim0: 2, dim1: 4]"),
        (unswizzled((2, 4), (0, 1)), "{offset: [(1,0),(0,1),(0,2)]} -> [dim0: 2, dim1: 4]"),
        (unswizzled((4, 2), cga_layout=[(1, 0)]), "{offset: [(0,1),(1,0)], block: [(2,0)]} -> [dim0: 4, dim1: 2]"),
        # More blocks than rows: the second bit of blocks selects nothing.
        (unswizzled((2,), cga_layout=[(1,), (2,)]), "{offset: [], block: [1,0]} -> [dim0: 2]"),
        (mma_swizzled((), 8, 1, 8), "{offset: []} -> []"),
        (mma_swizzled((4,), 1, 1, 4), "{offset: [1,2]} -> [dim0: 4]"),
        # No offset reaches the padding.
        (padded((4,), [(1,), (2,)], [(4, 8)]), "{offset: [1,2]} -> [dim0: 4]"),
        (nvmma_shared((2,), 0, 16), "{offset: [1]} -> [dim0: 2]"),
        (
            tensor_memory_scales((1, 1)),
            "{row: [(0,0),(0,0),(0,0),(0,0),(0,0),(0,0),(0,0)], col: [(0,0),(0,0),(0,0)]} -> [dim0: 1, dim1: 1]",
        ),
    ],
)  # fmt: skip
def test_edge_cases(layout: LinearLayout, text: str) -> None:
    assert str(layout) == text


@given(st.lists(st.integers(0, 3), max_size=3), st.data())
@examples(50)
def test_unswizzled_is_the_order(shape_bits: list[int], data: st.DataObject) -> None:
    shape = [1 << bits for bits in shape_bits]
    order = data.draw(st.permutations(range(len(shape))))
    elements = coordinates(unswizzled(shape, order))
    for offset in range(math.prod(shape)):
        rest, expected = offset, [0] * len(shape)
        for axis in order:
            rest, expected[axis] = divmod(rest, shape[axis])
        assert list(elements[offset]) == expected


Thunk = Callable[[], LinearLayout]
REFUSED: list[tuple[Thunk, str]] = [
    (lambda: unswizzled((4, 3)), "dim1 of shape (4, 3) is 3, expected a power of two"),
    (lambda: unswizzled((4, 4), (0, 0)), "unswizzled: order (0, 0) is not a permutation of the 2 dimensions"),
    (lambda: mma_swizzled((4, 4), 1, 1, 4, (1,)), "mma_swizzled: order (1,) is not a permutation of the 2 dimensions"),
    (lambda: mma_swizzled((4, 4), 3, 1, 4), "mma_swizzled: vec is 3, expected a power of two"),
    (lambda: mma_swizzled((4, 4), 1, 0, 4), "mma_swizzled: per_phase is 0, expected a power of two"),
    (lambda: mma_swizzled((4, 4), 1, 1, -4), "mma_swizzled: max_phase is -4, expected a power of two"),
    (
        lambda: mma_swizzled((4, 4), 1, 1, 4, cga_layout=[(1,)]),
        "mma_swizzled: cga_layout basis (1,) has 1 coordinates, the shape has 2",
    ),
    (
        lambda: linear_memory((4,), [(1,), (1,)]),
        "linear_memory: the 2 bases have rank 1, expected 2 of rank 2, one for each bit of shape (4,)",
    ),
    (
        lambda: linear_memory((4,), [(1,), (2,)], [(3,)]),
        "linear_memory: the 3 bases have rank 2, expected 2 of rank 2, one for each bit of shape (4,)",
    ),
    (
        lambda: padded((64,), [(1 << i,) for i in range(6)], [(16, 4)]),
        "padded: 4 elements after every 16 are not linear over F2: offset 16 moves to 20, an addition; "
        "expected no padding before offset 64",
    ),
    (lambda: nvmma_shared((64, 64), 16, 16), "nvmma_shared: swizzle_bytes is 16, expected 0, 32, 64 or 128"),
    (lambda: nvmma_shared((64, 64), 32, 4), "nvmma_shared: element_bits is 4, expected 8, 16, 32 or 64"),
    (
        lambda: nvmma_shared((64, 64), 64, 8, fp4_padded=True),
        "nvmma_shared: fp4_padded with swizzle_bytes 64 and element_bits 8, expected 128 and 8",
    ),
    (lambda: nvmma_shared((64,), 32, 16), "nvmma_shared: the shape has 1 dimensions, expected at least 2"),
    (lambda: nvmma_shared((), 0, 16), "nvmma_shared: the shape has 0 dimensions, expected at least 1"),
    (
        lambda: nvmma_shared((64, 2, 64), 128, 16, True),
        "nvmma_shared: transposed with 3 dimensions, expected at most 2",
    ),
    (
        lambda: nvmma_shared((64, 64), 128, 8),
        "nvmma_shared: dim1 of a block's part (64, 64) is 64, expected at least 128: a row of 128 bytes",
    ),
    (
        lambda: nvmma_shared((16, 128), 64, 16, transposed=True),
        "nvmma_shared: dim0 of a block's part (16, 128) is 16, expected at least 32: a row of 64 bytes",
    ),
    (
        lambda: nvmma_shared((8, 64), 128, 16, cga_layout=[(1, 0)]),
        "nvmma_shared: a block's part (4, 64) has 4 rows, expected at least 8",
    ),
    (lambda: tensor_memory((128,), (128, 64)), "tensor_memory: the shape has 1 dimensions, expected 2"),
    (
        lambda: tensor_memory((128, 64), (32, 64)),
        "tensor_memory: block is (32, 64), expected 64 or 128 rows and a power of two of columns",
    ),
    (
        lambda: tensor_memory((128, 64), (128, 48)),
        "tensor_memory: block is (128, 48), expected 64 or 128 rows and a power of two of columns",
    ),
    (lambda: tensor_memory((128, 64), (128, 64), 8), "tensor_memory: col_stride is 8, expected 1, 2 or 4"),
    (
        lambda: tensor_memory((256, 64), (128, 64), two_ctas=True),
        "tensor_memory: the first basis of cga_layout is none, expected (1, 0) for two_ctas",
    ),
    (
        lambda: tensor_memory((128, 128), (128, 64), two_ctas=True, cga_layout=[(0, 1)]),
        "tensor_memory: the first basis of cga_layout is (0, 1), expected (1, 0) for two_ctas",
    ),
    (
        lambda: tensor_memory((64, 64), (128, 64)),
        "tensor_memory: a CTA's part (64, 64) has fewer rows than block (128, 64)",
    ),
    (
        lambda: tensor_memory((128, 1), (64, 64), two_ctas=True, cga_layout=[(1, 0)]),
        "tensor_memory: one column cannot be halved, expected at least 2 for 64 rows and two_ctas",
    ),
    (lambda: tensor_memory_scales((4,)), "tensor_memory_scales: the shape has 1 dimensions, expected 2"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_refusals(make: Thunk, message: str) -> None:
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message
