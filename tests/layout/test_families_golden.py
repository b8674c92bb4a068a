"""Every distributed layout that was read off Triton 3.9.0, basis for basis, and every one it refuses.

``layouts.json`` has 645 layouts chosen to cover Triton's families and 83 more at their edges; ``record.py`` beside it asks again.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import weft.layout
from weft.layout import (
    LinearLayout,
    amd_mfma,
    amd_mfma_operand,
    amd_wmma,
    amd_wmma_operand,
    blocked,
    blocked_operand,
    intel_dpas,
    intel_dpas_operand,
    nvidia_mma,
    nvidia_mma_operand,
    sliced,
    why_not_distributed,
)
from weft.layout.families import amd, dealing, distributed, intel, nvidia, tcgen05

GOLDEN = Path(__file__).parent.parent / "golden" / "distributed_layouts"
FAMILIES = {
    "BlockedLayout": (blocked, blocked_operand),
    "NVMMADistributedLayout": (nvidia_mma, nvidia_mma_operand),
    "AMDMFMALayout": (amd_mfma, amd_mfma_operand),
    "AMDWMMALayout": (amd_wmma, amd_wmma_operand),
}


def read(name: str) -> list[tuple[dict[str, Any], tuple[int, ...], str]]:
    groups = json.loads((GOLDEN / name).read_text())
    return [
        (group["layout"], tuple(int(size) for size in shape.split("x")), answer)
        for group in groups
        for shape, answer in group["shapes"].items()
    ]


def arguments(gluon: Mapping[str, Any]) -> dict[str, Any]:
    """Gluon's constructor arguments as ours: a version is its major number, a cluster is always spelled out."""
    ours: dict[str, Any] = {"cga_layout": [], **gluon}
    for name in ("kind", "rank"):
        ours.pop(name, None)
    if isinstance(ours.get("version"), list):
        ours["version"] = ours["version"][0]
    return ours


def from_gluon(gluon: Mapping[str, Any], shape: Sequence[int]) -> LinearLayout:
    """The layout of Gluon's class and constructor arguments."""
    match gluon["kind"]:
        case "SliceLayout":
            parent_shape = list(shape)
            parent_shape.insert(gluon["dim"], 1)
            return sliced(from_gluon(gluon["parent"], parent_shape), gluon["dim"])
        case "DotOperandLayout":
            parent = gluon["parent"]
            own = {"operand_index": gluon["operand_index"]}
            if parent["kind"] != "BlockedLayout":
                own["k_width"] = gluon["k_width"]
            return FAMILIES[parent["kind"]][1](shape, **own, **arguments(parent))
        case "DistributedLinearLayout":
            bases = {dim: gluon[f"{short}_bases"] for dim, short in zip(DIMS, SHORT, strict=True)}
            return LinearLayout(bases, {f"dim{axis}": size for axis, size in enumerate(gluon["shape"])})
        case kind:
            return FAMILIES[kind][0](shape, **arguments(gluon))


DOCUMENTED = [function for pair in FAMILIES.values() for function in pair] + [intel_dpas, intel_dpas_operand]

DIMS = ("register", "lane", "warp", "block")
SHORT = ("reg", "lane", "warp", "block")


def spell(layout: LinearLayout) -> str:
    assert layout.in_dims == DIMS
    return "; ".join(f"{dim[0]}:{' '.join(','.join(map(str, basis)) for basis in layout.bases(dim))}" for dim in DIMS)


def family(gluon: Mapping[str, Any]) -> str:
    """``kind`` or ``operand of kind`` or ``slice of ...``."""
    match gluon["kind"]:
        case "SliceLayout":
            return f"slice of {family(gluon['parent'])}".replace("slice of slice", "slice")
        case "DotOperandLayout":
            return f"operand of {family(gluon['parent'])}"
        case kind:
            return kind.removesuffix("Layout").removesuffix("Distributed")


