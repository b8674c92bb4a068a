"""Triton's and Gluon's spellings of layouts: every recorded layout read from both, and what both refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from weft.layout import LinearLayout, blocked
from weft.layout.interop.encodings import KINDS, encoding_of, parse_encoding, parse_module

GOLDEN = Path(__file__).parents[1] / "golden"
DISTRIBUTED: list[dict[str, Any]] = json.loads((GOLDEN / "distributed_layouts" / "layouts.json").read_text())
MEMORY: list[dict[str, Any]] = json.loads((GOLDEN / "layout_memory" / "memory.json").read_text())["entries"]
TRITON = {kind.gluon: kind for kind in KINDS}

# What triton 3.9.0 prints for eight of Gluon's layouts.
MODULE = """
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#linear = #ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]], block = []}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#mma1 = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], isTransposed = true}>
#mma2 = #ttg.amd_wmma<{version = 2, isTranspose = false, ctaLayout = {warp = [[0, 1], [1, 0]]}}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#slice = #ttg.slice<{dim = 1, parent = #blocked}>
"""


def as_gluon(layout: Any) -> str:
    """A recorded layout as Gluon's constructor call."""
    if not isinstance(layout, dict):
        return repr(layout)
    layout = cast("dict[str, Any]", layout)
    fields = {k: v for k, v in layout.items() if k != "kind"}
    return f"{layout['kind']}({', '.join(f'{name}={as_gluon(value)}' for name, value in fields.items())})"


def as_triton(layout: Any) -> str:
    """The same as the text of Triton's attribute."""
    if isinstance(layout, bool):
        return str(layout).lower()
    if not isinstance(layout, dict):
        return repr(layout)
    layout = cast("dict[str, Any]", layout)
    kind = TRITON[layout["kind"]]
    names = {gluon: triton for triton, gluon, _ in kind.parameters}
    fields = {k: v for k, v in layout.items() if k not in ("kind", "rank", "shape")}
    if isinstance(version := fields.get("version"), list):
        fields["version"] = version[0]
    return f"#{kind.triton}<{{{', '.join(f'{names[k]} = {as_triton(v)}' for k, v in fields.items())}}}>"


def bases(layout: LinearLayout) -> dict[str, list[tuple[int, ...]]]:
    """The bases by input dimension, empty ones left out."""
    return {d: [layout.unflatten(c) for c in layout.columns(d)] for d in layout.in_dims if layout.columns(d)}


def recorded(text: str) -> dict[str, list[tuple[int, ...]]]:
    """A recorded answer ``r:1 2; l:4; w:; b:`` (coordinates joined by commas) the same way."""
    long = {"r": "register", "l": "lane", "w": "warp", "b": "block"}
    found = {long[d]: rest.split() for d, rest in (part.strip().split(":") for part in text.split(";"))}
    return {d: [tuple(map(int, basis.split(","))) for basis in listed] for d, listed in found.items() if listed}


def cut_along_the_contraction(layout: dict[str, Any]) -> bool:
    """MFMA operands on such clusters, which Triton 3.9 lays out so that no product could use them; see
    `test_families_golden`."""
    parent = layout.get("parent", {})
    if (layout["kind"], parent.get("kind")) != ("DotOperandLayout", "AMDMFMALayout"):
        return False
    return any(basis[1 - layout["operand_index"]] for basis in parent.get("cga_layout", []))


def test_every_recorded_distributed_layout_is_read_from_both_spellings() -> None:
    compared = 0
    for group in DISTRIBUTED:
        for shape_text, answer in group["shapes"].items():
            shape = tuple(int(n) for n in shape_text.split("x"))
            for text in (as_gluon(group["layout"]), as_triton(group["layout"])):
                if not cut_along_the_contraction(group["layout"]):
                    compared += 1
                    assert bases(parse_encoding(text).layout(shape)) == recorded(answer), text
    assert compared == 2 * 726


def test_recorded_memory_layouts_are_read() -> None:
    names = {"SwizzledShared": "ttg.swizzled_shared", "NVMMAShared": "ttg.nvmma_shared"}
    compared = 0
    for entry in MEMORY:
        params = {"CGALayout" if k == "cga" else k: v for k, v in entry["params"].items() if k not in ("kind", "rank")}
        kind = names.get(entry["params"]["kind"])
        if kind is None or "layout" not in entry or any(isinstance(v, dict) for v in params.values()):
            continue
        text = f"#{kind}<{{{', '.join(f'{k} = {as_triton(v)}' for k, v in params.items())}}}>"
        assert bases(parse_encoding(text).layout(entry["shape"])) == bases(LinearLayout.parse(entry["layout"])), text
        compared += 1
    assert compared >= 100


