"""Debug information of PTX: the user's lines, those of helpers with the calls that lead to them, as LLVM's metadata."""

# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

import weft
import weft.language as tl
from weft.codegen import machine_for
from weft.dtypes import int32
from weft.ir.types import pointer
from weft.options import Options
from weft.target import GpuTarget

pytestmark = pytest.mark.jit


@weft.jit
def inner(out: Any, i: Any) -> None:
    tl.store(out + i, i)


@weft.jit
def middle(out: Any, i: Any) -> None:
    inner(out, i)


@weft.jit
def outer(out: Any, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    middle(out, i)
    middle(out, i)
    tl.store(out, BLOCK)


def metadata(llvm: str) -> dict[str, str]:
    """The nodes of a module, by number."""
    return dict(re.findall(r"^!(\d+) = (.*)$", llvm, re.M))


def resolved(nodes: dict[str, str], node: str) -> str:
    """A location with the function of its scope: ``name line:column``, then that of each call."""
    numbers = {key: value for key, value in re.findall(r"(line|column|scope): !?(\d+)", node)}
    line, column, scope = numbers["line"], numbers["column"], numbers["scope"]
    name = re.search(r'name: "(\w+)"', nodes[scope])
    caller = re.search(r"inlinedAt: !(\d+)", node)
    assert name is not None
    return f"{name[1]} {line}:{column}" + (f" < {resolved(nodes, nodes[caller[1]])}" if caller else "")


def test_locations_have_their_calls() -> None:
    """A helper that is called twice has locations for each call, and one scope."""
    code = outer.compile(np.zeros(64, np.int32), BLOCK=64, target="sm_90")
    nodes = metadata(code.llvm)
    found = [resolved(nodes, node) for node in nodes.values() if node.startswith("!DILocation")]
    a, b, c = (kernel.fn.__code__.co_firstlineno for kernel in (inner, middle, outer))
    calls = [f"middle {b + 2}:5 < outer {c + line}:5" for line in (3, 4)]
    assert len(found) == len(set(found))
    assert {f"inner {a + 2}:5 < {call}" for call in calls} < set(found)
    assert {f"outer {c + 1}:1", f"outer {c + 5}:5"} < set(found)
    assert not [place for place in found if not place.endswith(tuple(f"outer {c + line}:{at}" for line, at in PLACES))]
    scopes = [re.search(r'line: (\d+), name: "(\w+)"', node) for node in nodes.values() if "!DISubprogram" in node]
    assert sorted((s[2], int(s[1])) for s in scopes if s) == [("inner", a + 2), ("middle", b + 2), ("outer", c + 1)]


PLACES = ((1, 1), (2, 9), (3, 5), (4, 5), (5, 5), (5, 14), (5, 19))
"""Lines of the kernel after its decorator's, and columns, at which something stands."""


def test_a_module_says_what_debug_information_it_has() -> None:
    code = outer.compile(np.zeros(64, np.int32), BLOCK=64, target="sm_90")
    nodes = metadata(code.llvm)
    here = Path(__file__)
    file = next(number for number, node in nodes.items() if node.startswith("!DIFile"))
    assert nodes[file] == f'!DIFile(directory: "{here.parent}", filename: "{here.name}")'
    assert [node for node in nodes.values() if "DIFile" in node] == [nodes[file]]
    assert '!{ i32 2, !"Debug Info Version", i32 3 }' in nodes.values()
    assert (
        f"distinct !DICompileUnit(emissionKind: DebugDirectivesOnly, file: !{file}, isOptimized: true, "
        'language: DW_LANG_C, producer: "weft", runtimeVersion: 0)'
    ) in nodes.values()
    assert code.llvm.count("isLocal: false") == 3


def test_a_kernel_without_places() -> None:
    """Tile IR that no source was read for."""
    block = Block([ReturnOp()], arg_types=[pointer(int32)])
    function = FuncOp("kernel", ([pointer(int32)], []), Region(block))
    ModuleOp([function])
    emitted = machine_for(GpuTarget(90)).emit(function, Options())
    nodes = metadata(str(emitted.module))
    assert '!DIFile(directory: "", filename: "<unknown>")' in nodes.values()
    assert [resolved(nodes, node) for node in nodes.values() if node.startswith("!DILocation")] == ["kernel 0:1"]