def splits_the_contraction(gluon: Mapping[str, Any]) -> bool:
    """Whether this is an MFMA operand on a cluster that is cut along the contraction.

    There Triton 3.9 gives each block half of the contraction (and a register bit that selects nothing), which no product could
    use; in all its other operands, and in all of ours, every block has all of it.
    """
    if gluon["kind"] != "DotOperandLayout" or gluon["parent"]["kind"] != "AMDMFMALayout":
        return False
    return any(basis[1 - gluon["operand_index"]] for basis in gluon["parent"].get("cga_layout", []))


def test_triton_gives_the_same_layouts() -> None:
    equal: Counter[str] = Counter()
    different: list[str] = []
    for gluon, shape, answer in read("layouts.json"):
        layout = from_gluon(gluon, shape)
        assert layout.shape == shape
        assert why_not_distributed(layout) is None, gluon
        if splits_the_contraction(gluon):
            different.append(spell(layout))
            continue
        assert spell(layout) == answer, (gluon, shape)
        equal[family(gluon)] += 1
    assert equal == {
        "Blocked": 189,
        "operand of Blocked": 20,
        "slice of Blocked": 38,
        "slice of operand of Blocked": 1,
        "NVMMA": 76,
        "operand of NVMMA": 100,
        "slice of NVMMA": 22,
        "slice of operand of NVMMA": 7,
        "AMDMFMA": 76,
        "operand of AMDMFMA": 74,
        "slice of AMDMFMA": 7,
        "slice of operand of AMDMFMA": 1,
        "AMDWMMA": 40,
        "operand of AMDWMMA": 62,
        "slice of AMDWMMA": 5,
        "DistributedLinear": 8,
    }
    assert equal.total() == 726
    # 64x64 on 2x2 blocks: rows are cut (32,0) for the left operand, the contraction's bit is a zero column, 0,32 in a register.
    assert different == [
        "r:0,1 0,2 0,16 0,32; l:1,0 2,0 4,0 8,0 0,4 0,8; w:0,0 16,0; b:32,0 0,0",
        "r:1,0 2,0 16,0 32,0; l:0,1 0,2 0,4 0,8 4,0 8,0; w:0,16 0,0; b:0,0 0,32",
    ]


def test_triton_refuses_the_same_layouts() -> None:
    """All it refuses except what our arguments cannot say; we refuse some more, for which there is no instruction."""
    refused, ours_only = 0, 0
    for gluon, shape, answer in read("refusals.json"):
        operand_of_fma = gluon["kind"] == "DotOperandLayout" and gluon["parent"]["kind"] in (
            "BlockedLayout",
            "SliceLayout",
        )
        if operand_of_fma:
            # A k_width for it, or a sliced parent: `blocked_operand` has no such arguments.
            assert answer.startswith("RuntimeError: ttg.dot_op")
            continue
        with pytest.raises(ValueError):
            from_gluon(gluon, shape)
        if answer.startswith("r:"):
            ours_only += 1
        else:
            refused += 1
    assert (refused, ours_only) == (42, 12)


EXAMPLE = re.compile(r"^ +(\w+\([^\n]*\))(?::[^\n]*)?$", re.MULTILINE)


@pytest.mark.parametrize(
    "documented", [dealing, distributed, nvidia, amd, intel, tcgen05, *DOCUMENTED], ids=lambda item: item.__name__
)
def test_the_worked_examples_in_docstrings(documented: Any) -> None:
    """A call on a line of its own is followed by the layout it makes, maybe after a picture."""
    text = documented.__doc__
    calls = [match for match in EXAMPLE.finditer(text) if match[1].split("(")[0] in vars(weft.layout)]
    assert calls or documented in (dealing, sliced)
    for call in calls:
        layout = re.compile(r"^ +(\{.*\])$", re.MULTILINE).search(text, call.end())
        assert layout is not None
        assert str(eval(call[1], dict(vars(weft.layout)))) == layout[1]