def test_a_modules_aliases() -> None:
    found = parse_module(MODULE)
    assert list(found) == ["#blocked", "#linear", "#mma", "#mma1", "#mma2", "#shared", "#shared1", "#dot", "#slice"]
    assert found["#blocked"].layout((16, 16)) == blocked((16, 16), (1, 4), (8, 4), (4, 1), (1, 0))
    # Lane bits 0 and 1 walk dim1, which is gone, so they hold copies; 2 to 4 the rows of a warp, then come its warps.
    assert str(found["#slice"].layout((64,))) == "{register: [32], lane: [0,0,1,2,4], warp: [8,16]} -> [dim0: 64]"
    # mma.sync's A fragment: two adjacent columns, then the lower eight rows, then the next eight columns.
    assert bases(found["#dot"].layout((16, 16)))["register"] == [(0, 1), (8, 0), (0, 8)]
    # 128 bytes hold 64 halves; rows 1, 2, 4 XOR their number onto the 16-byte chunks of 8 halves.
    assert bases(found["#shared1"].layout((64, 64)))["offset"][6:9] == [(1, 8), (2, 16), (4, 32)]


def test_linear_layouts_are_printed_as_triton_prints_them() -> None:
    line = re.search(r"#linear = (.*)", MODULE)
    assert line is not None
    assert encoding_of(parse_encoding(line[1]).layout((16, 16))).triton() == line[1]
    again = encoding_of(parse_encoding(line[1]).layout((16, 16))).gluon()
    assert again == (
        "DistributedLinearLayout(reg_bases=[[0, 1]], lane_bases=[[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], "
        "warp_bases=[[4, 0], [8, 0]], block_bases=[], shape=[16, 16])"
    )
    assert parse_encoding(again).layout((16, 16)) == parse_encoding(line[1]).layout((16, 16))
    memory = parse_encoding("#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}>").layout((2, 2))
    assert encoding_of(memory).triton() == "#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}>"
    assert encoding_of(memory).gluon() == "SharedLinearLayout(offset_bases=[[0, 1], [1, 0]])"


def test_encodings_are_printed_as_they_were_read() -> None:
    for name, spelled in re.findall(r"^(#\w+) = (#ttg\.\w+<.*)$", MODULE, re.MULTILINE):
        if "parent" not in spelled and "ctaLayout" not in spelled:
            assert parse_encoding(spelled).triton() == spelled, name
    nested = parse_module(MODULE)["#slice"]
    assert parse_encoding(nested.triton()) == parse_encoding(nested.gluon()) == nested
    assert nested.gluon() == (
        "SliceLayout(dim=1, parent=BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], "
        "order=[1, 0]))"
    )


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (lambda: parse_encoding("#ttg.blockd<{}>"), "unknown encoding 'ttg.blockd'; did you mean 'ttg.blocked'?"),
        (
            lambda: parse_encoding("#ttg.blocked<{foo = 1}>"),
            "ttg.blocked has no parameter 'foo'; it has sizePerThread, threadsPerWarp, warpsPerCTA, order, CGALayout",
        ),
        (lambda: parse_encoding("#nope"), "unknown alias '#nope'; known: none"),
        (lambda: parse_encoding("#nope", parse_module(MODULE[:120])), "unknown alias '#nope'; known: #blocked"),
        (
            lambda: parse_encoding("#ttg.blocked<{"),
            "not an encoding: expected more, found 'the end' in '#ttg.blocked<{'",
        ),
        (
            lambda: encoding_of(blocked((4,), (1,), (4,), (1,), (0,), cga_layout=[])).layout((8,)),
            "ttg.linear: the bases are of a tensor of shape (4,), found (8,)",
        ),
        (lambda: parse_encoding("3"), "not an encoding: '3'"),
        (
            lambda: parse_encoding("#ttg.linear<{}> x"),
            "not an encoding: expected the end, found 'x' in '#ttg.linear<{}> x'",
        ),
        (
            lambda: parse_encoding("#ttg.dot_op<{opIdx = 0, parent = #ttg.linear<{}>, kWidth = 1}>").layout((4, 4)),
            "ttg.dot_op of ttg.linear has no layout, expected the parent to be an instruction's result",
        ),
        (lambda: parse_encoding("#ttg.slice<{dim = 0}>").layout((4,)), "ttg.slice needs a parent encoding, found None"),
        (
            lambda: encoding_of(LinearLayout({"thread": [(1,)]}, {"dim0": 2})),
            "Triton has no input dimension thread; it has register, lane, warp, block",
        ),
    ],
)
def test_refusals(fails: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        fails()
    assert str(caught.value) == message
