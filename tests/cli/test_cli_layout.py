"""`weft layout`: each question in each form, layouts as they may be spelled, exit codes, every error in one line."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from layout_svg import grids, loads_nothing, parse, tags, texts
from weft.cli import main
from weft.cli.layout_spec import FAMILIES, read_layouts, usage
from weft.layout import (
    LinearLayout,
    blocked,
    mma_swizzled,
    nvidia_mma,
    nvidia_mma_operand,
    optimal_swizzle,
    sliced,
    trans,
    unswizzled,
    vector,
)

BLOCKED = "blocked 16x16 size=2,2 threads=4,8 warps=2,1 order=1,0"
LAYOUT = "{register: [(0,1),(1,0)], lane: [(0,2),(0,4),(0,8),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 16]"


def words_of(text: str) -> list[str]:
    """The words that a shell makes of a text without quotes."""
    return text.split()


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output as in a pipe, whatever the machine's environment."""
    for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str]]:
    """The exit code, and the lines of stdout without trailing blanks; nothing on stderr."""
    code = main(["layout", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, [line.rstrip() for line in out.splitlines()]


def ask_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    code, lines = ask(capsys, *arguments, "--json")
    assert code == 0
    return json.loads("\n".join(lines))


def complain(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of an error; nothing on stdout."""
    try:
        code = main(["layout", *arguments])
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err[:-1]


# ---- how layouts are spelled ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "blocked 4x4 size_per_thread=1,1 threads_per_warp=4,4 warps_per_cta=1,1 order=0,1",
            [blocked((4, 4), (1, 1), (4, 4), (1, 1), (0, 1))],
        ),
        ("blocked shape= size= threads= warps= order=", [blocked((), (), (), (), ())]),
        ("blocked 64 size=2 threads=4 warps=2 order=0 cga=1", [blocked((64,), (2,), (4,), (2,), (0,), [(1,)])]),
        ("blocked 64 size=2 threads=4 warps=2 order=0 cga=", [blocked((64,), (2,), (4,), (2,), (0,), [])]),
        ("vector 4x8 lanes=8 vector 4x8 lanes=8 order=0,1", [vector((4, 8), 8), vector((4, 8), 8, (0, 1))]),
        ("mma 32x32 version=2 warps=2,2 instr=16,8", [nvidia_mma((32, 32), 2, (2, 2), (16, 8))]),
        ("nvidia_mma 32x32 version=2 warps=2,2 instr=16,8", [nvidia_mma((32, 32), 2, (2, 2), (16, 8))]),
        (
            "mma_operand 32x32 operand=0 k=2 version=2 warps=2,2 instr=16x8",
            [nvidia_mma_operand((32, 32), 0, 2, 2, (2, 2), (16, 8))],
        ),
        (f"sliced dim=1 {BLOCKED}", [sliced(LinearLayout.parse(LAYOUT), 1)]),
        (f"sliced dim=0 trans order=1,0 {BLOCKED}", [sliced(trans(LinearLayout.parse(LAYOUT), (1, 0)), 0)]),
        (
            "swizzled 64x64 vec=8 per=1 max=8 unswizzled 8x8 order=0,1",
            [mma_swizzled((64, 64), 8, 1, 8), unswizzled((8, 8), (0, 1))],
        ),
        ("linear_memory 2x2 offset=1,0/0,1", [LinearLayout({"offset": [(1, 0), (0, 1)]}, {"dim0": 2, "dim1": 2})]),
        ("", []),
    ],
)
def test_layouts_are_read(words: str, expected: list[LinearLayout]) -> None:
    assert read_layouts(words.split()) == expected
    assert read_layouts([words]) == expected


@pytest.mark.parametrize(
    "words",
    [
        [LAYOUT],
        [BLOCKED],
        [
            "#ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>",
            "16x16",
        ],
        ["BlockedLayout(size_per_thread=[2, 2], threads_per_warp=[4, 8], warps_per_cta=[2, 1], order=[1, 0]) 16x16"],
    ],
)
def test_one_layout_in_each_spelling(words: list[str]) -> None:
    assert read_layouts(words) == [LinearLayout.parse(LAYOUT)]
    assert read_layouts(words * 2) == [LinearLayout.parse(LAYOUT)] * 2


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_can_be_written(name: str) -> None:
    # `usage` needs a kind for every parameter: a family whose signature the command line cannot say fails here.
    parameters = [p for p in inspect.signature(FAMILIES[name]).parameters if p not in ("shape", "parent", "layout")]
    shown = usage(name)
    assert shown.split()[0] == name
    names = [word.strip("[]").partition("=")[0] for word in shown.split() if "=" in word]
    assert [name for name in names if name != "shape"] == parameters


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("blokced 4x4", "unknown layout 'blokced'; did you mean 'blocked'?"),
        (
            "zzz",
            "unknown layout 'zzz'; there are blocked, blocked_operand, vector, mma, mma_operand, mfma, mfma_operand, wmma, "
            "wmma_operand, dpas, dpas_operand, unswizzled, swizzled, nvmma_shared, linear_memory, tensor_memory, "
            "tensor_memory_scales, sliced, trans, reshape, expand_dims, broadcast, reduce",
        ),
        ("blocked 4x4 sise=1,1", "blocked has no parameter 'sise'; did you mean 'size'?"),
        ("vector 4x4 zzz=1", "vector has no parameter 'zzz'; it has shape, lanes, order"),
        ("tensor_memory 128x128 c=1", "tensor_memory: 'c' may be col_stride or cga_layout"),
        (
            "blocked 4x4 size=1,1",
            "blocked: threads_per_warp is missing; write blocked SHAPE size_per_thread=N,N threads_per_warp=N,N "
            "warps_per_cta=N,N order=N,N [cga_layout=N,N/N,N]",
        ),
        ("vector lanes=4", "vector: shape is missing; write vector SHAPE [lanes=N] [order=N,N]"),
        ("vector 4x4 lanes=4 lanes=8", "vector: lanes is given twice"),
        ("vector 4x4 8x8", "vector: shape is given twice"),
        ("vector 4x4 lanes=4,4", "vector: lanes is '4,4', expected one number"),
        ("vector 4x4 lanes=four", "vector: lanes is 'four', expected numbers like 1,4 or 64x64"),
        ("vector 4x4 order=1;0", "vector: order is '1;0', expected numbers like 1,4 or 64x64"),
        ("nvmma_shared 64x64 swizzle=128 element=16 transposed=yes", "nvmma_shared: transposed is 'yes', expected true or false"),
        ("sliced dim=0", "sliced: the layout it is made of is missing; write sliced dim=N LAYOUT"),
        ("vector 4x6", "dim1 of shape (4, 6) is 6, expected a power of two"),
        (
            "blocked 4x4 size=3,1 threads=1,1 warps=1,1 order=1,0",
            "blocked: size_per_thread (3, 1) holds 3, expected powers of two",
        ),
    ],
)  # fmt: skip
def test_misspelled_layouts(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complain(capsys, "show", *words.split()) == f"weft: {message}"


def test_broken_text_forms(capsys: pytest.CaptureFixture[str]) -> None:
    assert complain(capsys, "show", "{lane: [1} -> []") == (
        "weft: cannot read layout '{lane: [1} -> []': expected ',' at column 9, found '} -> []'"
    )
    assert complain(capsys, "show", "#ttg.blocked<{order = [0]}>") == (
        "weft: an encoding has no shape: write it after '#ttg.blocked<{order = [0]}>', as in 64x64"
    )


# ---- show -------------------------------------------------------------------------------------------------------------------


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, "show", *words_of(BLOCKED))
    assert code == 0
    assert lines[:2] == ["16 x 16 by lane", "4 registers, 32 lanes, 2 warps; cells: warp.lane.register"]
    # The paper's example: (0,2) is register 0 of lane 1, (2,3) register 1 of lane 9; row 8 begins warp 1.
    assert lines[4].split()[3] == "0.1.0"
    assert lines[6].split()[4] == "0.9.1"
    assert lines[12].split()[1] == "1.0.0"
    assert lines[-1] == LAYOUT
    assert max(map(len, lines)) <= 120
    assert all(line.isascii() for line in lines)


def test_show_json(capsys: pytest.CaptureFixture[str]) -> None:
    data = ask_json(capsys, "show", *words_of(BLOCKED))
    assert data["layout"] == LAYOUT
    assert data["bases"]["lane"] == [[0, 2], [0, 4], [0, 8], [2, 0], [4, 0]]
    assert data["outputs"] == {"dim0": 16, "dim1": 16}
    assert (data["rank"], data["surjective"], data["injective"]) == (8, True, True)
    assert data["elements"][2 * 16 + 3] == [{"register": 1, "lane": 9, "warp": 0}]
    assert len(data["elements"]) == 256


def test_show_svg_and_html(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    svg, html = tmp_path / "a.svg", tmp_path / "a.html"
    assert ask(capsys, "show", *words_of(BLOCKED), "--svg", str(svg), "--by", "warp") == (0, [])
    assert texts(parse(svg.read_text(encoding="utf-8")))[0] == "16 \N{MULTIPLICATION SIGN} 16 by warp"
    assert ask(capsys, "show", *words_of(BLOCKED), "--html", str(html)) == (0, [])
    page = html.read_text(encoding="utf-8")
    assert loads_nothing(page)
    assert tags(page)[0][0] == "html"
    code, lines = ask(capsys, "show", *words_of(BLOCKED), "--svg", "-")
    assert code == 0
    assert len(grids(parse("\n".join(lines)))) == 1


def test_show_colours_only_on_terminals(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, lines = ask(capsys, "show", "blocked", "4x128", "size=1,8", "threads=2,16", "warps=4,1", "order=1,0")
    assert code == 0
    assert lines[-3] == "columns 32 to 127 need a terminal of 386 columns; --svg and --html show all"
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "140")
    _, lines = ask(capsys, "show", *words_of(BLOCKED))
    assert "\x1b[" in lines[5]


def test_bits_decide_banks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found: list[int] = []
    for bits in ("8", "32"):
        svg = tmp_path / f"{bits}.svg"
        assert ask(capsys, "show", "unswizzled", "1x32", "--bits", bits, "--svg", str(svg)) == (0, [])
        [grid] = grids(parse(svg.read_text(encoding="utf-8")))
        found.append(len(set(grid.colours[0])))
    assert found == [8, 32]


# ---- the others -------------------------------------------------------------------------------------------------------------


def test_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = ask(capsys, "matrix", *words_of(BLOCKED))
    assert code == 0
    assert lines[0] == "8 x 8 over F2, invertible"
    assert lines[4:6] == ["dim0  0   .  1      .  .  .  .  .  .", "      1   .  .      .  .  .  1  .  ."]
    data = ask_json(capsys, "matrix", *words_of(BLOCKED))
    assert data["rows"][:2] == [["dim0", 0], ["dim0", 1]]
    assert data["columns"][2] == ["lane", 0]
    assert data["entries"][0] == [0, 1, 0, 0, 0, 0, 0, 0]
    for form in ("--svg", "--html"):
        file = tmp_path / form
        assert ask(capsys, "matrix", *words_of(BLOCKED), form, str(file)) == (0, [])
        assert "over F2" in file.read_text(encoding="utf-8")


def test_convert_on_a_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    words = words_of("vector 8x16 lanes=8 vector 8x16 lanes=8 order=0,1")
    code, lines = ask(capsys, "convert", *words)
    assert code == 0
    assert lines[0] == "8x16: lanes exchange"
    assert lines[4:7] == ["  1  16 shuffles", "  2  16 shuffles", "  3  16 shuffles"]
    data = ask_json(capsys, "convert", *words)
    assert (data["machine"], data["kind"], data["steps"]) == ("cpu", "warp", ["48 shuffles in 3 levels"])
    assert data["cost"]["shuffles"] == 48


def test_convert_on_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = words_of("blocked 64 size=2 threads=32 warps=1 order=0 blocked 64 size=1 threads=32 warps=1 order=0")
    data = ask_json(capsys, "convert", *words)
    assert (data["machine"], data["kind"], data["bits"]) == ("sm_90", "warp", 32)
    # Register and lane columns: 1 | 2 4 8 16 32 and 32 | 1 2 4 8 16: bit 1 enters the lanes, bit 32 leaves: two words, one lane
    # keeps at most one of them.
    assert data["least"]["shuffles"] >= 1
    assert data["cost"]["shuffles"] >= data["least"]["shuffles"]
    assert ask_json(capsys, "convert", *words, "--machine", "sm_80")["machine"] == "sm_80"
    svg = tmp_path / "a.svg"
    assert ask(capsys, "convert", *words, "--svg", str(svg)) == (0, [])
    assert texts(parse(svg.read_text(encoding="utf-8")))[0] == "conversion of 64: lanes exchange"
    wide = words_of("blocked 64 size=1 threads=64 warps=1 order=0 blocked 64 size=1 threads=64 warps=1 order=0")
    assert ask_json(capsys, "convert", *wide)["machine"] == "gfx942"


def test_banks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = words_of("blocked 64x64 size=8,1 threads=8,4 warps=1,4 order=0,1")
    rows = words_of("blocked 64x64 size=1,8 threads=4,8 warps=4,1 order=1,0")
    data = ask_json(capsys, "banks", *columns, "unswizzled", "64x64", "--bits", "16")
    [access] = data["accesses"]
    assert {key: access[key] for key in ("vector", "degree", "wavefronts", "bound", "excess")} == {
        "vector": 1, "degree": 8, "wavefronts": 1024, "bound": 128, "excess": 896,
    }  # fmt: skip
    assert access["words"][0] == {"bank": 0, "row": 0, "lanes": [0, 8], "phase": 0}
    data = ask_json(capsys, "banks", *columns, *rows, "--bits", "16")
    layouts = read_layouts([*columns, *rows])
    assert data["memory"] == str(optimal_swizzle(*layouts, bits=16).memory)
    assert [a["excess"] for a in data["accesses"]] == [0, 0]
    code, lines = ask(capsys, "banks", *rows, "unswizzled", "64x64", "--bits", "16", "--vector", "2")
    assert code == 0
    assert lines[1].startswith("2 x 16 bits per lane: ")
    svg = tmp_path / "a.svg"
    assert ask(capsys, "banks", *rows, "--svg", str(svg)) == (0, [])
    assert "no conflicts" in svg.read_text(encoding="utf-8")


def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = words_of("blocked 16x16 size=1,2 threads=4,8 warps=2,1 order=1,0")
    assert ask_json(capsys, "compare", *words_of(BLOCKED), LAYOUT) == {
        "a": LAYOUT, "b": LAYOUT, "sameness": "equal", "moved": 0,
    }  # fmt: skip
    code, lines = ask(capsys, "compare", *words_of(BLOCKED), *other)
    assert code == 1
    # Of the row bits 1, 2, 4, 8, lanes and warps have 2, 4, 8 of the one and 1, 2, 4 of the other: they agree at rows 0 and 15.
    assert lines[0] == "different: 224 of 256 elements are held by other threads"
    html = tmp_path / "a.html"
    assert ask(capsys, "compare", *words_of(BLOCKED), *other, "--html", str(html)) == (1, [])
    assert html.read_text(encoding="utf-8").count("<svg") == 2


# ---- errors -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no question; there are show, matrix, convert, banks, compare"),
        (("shw",), "unknown question 'shw'; did you mean 'show'?"),
        (("zzz",), "unknown question 'zzz'; there are show, matrix, convert, banks, compare"),
        (("show",), "show takes 1 layout, found 0"),
        (("convert", LAYOUT), "convert takes 2 layouts, found 1"),
        (("compare", LAYOUT, LAYOUT, LAYOUT), "compare takes 2 layouts, found 3"),
        (("matrix", LAYOUT, LAYOUT), "matrix takes 1 layout, found 2"),
        (("banks", "unswizzled", "4x4"), "banks takes layouts with lanes, then at most one with offsets; found none with lanes"),
        (
            ("banks", "unswizzled", "16x16", LAYOUT),
            "banks takes layouts with lanes, then at most one with offsets; found the one with offsets before the last",
        ),
        (
            ("banks", LAYOUT, "unswizzled", "16x16", "unswizzled", "16x16"),
            "banks takes layouts with lanes, then at most one with offsets; found 2 with offsets",
        ),
        (("show", LAYOUT, "--by", "lanes"), "cannot colour by 'lanes', the layout has [register, lane, warp]"),
        (("matrix", LAYOUT, "--by", "lane"), "--by is for show and compare"),
        (("show", LAYOUT, "--vector", "2"), "--vector is for banks"),
        (("show", LAYOUT, "--machine", "cpu"), "--machine is for convert"),
        (("show", LAYOUT, "--lanes", "4"), "--lanes is for convert"),
        (
            ("convert", LAYOUT, LAYOUT, "--machine", "cpu", "--lanes", "4"),
            "--lanes is for GPUs; a CPU has the lanes of the layouts",
        ),
        (
            ("convert", LAYOUT, LAYOUT, "--lanes", "4"),
            "plan_conversion: the source layout has 32 lanes, sm_90 has 4",
        ),
        (("show", LAYOUT, "--bits", "0"), "--bits is 0, expected 1 or more"),
        (("show", LAYOUT, "--bits", "x"), "argument --bits: invalid int value: 'x'"),
        (("convert", LAYOUT, LAYOUT, "--machine", "sm90"), "unknown machine 'sm90'; did you mean 'sm_90'?"),
        (("show", LAYOUT, "--svgg", "x"), "unknown argument '--svgg'; did you mean '--svg'?"),
        (("show", LAYOUT, "--svg", "a", "--json"), "argument --json: not allowed with argument --svg"),
        (
            ("show", "vector", "512x256"),
            "a picture of 131072 elements, 512x256; expected at most 65536",
        ),
        (("show", LAYOUT, "--svg", "/nonexistent/a.svg"), "/nonexistent/a.svg: No such file or directory"),
    ],
)  # fmt: skip
def test_errors_are_one_line(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert complain(capsys, *arguments) == f"weft: {message}"


def test_layouts_of_different_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    assert complain(capsys, "compare", "vector", "4x4", "vector", "8x8") == (
        f"weft: compare: the layouts are of different tensors, {vector((4, 4))} and {vector((8, 8))}"
    )


def test_help_names_every_family(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["layout", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in FAMILIES)
    assert max(map(len, out.splitlines())) < 200


def test_an_encoding_without_unicode_is_enough() -> None:
    program = [sys.executable, "-m", "weft.cli", "layout", "compare", *words_of(BLOCKED), LAYOUT]
    found = subprocess.run(program, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True)
    assert found.stdout.isascii()
