"""The algebra against Triton 3.9.0's, every recorded operation (tests/golden/layout_algebra)."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from weft.layout import LinearLayout

Entry: TypeAlias = Mapping[str, Any]
PATH = Path(__file__).parent.parent / "golden" / "layout_algebra" / "algebra.jsonl"
ENTRIES: list[Entry] = [json.loads(line) for line in PATH.read_text().splitlines()]
parse = LinearLayout.parse


def constructor(entry: Entry) -> LinearLayout:
    size, ends = entry["size"], (entry["inDim"], entry["outDim"])
    match entry["op"]:
        case "identity_1d":
            return LinearLayout.identity(size, *ends)
        case "strided_1d":
            return LinearLayout.strided(size, entry["stride"], *ends)
        case "zeros_1d":
            return LinearLayout.zeros(size, *ends, entry["outDimSize"])
        case other:
            raise AssertionError(other)


def from_bases(entry: Entry) -> LinearLayout:
    return LinearLayout.from_bases(
        dict(entry["bases"]),
        entry["outDimNames"],
        entry["outDimSizes"],
        require_surjective=entry["requireSurjective"],
    )


def product_chain(entry: Entry) -> LinearLayout:
    first, *others = [LinearLayout.identity(*factor[1:]) for factor in entry["factors"]]
    assert all(factor[0] == "identity_1d" for factor in entry["factors"])
    for other in others:
        first = first * other
    return first


GIVES_A_LAYOUT: Mapping[str, Callable[[Entry], LinearLayout]] = {
    "identity_1d": constructor,
    "strided_1d": constructor,
    "zeros_1d": constructor,
    "from_bases": from_bases,
    "product_chain": product_chain,
    "product": lambda entry: parse(entry["a"]) * parse(entry["b"]),
    "compose": lambda entry: parse(entry["a"]).compose(parse(entry["b"])),
    "invert": lambda entry: parse(entry["a"]).inverse(),
    "pseudoinvert": lambda entry: parse(entry["a"]).right_inverse(),
    "invert_and_compose": lambda entry: parse(entry["a"]).invert_and_compose(parse(entry["b"])),
}

DIFFERENT: Mapping[tuple[str, int], tuple[Callable[[Entry], Any], Any]] = {
    # A dimension of size 0 has no index at all; weft says so where Triton gives the layout without dimensions.
    ("identity_1d", 0): (constructor, "identity: size 0 is not a power of two"),
    # Bits above a dimension's size: Triton drops them.
    ("apply", 9): (
        lambda entry: [parse(entry["a"]).apply(point) for point in entry["points"]],
        "register index 9 is out of range, expected 0 <= register < 4",
    ),
}
"""Where weft refuses what Triton gives: by operation and the number that is out of range."""


def out_of_range(entry: Entry) -> tuple[str, int]:
    """The key of `DIFFERENT` that an entry would have."""
    if entry["op"] == "apply":
        return "apply", max(index for point in entry["points"] for index in point.values())
    return entry["op"], entry.get("size", -1)


def compare_different(entry: Entry) -> None:
    call, message = DIFFERENT[out_of_range(entry)]
    assert "out" in entry
    with pytest.raises(ValueError) as error:
        call(entry)
    assert str(error.value) == message


def compare_layout(entry: Entry) -> None:
    """The same layout, the order of its dimensions included; both refuse together."""
    evaluate = GIVES_A_LAYOUT[entry["op"]]
    if "error" in entry:
        with pytest.raises(ValueError):
            evaluate(entry)
        return
    result, expected = evaluate(entry), parse(entry["out"])
    if entry.get("dim_order_conflict"):
        # Which of two contradictory orders the result has is unspecified; the map is not.
        assert result.equal(expected), entry
    else:
        assert result == expected, entry


def compare_apply(entry: Entry) -> None:
    layout = parse(entry["a"])
    images = [layout.apply(point) for point in entry["points"]]
    if "error" in entry:
        # Triton wants each input dimension named; weft takes those left out as 0.
        assert entry["error"].startswith("LLVM ERROR: Dimensions must match")
        assert images == [layout.apply({**dict.fromkeys(layout.in_dims, 0), **point}) for point in entry["points"]]
    else:
        assert images == entry["out"]


def tritons_table(layout: LinearLayout) -> str:
    """How Triton prints a layout."""
    lines = [""]
    for dim in layout.in_dims:
        images = [f"{dim}={1 << bit} -> ({', '.join(map(str, basis))})" for bit, basis in enumerate(layout.bases(dim))]
        separator = "\n" + " " * 3
        lines.append(f" - {separator.join(images)}" if images else f" - {dim} is a size 1 dimension")
    sizes = ", ".join(f"{name} (size {size})" for name, size in zip(layout.out_dims, layout.shape, strict=True))
    return "\n".join([*lines, f"where out dims are: [{sizes}]"])


def compare_props(entry: Entry) -> None:
    layout = parse(entry["a"])
    assert entry["out"] == {
        "is_injective": layout.is_injective,
        "is_surjective": layout.is_surjective,
        "is_invertible": layout.is_invertible,
        "num_in_dims": len(layout.in_dims),
        "num_out_dims": len(layout.out_dims),
        "in_dim_names": list(layout.in_dims),
        "out_dim_names": list(layout.out_dims),
        "matrix": [list(row) for row in layout.matrix().entries],
        "repr": tritons_table(layout),
    }


def compare_eq(entry: Entry) -> None:
    first, second = parse(entry["a"]), parse(entry["b"])
    assert entry["out"]["eq"] == (first == second)
    assert entry["out"]["ne"] == (first != second)


def numbers(text: str) -> list[tuple[int, ...]]:
    """The tuples in a text."""
    return [tuple(map(int, found.split(","))) for found in re.findall(r"\(([\d ,]+)\)", text)]


def compare_distributed_view(entry: Entry) -> None:
    layout, text = parse(entry["a"]), entry["out"]
    warps, registers, lanes = (range(layout.in_size(dim)) for dim in ("warp", "register", "lane"))
    held = {
        (warp, register, lane): layout.unflatten(layout.flat(warp=warp, register=register, lane=lane))
        for warp, register, lane in itertools.product(warps, registers, lanes)
    }
    if entry["hw"]:
        assert numbers(text) == list(held.values())
        return
    # Element by element, row-major: thread:register of each copy, threads counted through the warps.
    cells = re.split(r"[, \n\[\]]+", text.strip(" \n[]"))
    elements = list(itertools.product(*map(range, layout.shape)))
    for cell, element in zip(cells, elements, strict=True):
        copies = {tuple(map(int, copy.removeprefix("T").split(":"))) for copy in cell.split("|")}
        assert copies == {(w * len(lanes) + t, r) for (w, r, t), at in held.items() if at == element}


def compare_shared_view(entry: Entry) -> None:
    layout, text = parse(entry["a"]), entry["out"]
    offsets = range(layout.in_size("offset"))
    if entry["hw"]:
        assert numbers(text) == [layout.unflatten(layout.flat(offset=offset)) for offset in offsets]
        return
    # Element by element its offset, as the row and column it would have unswizzled.
    found = [tuple(map(int, pair)) for pair in re.findall(r"\((\d+):(\d+)\)", text)]
    inverse = layout.inverse()
    elements = itertools.product(*map(range, layout.shape))
    offset_of = [inverse.apply(dict(zip(layout.out_dims, element, strict=True)))["offset"] for element in elements]
    assert found == [divmod(offset, layout.shape[1]) for offset in offset_of]


COMPARE: Mapping[str, Callable[[Entry], None]] = {
    **dict.fromkeys(GIVES_A_LAYOUT, compare_layout),
    "apply": compare_apply,
    "props": compare_props,
    "eq": compare_eq,
    "get_distributed_view": compare_distributed_view,
    "get_shared_view": compare_shared_view,
}

COUNTS = {
    "invert_and_compose": 183, "pseudoinvert": 73, "product": 67, "from_bases": 56, "compose": 56, "invert": 44, "props": 42,
    "apply": 27, "strided_1d": 20, "zeros_1d": 14, "product_chain": 13, "identity_1d": 7, "get_distributed_view": 3, "eq": 2,
    "get_shared_view": 2,
}  # fmt: skip
"""Counted in the recorded file, not here."""


@pytest.mark.parametrize("op", sorted(COUNTS))
def test_every_recorded_operation(op: str, record_property: Callable[[str, object], None]) -> None:
    entries = [entry for entry in ENTRIES if entry["op"] == op]
    different = [entry for entry in entries if out_of_range(entry) in DIFFERENT]
    for entry in entries:
        compare = compare_different if entry in different else COMPARE[op]
        compare(entry)
    record_property("compared", len(entries))
    assert len(entries) == COUNTS[op]
    assert len(different) == sum(key[0] == op for key in DIFFERENT)


def test_nothing_recorded_is_left_out() -> None:
    assert Counter(entry["op"] for entry in ENTRIES) == COUNTS
    assert sum(COUNTS.values()) == len(ENTRIES) == 609
